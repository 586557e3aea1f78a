"""Verbs that speak to a service, through the SDK."""
