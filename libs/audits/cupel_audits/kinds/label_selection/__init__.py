"""Audit kind `label_selection`."""
