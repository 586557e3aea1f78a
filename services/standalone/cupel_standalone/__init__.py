"""The supervisor of `cupel serve`, the example collection and the demonstration."""
