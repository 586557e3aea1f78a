"""Correlation of two orders of systems: Kendall's tau-b, tau AP, and rank-biased overlap.

All are computed on scores, never on lists of names sorted by score (spec 4.3): ties are then seen. Scores
may be exact numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.comparing.outcomes import mean
from cupel_measures.model import Exact, Floats, Ints

Scores = Sequence[float] | Sequence[Exact] | Floats
Levels = NDArray[np.int32]

UNDEFINED = "a score is undefined"


@dataclass(frozen=True)
class Correlation:
    """value: from -1 to 1 (overlap: from 0 to 1). undefined: why there is none."""

    value: float | None
    n: int
    undefined: str | None = None


@dataclass(frozen=True)
class TopicCorrelation:
    """value: mean over the topics where the correlation is defined. topics: of each, None where it is not."""

    value: float | None
    topics: tuple[float | None, ...]
    undefined: str | None = None

    @property
    def undefined_topics(self) -> int:
        """Topics on which all systems score the same under one of the measures."""
        return sum(value is None for value in self.topics)


def tau_b(first: Scores, second: Scores) -> Correlation:
    """Kendall's tau-b between scores of the same systems under two measures (Ferrante et al. 2019, eq. 7).

    (P - Q) / sqrt((P + Q + T) (P + Q + U)): P pairs of systems in the same order, Q in opposite order, T tied
    in the first alone, U in the second alone. Ties are exact equality. Undefined for a constant vector.
    """
    if _undefined(first, second):
        return Correlation(None, len(first), UNDEFINED)
    x, y = levels(first), levels(second)
    _same_length(x, y)
    return _tau(x, y)


def tau_b_by_topic(first: Sequence[Scores] | Floats, second: Sequence[Scores] | Floats) -> TopicCorrelation:
    """tau-b on every topic (row), and its mean over the topics where it is defined (spec 4.3)."""
    if len(first) != len(second):
        raise ValueError(f"{len(first)} topics in the first, {len(second)} in the second")
    found = tuple(tau_b(x, y).value for x, y in zip(first, second, strict=True))
    defined = [value for value in found if value is not None]
    if not defined:
        return TopicCorrelation(None, found, "no topic tells systems apart under both")
    return TopicCorrelation(float(mean(np.array(defined))), found)


def tau_ap(truth: Scores, estimate: Scores) -> Correlation:
    """tau AP, which weighs swaps near the top of the estimated order more (Yilmaz et al., SIGIR 2008).

    2 / (n - 1) * sum over places i = 2..n of C(i) / (i - 1) - 1, C(i) being how many of the systems above
    place i the truth also puts above it. With ties: the mean over all orders of tied systems, in closed
    form. A pair that is tied in the truth is right half the time, and a system of a tied group of the
    estimate stands at each of the group's places equally often.
    """
    if _undefined(truth, estimate):
        return Correlation(None, len(truth), UNDEFINED)
    true, seen = levels(truth), levels(estimate)
    _same_length(true, seen)
    n = len(true)
    if n < 2:
        return Correlation(None, n, "there is nothing to order")
    right = (1 + np.sign(true[:, None] - true[None, :])) / 2  # [i, j]: the chance that i is above j
    total, above = 0.0, 0
    for level in sorted(set(seen.tolist()), reverse=True):
        group, higher = np.flatnonzero(seen == level), np.flatnonzero(seen > level)
        from_higher = float(np.cumsum(right[np.ix_(higher, group)])[-1]) / len(group) if len(higher) else 0.0
        places = range(above + 1, above + len(group) + 1)
        total += sum((from_higher + (i - above - 1) / 2) / (i - 1) for i in places if i > 1)
        above += len(group)
    return Correlation(2 * total / (n - 1) - 1, n)


def overlap(first: Scores, second: Scores, *, p: float = 0.9) -> Correlation:
    """Rank-biased overlap of two orders of the same systems, extrapolated (Webber et al., TOIS 2010, eq. 32).

    A(n) p^n + (1 - p) / p * sum over depths d of A(d) p^d; the agreement A(d) is 2 X / (|S| + |T|), of the
    systems S and T at rank d or better and X of them in both; tied systems share the best of their ranks.
    """
    if not 0 < p < 1:
        raise ValueError(f"p is a number between 0 and 1, not {p}")
    if _undefined(first, second):
        return Correlation(None, len(first), UNDEFINED)
    x, y = _shared_ranks(first), _shared_ranks(second)
    _same_length(x, y)
    n = len(x)
    if not n:
        return Correlation(None, 0, "there is nothing to order")
    agreement = [_agreement(x, y, depth) for depth in range(1, n + 1)]
    weighed = sum(one * p**depth for depth, one in enumerate(agreement, 1))
    return Correlation(agreement[-1] * p**n + (1 - p) / p * weighed, n)


def _agreement(x: Ints, y: Ints, depth: int) -> float:
    seen, other = x <= depth, y <= depth
    return float(2 * np.count_nonzero(seen & other) / (np.count_nonzero(seen) + np.count_nonzero(other)))


def _shared_ranks(scores: Scores) -> Ints:
    """Rank from 1 of each score, greatest first; equal ones share the best."""
    level = levels(scores)
    ranks: Ints = np.count_nonzero(level[:, None] < level[None, :], axis=1) + 1
    return ranks


def levels(scores: Scores) -> Levels:
    """int32[n]: how many different scores are smaller; the order of exact numbers, without their size."""
    values: list[Any] = scores.tolist() if isinstance(scores, np.ndarray) else list(scores)
    place = {value: level for level, value in enumerate(sorted(set(values)))}
    return np.array([place[value] for value in values], dtype=np.int32)


def _undefined(*scores: Scores) -> bool:
    """Whether one is no number, which has no place in an order; infinite ones have."""
    return any(value != value for values in scores for value in values)


def _tau(x: Levels, y: Levels) -> Correlation:
    a, b = _above(x), _above(y)
    one, other = np.count_nonzero(a), np.count_nonzero(b)
    if not one or not other:
        return Correlation(None, len(x), "all systems score the same under one of the two")
    concordant, discordant = np.count_nonzero(a & b), np.count_nonzero(a & b.T)
    return Correlation((concordant - discordant) / math.sqrt(one * other), len(x))


def _above(levels: Levels) -> NDArray[np.bool_]:
    """bool[n, n]: whether the score of i is above that of j."""
    return levels[:, None] > levels[None, :]


def _same_length(x: NDArray[Any], y: NDArray[Any]) -> None:
    if len(x) != len(y):
        raise ValueError(f"{len(x)} systems in the first, {len(y)} in the second")
