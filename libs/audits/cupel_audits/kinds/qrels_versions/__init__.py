"""Audit kind `qrels_versions`."""
