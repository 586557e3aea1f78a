"""Swap rates: how often other topics turn a difference between two systems round.

Voorhees and Buckley, The effect of topic set size on retrieval experiment error, SIGIR 2002 (spec 12).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cupel_measures.comparing.resampling import DECIMALS
from cupel_measures.model import Floats, Ints

STEEPEST = 10.0
"""Rates that fall faster than by exp(-10) from one topic to the next are not told apart."""
GRID = 120
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, eq=False)
class Swaps:
    """compared, swapped: int64[bins], pairs of systems by the size of their difference on the first set."""

    compared: Ints
    swapped: Ints


def swaps(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, width: float, bins: int
) -> Swaps:
    """All pairs of systems on two disjoint sets of topics, by their mean scores on each, float64[S].

    Bin b has the pairs that differ by b * width or more on the first set, and by less than (b + 1) * width;
    the last has all greater differences. A pair is swapped where the second set orders it the other way. One
    that the first set does not order is not counted; one that the second does not order is not swapped.
    ValueError where the sets are of different systems.
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"expected two vectors over the same systems, got shapes {x.shape} and {y.shape}")
    one, other = np.triu_indices(len(x), 1)
    here, there = (np.round(of[one] - of[other], DECIMALS) for of in (x, y))
    ordered = here != 0
    place = np.floor(np.round(np.abs(here[ordered]) / width, 9))  # 0.03 / 0.01 is less than 3
    bin_of = np.minimum(place, bins - 1).astype(np.int64)
    turned = here[ordered] * np.sign(there[ordered]) < 0
    return Swaps(np.bincount(bin_of, minlength=bins), np.bincount(bin_of[turned], minlength=bins))


@dataclass(frozen=True)
class Decline:
    """A rate of a * exp(-b * topics)."""

    a: float
    b: float

    def at(self, topics: float) -> float:
        """The rate with so many topics, to 6 decimals: exponentials differ in their last bits by machine."""
        return round(self.a * math.exp(-self.b * topics), 6)


def decline(topics: Sequence[int], rates: Sequence[float], weights: Sequence[float]) -> Decline | None:
    """The exponential through rates by number of topics, by weighted least squares; it never rises.

    None with fewer than two numbers of topics of positive weight.
    """
    points = [
        (float(n), rate, weight) for n, rate, weight in zip(topics, rates, weights, strict=True) if weight > 0
    ]
    if len({n for n, _, _ in points}) < 2:
        return None
    slopes = [0.0, *(STEEPEST * 10 ** (-6 * (1 - place / GRID)) for place in range(GRID + 1))]
    losses = [_loss(points, slope) for slope in slopes]
    best = losses.index(min(losses))
    low, high = slopes[max(0, best - 1)], slopes[min(len(slopes) - 1, best + 1)]
    found = _least(points, low, high)
    slope = found if _loss(points, found) < losses[best] else slopes[best]
    return Decline(_height(points, slope), slope)


Points = Sequence[tuple[float, float, float]]


def _least(points: Points, low: float, high: float) -> float:
    """Golden section."""
    for _ in range(60):
        step = GOLDEN * (high - low)
        if _loss(points, high - step) <= _loss(points, low + step):
            high = low + step
        else:
            low = high - step
    return (low + high) / 2


def _height(points: Points, slope: float) -> float:
    """The best a for this b; shifted to the first point, as exp(-b * n) may be no number."""
    start = min(n for n, _, _ in points)
    shape = [math.exp(-slope * (n - start)) for n, _, _ in points]
    above = math.fsum(w * rate * e for (_, rate, w), e in zip(points, shape, strict=True))
    below = math.fsum(w * e * e for (_, _, w), e in zip(points, shape, strict=True))
    return above / below * math.exp(min(slope * start, 700.0))


def _loss(points: Points, slope: float) -> float:
    height = _height(points, slope)
    return math.fsum(w * (rate - height * math.exp(-slope * n)) ** 2 for n, rate, w in points)
