"""Optional C extensions: the run reader, the row kernels and the max-T kernel."""
