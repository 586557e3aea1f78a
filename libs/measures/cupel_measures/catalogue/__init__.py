"""Parser of measure texts, and the reference pages of all measures."""
