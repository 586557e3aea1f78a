"""The measures, one file per family.

The decorator `measure` declares each measure.
"""
