"""The significance analysis of a leaderboard: intervals of means and ranks, and groups of systems.

Groups come from randomised Tukey HSD. Systems in one group do not differ significantly, which does not show
that they are equal.
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
    """A system on a leaderboard.

    mean, rank: its mean score and its rank, with confidence intervals. groups: numbers of the system's
    groups, starting with the best; two systems share a group unless they differ significantly.
    tied_for_first: whether the system does not differ significantly from the system with the highest mean.
    """

    mean: Interval
    rank: Interval
    groups: tuple[int, ...]
    tied_for_first: bool


@dataclass(frozen=True, kw_only=True)
class BoardAnalysis:
    """The analysis of a leaderboard by one measure.

    standings: the systems in the order of the columns of the score matrix. separable: how many of the
    `neighbours` pairs of adjacent systems differ significantly. smallest_difference: the true difference of
    means that a paired t-test at alpha detects with power 0.8 on these topics; None if it is undefined.
    undefined: why there are no groups; every system is then in one group, and tied for first.
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
    """Return the analysis of the board by each of several measures, which share the replicates.

    matrices: float64[topics, systems] per measure. Means and ranks have bootstrap intervals over topics at
    confidence 1 - alpha.
    """
    values = [matrix(scores) for scores in matrices]
    tests = randomised_hsds(values, alpha=alpha, replicates=replicates, seed=seed, scales=scales)
    return [_analysis(scores, test, replicates, seed) for scores, test in zip(values, tests, strict=True)]


def _analysis(values: Floats, test: AllPairs, replicates: int, seed: int) -> BoardAnalysis:
    options = {"confidence": 1 - test.alpha, "replicates": replicates, "seed": seed}
    means, ranks = intervals(values, **options), rank_intervals(values, **options)  # type: ignore[arg-type]
    order, different = board_order(values, test)
    groups_by_place = groups(len(order), sorted(different))
    place_of = {system: place for place, system in enumerate(order)}
    variance = pooled_variance(values)
    return BoardAnalysis(
        standings=tuple(
            RankedSystem(
                mean, rank, groups_by_place[place_of[system]], (0, place_of[system]) not in different
            )
            for system, (mean, rank) in enumerate(zip(means, ranks, strict=True))
        ),
        separable=sum(pair in different for pair in pairwise(range(len(order)))),
        neighbours=max(0, len(order) - 1),
        smallest_difference=(smallest_difference(variance, len(values), alpha=test.alpha) or None)
        if variance
        else None,
        alpha=test.alpha,
        replicates=replicates,
        seed=seed,
        warnings=test.warnings,
        undefined=test.undefined,
    )


def board_order(values: Floats, test: AllPairs) -> tuple[list[int], set[tuple[int, int]]]:
    """Return the systems from best to worst, and the pairs of places that differ significantly."""
    means = mean(values) if len(values) else np.zeros(values.shape[1])
    order = np.argsort(-np.where(np.isfinite(means), means, -np.inf), kind="stable")
    place = np.argsort(order)
    first, second = place[test.first[test.differs]], place[test.second[test.differs]]
    pairs = zip(np.minimum(first, second).tolist(), np.maximum(first, second).tolist(), strict=True)
    return order.tolist(), set(pairs)
