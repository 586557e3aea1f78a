"""Audit kind `topics`."""
