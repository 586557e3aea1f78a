"""`cupel compare` with --margin or --same: options, computation and output."""
