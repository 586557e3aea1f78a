"""Profiles: named sets of parsing and tie-breaking rules.

The profile is recorded with every score.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A named set of parsing and tie-breaking rules.

    single_precision: compare scores as 32-bit floats. truncated_recall: interpolated precision at recall
    level c, with R relevant documents, requires int(c R + 0.9) of them instead of c R rounded half away from
    zero. negatives_judged: treat a negative grade as the lowest label; if False, as pooled but not judged.
    """

    name: str
    meaning: str
    single_precision: bool = False
    truncated_recall: bool = False
    negatives_judged: bool = True


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(name="cupel", meaning="double precision; a negative grade is the lowest label"),
        Profile(
            name="trec_eval-9",
            meaning="as trec_eval 9.0.8 -c: single precision, older interpolation",
            single_precision=True,
            truncated_recall=True,
            negatives_judged=False,
        ),
        Profile(
            name="trec_eval-10", meaning="as trec_eval 10.0 -c: double precision", negatives_judged=False
        ),
    )
}

DEFAULT = PROFILES["cupel"]


def find(name: str) -> Profile:
    """Return the profile `name`.

    Raise ValueError if it is unknown; the message lists all profiles.
    """
    try:
        return PROFILES[name]
    except KeyError:
        raise ValueError(f"unknown profile {name!r}; use one of {', '.join(PROFILES)}") from None
