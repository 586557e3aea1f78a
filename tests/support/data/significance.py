"""Significance tests of Ferrante, Ferro and Losiouk, TKDE 2019, section 5.3, on exact scores."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import stats

from cupel_measures.model import Exact

Matrix = Sequence[Sequence[Exact]]
"""Scores: a row per topic, a column per system."""
ALPHA = 0.05


@dataclass(frozen=True)
class Verdict:
    """The result of a test.

    half_width: the smallest significant difference of means. differing: the pairs that differ significantly.
    """

    statistic: float
    p: float
    half_width: float
    differing: frozenset[tuple[int, int]]


def dense(values: Sequence[Exact]) -> list[int]:
    """Return the dense rank of each value: small integers in the order of the exact numbers."""
    place = {value: rank for rank, value in enumerate(sorted(set(values)))}
    return [place[value] for value in values]


def kruskal_wallis(scores: Matrix) -> Verdict:
    """Apply the Kruskal-Wallis test to pooled topics, then Tukey's criterion to mean ranks."""
    topics, systems = len(scores), len(scores[0])
    ranks = stats.rankdata(dense([value for row in scores for value in row])).reshape(topics, systems)
    n = topics * systems
    _, ties = np.unique(ranks, return_counts=True)
    tied = float((ties.astype(float) ** 3 - ties).sum())
    if tied == n**3 - n:
        return Verdict(0.0, 1.0, 0.0, frozenset())
    h = 12 / (n * (n + 1)) * float((ranks.sum(axis=0) ** 2).sum()) / topics - 3 * (n + 1)
    h /= 1 - tied / (n**3 - n)
    spread = n * (n + 1) / 12 - tied / (12 * (n - 1))
    q = float(stats.studentized_range.ppf(1 - ALPHA, systems, np.inf))
    half = q / math.sqrt(2) * math.sqrt(spread * 2 / topics)
    means = ranks.mean(axis=0)
    differing = {(i, j) for i, j in _pairs(systems) if abs(means[i] - means[j]) > half}
    return Verdict(h, float(stats.chi2.sf(h, systems - 1)), half, frozenset(differing))


def two_way_anova(scores: Matrix) -> Verdict:
    """Apply a two-way ANOVA without interaction, then Tukey's criterion to means.

    Sums of squares are exact, so multiplying all scores by a constant changes no result.
    """
    rows = [[Fraction(value) for value in row] for row in scores]
    topics, systems = len(rows), len(rows[0])
    grand = sum(map(sum, rows), Fraction(0)) / (topics * systems)
    means = [sum(column, Fraction(0)) / topics for column in zip(*rows, strict=True)]
    total = sum(((value - grand) ** 2 for row in rows for value in row), Fraction(0))
    by_system = topics * sum((mean - grand) ** 2 for mean in means)
    by_topic = systems * sum((sum(row, Fraction(0)) / systems - grand) ** 2 for row in rows)
    freedom = (topics - 1) * (systems - 1)
    error = (total - by_system - by_topic) / freedom
    f = float(by_system / (systems - 1) / error)
    q = float(stats.studentized_range.ppf(1 - ALPHA, systems, freedom))
    squares = {pair: (means[pair[0]] - means[pair[1]]) ** 2 * topics / error for pair in _pairs(systems)}
    differing = frozenset(pair for pair, square in squares.items() if square > q * q)
    p = float(stats.f.sf(f, systems - 1, freedom))
    return Verdict(f, p, q * math.sqrt(error / topics), differing)


def _pairs(systems: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(systems), 2))
