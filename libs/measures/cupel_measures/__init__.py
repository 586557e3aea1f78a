"""Evaluation of ranked retrieval: multi-aspect qrels, runs, measures.

It needs no service.
"""

__version__ = "0.1.0"
