"""The HTTP gateway of a Cupel service.

It validates the request, calls the backend and builds the response.
"""

__version__ = "0.1.0"
