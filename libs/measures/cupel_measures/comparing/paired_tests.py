"""Tests of the difference between two systems over the same topics, and the size of it."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cupel_measures.comparing.outcomes import CLOSE, Outcome, asks_too_much, mean, paired, unusable
from cupel_measures.comparing.resampling import DECIMALS, EXACT, FLIPS, check_confidence, randomisation
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.model import Floats

Vector = Sequence[float] | Floats

FAR = 1000.0
"""Beyond a t this large scipy's noncentral t loses digits, then all; what stands in is right to 2e-5."""

ROUNDED = "the differences are the same on every topic but for their last digits, on which t depends"


def t_test(
    first: Vector, second: Vector, *, confidence: float = 0.95, scale: ScaleType = "interval"
) -> Outcome:
    """Student's paired t-test, two-sided, with the t-interval of the mean difference.

    ValueError where the confidence is no chance.
    """
    from scipy.stats import ttest_rel

    check_confidence(confidence)
    x, y = paired(first, second)
    blank = _blank(x, y, asks_too_much(scale, "the t-test"))
    if blank.undefined is None and len(x) < 2:
        blank = replace(blank, undefined="one topic has no spread")
    elif blank.undefined is None and _constant(x - y):
        blank = replace(blank, undefined="the difference is the same on every topic: it has no spread")
    if blank.undefined is not None:
        return blank
    if _constant((x - y) / np.abs(x - y).max()):
        blank = replace(blank, warnings=(*blank.warnings, ROUNDED))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # scipy's own, of lost digits: ROUNDED says it
        found = ttest_rel(x, y)
    low, high = found.confidence_interval(confidence)
    return replace(
        blank, statistic=float(found.statistic), p=float(found.pvalue), interval=(float(low), float(high))
    )


def wilcoxon(first: Vector, second: Vector, *, scale: ScaleType = "interval") -> Outcome:
    """Wilcoxon's signed-rank test, two-sided; differences of zero are ranked, then left out (Pratt 1959).

    Differences that are equal when rounded to 12 decimals are tied.
    """
    from scipy.stats import wilcoxon as signed_ranks

    x, y = paired(first, second)
    blank = _blank(x, y, asks_too_much(scale, "Wilcoxon's test"))
    if blank.undefined is None and not _signs(x - y).any():
        blank = replace(blank, undefined="the systems score the same on every topic")
    if blank.undefined is not None:
        return blank
    found = signed_ranks(np.round(x - y, DECIMALS), zero_method="pratt")
    return replace(blank, statistic=float(found.statistic), p=float(found.pvalue))


def sign_test(first: Vector, second: Vector, *, scale: ScaleType = "interval") -> Outcome:
    """The sign test, two-sided: on how many topics the first is better, of those where they differ.

    It compares scores alone, so any scale serves.
    """
    from scipy.stats import binomtest

    x, y = paired(first, second)
    blank = _blank(x, y, ())
    signs = _signs(x - y) if blank.undefined is None else np.zeros(0)
    if blank.undefined is None and not signs.any():
        blank = replace(blank, undefined="the systems score the same on every topic")
    if blank.undefined is not None:
        return blank
    better, different = int(np.count_nonzero(signs > 0)), int(np.count_nonzero(signs))
    return replace(blank, statistic=float(better), p=float(binomtest(better, different).pvalue))


TESTS: Mapping[str, Callable[..., Outcome]] = {
    "randomisation": randomisation,
    "t": t_test,
    "wilcoxon": wilcoxon,
    "sign": sign_test,
}
"""Tests of two systems, by name; the first is the usual one."""


def least_p(test: str, topics: int) -> float:
    """The smallest p that a test of TESTS can give on so many topics; 0 for the t-test."""
    if test == "t":
        return 0.0
    if test == "randomisation" and topics > EXACT:
        return 1 / (FLIPS + 1)
    return min(1.0, 2.0 ** (1 - topics))


@dataclass(frozen=True)
class EffectSize:
    """The mean difference in standard deviations of the differences, and its interval; or why not."""

    value: float | None
    interval: tuple[float, float] | None = None
    undefined: str | None = None


def effect_size(first: Vector, second: Vector, *, confidence: float = 0.95) -> EffectSize:
    """Cohen's d for pairs: mean / standard deviation (n - 1) of the differences.

    The interval inverts the noncentral t distribution: d sqrt(n) is the noncentrality under which the
    observed t has the probability of each tail. ValueError for a confidence that no report tells either.
    """
    from scipy.special import chdtri, nctdtrinc

    check_confidence(confidence)
    x, y = paired(first, second)
    apart, n = x - y, len(x)
    if (why := unusable(x, y)) is not None:
        return EffectSize(None, undefined=why)
    if n < 2 or _constant(apart):
        return EffectSize(None, undefined="the differences have no spread")
    value = float(mean(apart[:, None])[0]) / float(np.std(apart, ddof=1))
    tails = ((1 + confidence) / 2, (1 - confidence) / 2)
    if abs(value) * n**0.5 > FAR:  # the mean is sure, the spread alone is not
        ends = sorted(value * float(chdtri(n - 1, tail) / (n - 1)) ** 0.5 for tail in tails)
        return EffectSize(value, (ends[0], ends[1]))
    low, high = (float(nctdtrinc(n - 1, tail, value * n**0.5)) / n**0.5 for tail in tails)
    return EffectSize(value, (low, high))


def _blank(x: Floats, y: Floats, warnings: tuple[str, ...]) -> Outcome:
    """What can be said of any two vectors."""
    if (why := unusable(x, y)) is not None:
        return Outcome(len(x), warnings=warnings, undefined=why)
    return Outcome(len(x), float(mean((x - y)[:, None])[0]), warnings=warnings)


def _constant(apart: Floats) -> bool:
    return bool(np.ptp(apart) < CLOSE)


def _signs(apart: Floats) -> Floats:
    """-1, 0 or 1; rounding is no difference."""
    return np.where(np.abs(apart) < CLOSE, 0.0, np.sign(apart))
