"""Significance tests, intervals, rank correlations and groups of systems, from topics x systems of scores.

A score matrix has a row per topic and a column per system. Every function is pure, and those that draw random
numbers take a seed. A result without a value gives the reason in its field `undefined`.
"""
