"""Scores: evaluations, leaderboards, board analyses, explanations, rescoring."""
