"""Drop-in replacements for other evaluation libraries."""
