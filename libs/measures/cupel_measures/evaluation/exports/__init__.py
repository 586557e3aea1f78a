"""Scores in the formats of other tools, and as pages and plots."""
