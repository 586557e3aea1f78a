"""Explanations of scores: what a score depends on."""
