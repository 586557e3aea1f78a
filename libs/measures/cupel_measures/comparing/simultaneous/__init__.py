"""Simultaneous tests of pairs of systems: max-T and rank tests.

Max-T does not assume equal variances. The rank tests assume equal spreads.
"""
