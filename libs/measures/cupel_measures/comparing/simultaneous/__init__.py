"""Tests of many pairs of systems at once that need no equal spreads."""
