"""Evaluation of runs: scoring tasks, scored runs, and tables of scores."""
