"""Profiles: named sets of reading and ordering rules, recorded with every score (compatibility.md 1.1)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """single_precision: scores are compared as 32-bit floats. truncated_recall: interpolated
    precision at level c needs int(c R + 0.9) documents instead of c R rounded half away from zero.
    negatives_judged: a negative grade is a judgment (the lowest label); else pooled, not judged.
    """

    name: str
    meaning: str
    single_precision: bool = False
    truncated_recall: bool = False
    negatives_judged: bool = True


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("cupel", "double precision; a negative grade is the lowest label"),
        Profile(
            "trec_eval-9",
            "as trec_eval 9.0.8 -c: single precision, older interpolation",
            single_precision=True,
            truncated_recall=True,
            negatives_judged=False,
        ),
        Profile("trec_eval-10", "as trec_eval 10.0 -c: double precision", negatives_judged=False),
    )
}

DEFAULT = PROFILES["cupel"]


def find(name: str) -> Profile:
    """The profile called `name`; ValueError names the ones there are."""
    try:
        return PROFILES[name]
    except KeyError:
        raise ValueError(f"there is no profile {name!r}; profiles are {', '.join(PROFILES)}") from None
