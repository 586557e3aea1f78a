"""Correlation of two rankings of systems.

The coefficients are Kendall's tau-b, tau AP, and rank-biased overlap.

The functions take scores, not lists of names sorted by score, so that they detect ties. Scores may be exact
numbers (int or Fraction).
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
    """The correlation of two rankings of n systems.

    It is from -1 to 1 (overlap: from 0 to 1).

    undefined: the reason why the value is None.
    """

    value: float | None
    n: int
    undefined: str | None = None


@dataclass(frozen=True)
class TopicCorrelation:
    """The correlation on each topic, and the mean over the topics where it is defined.

    topics: the correlation on each topic; None if it is undefined. undefined: the reason why `value` is None.
    """

    value: float | None
    topics: tuple[float | None, ...]
    undefined: str | None = None

    @property
    def undefined_topics(self) -> int:
        """Number of topics where the correlation is undefined.

        One reason is that all systems have the same score under at least one of the two measures.
        """
        return sum(value is None for value in self.topics)


def tau_b(first: Scores, second: Scores) -> Correlation:
    """Return Kendall's tau-b between scores of the same systems under two measures.

    tau-b is (P - Q) / sqrt((P + Q + T) (P + Q + U)) (Ferrante et al., TKDE 2019, equation 7). P is the number
    of concordant pairs of systems, Q of discordant pairs, T of pairs tied only under the first measure, and U
    of pairs tied only under the second. Only equal scores are tied. The result is undefined if all scores
    under one measure are equal.
    """
    if _has_nan(first, second):
        return Correlation(None, len(first), UNDEFINED)
    x, y = levels(first), levels(second)
    _check_same_length(x, y)
    return _tau(x, y)


def tau_b_by_topic(first: Sequence[Scores] | Floats, second: Sequence[Scores] | Floats) -> TopicCorrelation:
    """Return tau-b on every topic (row), and its mean.

    The mean is that over the topics where tau-b is defined.

    See `libs/measures/READINGS.md`, reading 7.
    """
    if len(first) != len(second):
        raise ValueError(f"the first measure has {len(first)} topics, the second {len(second)}")
    taus = tuple(tau_b(x, y).value for x, y in zip(first, second, strict=True))
    defined = [value for value in taus if value is not None]
    if not defined:
        return TopicCorrelation(
            None, taus, "on every topic, all systems score the same under one of the two measures"
        )
    return TopicCorrelation(float(mean(np.array(defined))), taus)


def tau_ap(truth: Scores, estimate: Scores) -> Correlation:
    """Return tau AP.

    It gives more weight to swaps near the top of the estimated ranking.

    tau AP is 2 / (n - 1) * sum over ranks i = 2..n of C(i) / (i - 1) - 1 (Yilmaz, Aslam and Robertson, SIGIR
    2008). C(i) counts the systems above rank i that the true ranking also places above the system at rank i.
    If systems are tied in the estimate, the result is the mean over all their orders, in closed form. A pair
    that is tied in the truth counts as half correct.
    """
    if _has_nan(truth, estimate):
        return Correlation(None, len(truth), UNDEFINED)
    true, estimated = levels(truth), levels(estimate)
    _check_same_length(true, estimated)
    n = len(true)
    if n < 2:
        return Correlation(None, n, "there are fewer than two systems")
    correct = (1 + np.sign(true[:, None] - true[None, :])) / 2  # [i, j]: probability that i is above j
    total, above = 0.0, 0
    for level in sorted(set(estimated.tolist()), reverse=True):
        group, higher = np.flatnonzero(estimated == level), np.flatnonzero(estimated > level)
        from_higher = (
            float(np.cumsum(correct[np.ix_(higher, group)])[-1]) / len(group) if len(higher) else 0.0
        )
        ranks = range(above + 1, above + len(group) + 1)
        total += sum((from_higher + (i - above - 1) / 2) / (i - 1) for i in ranks if i > 1)
        above += len(group)
    return Correlation(2 * total / (n - 1) - 1, n)


def overlap(first: Scores, second: Scores, *, p: float = 0.9) -> Correlation:
    """Return the extrapolated rank-biased overlap of two rankings of the same systems.

    The overlap is A(n) p^n + (1 - p) / p * sum over depths d of A(d) p^d (Webber, Moffat and Zobel, TOIS
    2010, equation 32). The agreement A(d) is 2 X / (|S| + |T|). S and T contain the systems at rank d or
    better in the first and in the second ranking, and X is the number of systems in both. Tied systems share
    the best of their ranks.
    """
    if not 0 < p < 1:
        raise ValueError(f"p must be between 0 and 1, got {p}")
    if _has_nan(first, second):
        return Correlation(None, len(first), UNDEFINED)
    x, y = _best_ranks(first), _best_ranks(second)
    _check_same_length(x, y)
    n = len(x)
    if not n:
        return Correlation(None, 0, "there are no systems")
    agreements = [_agreement(x, y, depth) for depth in range(1, n + 1)]
    weighted = sum(agreement * p**depth for depth, agreement in enumerate(agreements, 1))
    return Correlation(agreements[-1] * p**n + (1 - p) / p * weighted, n)


def _agreement(x: Ints, y: Ints, depth: int) -> float:
    top_x, top_y = x <= depth, y <= depth
    return float(2 * np.count_nonzero(top_x & top_y) / (np.count_nonzero(top_x) + np.count_nonzero(top_y)))


def _best_ranks(scores: Scores) -> Ints:
    """Return the rank of each score, 1 for the greatest.

    Equal scores share the best of their ranks.
    """
    level = levels(scores)
    ranks: Ints = np.count_nonzero(level[:, None] < level[None, :], axis=1) + 1
    return ranks


def levels(scores: Scores) -> Levels:
    """Return the number of distinct smaller scores for each score, int32[n].

    The result has the same order and the same ties as the scores, even if they are exact numbers.
    """
    values: list[Any] = scores.tolist() if isinstance(scores, np.ndarray) else list(scores)
    level_of = {value: level for level, value in enumerate(sorted(set(values)))}
    return np.array([level_of[value] for value in values], dtype=np.int32)


def _has_nan(*scores: Scores) -> bool:
    """Return whether a score is NaN, which cannot be ranked; infinite scores can."""
    return any(value != value for values in scores for value in values)


def _tau(x: Levels, y: Levels) -> Correlation:
    above_x, above_y = _is_above(x), _is_above(y)
    untied_x, untied_y = np.count_nonzero(above_x), np.count_nonzero(above_y)
    if not untied_x or not untied_y:
        return Correlation(None, len(x), "all systems score the same under one of the two measures")
    concordant, discordant = np.count_nonzero(above_x & above_y), np.count_nonzero(above_x & above_y.T)
    return Correlation((concordant - discordant) / math.sqrt(untied_x * untied_y), len(x))


def _is_above(levels: Levels) -> NDArray[np.bool_]:
    """Return bool[n, n]: whether the score of system i is above that of system j."""
    return levels[:, None] > levels[None, :]


def _check_same_length(x: NDArray[Any], y: NDArray[Any]) -> None:
    if len(x) != len(y):
        raise ValueError(f"the first measure has {len(x)} systems, the second {len(y)}")
