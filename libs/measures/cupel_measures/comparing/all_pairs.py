"""All pairs of systems at once: Kruskal-Wallis and ANOVA with Tukey's criterion, and randomised HSD.

Spec 4.4, 4.5, 12. Scores are topics x systems. A pair differs where its difference exceeds a width that all
pairs share, so the chance of any false finding among all of them stays below alpha.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cupel_measures.comparing.outcomes import CLOSE, asks_too_much, matrix, mean, unusable
from cupel_measures.comparing.resampling import REPLICATES
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.model import Floats, Ints

Design = Literal["two_way", "one_way"]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class AllPairs:
    """A test over all systems, and which pairs of them differ.

    statistic: H, F, or the observed range of means. p: that of no difference at all. df: of the error. mse:
    mean square of the error. difference: float64[pairs], first - second, of mean ranks or means. width: what
    it has to exceed. pair_p: float64[pairs], corrected for all pairs, where the test gives one.
    """

    first: Ints
    second: Ints
    difference: Floats
    width: float | None
    statistic: float | None
    p: float | None
    df: float | None = None
    mse: float | None = None
    pair_p: Floats | None = None
    alpha: float = 0.05
    warnings: tuple[str, ...] = ()
    undefined: str | None = None

    @property
    def differs(self) -> Mask:
        """bool[pairs]: which pairs differ."""
        if self.undefined is not None:
            return np.zeros(len(self.first), dtype=bool)
        if self.pair_p is not None:
            return np.asarray(self.pair_p <= self.alpha)
        return np.asarray(np.abs(self.difference) > (self.width or 0.0) * (1 + CLOSE))

    @property
    def percent(self) -> float | None:
        """Share of the pairs that differ; None where there is no pair."""
        return 100.0 * np.count_nonzero(self.differs) / len(self.first) if len(self.first) else None


def kruskal_wallis(scores: Sequence[Sequence[float]] | Floats, *, alpha: float = 0.05) -> AllPairs:
    """Kruskal-Wallis over systems, topics pooled, with Tukey's criterion on mean ranks (spec 4.4).

    Only the order of scores counts, so any scale serves. With scores that are exact numbers, give their
    ranks.
    """
    from scipy.stats import chi2, rankdata

    values = matrix(scores)
    blank = _blank(values, alpha, ())
    if blank.undefined is not None:
        return blank
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
    width = _critical(alpha, systems, float("inf")) * (max(variance, 0.0) / topics) ** 0.5
    difference = (sums[blank.first] - sums[blank.second]) / topics
    return replace(blank, difference=difference, width=width, statistic=h, p=p)


def anova(
    scores: Sequence[Sequence[float]] | Floats,
    *,
    design: Design = "two_way",
    alpha: float = 0.05,
    scale: ScaleType = "interval",
) -> AllPairs:
    """ANOVA of systems with Tukey's HSD (spec 4.5).

    two_way: topics and systems, without interaction, an observation a cell. one_way: systems alone. Without
    any error the statistic is infinite, and every pair of different means differs.
    """
    from scipy.stats import f as distribution

    values = matrix(scores)
    blank = _blank(values, alpha, asks_too_much(scale, "ANOVA"))
    if blank.undefined is not None:
        return blank
    topics, systems = values.shape
    means, grand = mean(values), float(mean(values.reshape(-1, 1))[0])
    of_systems = topics * _squares(means - grand)
    of_topics = systems * _squares(mean(values.T) - grand) if design == "two_way" else 0.0
    error = max(0.0, _squares((values - grand).ravel()) - of_systems - of_topics)
    df = (topics - 1) * (systems - 1) if design == "two_way" else systems * (topics - 1)
    mse = error / df if error > CLOSE * max(of_systems, of_topics, 1e-300) else 0.0
    difference = means[blank.first] - means[blank.second]
    difference = np.where(np.abs(difference) < CLOSE, 0.0, difference)
    width = _critical(alpha, systems, df) * (mse / topics) ** 0.5
    blank = replace(blank, difference=difference, width=width, df=df, mse=mse)
    if mse == 0.0:
        same = not difference.any()
        return replace(blank, statistic=0.0 if same else float("inf"), p=1.0 if same else 0.0)
    statistic = of_systems / (systems - 1) / mse
    return replace(blank, statistic=statistic, p=float(distribution.sf(statistic, systems - 1, df)))


def randomised_hsd(
    scores: Sequence[Sequence[float]] | Floats,
    *,
    alpha: float = 0.05,
    replicates: int = REPLICATES,
    seed: int = 0,
    scale: ScaleType = "interval",
) -> AllPairs:
    """Randomised Tukey HSD over all pairs (Carterette 2012; spec 12).

    Where all systems are alike, scores could be dealt out anew within each topic. A pair's p = (replicates
    whose range of means reaches its difference + 1) / (replicates + 1); it differs where p <= alpha.
    """
    [found] = randomised_hsds([scores], alpha=alpha, replicates=replicates, seed=seed, scales=[scale])
    return found


def randomised_hsds(
    matrices: Sequence[Sequence[Sequence[float]] | Floats],
    *,
    alpha: float = 0.05,
    replicates: int = REPLICATES,
    seed: int = 0,
    scales: Sequence[ScaleType] | None = None,
) -> list[AllPairs]:
    """`randomised_hsd` of several measures of the same topics and systems, which share the replicates."""
    values = [matrix(scores) for scores in matrices]
    if len({one.shape for one in values}) > 1:
        raise ValueError("the measures are not of the same topics and systems")
    warnings = [asks_too_much(scale, "Tukey's HSD") for scale in scales or ["interval"] * len(values)]
    blanks = [_blank(one, alpha, warning) for one, warning in zip(values, warnings, strict=True)]
    usable = [one for one, blank in zip(values, blanks, strict=True) if blank.undefined is None]
    ranges = iter(_ranges(np.stack(usable), replicates, seed) if usable else ())
    return [
        blank if blank.undefined is not None else _by_range(blank, one, next(ranges))
        for one, blank in zip(values, blanks, strict=True)
    ]


def _by_range(blank: AllPairs, values: Floats, ranges: Floats) -> AllPairs:
    """ranges: float64[replicates], ascending."""
    means = mean(values)
    difference = means[blank.first] - means[blank.second]
    size = np.abs(difference)
    reached = len(ranges) - np.searchsorted(ranges, np.where(size < CLOSE, 0.0, size * (1 - CLOSE)))
    pair_p = (reached + 1) / (len(ranges) + 1)
    widest = float(np.quantile(ranges, 1 - blank.alpha, method="higher"))
    p = float(pair_p.min(initial=1.0))
    return replace(
        blank, difference=difference, width=widest, statistic=float(np.ptp(means)), p=p, pair_p=pair_p
    )


def _ranges(values: Floats, replicates: int, seed: int) -> list[Floats]:
    """float64[replicates] for each of [measures, topics, systems]: range of means, scores dealt out anew."""
    measures, topics, systems = values.shape
    found = np.empty((measures, replicates))
    for begin, dealt in _deals(topics, systems, replicates, seed):
        for place, one in enumerate(values):
            total = np.zeros(dealt.shape[1:])
            for topic in range(topics):
                total += one[topic][dealt[topic]]
            found[place, begin : begin + len(total)] = np.ptp(total, axis=1) / topics
    return list(np.sort(found, axis=1))


def _deals(topics: int, systems: int, replicates: int, seed: int) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """(first replicate, int32[topics, block, systems]): a random order of the systems for each topic."""
    size = max(1, (1 << 20) // max(topics * systems, 1))
    for block, begin in enumerate(range(0, replicates, size)):
        draw = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, block))))
        shape = topics, min(size, replicates - begin), systems
        orders = np.broadcast_to(np.arange(systems, dtype=np.int32), shape)
        yield begin, draw.permuted(orders, axis=2)


@lru_cache(maxsize=256)
def _critical(alpha: float, systems: int, df: float) -> float:
    """The studentised range's upper quantile; slow to compute, and asked for again."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(1 - alpha, systems, df))


def _blank(values: Floats, alpha: float, warnings: tuple[str, ...]) -> AllPairs:
    topics, systems = values.shape
    first, second = np.triu_indices(systems, 1)
    why = unusable(values)
    if why is None and systems < 2:
        why = "there is no pair of systems"
    if why is None and topics < 2:
        why = "one topic has no spread"
    nothing = np.zeros(len(first))
    return AllPairs(first, second, nothing, None, None, None, alpha=alpha, warnings=warnings, undefined=why)


def _squares(values: Floats) -> float:
    return float(np.cumsum(values**2)[-1])
