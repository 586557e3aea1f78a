"""Optional C extensions.

They are a reader of runs, sums and counts over rows, and the max-T statistics.
"""
