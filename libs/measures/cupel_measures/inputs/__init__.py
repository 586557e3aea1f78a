"""Runs and judgments from files, dictionaries, data frames, records and arrays."""
