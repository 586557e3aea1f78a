"""Evaluation of runs: what to score, scored runs, and their presentation as tables."""
