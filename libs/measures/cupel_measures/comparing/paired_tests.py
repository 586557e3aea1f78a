"""Paired tests of the difference between two systems, and the effect size.

Both systems have scores on the same topics.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cupel_measures.comparing.outcomes import CLOSE, Outcome, mean, paired, scale_warnings, undefined_reason
from cupel_measures.comparing.resampling import DECIMALS, EXACT, FLIPS, check_confidence, randomisation
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.model import Floats, Ints

Vector = Sequence[float] | Floats

FAR = 1000.0
"""Above this t, scipy's noncentral t loses digits. The approximation has a relative error below 2e-5."""

EXACT_RANKS = 13
"""Number of topics up to which the p of Wilcoxon's test is exact for zero and tied differences too."""

NO_VARIANCE = "the differences have no variance"
ROUNDED = "the differences are equal on every topic except for rounding errors, so t is not reliable"


def t_test(
    first: Vector, second: Vector, *, confidence: float = 0.95, scale: ScaleType = "interval"
) -> Outcome:
    """Return Student's paired t-test.

    The test is two-sided and has the t interval of the mean difference.

    Raises ValueError if the confidence is not allowed (see `check_confidence`).
    """
    from scipy.stats import ttest_rel

    check_confidence(confidence)
    x, y = paired(first, second)
    outcome = _estimate(x, y, scale_warnings(scale, "the t-test"))
    if outcome.undefined is None and len(x) < 2:
        outcome = replace(outcome, undefined="there is only one topic")
    elif outcome.undefined is None and is_constant(x - y):
        outcome = replace(
            outcome, undefined="the difference is the same on every topic, so its variance is zero"
        )
    if outcome.undefined is not None:
        return outcome
    if is_constant((x - y) / np.abs(x - y).max()):
        outcome = replace(outcome, warnings=(*outcome.warnings, ROUNDED))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the outcome has the warning ROUNDED instead
        result = ttest_rel(x, y)
    low, high = result.confidence_interval(confidence)
    return replace(
        outcome,
        statistic=float(result.statistic),
        p=float(result.pvalue),
        interval=(float(low), float(high)),
    )


def wilcoxon(first: Vector, second: Vector, *, scale: ScaleType = "interval") -> Outcome:
    """Return Wilcoxon's signed-rank test, two-sided.

    Zero differences are ranked and then left out (Pratt 1959). Differences are tied if they are equal after
    rounding to 12 decimals. p is exact for up to EXACT_RANKS topics, and for up to 50 topics without zeros
    and ties; otherwise it is that of the normal approximation with continuity correction.
    """
    x, y = paired(first, second)
    outcome = _estimate(x, y, scale_warnings(scale, "Wilcoxon's test"))
    if outcome.undefined is None and not _signs(x - y).any():
        outcome = replace(outcome, undefined="the systems score the same on every topic")
    if outcome.undefined is not None:
        return outcome
    statistic, p = _signed_ranks(np.round(x - y, DECIMALS))
    return replace(outcome, statistic=statistic, p=p)


def _signed_ranks(differences: Floats) -> tuple[float, float]:
    """Return the smaller sum of positive or negative ranks, and its two-sided p."""
    from scipy.stats import rankdata
    from scipy.stats import wilcoxon as signed_rank_test

    if len(differences) > EXACT_RANKS:
        result = signed_rank_test(differences, zero_method="pratt")
        return float(result.statistic), float(result.pvalue)
    doubled = np.rint(2 * rankdata(np.abs(differences))).astype(np.int64)  # integers, also for tied ranks
    smaller = int(min(doubled[differences > 0].sum(), doubled[differences < 0].sum()))
    counts = _subset_sums(doubled[differences != 0].tolist())
    return smaller / 2, min(1.0, 2 * float(counts[: smaller + 1].sum() / counts.sum()))


def _subset_sums(values: Sequence[int]) -> Ints:
    """Return the number of subsets of `values` by their sum, int64[total + 1]."""
    counts = np.ones(1, dtype=np.int64)
    for value in values:
        counts = np.pad(counts, (0, value)) + np.pad(counts, (value, 0))
    return counts


def sign_test(first: Vector, second: Vector, *, scale: ScaleType = "interval") -> Outcome:
    """Return the sign test, two-sided.

    The statistic is the number of topics where the first system is better. Topics with equal scores do not
    count. The test uses only the order of the scores, so it is valid on any scale.
    """
    from scipy.stats import binomtest

    x, y = paired(first, second)
    outcome = _estimate(x, y, ())
    signs = _signs(x - y) if outcome.undefined is None else np.zeros(0)
    if outcome.undefined is None and not signs.any():
        outcome = replace(outcome, undefined="the systems score the same on every topic")
    if outcome.undefined is not None:
        return outcome
    better, different = int(np.count_nonzero(signs > 0)), int(np.count_nonzero(signs))
    return replace(outcome, statistic=float(better), p=float(binomtest(better, different).pvalue))


TESTS: Mapping[str, Callable[..., Outcome]] = {
    "randomisation": randomisation,
    "t": t_test,
    "wilcoxon": wilcoxon,
    "sign": sign_test,
}
"""Tests of two systems by name; the first is the default."""


def least_p(test: str, topics: int, replicates: int = FLIPS) -> float:
    """Return the smallest p that a test can have with this number of topics.

    It is 0 for the t-test.

    replicates: number of replicates of the randomisation test and the simultaneous tests.
    """
    if test == "t":
        return 0.0
    if test not in TESTS or (test == "randomisation" and topics > EXACT):
        return 1 / (replicates + 1)
    return min(1.0, 2.0 ** (1 - topics))


@dataclass(frozen=True)
class EffectSize:
    """The mean difference divided by the standard deviation of the differences.

    The effect size has a confidence interval.

    undefined: why the effect size or its interval is None.
    """

    value: float | None
    interval: tuple[float, float] | None = None
    undefined: str | None = None


def effect_size(first: Vector, second: Vector, *, confidence: float = 0.95) -> EffectSize:
    """Return Cohen's d for pairs.

    It is the mean / standard deviation (n - 1) of the differences.

    The interval inverts the noncentral t distribution with noncentrality d sqrt(n). If the lower bound is the
    true effect, a t above the observed t has probability (1 - confidence) / 2. If the upper bound is the true
    effect, a t below the observed t has this probability. Raises ValueError if the confidence is not allowed
    (see `check_confidence`).
    """
    check_confidence(confidence)
    return effect_size_at(first, second, confidence)


def effect_size_at(first: Vector, second: Vector, confidence: float) -> EffectSize:
    """Return `effect_size` for any confidence.

    Simultaneous intervals need more than `effect_size` allows.
    """
    from scipy.special import chdtri, nctdtrinc

    x, y = paired(first, second)
    differences, n = x - y, len(x)
    if (reason := undefined_reason(x, y)) is not None:
        return EffectSize(None, undefined=reason)
    if n < 2 or is_constant(differences):
        return EffectSize(None, undefined=NO_VARIANCE)
    if not confidence < 1:
        return EffectSize(None, undefined="with so few topics or replicates, no effect size can be excluded")
    value = float(mean(differences[:, None])[0]) / float(np.std(differences, ddof=1))
    tails = ((1 + confidence) / 2, (1 - confidence) / 2)
    if abs(value) * n**0.5 > FAR:  # the standard deviation contributes almost all uncertainty
        bounds = sorted(value * float(chdtri(n - 1, tail) / (n - 1)) ** 0.5 for tail in tails)
        return EffectSize(value, (bounds[0], bounds[1]))
    low, high = (float(nctdtrinc(n - 1, tail, value * n**0.5)) / n**0.5 for tail in tails)
    return EffectSize(value, (low, high))


def _estimate(x: Floats, y: Floats, warnings: tuple[str, ...]) -> Outcome:
    """Return the mean difference without a test, or the reason why it is undefined."""
    if (reason := undefined_reason(x, y)) is not None:
        return Outcome(n=len(x), warnings=warnings, undefined=reason)
    return Outcome(n=len(x), estimate=float(mean((x - y)[:, None])[0]), warnings=warnings)


def is_constant(differences: Floats) -> bool:
    return bool(np.ptp(differences) < CLOSE)


def _signs(differences: Floats) -> Floats:
    """Return -1, 0 or 1 for each difference; rounding errors count as 0."""
    return np.where(np.abs(differences) < CLOSE, 0.0, np.sign(differences))
