"""The contract of the Cupel API.

It consists of resources, request bodies, states and error codes.
"""
