"""Declarations in collection files: aspects, label scales, discretised scores."""
