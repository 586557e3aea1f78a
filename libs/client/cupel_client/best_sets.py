"""Sentences about runs outside the set of runs that may be the best."""


def outside_sentence(names: str, number: int, noun: str) -> str:
    """Return a sentence on runs outside the best set without a significant pair."""
    subject, pronoun = (f"a {noun} is", "it") if number == 1 else (f"{noun}s are", "they")
    verb = "is" if number == 1 else "are"
    return (
        f"{names} {verb} outside the set by the one-sided test against the best, though no single pair by "
        f"the test of the groups shows that {pronoun} {verb} worse. Being outside is not a test that "
        f"{subject} worse."
    )
