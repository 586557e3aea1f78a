"""Resampled topics: intervals of means and ranks, discriminative power, and the randomisation test.

Replicates are drawn in blocks, each by a generator of its own from (seed, block): the same whatever is
computed of them, in which order, by how many processes. All systems and measures share them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.comparing.outcomes import CLOSE, Outcome, asks_too_much, matrix, mean, paired, unusable
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.model import Floats, Ints

BLOCK = 250
"""Replicates that are computed at once, so that what is made of them stays in a processor's cache."""
AT_ONCE = 512
"""Columns whose replicates are held at once."""
REPLICATES, FLIPS = 10_000, 100_000
SUREST = 1 - 1 / REPLICATES
"""The greatest confidence, unless there are more replicates: they have nothing beyond its tails."""
PAIRS = 5000
"""Pairs that are tested at once: a thousand systems have half a million, which would fill the memory."""
EXACT = 15
"""Up to so many topics all sign flips are enumerated."""
DECIMALS = 12
"""Means that are equal when rounded to so many decimals are tied in a ranking (spec 1.2.7)."""


@dataclass(frozen=True)
class Interval:
    """A value and its bounds at a confidence; None where `undefined` says why."""

    value: float | None
    low: float | None
    high: float | None
    undefined: str | None = None


def counts(topics: int, replicates: int, seed: int) -> Iterator[Floats]:
    """float64[block, topics] after another: how often a replicate drew each topic, with replacement."""
    for block, begin in enumerate(range(0, replicates, BLOCK)):
        size = min(BLOCK, replicates - begin)
        draw = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, block))))
        drawn = draw.integers(topics, size=(size, topics)) + topics * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * topics).reshape(size, topics).astype(np.float64)


def replicated_means(scores: Floats, replicates: int, seed: int) -> Iterator[Floats]:
    """float64[block, systems] after another: the mean of every system over the topics of each replicate."""
    for drawn in counts(len(scores), replicates, seed):
        yield _weighted(drawn, scores) / len(scores)


def _weighted(drawn: Floats, scores: Floats) -> Floats:
    """float64[block, systems]: drawn @ scores, added topic after topic: the same bits on any machine."""
    total = np.zeros((len(drawn), scores.shape[1]))
    for topic, of_systems in enumerate(scores):
        total += drawn[:, topic, None] * of_systems
    return total


def check_confidence(confidence: float, replicates: int = REPLICATES) -> None:
    """ValueError where it is no chance, or so great that so many replicates have nothing beyond its tails."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is between 0 and 1, not {confidence}")
    if confidence > (surest := 1 - 1 / replicates):
        raise ValueError(f"confidence is at most {surest:g}, as replicates go no further")


def intervals(
    scores: Sequence[Sequence[float]] | Floats,
    *,
    confidence: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> tuple[Interval, ...]:
    """Bias-corrected accelerated bootstrap interval of the mean of every column (Efron 1987).

    scores: float64[topics, systems], or differences of pairs of systems. A column with a score that is no
    number is undefined; on a single topic the bounds are. A column of equal values has an interval without
    width. ValueError where the confidence is beyond what so many replicates tell.
    """
    check_confidence(confidence, replicates)
    values = matrix(scores)
    reasons = [unusable(column) for column in values.T]
    usable = [place for place, why in enumerate(reasons) if why is None]
    found = [Interval(None, None, None, why) for why in reasons]
    for begin in range(0, len(usable), AT_ONCE):
        places = usable[begin : begin + AT_ONCE]
        of_columns = _intervals(values[:, places], confidence, replicates, seed)
        for place, one in zip(places, of_columns, strict=True):
            found[place] = one
    return tuple(found)


def _intervals(values: Floats, confidence: float, replicates: int, seed: int) -> list[Interval]:
    means = mean(values).tolist()
    if (why := _too_few(len(values))) is not None:
        return [Interval(one, None, None, why) for one in means]
    drawn = np.sort(np.concatenate(list(replicated_means(values, replicates, seed))), axis=0)
    return [
        _accelerated(values[:, column], one, drawn[:, column], confidence) for column, one in enumerate(means)
    ]


def _too_few(topics: int) -> str | None:
    return "one topic says nothing about others" if topics < 2 else None


def _accelerated(values: Floats, value: float, drawn: Floats, confidence: float) -> Interval:
    """drawn: ascending replicates of the mean."""
    from scipy.special import ndtr, ndtri  # late: it costs a quarter of a second, and few need it

    apart = values - value
    if (np.abs(apart) <= CLOSE * max(1.0, abs(value))).all():
        return Interval(value, value, value)
    below = (np.searchsorted(drawn, value, "left") + np.searchsorted(drawn, value, "right")) / 2
    bias = ndtri(np.clip(below / len(drawn), 1 / (2 * len(drawn)), 1 - 1 / (2 * len(drawn))))
    apart = apart / np.abs(apart).max()  # whose cube may be no number otherwise
    squares = np.cumsum(apart**2)[-1]
    acceleration = np.cumsum(apart**3)[-1] / (6 * squares**1.5)  # of the jackknife means
    tails = bias + ndtri(np.array([(1 - confidence) / 2, (1 + confidence) / 2]))
    low, high = np.quantile(drawn, ndtr(bias + tails / (1 - acceleration * tails))).tolist()
    return Interval(value, low, high)


def rank_intervals(
    scores: Sequence[Sequence[float]] | Floats,
    *,
    confidence: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> tuple[Interval, ...]:
    """Where every system would rank on other topics: percentiles of its rank over bootstrap replicates.

    value: its rank on these topics. Ranks go from 1 for the greatest mean; equal means share the middle of
    theirs. ValueError where the confidence is beyond what so many replicates tell.
    """
    from scipy.stats import rankdata

    check_confidence(confidence, replicates)
    values = matrix(scores)
    if (why := unusable(values) or _too_few(len(values))) is not None:
        return (Interval(None, None, None, why),) * len(values.T)
    ranks = np.concatenate(
        [rankdata(-np.round(one, DECIMALS), axis=1) for one in replicated_means(values, replicates, seed)]
    )
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.quantile(ranks, tails, axis=0, method="inverted_cdf")
    own = rankdata(-np.round(mean(values), DECIMALS))
    return tuple(Interval(*one) for one in zip(own.tolist(), low.tolist(), high.tolist(), strict=True))


# ------------------------------------------------------------------------------- discriminative power


@dataclass(frozen=True, eq=False)
class Power:
    """Which pairs of systems a measure tells apart (Sakai 2006; spec 3.8).

    first, second: int64[pairs], the systems of each pair. t: float64[pairs], the studentised difference,
    infinite where it is the same on every topic. asl: float64[pairs], the share of replicates that are as
    extreme. percent: share of the pairs with asl below alpha, None where there is no pair.
    """

    first: Ints
    second: Ints
    t: Floats
    asl: Floats
    alpha: float
    percent: float | None
    warnings: tuple[str, ...] = ()
    undefined: str | None = None

    @property
    def discriminated(self) -> int:
        """How many pairs are told apart."""
        return int(np.count_nonzero(self.asl < self.alpha))


def discriminative_power(
    scores: Sequence[Sequence[float]] | Floats,
    *,
    alpha: float = 0.01,
    replicates: int = REPLICATES,
    seed: int = 0,
    scale: ScaleType = "interval",
) -> Power:
    """The paired bootstrap test of all pairs of systems, two-sided (Maistro et al. 2021, 4.3.2; spec 3.8).

    scores: float64[topics, systems]. t is the mean difference over its standard error; a replicate draws
    topics with replacement from the differences less their mean. Two systems that never differ have an asl of
    1, a difference that is the same on every topic one of 0.
    """
    values, warnings = matrix(scores), asks_too_much(scale, "the paired bootstrap test")
    first, second = np.triu_indices(values.shape[1], 1)
    if (why := unusable(values) or _no_pair(len(first)) or _no_spread(len(values))) is not None:
        none = np.zeros(0)
        return Power(first[:0], second[:0], none, none, alpha, None, warnings, why)
    tested = [
        _tested(values[:, first[some]] - values[:, second[some]], replicates, seed)
        for some in (slice(begin, begin + PAIRS) for begin in range(0, len(first), PAIRS))
    ]
    t, asl = (np.concatenate(part) for part in zip(*tested, strict=True))
    percent = 100.0 * np.count_nonzero(asl < alpha) / len(first)
    return Power(first, second, t, asl, alpha, percent, warnings)


def _tested(apart: Floats, replicates: int, seed: int) -> tuple[Floats, Floats]:
    """t and asl of each pair, from float64[topics, pairs], their differences."""
    means = mean(apart)
    centred = apart - means
    t = _studentised(means, _spread(mean(centred**2), means), len(apart))
    return t, _as_extreme(centred, np.abs(t), replicates, seed)


def _no_pair(pairs: int) -> str | None:
    return None if pairs else "there is no pair of systems"


def _no_spread(topics: int) -> str | None:
    return "one topic has no spread" if topics < 2 else None


def _spread(variance: Floats, means: Floats) -> Floats:
    """Standard deviation; 0 where rounding alone makes it more."""
    spread = np.sqrt(np.maximum(variance, 0.0))
    return np.where(spread < CLOSE, 0.0, spread)


def _studentised(means: Floats, spread: Floats, topics: int) -> Floats:
    """means / (spread / sqrt(n)): 0 where both are 0, infinite where the spread alone is."""
    means = np.where(np.abs(means) < CLOSE, 0.0, means)
    constant = np.where(means == 0.0, 0.0, np.copysign(np.inf, means))
    t: Floats = np.divide(means * np.sqrt(topics), spread, out=constant, where=spread > 0)
    return t


def _as_extreme(centred: Floats, t: Floats, replicates: int, seed: int) -> Floats:
    """float64[pairs]: share of replicates whose |t| is at least `t`, but for rounding.

    The matrix products may differ in their last bits between machines; what is counted is further apart.
    """
    found = np.zeros(len(t), dtype=np.int64)
    squares, bound = centred**2, t * (1 - CLOSE)
    for drawn in counts(len(centred), replicates, seed):
        means = drawn @ centred / len(centred)
        spread = _spread(drawn @ squares / len(centred) - means**2, means)
        found += np.count_nonzero(np.abs(_studentised(means, spread, len(centred))) >= bound, axis=0)
    return found / replicates


# ---------------------------------------------------------------------------------- randomisation test


def randomisation(
    first: Sequence[float] | Floats,
    second: Sequence[float] | Floats,
    *,
    flips: int = FLIPS,
    seed: int = 0,
    scale: ScaleType = "interval",
) -> Outcome:
    """Fisher's paired randomisation test of the mean difference, two-sided (Smucker et al., CIKM 2007).

    Where the systems are alike, the sign of each topic's difference is as likely to be the other one. Up to
    15 topics every assignment of signs is tried, and p is the share that is as extreme; above, `flips` are
    drawn, and p = (as extreme + 1) / (flips + 1).
    """
    x, y = paired(first, second)
    [found] = randomisations(x[:, None], y[:, None], flips=flips, seed=seed, scale=scale)
    return found


def randomisations(
    first: Sequence[Sequence[float]] | Floats,
    second: Sequence[Sequence[float]] | Floats,
    *,
    flips: int = FLIPS,
    seed: int = 0,
    scale: ScaleType = "interval",
) -> list[Outcome]:
    """`randomisation` of every column of one matrix with that of the other, float64[topics, pairs].

    All pairs share the assignments of signs; none depends on the others.
    """
    x, y = matrix(first), matrix(second)
    if x.shape != y.shape:
        raise ValueError(f"expected two matrices of one shape, got {x.shape} and {y.shape}")
    topics, warnings = len(x), asks_too_much(scale, "the randomisation test")
    reasons = [unusable(a, b) for a, b in zip(x.T, y.T, strict=True)]
    usable = [place for place, why in enumerate(reasons) if why is None]
    outcomes = [Outcome(topics, warnings=warnings, undefined=why) for why in reasons]
    if usable:
        apart = x[:, usable] - y[:, usable]
        found = mean(apart).tolist()
        for place, one, p in zip(usable, found, _by_signs(apart, flips, seed), strict=True):
            outcomes[place] = Outcome(topics, one, one, p, warnings=warnings)
    return outcomes


def _by_signs(apart: Floats, flips: int, seed: int) -> list[float]:
    """p of every column of differences.

    The matrix products may differ in their last bits between machines; what is counted is further apart.
    """
    topics = len(apart)
    bound = np.abs(mean(apart)) * topics - CLOSE * topics * np.abs(apart).max(axis=0)
    extreme = np.zeros(len(bound), dtype=np.int64)
    for signs in _all_signs(topics) if topics <= EXACT else _drawn_signs(topics, flips, seed):
        for begin in range(0, len(bound), AT_ONCE):
            part = slice(begin, begin + AT_ONCE)
            extreme[part] += np.count_nonzero(np.abs(signs @ apart[:, part]) >= bound[part], axis=0)
    if topics <= EXACT:
        return [count / 2**topics for count in extreme.tolist()]
    return [(count + 1) / (flips + 1) for count in extreme.tolist()]


def _all_signs(topics: int) -> Iterator[Floats]:
    numbers: NDArray[Any] = np.arange(2**topics)[:, None] >> np.arange(topics) & 1
    yield 1.0 - 2.0 * numbers


def _drawn_signs(topics: int, flips: int, seed: int) -> Iterator[Floats]:
    size = 40 * BLOCK
    for block, begin in enumerate(range(0, flips, size)):
        draw = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, block))))
        drawn = draw.integers(2, size=(min(size, flips - begin), topics))
        yield 1.0 - 2.0 * drawn.astype(np.float64)
