"""The audit kinds: one module or package per kind, named like the kind."""
