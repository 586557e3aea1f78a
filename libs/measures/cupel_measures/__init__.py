"""Evaluation of ranked retrieval: multi-aspect qrels, runs, measures. Pure: numpy and files, no service."""

__version__ = "0.1.0"
