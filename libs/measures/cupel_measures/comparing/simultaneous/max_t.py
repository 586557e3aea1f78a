"""Studentised step-down max-T tests of pairs of systems.

The module also has multiple comparisons with the best.

All differences of one measure are tested together (Westfall and Young, 1993; Romano and Wolf, Econometrica
2005). With n topics there are only 2**(n - 1) different sign flips, so no pair differs significantly at an
alpha below 2**(1 - n). Unlike randomised Tukey HSD, the tests do not assume that all differences have the
same variance. With about ten topics or more they keep the probability of any false positive near alpha,
unless some systems have strongly skewed scores and others do not (`libs/measures/CALIBRATION.md`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cupel_measures.comparing.outcomes import CLOSE, matrix, mean, scale_warnings, undefined_reason
from cupel_measures.comparing.resampling import REPLICATES
from cupel_measures.comparing.simultaneous.sign_flips import Mask, SignFlips
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.model import Floats, Ints

AT_ONCE = 1 << 20
"""Number of values of r that are kept in memory at the same time; `sign_flips` defines r."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MaxT:
    """The result of the max-T tests of some or all pairs of systems.

    first, second: int64[pairs], the systems of each pair. difference: float64[pairs], the mean of first -
    second. error: float64[pairs], its standard error. t: float64[pairs], difference / error; infinite if only
    the error is 0. critical: the 1 - alpha quantile of the largest |t| of all pairs over the replicates.
    pair_p: float64[pairs], p adjusted for all pairs; None unless requested. differs: bool[pairs], whether the
    adjusted p is at most alpha. in_best_set: bool[systems], whether the system is not significantly worse
    than the best. undefined: why there is no result.
    """

    first: Ints
    second: Ints
    difference: Floats
    error: Floats
    t: Floats
    critical: float
    differs: Mask
    pair_p: Floats | None
    in_best_set: Mask
    alpha: float
    warnings: tuple[str, ...] = ()
    undefined: str | None = None

    @property
    def percent(self) -> float | None:
        """Percentage of the pairs that differ significantly; None if there are no pairs."""
        return 100.0 * np.count_nonzero(self.differs) / len(self.first) if len(self.first) else None

    @property
    def intervals(self) -> tuple[Floats, Floats]:
        """Bounds of the simultaneous intervals of the differences.

        The lower and the upper bounds are float64[pairs] each.

        Each is difference +- critical * error. An interval excludes 0 exactly if the first step of the test
        finds the pair significant. If only a later step does, the interval contains 0: with probability
        1 - alpha all intervals contain the true differences, and intervals that the later steps shorten would
        not (Stefansson, Kim and Hsu 1988). Bounds are infinite if there are too few topics.
        """
        width = np.zeros_like(self.error)
        np.multiply(self.critical, self.error, out=width, where=self.error > 0)
        width = np.where((self.error == 0) & ~self.differs & np.isinf(self.t), np.inf, width)
        low, high = self.difference - width, self.difference + width
        return agreeing_bounds(self.difference, low, high, self.differs & ~self.only_later_step)

    @property
    def only_later_step(self) -> Mask:
        """Return whether only a later step finds the pair significant, bool[pairs].

        The first step does not find these pairs significant.
        """
        return np.asarray(self.differs & (np.abs(self.t) <= self.critical))


def agreeing_bounds(difference: Floats, low: Floats, high: Floats, differs: Mask) -> tuple[Floats, Floats]:
    """Return bounds that exclude 0 exactly where the difference is significant.

    Both results are float64[pairs]. This is for bounds that contradict their test only by rounding errors.
    """
    next_to_zero = np.nextafter(0.0, difference)
    low = np.where(differs & (difference > 0), np.maximum(low, next_to_zero), low)
    high = np.where(differs & (difference < 0), np.minimum(high, next_to_zero), high)
    return np.where(differs, low, np.minimum(low, 0.0)), np.where(differs, high, np.maximum(high, 0.0))


def max_t(
    scores: Sequence[Sequence[float]] | Floats,
    *,
    pairs: Iterable[tuple[int, int]] | None = None,
    alpha: float = 0.05,
    replicates: int = REPLICATES,
    seed: int = 0,
    scale: ScaleType = "interval",
    with_p: bool = True,
) -> MaxT:
    """Test pairs of systems by the studentised step-down max-T method.

    All pairs are tested, or only `pairs`.

    scores: float64[topics, systems]. t is the mean difference divided by its standard error. A replicate
    chooses random topics and flips the signs of all centred differences on these topics. Pairs are ordered by
    |t|, descending. p of a pair is (1 + c) / (1 + replicates). c is the number of replicates in which the |t|
    of this pair or a later one is at least the observed |t| of this pair. p never decreases in this order.
    With too few topics for alpha, no pair differs, and p is at least `least_p_of_flips`.
    with_p: whether to compute p. The verdicts do not need it, and for hundreds of systems it takes most of
    the time.
    """
    values = matrix(scores)
    systems = values.shape[1]
    first, second = _columns(systems, pairs)
    result = _empty_result(first, second, systems, alpha, scale_warnings(scale, "the max-T test"))
    reason = _reason(values)
    if reason is not None:
        return replace(result, undefined=reason)
    flips = SignFlips(values, replicates, seed)
    largest, reached = _best_counts(flips)
    differs, critical = _step_down(flips, _family(systems, first, second), largest, alpha)
    return replace(
        result,
        difference=mean(values[:, first] - values[:, second]),
        error=flips.errors[first, second],
        t=flips.to_t(flips.observed[first, second]),
        critical=float(flips.to_t(np.array(critical))),
        differs=differs[first, second],
        pair_p=limited_p(_adjusted_p(flips, first, second), len(values), alpha) if with_p else None,
        in_best_set=_best_set(flips, reached, differs, alpha),
    )


def _columns(systems: int, pairs: Iterable[tuple[int, int]] | None) -> tuple[Ints, Ints]:
    if pairs is None:
        return np.triu_indices(systems, 1)
    columns = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    if (columns < 0).any() or (columns >= systems).any() or (columns[:, 0] == columns[:, 1]).any():
        raise ValueError(f"expected pairs of two different systems from 0 to {systems - 1}")
    return columns[:, 0], columns[:, 1]


def _reason(values: Floats) -> str | None:
    """Return why no test is possible, or None."""
    if (reason := undefined_reason(values)) is not None:
        return reason
    if values.shape[1] < 2:
        return "there are fewer than two systems"
    return "there is only one topic" if len(values) < 2 else None


def _empty_result(first: Ints, second: Ints, systems: int, alpha: float, warnings: tuple[str, ...]) -> MaxT:
    zeros = np.zeros(len(first))
    return MaxT(
        first=first,
        second=second,
        difference=zeros,
        error=zeros,
        t=zeros,
        critical=float("inf"),
        differs=np.zeros(len(first), dtype=bool),
        pair_p=None,
        in_best_set=np.ones(systems, dtype=bool),
        alpha=alpha,
        warnings=warnings,
    )


def _family(systems: int, first: Ints, second: Ints) -> Mask:
    """Return bool[systems, systems]: whether a pair is tested, in either order."""
    family = np.zeros((systems, systems), dtype=bool)
    family[first, second] = family[second, first] = True
    return family


# ------------------------------------------------------------------------------------------ step-down


def _step_down(flips: SignFlips, family: Mask, largest: Floats, alpha: float) -> tuple[Mask, float]:
    """Return whether each pair differs, and the critical r of the first step.

    The first result is bool[systems, systems].

    r is the statistic that `sign_flips` defines. Each step rejects the pairs whose absolute r exceeds a
    quantile of the largest absolute r of the remaining pairs. largest: float64[replicates], the largest
    absolute r of all pairs.
    """
    strength = np.abs(flips.observed)
    allowed = _allowed(flips, alpha)
    if np.count_nonzero(family) < family.size - len(family):
        largest = _maxima(flips, family)
    critical = bound = _quantile(largest, allowed)
    remaining = family & (strength <= bound)
    rejected = family & ~remaining
    while rejected.any() and remaining.any():
        bound = _later_quantile(flips, remaining, largest, allowed)
        rejected = remaining & (strength > bound)
        remaining &= ~rejected
    return family & ~remaining, critical


def _maxima(flips: SignFlips, family: Mask, replicates: Ints | slice = slice(None)) -> Floats:
    """Return float64[replicates]: the largest absolute r of the pairs in the family."""
    weights = np.where(family, flips.weights, 0.0)
    return np.concatenate([block.max(axis=0) for block in flips.largest(weights, replicates)])


def allowed_exceedances(alpha: float, replicates: int) -> int:
    """Return the largest count with (1 + count) / (1 + replicates) <= alpha.

    It is -1 if no count is that small.
    """
    allowed = int(alpha * (replicates + 1))
    while allowed >= 0 and (allowed + 1) / (replicates + 1) > alpha:
        allowed -= 1
    return allowed


def least_p_of_flips(topics: int) -> float:
    """Return the smallest two-sided p of a test by sign flips, 2**(1 - topics).

    All signs are equally likely, so even the most extreme |t| has this probability.
    """
    return min(1.0, 2.0 ** (1 - topics))


def limited_p(p: Floats, topics: int, alpha: float) -> Floats:
    """Return p, but at least `least_p_of_flips` if that exceeds alpha."""
    least = least_p_of_flips(topics)
    return np.maximum(p, least) if least > alpha else p


def _allowed(flips: SignFlips, alpha: float) -> int:
    """Return `allowed_exceedances`, or -1 if there are too few topics."""
    if least_p_of_flips(len(flips.values)) > alpha:
        return -1
    return allowed_exceedances(alpha, flips.replicates)


def _quantile(largest: Floats, allowed: int) -> float:
    """Return the smallest r, at most 1, that no more than `allowed` replicates exceed.

    A tolerance is added, so that statistics that differ only by rounding errors are ties and not significant.
    """
    if allowed < 0 or allowed >= len(largest):
        return 1.0
    return min(1.0, float(np.partition(largest, -1 - allowed)[-1 - allowed]) + CLOSE)


def _later_quantile(flips: SignFlips, remaining: Mask, largest: Floats, allowed: int) -> float:
    """Return the quantile of the maxima over the remaining pairs.

    Not every replicate is computed.

    largest: float64[replicates], the maxima over a superset of the pairs. They are upper bounds of the maxima
    over the remaining pairs. Replicates are computed in descending order of this bound, until no other
    replicate can exceed the quantile.
    """
    order = np.argsort(-largest, kind="stable")
    size = 2 * (allowed + 1)
    maxima = np.zeros(0)
    for begin in range(0, len(order), size):
        maxima = np.concatenate([maxima, _maxima(flips, remaining, order[begin : begin + size])])
        bound = _quantile(maxima, allowed)
        if begin + size >= len(order) or largest[order[begin + size]] + CLOSE <= bound:
            break
    return bound


def _adjusted_p(flips: SignFlips, first: Ints, second: Ints) -> Floats:
    """Return the step-down adjusted p, float64[pairs]."""
    strength = np.abs(flips.observed[first, second])
    order = np.argsort(strength, kind="stable")  # the pair with the smallest |r| first
    a, b = first[order], second[order]
    weights, bounds = flips.weights[a, b][:, None], (strength[order] - CLOSE)[:, None]
    reached = np.zeros(len(order), dtype=np.int64)
    size = max(1, AT_ONCE // max(len(order), 1))
    for begin in range(0, flips.replicates, size):
        sums = np.ascontiguousarray(flips.sums[:, begin : begin + size])
        r = np.abs(sums[a] - sums[b])
        r *= weights
        np.maximum.accumulate(r, axis=0, out=r)
        reached += np.count_nonzero(r >= bounds, axis=1)
    steps = np.maximum.accumulate((reached[::-1] + 1) / (flips.replicates + 1))
    p = np.empty(len(order))
    p[order[::-1]] = steps
    return p


# ------------------------------------------------------------------------------------------ the best


def _best_counts(flips: SignFlips) -> tuple[Floats, Ints]:
    """Return the statistics of the replicates for the two tests.

    These are the test of all pairs and the test of the best system.

    The first result is the largest absolute r of all pairs, float64[replicates]. The second, int64[systems],
    is a number of replicates for each system: those in which the largest r of another system minus this
    system is at least its observed value.
    """
    advantage = flips.observed.max(axis=0)[:, None]
    reached = np.zeros(len(advantage), dtype=np.int64)
    largest = []
    for block in flips.largest(flips.weights):
        reached += np.count_nonzero(block >= advantage - CLOSE, axis=1)
        largest.append(block.max(axis=0))
    return np.concatenate(largest), reached


def _best_set(flips: SignFlips, reached: Ints, differs: Mask, alpha: float) -> Mask:
    """Return whether each system may be the best, bool[systems].

    The method is that of Hsu, Multiple Comparisons, 1996, chapter 4.

    The null hypothesis of a system is that no other system is better. It is tested one-sided against all
    other systems at once, with p = (1 + reached) / (1 + replicates), and the system is excluded if p is at
    most alpha. A system that is significantly worse than another one in the test of all pairs is excluded.
    """
    allowed = _allowed(flips, alpha)
    rejected = (flips.observed.max(axis=0) > 0) & (reached <= allowed)
    is_worse = (differs & (flips.observed > 0)).any(axis=0)
    return np.asarray(~(rejected | is_worse))
