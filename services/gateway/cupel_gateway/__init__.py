"""The HTTP door of a Cupel service: read the input, one call into the backend, shape the answer."""

__version__ = "0.1.0"
