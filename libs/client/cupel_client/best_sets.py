"""Sentences about runs outside the set of runs that may be the best."""


def outside_sentence(names: str, number: int, noun: str, alpha: float) -> str:
    """Return a sentence on runs outside the best set without a significant pair."""
    verb, each = ("is", "") if number == 1 else ("are", "for each, ")
    return (
        f"{names} {verb} outside the set: {each}the one-sided test at {alpha:g} rejects that no other {noun} "
        f"is better. The test does not say which {noun} is better, and is not corrected for the number of "
        f"{noun}s tested."
    )
