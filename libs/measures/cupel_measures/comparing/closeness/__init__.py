"""Closeness of two systems: tests with a margin, and comparison of a run with its reproduction."""
