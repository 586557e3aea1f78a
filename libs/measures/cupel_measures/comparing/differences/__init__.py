"""Tests and intervals of the differences of a comparison."""
