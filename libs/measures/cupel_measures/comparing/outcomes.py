"""The outcome of a paired test, and checks of the scores that are compared."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cupel_measures.grammar.registry import ScaleType
from cupel_measures.grammar.scale_types import OPERATIONS
from cupel_measures.model import Floats

CLOSE = 1e-12
"""Relative tolerance within which a resampled statistic counts as equal to the observed one."""

LARGEST = 1e150
"""Largest absolute score, because the squares of larger scores overflow."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a test of the difference between two systems.

    estimate: mean of first - second over n topics. p: two-sided. interval: confidence interval of the mean
    difference. statistic and p are None if they are undefined; `undefined` gives the reason.
    """

    n: int
    estimate: float | None = None
    statistic: float | None = None
    p: float | None = None
    interval: tuple[float, float] | None = None
    warnings: tuple[str, ...] = ()
    undefined: str | None = None


def paired(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> tuple[Floats, Floats]:
    """Return two vectors of scores on the same topics as float64[T].

    Raises ValueError for other shapes.
    """
    x, y = (np.asarray(scores, dtype=np.float64) for scores in (first, second))
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"expected two vectors over the same topics, got shapes {x.shape} and {y.shape}")
    return x, y


def matrix(scores: Sequence[Sequence[float]] | Floats) -> Floats:
    """Return scores as float64[topics, systems].

    Raises ValueError unless they have two dimensions.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"expected scores as topics x systems, got an array of shape {values.shape}")
    return values


def undefined_reason(*scores: Floats) -> str | None:
    """Return the reason why `scores` cannot be compared, or None."""
    if any(values.size == 0 for values in scores):
        return "there are no scores"
    if not all(np.isfinite(values).all() for values in scores):
        return "a score is undefined or infinite"
    if any(np.abs(values).max() > LARGEST for values in scores):
        return f"a score exceeds {LARGEST:g}, so its square overflows"
    return None


NEEDS_INTERVAL = "needs an interval scale"
DISPUTED = "(disputed: Sakai 2020; Moffat 2022)"


def is_scale_note(warning: str) -> bool:
    """Return whether a warning is one of `scale_warnings`."""
    return NEEDS_INTERVAL in warning


def scale_warnings(scale: ScaleType, method: str) -> tuple[str, ...]:
    """Return a warning if `method` computes means that the scale does not allow.

    Otherwise nothing is returned.
    """
    if "mean" in OPERATIONS[scale]:
        return ()
    actual = "an ordinal scale" if scale == "ordinal" else "neither an interval nor an ordinal scale"
    return (f"{method} {NEEDS_INTERVAL}, but the measure has {actual} {DISPUTED}",)


def mean(values: Floats) -> Floats:
    """Return the mean along the first axis.

    Rows are added one after another, so the bits of a result do not depend on the number of columns.
    """
    total: Floats = np.cumsum(values, axis=0)[-1]
    return total / len(values)
