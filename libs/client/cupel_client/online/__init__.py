"""Commands that call a Cupel service through its Python client."""
