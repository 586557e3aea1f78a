"""Scoring: rows of joined runs, gains, discounts, the evaluator and exact values."""
