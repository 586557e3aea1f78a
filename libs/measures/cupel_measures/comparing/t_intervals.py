"""Student's t intervals of means over topics."""

from collections.abc import Sequence

import numpy as np

from cupel_measures.comparing.outcomes import CLOSE, matrix, mean, undefined_reason
from cupel_measures.comparing.resampling import Interval, check_confidence
from cupel_measures.model import Floats


def t_intervals(
    scores: Sequence[Sequence[float]] | Floats, *, confidence: float | Floats = 0.95
) -> tuple[Interval, ...]:
    """Return the t interval of the mean of every column.

    It is mean +- t(n - 1) sd / sqrt(n).

    scores: float64[topics, systems], or differences of pairs of systems. confidence: one number for all
    columns, or float64[systems]. If a column has an undefined score, its value and bounds are undefined. With
    a single topic, only the bounds are undefined. A column of equal values has an interval of width 0. Raises
    ValueError if a single number is not an allowed confidence (see `check_confidence`).
    """
    if isinstance(confidence, float):
        check_confidence(confidence)
    values = matrix(scores)
    levels = np.broadcast_to(np.asarray(confidence, dtype=np.float64), values.shape[1:])
    reasons = [undefined_reason(column) for column in values.T]
    usable = [column for column, reason in enumerate(reasons) if reason is None]
    results = [Interval(None, None, None, reason) for reason in reasons]
    if usable:
        defined = _intervals(values[:, usable], levels[usable])
        for column, interval in zip(usable, defined, strict=True):
            results[column] = interval
    return tuple(results)


def _intervals(values: Floats, confidence: Floats) -> list[Interval]:
    from scipy.special import stdtrit  # imported late, because the import takes a quarter of a second

    means, topics = mean(values), len(values)
    if topics < 2:
        return [Interval(value, None, None, "there is only one topic") for value in means.tolist()]
    deviations = values - means
    is_constant = (np.abs(deviations) <= CLOSE * np.maximum(1.0, np.abs(means))).all(axis=0)
    errors = np.where(is_constant, 0.0, np.sqrt(mean(deviations**2) / (topics - 1)))
    widths = stdtrit(topics - 1, (1 + confidence) / 2) * errors
    return [
        Interval(value, value - width, value + width)
        for value, width in zip(means.tolist(), widths.tolist(), strict=True)
    ]
