"""Audit kind `desiderata`."""
