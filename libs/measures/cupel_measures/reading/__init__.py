"""Readers of runs, qrels, collections and document texts, and joins of runs with qrels."""
