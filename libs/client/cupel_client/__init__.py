"""The `cupel` command, and a Python client of the Cupel service."""

__version__ = "0.1.0"
