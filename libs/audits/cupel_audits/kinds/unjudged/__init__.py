"""Audit kind `unjudged`."""
