"""Infrastructure: settings, database, object store, queue, metrics, checks.

The checks run in their own processes.
"""
