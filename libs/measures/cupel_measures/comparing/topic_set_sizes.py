"""How small a difference a topic set can tell apart, and how many topics a wished one needs (Sakai 2016).

For the paired t-test, two-sided, by the noncentral t distribution: exact where differences are normal.
"""

import math
from collections.abc import Sequence

import numpy as np

from cupel_measures.comparing.outcomes import CLOSE, matrix, mean, unusable
from cupel_measures.model import Floats

MOST = 1_000_000
"""More topics than this are not looked for."""
FAR = 30.0
"""A true difference of so many standard errors."""


def pooled_variance(scores: Sequence[Sequence[float]] | Floats) -> float | None:
    """Variance (n - 1) of the difference between two systems, averaged over all pairs of them.

    Twice the mean square of the error of the two-way ANOVA. None with less than two systems or topics.
    """
    values = matrix(scores)
    topics, systems = values.shape
    if unusable(values) is not None or topics < 2 or systems < 2:
        return None
    residual = values - mean(values) - mean(values.T)[:, None] + float(mean(values.reshape(-1, 1))[0])
    return 2 * float(np.cumsum(residual.ravel() ** 2)[-1]) / int((topics - 1) * (systems - 1))


def power(difference: float, variance: float, topics: int, *, alpha: float = 0.05) -> float:
    """The chance that the test finds a true mean `difference`, when differences have this variance."""
    from scipy.special import chdtr, ncfdtr, stdtrit

    _check(variance, topics)
    if topics < 2:
        return 0.0
    if variance < CLOSE**2:
        return 1.0 if difference else 0.0
    bound = float(stdtrit(topics - 1, 1 - alpha / 2))
    shift = abs(difference) * (topics / variance) ** 0.5
    if shift > FAR:  # the noncentral distribution is not computed out here; the spread alone matters
        return float(chdtr(topics - 1, (topics - 1) * (shift / bound) ** 2))
    return float(1 - ncfdtr(1, topics - 1, shift**2, bound**2))  # the square of the noncentral t


def smallest_difference(
    variance: float, topics: int, *, alpha: float = 0.05, wanted: float = 0.8
) -> float | None:
    """The least true difference that is found with the `wanted` chance.

    0 where chance alone finds as much; None for less than two topics, and where alpha is so small that no t
    of the machine reaches it.
    """
    from scipy.optimize import brentq
    from scipy.special import stdtrit

    _check(variance, topics)
    if topics < 2 or not math.isfinite(stdtrit(topics - 1, 1 - alpha / 2)):
        return None
    if variance < CLOSE**2 or alpha >= wanted:
        return 0.0
    unit = math.sqrt(variance / topics)
    most = 4.0
    while power(most * unit, variance, topics, alpha=alpha) < wanted:
        most *= 2
    missing = lambda size: power(size * unit, variance, topics, alpha=alpha) - wanted  # noqa: E731
    return float(unit * brentq(missing, 0.0, most, xtol=1e-10))


def topics_needed(
    difference: float, variance: float, *, alpha: float = 0.05, wanted: float = 0.8
) -> int | None:
    """The least number of topics on which a true `difference` is found with the `wanted` chance.

    None for a difference of 0, and where more than a million are needed. ValueError where it is no number.
    """
    if math.isnan(difference):
        raise ValueError("expected a difference, got nan")
    if not difference:
        return None
    low, high = 1, 2
    while power(difference, variance, high, alpha=alpha) < wanted:
        low, high = high, high * 2
        if low > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        enough = power(difference, variance, middle, alpha=alpha) >= wanted
        low, high = (low, middle) if enough else (middle, high)
    return high


def _check(variance: float, topics: int) -> None:
    if not variance >= 0 or topics < 1:
        raise ValueError(f"expected a variance of at least 0 and topics, got {variance} and {topics}")
