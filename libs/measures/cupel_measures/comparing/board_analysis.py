"""The significance analysis of a leaderboard.

It consists of intervals of means and ranks, groups, and the best set.

Pairs are compared by the step-down max-T test. Systems in the same group do not differ significantly; this
does not show that they are equal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cupel_measures.comparing.all_pairs import AllPairs
from cupel_measures.comparing.corrections import groups
from cupel_measures.comparing.outcomes import matrix, mean
from cupel_measures.comparing.resampling import DECIMALS, REPLICATES, Interval
from cupel_measures.comparing.simultaneous.max_t import MaxT, least_p_of_flips, max_t
from cupel_measures.comparing.t_intervals import t_intervals
from cupel_measures.comparing.topic_sets.detectable_differences import detectable_difference
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.model import Floats

ALPHA = 0.05
METHOD = "max-t/2"
"""Name and version of the method. Results of different versions cannot be compared."""


@dataclass(frozen=True)
class RankedSystem:
    """A system on a leaderboard.

    mean: mean score with its t interval. rank: rank by the mean, with its simultaneous confidence interval
    (Mogstad, Romano, Shaikh and Wilhelm, Review of Economic Studies 2024). The lower bound is 1 + the number
    of significantly better systems. The upper bound is the number of systems that are not significantly
    worse, including this one. Systems with equal means share the average of their ranks. groups: numbers of
    the groups that contain the system, from 0 for the best; two systems share a group unless they differ
    significantly. in_best_set: whether the system is not significantly worse than the best.
    """

    mean: Interval
    rank: Interval
    groups: tuple[int, ...]
    in_best_set: bool


@dataclass(frozen=True, kw_only=True)
class BoardAnalysis:
    """The analysis of a leaderboard by one measure.

    standings: one per system, in the order of the columns of scores. neighbours: number of pairs of systems
    that are adjacent in the order by mean. separable: number of these pairs that differ significantly.
    smallest_difference: the smallest true difference of means that a paired t-test at level alpha detects
    with power 0.8 on these topics; None if it is undefined. replicates, seed: number of replicates and random
    seed of the max-T test. method: name and version of the method. undefined: why there is no test; all
    systems are then in the same group and in the best set.
    """

    standings: tuple[RankedSystem, ...]
    separable: int
    neighbours: int
    smallest_difference: float | None
    alpha: float
    replicates: int
    seed: int
    method: str = METHOD
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
    """Analyse a leaderboard by each of several measures, which share the replicates.

    matrices: one float64[topics, systems] per measure. Intervals have confidence 1 - alpha.
    """
    options = {"alpha": alpha, "replicates": replicates, "seed": seed}
    return [
        _analysis(scores, max_t(scores, scale=scale, with_p=False, **options), replicates, seed)  # type: ignore[arg-type]
        for scores, scale in zip(map(matrix, matrices), scales or ["interval"] * len(matrices), strict=True)
    ]


def _analysis(values: Floats, test: MaxT, replicates: int, seed: int) -> BoardAnalysis:
    order, different = board_order(values, test)
    groups_by_place = groups(len(order), sorted(different))
    place_of = {system: place for place, system in enumerate(order)}
    means, ranks = t_intervals(values, confidence=1 - test.alpha), _rank_intervals(values, test)
    return BoardAnalysis(
        standings=tuple(
            RankedSystem(mean, rank, groups_by_place[place_of[system]], bool(test.in_best_set[system]))
            for system, (mean, rank) in enumerate(zip(means, ranks, strict=True))
        ),
        separable=sum(pair in different for pair in pairwise(range(len(order)))),
        neighbours=max(0, len(order) - 1),
        smallest_difference=detectable_difference(values, test.alpha),
        alpha=test.alpha,
        replicates=replicates,
        seed=seed,
        warnings=(*test.warnings, *_few_topics(len(values), test)),
        undefined=test.undefined,
    )


def _few_topics(topics: int, test: MaxT) -> Iterator[str]:
    """Yield why no pair can differ significantly, if there are too few topics."""
    least = least_p_of_flips(topics)
    if test.undefined is None and least > test.alpha:
        yield (
            f"with {topics} topics p of the max-T test is at least {least:.4g}, so no difference can be "
            f"significant at {test.alpha:g}, and rank intervals and the best set exclude no system"
        )


def _rank_intervals(values: Floats, test: MaxT) -> tuple[Interval, ...]:
    """Return the rank of every system, with its interval; rank 1 is the highest mean."""
    systems = int(values.shape[1])
    if test.undefined is not None:
        return (Interval(None, None, None, test.undefined),) * systems
    low, high = rank_bounds(test, systems)
    ranks = _average_ranks(-np.round(mean(values), DECIMALS))
    bounds = zip(ranks.tolist(), low.tolist(), high.tolist(), strict=True)
    return tuple(Interval(*numbers) for numbers in bounds)


def rank_bounds(test: MaxT, systems: int) -> tuple[Floats, Floats]:
    """Return the lowest and the highest rank number that each system may have.

    Both are float64[systems].

    These are 1 + the number of significantly better systems, and the number of systems that are not
    significantly worse.
    """
    is_first_better = test.difference > 0
    better = np.where(is_first_better, test.first, test.second)[test.differs]
    worse = np.where(is_first_better, test.second, test.first)[test.differs]
    better_count, worse_count = (np.bincount(places, minlength=systems) for places in (better, worse))
    return (1 + worse_count).astype(np.float64), (systems - better_count).astype(np.float64)


def _average_ranks(values: Floats) -> Floats:
    """Return the rank of each value, from 1 for the smallest.

    Equal values get the mean of their ranks.
    """
    ordered = np.sort(values)  # scipy.stats.rankdata returns the same, but takes a second to import
    return (1.0 + ordered.searchsorted(values, "left") + ordered.searchsorted(values, "right")) / 2


def board_order(values: Floats, test: AllPairs | MaxT) -> tuple[list[int], set[tuple[int, int]]]:
    """Return the order of the systems, best first, and significant differences.

    The differences are pairs of positions in the order that differ significantly.
    """
    means = mean(values) if len(values) else np.zeros(values.shape[1])
    order = np.argsort(-np.where(np.isfinite(means), means, -np.inf), kind="stable")
    place = np.argsort(order)
    first, second = place[test.first[test.differs]], place[test.second[test.differs]]
    pairs = zip(np.minimum(first, second).tolist(), np.maximum(first, second).tolist(), strict=True)
    return order.tolist(), set(pairs)
