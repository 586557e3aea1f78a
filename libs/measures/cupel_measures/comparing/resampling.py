"""Resampling of topics: bootstrap intervals, power, and the randomisation test.

The power is the discriminative power of a measure.

Replicates are drawn in blocks, each with its own random generator seeded by (seed, block). Results therefore
do not depend on the order of computation or the number of processes. All systems and measures share the
replicates.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.comparing.outcomes import (
    CLOSE,
    Outcome,
    matrix,
    mean,
    paired,
    scale_warnings,
    undefined_reason,
)
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.model import Floats, Ints

BLOCK = 250
"""Number of replicates per block, so that the arrays of a block stay in the processor cache."""
AT_ONCE = 512
"""Number of columns whose replicates are kept in memory at the same time."""
REPLICATES, FLIPS = 10_000, 100_000
SUREST = 1 - 1 / REPLICATES
"""Highest confidence for the default number of replicates; above it, tails have less than one replicate."""
PAIRS = 5000
"""Number of pairs tested at the same time, to limit memory: 1,000 systems have half a million pairs."""
EXACT = 15
"""Largest number of topics for which all sign flips are enumerated."""
DECIMALS = 12
"""Means that are equal after rounding to this many decimals are tied in a ranking."""


@dataclass(frozen=True)
class Interval:
    """A value and the bounds of its confidence interval.

    undefined: the reason why a field is None.
    """

    value: float | None
    low: float | None
    high: float | None
    undefined: str | None = None

    def clipped(self, least: float, most: float) -> "Interval":
        """Return the interval with bounds no lower than `least` and no higher than `most`."""
        if self.low is None or self.high is None:
            return self
        return replace(self, low=max(self.low, least), high=min(self.high, most))


def counts(topics: int, replicates: int, seed: int) -> Iterator[Floats]:
    """Yield blocks of bootstrap samples, float64[block, topics].

    The value is how often each topic was drawn.
    """
    for block, begin in enumerate(range(0, replicates, BLOCK)):
        size = min(BLOCK, replicates - begin)
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, block))))
        drawn = rng.integers(topics, size=(size, topics)) + topics * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * topics).reshape(size, topics).astype(np.float64)


def replicated_means(scores: Floats, replicates: int, seed: int) -> Iterator[Floats]:
    """Yield the mean of every system over the topics of each replicate.

    A block is float64[block, systems].
    """
    for sample in counts(len(scores), replicates, seed):
        yield _weighted_sum(sample, scores) / len(scores)


def _weighted_sum(sample: Floats, scores: Floats) -> Floats:
    """Return sample @ scores, float64[block, systems].

    Topics are added one after another, so the result has the same bits on any machine.
    """
    total = np.zeros((len(sample), scores.shape[1]))
    for topic, topic_scores in enumerate(scores):
        total += sample[:, topic, None] * topic_scores
    return total


def check_confidence(confidence: float, replicates: int = REPLICATES) -> None:
    """Raise ValueError unless 0 < confidence <= 1 - 1 / replicates."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    if confidence > (highest := 1 - 1 / replicates):
        raise ValueError(f"confidence must be at most {highest:g} with {replicates:,} replicates")


def intervals(
    scores: Sequence[Sequence[float]] | Floats,
    *,
    confidence: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> tuple[Interval, ...]:
    """Return the bootstrap interval of the mean of every column.

    The interval is the bias-corrected accelerated one (Efron 1987).

    scores: float64[topics, systems], or differences of pairs of systems. If a column has an undefined score,
    its value and bounds are undefined. With a single topic, only the bounds are undefined. A column of equal
    values has an interval of width 0. Raises ValueError if the confidence is not allowed (see
    `check_confidence`).
    """
    check_confidence(confidence, replicates)
    values = matrix(scores)
    reasons = [undefined_reason(column) for column in values.T]
    usable = [column for column, reason in enumerate(reasons) if reason is None]
    results = [Interval(None, None, None, reason) for reason in reasons]
    for begin in range(0, len(usable), AT_ONCE):
        columns = usable[begin : begin + AT_ONCE]
        defined = _intervals(values[:, columns], confidence, replicates, seed)
        for column, interval in zip(columns, defined, strict=True):
            results[column] = interval
    return tuple(results)


def _intervals(values: Floats, confidence: float, replicates: int, seed: int) -> list[Interval]:
    means = mean(values).tolist()
    if (reason := _single_topic(len(values))) is not None:
        return [Interval(value, None, None, reason) for value in means]
    replicated = np.sort(np.concatenate(list(replicated_means(values, replicates, seed))), axis=0)
    return [
        _accelerated(values[:, column], value, replicated[:, column], confidence)
        for column, value in enumerate(means)
    ]


def _single_topic(topics: int) -> str | None:
    return "there is only one topic" if topics < 2 else None


def _accelerated(values: Floats, value: float, replicated: Floats, confidence: float) -> Interval:
    """Return the interval of one mean.

    replicated: the means of the replicates, ascending.
    """
    from scipy.special import ndtr, ndtri  # imported late, because the import takes a quarter of a second

    deviations = values - value
    if (np.abs(deviations) <= CLOSE * max(1.0, abs(value))).all():
        return Interval(value, value, value)
    n = len(replicated)
    below = (np.searchsorted(replicated, value, "left") + np.searchsorted(replicated, value, "right")) / 2
    bias = ndtri(np.clip(below / n, 1 / (2 * n), 1 - 1 / (2 * n)))
    deviations = deviations / np.abs(deviations).max()  # without this, their cubes may overflow
    squares = np.cumsum(deviations**2)[-1]
    acceleration = np.cumsum(deviations**3)[-1] / (6 * squares**1.5)  # from the jackknife means
    tails = bias + ndtri(np.array([(1 - confidence) / 2, (1 + confidence) / 2]))
    low, high = np.quantile(replicated, ndtr(bias + tails / (1 - acceleration * tails))).tolist()
    return Interval(value, low, high)


# ------------------------------------------------------------------------------- discriminative power


@dataclass(frozen=True, eq=False, kw_only=True)
class PairTests:
    """The paired bootstrap test of all pairs of systems (Sakai, SIGIR 2006).

    first, second: int64[pairs], the systems of each pair. t: float64[pairs], the studentised mean difference;
    infinite if the difference is the same on every topic. asl: float64[pairs], the achieved significance
    level. percent: percentage of the pairs with asl below alpha; None if there are no pairs.
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
    def n_discriminated(self) -> int:
        """Number of pairs that differ significantly."""
        return int(np.count_nonzero(self.asl < self.alpha))


def discriminative_power(
    scores: Sequence[Sequence[float]] | Floats,
    *,
    alpha: float = 0.01,
    replicates: int = REPLICATES,
    seed: int = 0,
    scale: ScaleType = "interval",
) -> PairTests:
    """Run the two-sided paired bootstrap test of all pairs of systems.

    The method is that of Maistro et al., CIKM 2021, section 4.3.2, with the statistic of
    `libs/measures/READINGS.md`, reading 6. scores: float64[topics, systems]. t is the mean difference divided
    by its standard error. A replicate draws topics with replacement, and its t is that of their centred
    differences. asl is the share of replicates whose |t| is at least the observed |t|. It is 1 if two systems
    never differ, and 0 if they differ by the same amount on every topic.
    """
    values, warnings = matrix(scores), scale_warnings(scale, "the paired bootstrap test")
    first, second = np.triu_indices(values.shape[1], 1)
    reason = undefined_reason(values) or _no_pair(len(first)) or _single_topic(len(values))
    if reason is not None:
        empty = np.zeros(0)
        return PairTests(
            first=first[:0],
            second=second[:0],
            t=empty,
            asl=empty,
            alpha=alpha,
            percent=None,
            warnings=warnings,
            undefined=reason,
        )
    batches = [slice(begin, begin + PAIRS) for begin in range(0, len(first), PAIRS)]
    results = [
        _test_differences(values[:, first[batch]] - values[:, second[batch]], replicates, seed)
        for batch in batches
    ]
    t, asl = (np.concatenate(column) for column in zip(*results, strict=True))
    percent = 100.0 * np.count_nonzero(asl < alpha) / len(first)
    return PairTests(
        first=first, second=second, t=t, asl=asl, alpha=alpha, percent=percent, warnings=warnings
    )


def _test_differences(differences: Floats, replicates: int, seed: int) -> tuple[Floats, Floats]:
    """Return t and asl of each pair. differences: float64[topics, pairs]."""
    means = mean(differences)
    centred = differences - means
    t = studentised(means, standard_deviation(mean(centred**2), means), len(differences))
    return t, _share_as_extreme(centred, np.abs(t), replicates, seed)


def _no_pair(pairs: int) -> str | None:
    return None if pairs else "there are fewer than two systems"


def standard_deviation(variance: Floats, means: Floats) -> Floats:
    """Return standard deviations; rounding errors become 0."""
    deviation = np.sqrt(np.maximum(variance, 0.0))
    return np.where(deviation < CLOSE, 0.0, deviation)


def studentised(means: Floats, deviation: Floats, topics: int) -> Floats:
    """Return means / (deviation / sqrt(topics)).

    The result is 0 for a mean of 0, and infinite if only the deviation is 0.
    """
    means = np.where(np.abs(means) < CLOSE, 0.0, means)
    constant = np.where(means == 0.0, 0.0, np.copysign(np.inf, means))
    t: Floats = np.divide(means * np.sqrt(topics), deviation, out=constant, where=deviation > 0)
    return t


def _share_as_extreme(centred: Floats, t: Floats, replicates: int, seed: int) -> Floats:
    """Return the share of replicates whose |t| is at least `t`, float64[pairs].

    The last bits of matrix products may differ between machines; the tolerance CLOSE absorbs that.
    """
    extreme = np.zeros(len(t), dtype=np.int64)
    squares, bound = centred**2, t * (1 - CLOSE)
    for sample in counts(len(centred), replicates, seed):
        means = sample @ centred / len(centred)
        deviation = standard_deviation(sample @ squares / len(centred) - means**2, means)
        extreme += np.count_nonzero(np.abs(studentised(means, deviation, len(centred))) >= bound, axis=0)
    return extreme / replicates


# ---------------------------------------------------------------------------------- randomisation test


def randomisation(
    first: Sequence[float] | Floats,
    second: Sequence[float] | Floats,
    *,
    flips: int = FLIPS,
    seed: int = 0,
    scale: ScaleType = "interval",
) -> Outcome:
    """Return Fisher's paired randomisation test of the mean difference, two-sided.

    Under the null hypothesis each topic's difference has either sign with the same probability (Smucker,
    Allan and Carterette, CIKM 2007). Up to 15 topics all assignments of signs are enumerated, and p is the
    share that is at least as extreme. For more topics `flips` random assignments are drawn, and p is
    (number as extreme + 1) / (flips + 1).
    """
    x, y = paired(first, second)
    [outcome] = randomisations(x[:, None], y[:, None], flips=flips, seed=seed, scale=scale)
    return outcome


def randomisations(
    first: Sequence[Sequence[float]] | Floats,
    second: Sequence[Sequence[float]] | Floats,
    *,
    flips: int = FLIPS,
    seed: int = 0,
    scale: ScaleType = "interval",
) -> list[Outcome]:
    """Run `randomisation` on each pair of columns.

    A pair is a column of `first` and the same column of `second`, float64[topics, pairs].

    All pairs share the assignments of signs; the outcome of a pair does not depend on the other pairs.
    """
    x, y = matrix(first), matrix(second)
    if x.shape != y.shape:
        raise ValueError(f"expected two matrices of the same shape, got {x.shape} and {y.shape}")
    topics, warnings = len(x), scale_warnings(scale, "the randomisation test")
    reasons = [undefined_reason(a, b) for a, b in zip(x.T, y.T, strict=True)]
    usable = [pair for pair, reason in enumerate(reasons) if reason is None]
    outcomes = [Outcome(n=topics, warnings=warnings, undefined=reason) for reason in reasons]
    if usable:
        differences = x[:, usable] - y[:, usable]
        estimates, p_values = mean(differences).tolist(), _sign_flip_p(differences, flips, seed)
        for pair, estimate, p in zip(usable, estimates, p_values, strict=True):
            outcomes[pair] = Outcome(n=topics, estimate=estimate, statistic=estimate, p=p, warnings=warnings)
    return outcomes


def sign_assignments(topics: int, flips: int, seed: int) -> Iterator[Floats]:
    """Yield assignments of signs, float64[block, topics].

    All assignments are yielded for up to EXACT topics, else random ones.
    """
    return _all_signs(topics) if topics <= EXACT else random_signs(topics, flips, seed)


def _sign_flip_p(differences: Floats, flips: int, seed: int) -> list[float]:
    """Return p of every column of differences.

    The last bits of matrix products may differ between machines; the tolerance CLOSE absorbs that.
    """
    topics = len(differences)
    bound = np.abs(mean(differences)) * topics - CLOSE * topics * np.abs(differences).max(axis=0)
    extreme = np.zeros(len(bound), dtype=np.int64)
    for signs in sign_assignments(topics, flips, seed):
        for begin in range(0, len(bound), AT_ONCE):
            part = slice(begin, begin + AT_ONCE)
            extreme[part] += np.count_nonzero(np.abs(signs @ differences[:, part]) >= bound[part], axis=0)
    if topics <= EXACT:
        return [count / 2**topics for count in extreme.tolist()]
    return [(count + 1) / (flips + 1) for count in extreme.tolist()]


def _all_signs(topics: int) -> Iterator[Floats]:
    numbers: NDArray[Any] = np.arange(2**topics)[:, None] >> np.arange(topics) & 1
    yield 1.0 - 2.0 * numbers


def random_signs(topics: int, flips: int, seed: int) -> Iterator[Floats]:
    """Yield random assignments of the signs 1 and -1 to the topics.

    A block is float64[block, topics].
    """
    size = 40 * BLOCK
    for block, begin in enumerate(range(0, flips, size)):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, block))))
        drawn = rng.integers(2, size=(min(size, flips - begin), topics))
        yield 1.0 - 2.0 * drawn.astype(np.float64)
