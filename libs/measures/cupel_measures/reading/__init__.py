"""Readers of runs, qrels, collections and texts, and joins of runs with qrels."""
