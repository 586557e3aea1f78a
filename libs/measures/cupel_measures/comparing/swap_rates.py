"""Swap rates: how often two sets of topics order a pair of systems differently.

Voorhees and Buckley, The effect of topic set size on retrieval experiment error, SIGIR 2002.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cupel_measures.comparing.resampling import DECIMALS
from cupel_measures.model import Floats, Ints

STEEPEST = 10.0
"""Largest rate b of decline; steeper curves are all close to zero after one topic."""
GRID = 120
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, eq=False)
class SwapCounts:
    """Numbers of compared and swapped pairs of systems, int64[bins].

    The bins are those of the difference on the first set.
    """

    compared: Ints
    swapped: Ints


def count_swaps(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, width: float, bins: int
) -> SwapCounts:
    """Count the pairs of systems that two disjoint sets of topics order differently.

    first, second: float64[systems], the mean scores on each set. Bin b contains the pairs whose absolute
    difference on the first set is at least b * width and less than (b + 1) * width; the last bin has no upper
    bound. A pair is swapped if the second set orders it the other way. Pairs that are tied on the first set
    are not counted; pairs that are tied on the second set are not swapped. Raises ValueError for vectors of
    different lengths.
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"expected two vectors over the same systems, got shapes {x.shape} and {y.shape}")
    left, right = np.triu_indices(len(x), 1)
    on_first, on_second = (np.round(means[left] - means[right], DECIMALS) for means in (x, y))
    ordered = on_first != 0
    # Rounding is necessary because 0.03 / 0.01 is less than 3 in floats.
    quotient = np.floor(np.round(np.abs(on_first[ordered]) / width, 9))
    bin_of = np.minimum(quotient, bins - 1).astype(np.int64)
    swapped = on_first[ordered] * np.sign(on_second[ordered]) < 0
    return SwapCounts(np.bincount(bin_of, minlength=bins), np.bincount(bin_of[swapped], minlength=bins))


@dataclass(frozen=True)
class ExponentialDecline:
    """A rate that declines with the number of topics: a * exp(-b * topics)."""

    a: float
    b: float

    def at(self, topics: float) -> float:
        """Return the rate for a number of topics.

        It is rounded to 6 decimals, because the last bits of exponentials differ between machines.
        """
        return round(self.a * math.exp(-self.b * topics), 6)


def fit_decline(
    topics: Sequence[int], rates: Sequence[float], weights: Sequence[float]
) -> ExponentialDecline | None:
    """Fit an exponential decline to the rates for numbers of topics.

    The fit is by weighted least squares.

    Returns None if fewer than two different numbers of topics have a positive weight.
    """
    points = [
        (float(n), rate, weight) for n, rate, weight in zip(topics, rates, weights, strict=True) if weight > 0
    ]
    if len({n for n, _, _ in points}) < 2:
        return None
    slopes = [0.0, *(STEEPEST * 10 ** (-6 * (1 - step / GRID)) for step in range(GRID + 1))]
    losses = [_loss(points, slope) for slope in slopes]
    best = losses.index(min(losses))
    low, high = slopes[max(0, best - 1)], slopes[min(len(slopes) - 1, best + 1)]
    refined = _minimise_loss(points, low, high)
    slope = refined if _loss(points, refined) < losses[best] else slopes[best]
    return ExponentialDecline(_height(points, slope), slope)


Points = Sequence[tuple[float, float, float]]


def _minimise_loss(points: Points, low: float, high: float) -> float:
    """Return the slope between low and high with the smallest loss.

    The method is golden-section search.
    """
    for _ in range(60):
        step = GOLDEN * (high - low)
        if _loss(points, high - step) <= _loss(points, low + step):
            high = low + step
        else:
            low = high - step
    return (low + high) / 2


def _height(points: Points, slope: float) -> float:
    """Return the best a for a slope b.

    Exponents start at the first point, so that they do not underflow.
    """
    start = min(n for n, _, _ in points)
    shape = [math.exp(-slope * (n - start)) for n, _, _ in points]
    above = math.fsum(w * rate * e for (_, rate, w), e in zip(points, shape, strict=True))
    below = math.fsum(w * e * e for (_, _, w), e in zip(points, shape, strict=True))
    return above / below * math.exp(min(slope * start, 700.0))


def _loss(points: Points, slope: float) -> float:
    height = _height(points, slope)
    return math.fsum(w * (rate - height * math.exp(-slope * n)) ** 2 for n, rate, w in points)
