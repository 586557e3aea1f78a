"""What comparisons answer with, and what they ask of the scores that they are given."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cupel_measures.grammar.registry import ScaleType
from cupel_measures.grammar.scale_types import OPERATIONS
from cupel_measures.model import Floats

CLOSE = 1e-12
"""Resampled statistics this close to the observed one, relatively, are as extreme as it is (spec 3.8)."""

LARGEST = 1e150
"""Scores beyond this can't be squared."""


@dataclass(frozen=True)
class Outcome:
    """What a test of the difference between two systems says.

    estimate: mean of first - second over n topics. p: two-sided. interval: of what the test estimates.
    undefined: why there is no statistic or p; they are None then.
    """

    n: int
    estimate: float | None = None
    statistic: float | None = None
    p: float | None = None
    interval: tuple[float, float] | None = None
    warnings: tuple[str, ...] = ()
    undefined: str | None = None


def paired(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> tuple[Floats, Floats]:
    """Two vectors of scores on the same topics, float64[T]; ValueError where they can't be."""
    x, y = (np.asarray(one, dtype=np.float64) for one in (first, second))
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"expected two vectors over the same topics, got shapes {x.shape} and {y.shape}")
    return x, y


def matrix(scores: Sequence[Sequence[float]] | Floats) -> Floats:
    """float64[topics, systems]; ValueError where it is no matrix."""
    found = np.asarray(scores, dtype=np.float64)
    if found.ndim != 2:
        raise ValueError(f"expected scores as topics x systems, got an array of shape {found.shape}")
    return found


def unusable(*scores: Floats) -> str | None:
    """Why nothing can be said of `scores`, or None: there are none, or one is no finite number."""
    if any(one.size == 0 for one in scores):
        return "there are no scores"
    if not all(np.isfinite(one).all() for one in scores):
        return "a score is undefined or infinite"
    if any(np.abs(one).max() > LARGEST for one in scores):
        return f"a score is beyond {LARGEST:g}, whose square is no number of the machine"
    return None


def asks_too_much(scale: ScaleType, what: str) -> tuple[str, ...]:
    """A warning where `what` takes means or differences, and the scale of the measure allows neither."""
    if "mean" in OPERATIONS[scale]:
        return ()
    kind = "an ordinal scale" if scale == "ordinal" else "neither an interval nor an ordinal scale"
    return (f"{what} needs an interval scale, and the measure is {kind}",)


def mean(values: Floats) -> Floats:
    """Mean along the first axis, one row after another: the same bits in any batch."""
    total: Floats = np.cumsum(values, axis=0)[-1]
    return total / len(values)
