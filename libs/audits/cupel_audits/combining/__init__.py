"""Combination of audits of several collections."""
