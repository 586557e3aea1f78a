"""Audit kind `aspects`."""
