"""Power of the paired t-test.

It gives the smallest detectable difference, and the required number of topics.

The test is two-sided. Its power follows from the noncentral t distribution (Sakai, Information Retrieval
Journal 2016). The results are exact if differences are normally distributed.
"""

import math
from collections.abc import Sequence

import numpy as np

from cupel_measures.comparing.outcomes import CLOSE, matrix, mean, undefined_reason
from cupel_measures.model import Floats

MOST = 1_000_000
"""Largest number of topics that the search tries."""
FAR = 30.0
"""Number of standard errors above which the noncentral distribution is approximated."""


def pooled_variance(scores: Sequence[Sequence[float]] | Floats) -> float | None:
    """Return the variance of the difference of two systems, averaged over all pairs.

    The divisor of the variance is n - 1. The variance is twice the mean square of the error of
    the two-way ANOVA. The result is None for fewer than two systems or topics, and for unusable scores.
    """
    values = matrix(scores)
    topics, systems = values.shape
    if undefined_reason(values) is not None or topics < 2 or systems < 2:
        return None
    residual = values - mean(values) - mean(values.T)[:, None] + float(mean(values.reshape(-1, 1))[0])
    return 2 * float(np.cumsum(residual.ravel() ** 2)[-1]) / int((topics - 1) * (systems - 1))


def power(difference: float, variance: float, topics: int, *, alpha: float = 0.05) -> float:
    """Return the probability that the test detects a true mean difference.

    variance: the variance of the per-topic differences. Raises ValueError if it is negative, or there are no
    topics.
    """
    from scipy.special import chdtr, ncfdtr, stdtrit

    _check(variance, topics)
    if topics < 2:
        return 0.0
    if variance < CLOSE**2:
        return 1.0 if difference else 0.0
    bound = float(stdtrit(topics - 1, 1 - alpha / 2))
    shift = abs(difference) * (topics / variance) ** 0.5
    if shift > FAR:  # ncfdtr is inaccurate this far out; only the variance of the sample matters
        return float(chdtr(topics - 1, (topics - 1) * (shift / bound) ** 2))
    return float(1 - ncfdtr(1, topics - 1, shift**2, bound**2))  # the square of the noncentral t


def smallest_difference(
    variance: float, topics: int, *, alpha: float = 0.05, target_power: float = 0.8
) -> float | None:
    """Return the smallest true difference that the test detects with the target power.

    The result is 0 if the test has the target power for arbitrarily small differences. It is None for fewer
    than two topics, and if alpha is so small that the critical t is not finite.
    """
    from scipy.optimize import brentq
    from scipy.special import stdtrit

    _check(variance, topics)
    if topics < 2 or not math.isfinite(stdtrit(topics - 1, 1 - alpha / 2)):
        return None
    if variance < CLOSE**2 or alpha >= target_power:
        return 0.0
    unit = math.sqrt(variance / topics)
    upper = 4.0
    while power(upper * unit, variance, topics, alpha=alpha) < target_power:
        upper *= 2

    def missing_power(size: float) -> float:
        return power(size * unit, variance, topics, alpha=alpha) - target_power

    return float(unit * brentq(missing_power, 0.0, upper, xtol=1e-10))


def topics_needed(
    difference: float, variance: float, *, alpha: float = 0.05, target_power: float = 0.8
) -> int | None:
    """Return the smallest number of topics on which the test detects `difference`.

    The test detects it with the target power.

    The result is None for a difference of 0, and if more than a million topics are needed. Raises ValueError
    for NaN.
    """
    if math.isnan(difference):
        raise ValueError("expected a difference, got nan")
    if not difference:
        return None
    low, high = 1, 2
    while power(difference, variance, high, alpha=alpha) < target_power:
        low, high = high, high * 2
        if low > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        is_enough = power(difference, variance, middle, alpha=alpha) >= target_power
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def _check(variance: float, topics: int) -> None:
    if not variance >= 0 or topics < 1:
        raise ValueError(
            f"expected a variance of at least 0 and at least one topic, got {variance} and {topics}"
        )
