"""Tests of all pairs of systems at once.

The tests are Kruskal-Wallis, ANOVA with Tukey's HSD, and randomised Tukey HSD.

Scores are float64[topics, systems]. Two systems differ significantly if their difference exceeds the critical
difference, which is the same for all pairs. The probability of any false positive among all pairs is then at
most alpha.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cupel_measures.comparing.outcomes import CLOSE, matrix, mean, scale_warnings, undefined_reason
from cupel_measures.comparing.resampling import REPLICATES
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.model import Floats, Ints

Design = Literal["two_way", "one_way"]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class AllPairs:
    """The result of a test of all pairs of systems.

    first, second: int64[pairs], the systems of each pair. difference: float64[pairs], the mean or mean rank
    of the first system minus that of the second. width: the critical difference. statistic: H, F, or the
    range of the means. p: p-value of the null hypothesis that no systems differ. df, mse: degrees of freedom
    and mean square of the error, for ANOVA only. pair_p: float64[pairs], p-values corrected for all pairs;
    None if the test does not compute them. undefined: why there is no result.
    """

    first: Ints
    second: Ints
    difference: Floats
    width: float | None = None
    statistic: float | None = None
    p: float | None = None
    df: float | None = None
    mse: float | None = None
    pair_p: Floats | None = None
    alpha: float = 0.05
    warnings: tuple[str, ...] = ()
    undefined: str | None = None

    @property
    def differs(self) -> Mask:
        """Return whether the two systems of each pair differ significantly, bool[pairs]."""
        if self.undefined is not None:
            return np.zeros(len(self.first), dtype=bool)
        if self.pair_p is not None:
            return np.asarray(self.pair_p <= self.alpha)
        return np.asarray(np.abs(self.difference) > (self.width or 0.0) * (1 + CLOSE))

    @property
    def percent(self) -> float | None:
        """Percentage of the pairs that differ significantly; None if there are no pairs."""
        return 100.0 * np.count_nonzero(self.differs) / len(self.first) if len(self.first) else None


def kruskal_wallis(scores: Sequence[Sequence[float]] | Floats, *, alpha: float = 0.05) -> AllPairs:
    """Test all systems by Kruskal-Wallis.

    Test all pairs by Tukey's criterion on mean ranks.

    The scores of all topics are ranked together (Ferrante, Ferro and Losiouk, TKDE 2019, section 5.3). Only
    the order of the scores counts, so the test is valid on any scale. Convert exact scores (int or Fraction)
    to ranks before the call, because floats may not distinguish them.
    """
    from scipy.stats import chi2, rankdata

    values = matrix(scores)
    result = empty_result(values, alpha, ())
    if result.undefined is not None:
        return result
    topics, systems = values.shape
    n = values.size
    ranks = rankdata(values)
    _, tied = np.unique(values, return_counts=True)
    ties = float(np.cumsum(tied.astype(np.float64) ** 3 - tied)[-1])
    sums = mean(ranks.reshape(values.shape)) * topics
    h = 12 / (n * (n + 1)) * float(np.cumsum(sums**2)[-1]) / topics - 3 * (n + 1)
    untied = 1 - ties / (n**3 - n)
    h = h / untied if untied > 0 else 0.0
    p = float(chi2.sf(h, systems - 1)) if untied > 0 else 1.0
    variance = n * (n + 1) / 12 - ties / (12 * (n - 1))
    width = critical_range(alpha, systems, float("inf")) * (max(variance, 0.0) / topics) ** 0.5
    difference = (sums[result.first] - sums[result.second]) / topics
    return replace(result, difference=difference, width=width, statistic=h, p=p)


def anova(
    scores: Sequence[Sequence[float]] | Floats,
    *,
    design: Design = "two_way",
    alpha: float = 0.05,
    scale: ScaleType = "interval",
) -> AllPairs:
    """Test all systems by an analysis of variance, and pairs by Tukey's HSD.

    design: "two_way" has the factors topic and system, without interaction and with one observation per cell;
    "one_way" has only the factor system (`libs/measures/READINGS.md`, reading 11). If the error is zero and
    the means are not all equal, the statistic is infinite, and all pairs with different means differ
    significantly.
    """
    from scipy.stats import f as f_distribution

    values = matrix(scores)
    result = empty_result(values, alpha, scale_warnings(scale, "ANOVA"))
    if result.undefined is not None:
        return result
    topics, systems = values.shape
    means, grand = mean(values), float(mean(values.reshape(-1, 1))[0])
    system_squares = topics * _sum_of_squares(means - grand)
    topic_squares = systems * _sum_of_squares(mean(values.T) - grand) if design == "two_way" else 0.0
    error = max(0.0, _sum_of_squares((values - grand).ravel()) - system_squares - topic_squares)
    df = (topics - 1) * (systems - 1) if design == "two_way" else systems * (topics - 1)
    mse = error / df if error > CLOSE * max(system_squares, topic_squares, 1e-300) else 0.0
    difference = means[result.first] - means[result.second]
    difference = np.where(np.abs(difference) < CLOSE, 0.0, difference)
    width = critical_range(alpha, systems, df) * (mse / topics) ** 0.5
    result = replace(result, difference=difference, width=width, df=df, mse=mse)
    if mse == 0.0:
        same = not difference.any()
        return replace(result, statistic=0.0 if same else float("inf"), p=1.0 if same else 0.0)
    statistic = system_squares / (systems - 1) / mse
    return replace(result, statistic=statistic, p=float(f_distribution.sf(statistic, systems - 1, df)))


def randomised_hsd(
    scores: Sequence[Sequence[float]] | Floats,
    *,
    alpha: float = 0.05,
    replicates: int = REPLICATES,
    seed: int = 0,
    scale: ScaleType = "interval",
) -> AllPairs:
    """Test all pairs by randomised Tukey HSD (Carterette, TOIS 2012).

    Each replicate permutes the scores of every topic among the systems. The p-value of a pair is (r + 1) /
    (replicates + 1). r is the number of replicates whose range of means is at least the absolute difference
    of the pair. A pair differs significantly if p <= alpha.
    """
    [result] = randomised_hsds([scores], alpha=alpha, replicates=replicates, seed=seed, scales=[scale])
    return result


def randomised_hsds(
    matrices: Sequence[Sequence[Sequence[float]] | Floats],
    *,
    alpha: float = 0.05,
    replicates: int = REPLICATES,
    seed: int = 0,
    scales: Sequence[ScaleType] | None = None,
) -> list[AllPairs]:
    """Run `randomised_hsd` for several measures of the same topics and systems.

    All measures share the replicates; the result of a measure does not depend on the other measures.
    """
    values = [matrix(scores) for scores in matrices]
    if len({scores.shape for scores in values}) > 1:
        raise ValueError("the measures have different numbers of topics or systems")
    warnings = [scale_warnings(scale, "Tukey's HSD") for scale in scales or ["interval"] * len(values)]
    results = [empty_result(scores, alpha, texts) for scores, texts in zip(values, warnings, strict=True)]
    usable = [scores for scores, result in zip(values, results, strict=True) if result.undefined is None]
    ranges = iter(_permuted_ranges(np.stack(usable), replicates, seed) if usable else ())
    return [
        result if result.undefined is not None else _compare_with_ranges(result, scores, next(ranges))
        for scores, result in zip(values, results, strict=True)
    ]


def _compare_with_ranges(result: AllPairs, values: Floats, ranges: Floats) -> AllPairs:
    """Add the statistics of randomised Tukey HSD to `result`.

    ranges: float64[replicates], ascending.
    """
    means = mean(values)
    difference = means[result.first] - means[result.second]
    size = np.abs(difference)
    reached = len(ranges) - np.searchsorted(ranges, np.where(size < CLOSE, 0.0, size * (1 - CLOSE)))
    pair_p = (reached + 1) / (len(ranges) + 1)
    return replace(
        result,
        difference=difference,
        width=float(np.quantile(ranges, 1 - result.alpha, method="higher")),
        statistic=float(np.ptp(means)),
        p=float(pair_p.min(initial=1.0)),
        pair_p=pair_p,
    )


def _permuted_ranges(values: Floats, replicates: int, seed: int) -> list[Floats]:
    """Return the sorted ranges of the means after random permutations.

    A permutation reorders the scores of each topic.

    values: float64[measures, topics, systems]. The result contains one float64[replicates] per measure.
    """
    measures, topics, systems = values.shape
    ranges = np.empty((measures, replicates))
    for begin, orders in _permutations(topics, systems, replicates, seed):
        for index, scores in enumerate(values):
            total = np.zeros(orders.shape[1:])
            for topic in range(topics):
                total += scores[topic][orders[topic]]
            ranges[index, begin : begin + len(total)] = np.ptp(total, axis=1) / topics
    return list(np.sort(ranges, axis=1))


def _permutations(
    topics: int, systems: int, replicates: int, seed: int
) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """Yield blocks of random orders of the systems, one order per topic and replicate.

    A block is (index of its first replicate, int32[topics, block, systems]).
    """
    size = max(1, (1 << 20) // max(topics * systems, 1))
    for block, begin in enumerate(range(0, replicates, size)):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, block))))
        shape = topics, min(size, replicates - begin), systems
        orders = np.broadcast_to(np.arange(systems, dtype=np.int32), shape)
        yield begin, rng.permuted(orders, axis=2)


@lru_cache(maxsize=256)
def critical_range(alpha: float, systems: int, df: float) -> float:
    """Return the upper alpha quantile of the studentised range.

    It is cached because it is slow to compute.
    """
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(1 - alpha, systems, df))


def empty_result(values: Floats, alpha: float, warnings: tuple[str, ...]) -> AllPairs:
    """Return a result without statistics.

    Its `undefined` gives the reason if no test is possible.
    """
    topics, systems = values.shape
    first, second = np.triu_indices(systems, 1)
    reason = undefined_reason(values)
    if reason is None and systems < 2:
        reason = "there are fewer than two systems"
    if reason is None and topics < 2:
        reason = "there is only one topic"
    return AllPairs(
        first=first,
        second=second,
        difference=np.zeros(len(first)),
        alpha=alpha,
        warnings=warnings,
        undefined=reason,
    )


def _sum_of_squares(values: Floats) -> float:
    return float(np.cumsum(values**2)[-1])
