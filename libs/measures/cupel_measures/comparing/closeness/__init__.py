"""Closeness of two systems: tests with a margin, and comparison of reproductions.

A run is compared with its reproduction.
"""
