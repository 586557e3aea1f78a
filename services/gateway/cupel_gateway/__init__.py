"""The HTTP gateway of a Cupel service: validate the request, call the backend, build the response."""

__version__ = "0.1.0"
