"""`cupel compare` with --margin and --same: options, computation and output."""
