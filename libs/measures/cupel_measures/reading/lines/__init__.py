"""Parsing of TREC lines: columns, numbers, order, duplicates and findings."""
