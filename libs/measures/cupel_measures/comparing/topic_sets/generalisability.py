"""Generalisability theory: how reliably a set of topics measures systems.

A score is modelled as the sum of a grand mean, effects of the system and of the topic, and a residual.
Systems and topics are random samples, and each system is scored on each topic (Urbano, Marrero and Martin,
SIGIR 2013; Brennan, Generalizability Theory, 2001).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cupel_measures.comparing.outcomes import CLOSE, matrix, mean, undefined_reason
from cupel_measures.model import Floats


@dataclass(frozen=True)
class SignalRatio:
    """The variance of systems divided by the error variance on one topic.

    The ratio has a confidence interval.

    On n topics the error variance is divided by n, so a ratio r has the coefficient n r / (1 + n r).
    """

    value: float
    low: float
    high: float

    def coefficient(self, topics: int) -> tuple[float, float, float]:
        """Return the coefficient for a number of topics, and its interval."""
        return (
            _coefficient(self.value, topics),
            _coefficient(self.low, topics),
            _coefficient(self.high, topics),
        )

    def topics_needed(self, target: float) -> tuple[int | None, int | None, int | None]:
        """Return the number of topics for which the coefficient is `target`.

        The number has an interval.

        A number is None if no number of topics is enough.
        """
        value, low, high = (_needed(ratio, target) for ratio in (self.value, self.high, self.low))
        return value, low, high


def _coefficient(ratio: float, topics: int) -> float:
    return 1.0 if math.isinf(ratio) else topics * ratio / (1 + topics * ratio)


def _needed(ratio: float, target: float) -> int | None:
    return max(1, math.ceil(target / (ratio * (1 - target)) - CLOSE)) if ratio > 0 else None


@dataclass(frozen=True, kw_only=True)
class VarianceComponents:
    """The components of the variance of scores, estimated by analysis of variance.

    systems, topics: numbers of systems and topics. system, topic, residual: the variance components, at least
    0. system_square, topic_square, residual_square: the mean squares.
    """

    systems: int
    topics: int
    system_square: float
    topic_square: float
    residual_square: float

    @property
    def residual(self) -> float:
        return self.residual_square

    @property
    def system(self) -> float:
        return max(0.0, self.system_square - self.residual_square) / self.topics

    @property
    def topic(self) -> float:
        return max(0.0, self.topic_square - self.residual_square) / self.systems

    def relative(self, *, confidence: float = 0.95) -> SignalRatio:
        """Return the ratio whose coefficient is E rho^2, for differences between systems.

        The error is the residual. The interval is exact for normal effects (Feldt, Psychometrika 1965).
        """
        value, low, high = (
            self._relative(quantile) for quantile in (1.0, *self._quantiles(confidence, self._df_residual))
        )
        return SignalRatio(value, low, high)

    def absolute(self, *, confidence: float = 0.95) -> SignalRatio:
        """Return the ratio whose coefficient is Phi, for absolute scores.

        The error is the sum of topic and residual. The interval is that of Arteaga, Jeyaratnam and Franklin
        (Communications in Statistics 1982), approximate for normal effects.
        """
        degrees = (math.inf, self._df_residual, self.topics - 1)
        quantiles = [self._quantiles(confidence, df) for df in degrees]
        low, high = (self._absolute(*by_df) for by_df in zip(*quantiles, strict=True))
        error = self.topic + self.residual
        value = self.system / error if error else math.inf if self.system else 0.0
        return SignalRatio(value, min(low, value), max(high, value))

    @property
    def _df_residual(self) -> int:
        return (self.systems - 1) * (self.topics - 1)

    def _quantiles(self, confidence: float, df: float) -> tuple[float, float]:
        """Return the upper and the lower quantile of F.

        F has systems - 1 and `df` degrees of freedom.
        """
        from scipy.special import chdtri, fdtri

        degrees, tail = self.systems - 1, (1 - confidence) / 2
        if math.isinf(df):  # F is then chi-squared over its degrees of freedom
            return float(chdtri(degrees, tail)) / degrees, float(chdtri(degrees, 1 - tail)) / degrees
        return float(fdtri(degrees, df, 1 - tail)), float(fdtri(degrees, df, tail))

    def _relative(self, quantile: float) -> float:
        """Return (F / quantile - 1) / topics, where F is the ratio of the mean squares."""
        if not self.residual_square:
            return math.inf if self.system_square else 0.0
        return max(0.0, self.system_square / (self.residual_square * quantile) - 1) / self.topics

    def _absolute(self, unbounded: float, residual: float, topic: float) -> float:
        """Return a bound of the ratio, from quantiles of F.

        unbounded, residual, topic: the quantiles with infinitely many denominator degrees of freedom, with
        those of the residual, and with those of the topics.
        """
        system_square, residual_square = self.system_square, self.residual_square
        signal = system_square**2 - unbounded * system_square * residual_square
        signal += (unbounded - residual) * residual * residual_square**2
        noise = (self.systems - 1) * unbounded * system_square * residual_square
        noise += topic * system_square * self.topic_square
        if not noise:
            return math.inf if signal > 0 else 0.0
        return max(0.0, self.systems / self.topics * signal / noise)


def variance_components(scores: Sequence[Sequence[float]] | Floats) -> VarianceComponents | None:
    """Return the variance components of scores, float64[topics, systems].

    Returns None for fewer than two systems or topics, and for unusable scores. Rounding errors of variances
    become 0.
    """
    values = matrix(scores)
    topics, systems = values.shape
    if undefined_reason(values) is not None or topics < 2 or systems < 2:
        return None
    by_system, by_topic = mean(values), mean(values.T)
    centre = float(mean(by_system[:, None])[0])
    residuals = values - by_system - by_topic[:, None] + centre
    close = CLOSE * max(1.0, float(np.abs(values).max()))
    return VarianceComponents(
        systems=systems,
        topics=topics,
        system_square=topics * _sum_of_squares(by_system - centre, close) / (systems - 1),
        topic_square=systems * _sum_of_squares(by_topic - centre, close) / (topics - 1),
        residual_square=_sum_of_squares(residuals.ravel(), close) / ((systems - 1) * (topics - 1)),
    )


def _sum_of_squares(deviations: Floats, close: float) -> float:
    """Return the sum of squares, added in order.

    It is 0 if all deviations are rounding errors.
    """
    return 0.0 if (np.abs(deviations) <= close).all() else float(np.cumsum(deviations**2)[-1])
