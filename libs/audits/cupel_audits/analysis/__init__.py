"""Computations that several audit kinds share."""
