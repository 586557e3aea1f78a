"""Declarations of measures, and the syntax and parameters of their texts."""
