"""The audit kinds: one file or folder per kind. Each declares itself."""
