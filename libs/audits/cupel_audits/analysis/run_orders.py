"""What becomes of an order of runs: of trials, over repeats, and as the points and pictures of reports."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from cupel_audits.report import Column
from cupel_measures.comparing.correlation import tau_ap, tau_b
from cupel_measures.model import Floats

STRONG = 0.9
"""The usual bound of tau from which two orders are taken to say the same (Voorhees 2000)."""

TAU = "tau-b between the runs' scores under these judgments and under all of them"


def ranks(scores: Floats) -> list[int]:
    """The rank of each run from 1, greatest score first; equal scores share the best."""
    below = np.sort(-scores)
    return [int(place) + 1 for place in np.searchsorted(below, -scores)]


def against(full: Mapping[str, Floats], reduced: Mapping[str, Floats]) -> dict[str, dict[str, Any]]:
    """By measure what became of an order, as JSON: tau, tau_ap (None: undefined), mean score, ranks."""
    return {
        text: {
            "tau": tau_b(full[text], scores).value,
            "mean": math.fsum(scores.tolist()) / len(scores),
            "ranks": ranks(scores),
        }
        for text, scores in reduced.items()
    }


def weighed(full: Mapping[str, Floats], reduced: Mapping[str, Floats]) -> dict[str, float | None]:
    """tau AP by measure: swaps near the top weigh more."""
    return {text: tau_ap(full[text], scores).value for text, scores in reduced.items()}


@dataclass(frozen=True)
class Spread:
    """Values over repeats: n that are defined, their mean, its interval, the least and the greatest.

    All but n are None where there is no value; the interval is where there are fewer than two.
    """

    n: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    least: float | None = None
    greatest: float | None = None

    @property
    def cells(self) -> tuple[float | int | None, ...]:
        """As the cells of SPREAD."""
        return self.mean, self.low, self.high, self.least, self.greatest, self.n


SPREAD = (
    Column("mean", "tau", "mean over the repeats where it is defined"),
    Column("low", "from", "95 per cent interval of the mean: mean -+ t(0.975; n - 1) s / sqrt(n)"),
    Column("high", "to", "95 per cent interval of the mean"),
    Column("least", "least", "over the repeats"),
    Column("greatest", "greatest", "over the repeats"),
    Column("n", "repeats", "in which it is defined"),
)


def spread(values: Sequence[float | None], *, confidence: float = 0.95) -> Spread:
    """Over repeats, with the t-interval of the mean (spec 7.3); an undefined value, None, is left out."""
    found = [value for value in values if value is not None]
    n = len(found)
    if not n:
        return Spread(0)
    mean = math.fsum(found) / n
    least, greatest = min(found), max(found)
    if n < 2:
        return Spread(n, mean, None, None, least, greatest)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in found) / (n - 1))
    half = within(confidence, n - 1) * deviation / math.sqrt(n)
    return Spread(n, mean, mean - half, mean + half, least, greatest)


@cache
def within(confidence: float, degrees: int) -> float:
    """The t for which Student's distribution of so many degrees of freedom lies so much between -t and t.

    confidence: up to 0.9999. By halving, to the last digit. (scipy has it too, and takes longer to import
    than many an audit to be done.)
    """
    low, high = 0.0, 1.0
    while _between(high, degrees) < confidence:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _between(middle, degrees) < confidence else (low, middle)
    return high


def _between(t: float, degrees: int) -> float:
    """How much lies between -t and t (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    sine, cosine2 = t / math.sqrt(degrees + t * t), degrees / (degrees + t * t)
    odd = degrees % 2
    term, total = math.sqrt(cosine2) if odd else 1.0, 0.0
    for n in range(1 + odd, degrees, 2):
        total += term
        term *= cosine2 * n / (n + 1)
    return 2 / math.pi * (math.atan(t / math.sqrt(degrees)) + sine * total) if odd else sine * total
