"""The contract of the Cupel API: its resources, request bodies, states and error codes."""
