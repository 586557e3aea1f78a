"""the supervisor of `cupel serve`, the example collection, the demonstration."""
