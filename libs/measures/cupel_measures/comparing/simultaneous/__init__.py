"""Simultaneous tests of pairs of systems that do not assume equal variances."""
