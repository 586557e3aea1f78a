"""Scoring of joined runs: rows, gains, discounts, the evaluator and exact values."""
