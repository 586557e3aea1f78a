"""Evaluation of ranked retrieval: multi-aspect qrels, runs, measures. Needs no service."""

__version__ = "0.1.0"
