"""Drop-in replacements of other evaluation libraries."""
