"""Reliability and discriminative power of sets of topics."""
