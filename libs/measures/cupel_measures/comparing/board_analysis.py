"""What the order of a leaderboard is worth: intervals, ranges of ranks, and groups that are not told apart by
this test, randomised Tukey HSD: that shows no equality.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cupel_measures.comparing.all_pairs import AllPairs, randomised_hsds
from cupel_measures.comparing.corrections import groups
from cupel_measures.comparing.outcomes import matrix, mean
from cupel_measures.comparing.resampling import REPLICATES, Interval, intervals, rank_intervals
from cupel_measures.comparing.topic_set_sizes import pooled_variance, smallest_difference
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.model import Floats

ALPHA = 0.05


@dataclass(frozen=True)
class RankedSystem:
    """A system on a board. mean, rank: with their intervals. groups: two systems share one exactly where the
    test did not tell them apart; numbered from the best on. tied_for_first: whether it did not
    tell it apart from the system of the greatest mean.
    """

    mean: Interval
    rank: Interval
    groups: tuple[int, ...]
    tied_for_first: bool


@dataclass(frozen=True)
class BoardAnalysis:
    """A board by one measure. standings: in the order of the columns of scores.

    separable: how many neighbours on the board the test tells apart, of `neighbours`. smallest_difference:
    the least true difference of means that so many topics show with chance 0.8 to a paired t-test at alpha;
    None where there is none, or no spread.
    undefined: why there are no groups; every system is then tied for first.
    """

    standings: tuple[RankedSystem, ...]
    separable: int
    neighbours: int
    smallest_difference: float | None
    alpha: float
    replicates: int
    seed: int
    warnings: tuple[str, ...] = ()
    undefined: str | None = None


def analyse(
    matrices: Sequence[Floats],
    *,
    scales: Sequence[ScaleType] | None = None,
    alpha: float = ALPHA,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> list[BoardAnalysis]:
    """The board by each of several measures of the same systems, which share what is drawn.

    matrices: float64[topics, systems] of each measure. Groups are those of randomised Tukey HSD; the
    intervals of means and ranks are of the bootstrap over topics, at 1 - alpha.
    """
    values = [matrix(scores) for scores in matrices]
    tests = randomised_hsds(values, alpha=alpha, replicates=replicates, seed=seed, scales=scales)
    return [_analysis(one, test, replicates, seed) for one, test in zip(values, tests, strict=True)]


def _analysis(values: Floats, test: AllPairs, replicates: int, seed: int) -> BoardAnalysis:
    drawn = {"confidence": 1 - test.alpha, "replicates": replicates, "seed": seed}
    means, ranks = intervals(values, **drawn), rank_intervals(values, **drawn)  # type: ignore[arg-type]
    order, apart = board(values, test)
    number = groups(len(order), sorted(apart))
    place = {system: at for at, system in enumerate(order)}
    variance = pooled_variance(values)
    return BoardAnalysis(
        tuple(
            RankedSystem(mean, rank, number[place[system]], (0, place[system]) not in apart)
            for system, (mean, rank) in enumerate(zip(means, ranks, strict=True))
        ),
        sum(pair in apart for pair in pairwise(range(len(order)))),
        max(0, len(order) - 1),
        (smallest_difference(variance, len(values), alpha=test.alpha) or None) if variance else None,
        test.alpha,
        replicates,
        seed,
        test.warnings,
        test.undefined,
    )


def board(values: Floats, test: AllPairs) -> tuple[list[int], set[tuple[int, int]]]:
    """The systems from the best on, and the pairs of places on the board that the test tells apart."""
    means = mean(values) if len(values) else np.zeros(values.shape[1])
    order = np.argsort(-np.where(np.isfinite(means), means, -np.inf), kind="stable")
    place = np.argsort(order)
    one, other = place[test.first[test.differs]], place[test.second[test.differs]]
    pairs = zip(np.minimum(one, other).tolist(), np.maximum(one, other).tolist(), strict=True)
    return order.tolist(), set(pairs)
