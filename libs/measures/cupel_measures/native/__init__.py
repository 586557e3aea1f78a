"""Optional C extensions: the run reader and the row kernels."""
