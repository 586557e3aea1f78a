"""Routes of the API, with one module per kind of resource."""
