"""The command `cupel gate`."""
