"""Orders of runs: ranks, correlations between two orders, and spread over repeats.

The spread is that of a correlation.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, TypedDict

import numpy as np

from cupel_audits.report import Heading
from cupel_measures.comparing.rank_correlation import tau_ap, tau_b
from cupel_measures.model import Floats

STRONG = 0.9
"""Reports call two orders of runs similar if their tau is at least this (Voorhees, IP&M 36(5), 2000)."""

STRONG_IN_PAIRS = (
    f"If no scores are tied, a tau of {STRONG} means that 1 in {round(2 / (1 - STRONG))} pairs of runs is "
    "swapped"
)
"""The meaning of STRONG. Without ties, tau is 1 - 2 s if a share s of the pairs is swapped."""

STRONG_LABEL = f"tau {STRONG}: 1 in {round(2 / (1 - STRONG))} pairs swapped (no ties)"
"""The label of a line at STRONG in a plot."""

MONTE_CARLO = (
    "The interval covers only the random error of the mean over the repeats, and narrows with more repeats. "
    "It does not cover the sampling error of the topics"
)
"""Explanation of an interval over repeats, for captions."""

TAU = "tau-b between the runs' scores under these judgments and under all of them"


class ComparedOrder(TypedDict):
    """The order of runs by one measure, compared with the order under all judgments.

    The value is JSON-serialisable.

    tau: tau-b, None where it is undefined. mean: the mean score of all runs. ranks: the rank of each run.
    """

    tau: float | None
    mean: float
    ranks: list[int]


def ranks(scores: Floats) -> list[int]:
    """Return the rank of each run, 1 for the highest score.

    Runs with equal scores share the best rank.
    """
    ascending = np.sort(-scores)
    return [int(place) + 1 for place in np.searchsorted(ascending, -scores)]


def compare_orders(full: Mapping[str, Floats], reduced: Mapping[str, Floats]) -> dict[str, ComparedOrder]:
    """Compare the orders by two sets of mean scores, each float64[runs] by measure."""
    return {
        text: {
            "tau": tau_b(full[text], scores).value,
            "mean": math.fsum(scores.tolist()) / len(scores),
            "ranks": ranks(scores),
        }
        for text, scores in reduced.items()
    }


def tau_ap_by_measure(full: Mapping[str, Floats], reduced: Mapping[str, Floats]) -> dict[str, float | None]:
    """Return tau AP by measure, None where it is undefined.

    Tau AP gives more weight to swaps near the top of the order.
    """
    return {text: tau_ap(full[text], scores).value for text, scores in reduced.items()}


@dataclass(frozen=True, kw_only=True)
class RepeatSummary:
    """The mean of values over repeats with its interval, and the extremes.

    The number of defined values is included.

    n: the number of defined values. If it is 0, all other fields are None. If it is 1, the bounds of the
    interval are None.
    """

    mean: Annotated[float | None, Heading("tau", "mean over the repeats where it is defined")] = None
    low: Annotated[
        float | None,
        Heading(
            "mean from",
            "95 per cent interval of the mean over the repeats: mean -+ t(0.975; n - 1) s / sqrt(n), "
            "clipped to [-1, 1]",
        ),
    ] = None
    high: Annotated[
        float | None,
        Heading("mean to", "95 per cent interval of the mean over the repeats, clipped to [-1, 1]"),
    ] = None
    least: Annotated[float | None, Heading("least", "over the repeats")] = None
    greatest: Annotated[float | None, Heading("greatest", "over the repeats")] = None
    n: Annotated[int, Heading("repeats", "number of repeats where it is defined")]


def summarise_repeats(values: Sequence[float | None], *, confidence: float = 0.95) -> RepeatSummary:
    """Summarise correlations over repeats, with the t-interval of the mean.

    The interval is clipped to [-1, 1], the range of a correlation. None values are ignored.
    """
    defined = [value for value in values if value is not None]
    n = len(defined)
    if not n:
        return RepeatSummary(n=0)
    mean = math.fsum(defined) / n
    least, greatest = min(defined), max(defined)
    if n < 2:
        return RepeatSummary(mean=mean, least=least, greatest=greatest, n=n)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in defined) / (n - 1))
    half = two_sided_t(confidence, n - 1) * deviation / math.sqrt(n)
    low, high = max(mean - half, -1.0), min(mean + half, 1.0)
    return RepeatSummary(mean=mean, low=low, high=high, least=least, greatest=greatest, n=n)


@cache
def two_sided_t(confidence: float, degrees: int) -> float:
    """Return the two-sided quantile t of Student's t distribution.

    The distribution has probability `confidence` between -t and t.

    confidence: up to 0.9999. degrees: degrees of freedom. The value is computed by bisection to the last
    digit, because importing scipy takes longer than many audits.
    """
    low, high = 0.0, 1.0
    while _probability_within(high, degrees) < confidence:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _probability_within(middle, degrees) < confidence else (low, middle)
    return high


def _probability_within(t: float, degrees: int) -> float:
    """Return the probability between -t and t.

    Source: Abramowitz and Stegun 1964, 26.7.3 and 26.7.4.
    """
    sine, cosine2 = t / math.sqrt(degrees + t * t), degrees / (degrees + t * t)
    odd = degrees % 2
    term, total = math.sqrt(cosine2) if odd else 1.0, 0.0
    for n in range(1 + odd, degrees, 2):
        total += term
        term *= cosine2 * n / (n + 1)
    return 2 / math.pi * (math.atan(t / math.sqrt(degrees)) + sine * total) if odd else sine * total
