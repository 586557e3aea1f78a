"""Gates: rules that pass or fail a run against a baseline."""
