"""How close two systems are: tests with a margin, and statistics of two runs of the same system."""
