"""Optional C extensions.

They are a reader of runs, a reader of tables in memory, sums and counts over rows, and the max-T
statistics.
"""
