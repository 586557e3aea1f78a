"""Verbs that need no service: they call cupel_measures."""
