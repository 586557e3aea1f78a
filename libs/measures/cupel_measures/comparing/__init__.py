"""Comparison of systems by statistical methods.

These are significance tests, confidence intervals, rank correlations and groups of systems.

A score matrix has one row per topic and one column per system. All functions are pure; those that draw random
numbers take a seed. If a result has no value, its field `undefined` gives the reason.
"""
