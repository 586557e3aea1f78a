"""True differences that a paired t-test detects, and the ranges of measures."""

from collections.abc import Iterator

from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.resampling import Interval
from cupel_measures.comparing.topic_set_sizes import pooled_variance, smallest_difference
from cupel_measures.model import Floats

Range = tuple[float, float]
"""The minimum and the maximum of a measure."""


def detectable_difference(values: Floats, alpha: float) -> float | None:
    """Return the smallest difference detected with power 0.8; None if it is undefined.

    values: float64[topics, systems]. It is undefined if the differences have no variance.
    """
    variance = pooled_variance(values)
    return (smallest_difference(variance, len(values), alpha=alpha) or None) if variance else None


def range_of_means(measure: str) -> Range | None:
    """Return the range of a measure that is averaged over topics, or None."""
    parsed = parse(measure)
    return parsed.bounds if parsed.declaration.aggregate == "mean" else None


def is_undetectable(bounds: Range | None, detectable: float | None) -> bool:
    """Return whether a detectable difference exceeds the range of its measure."""
    return detectable is not None and bounds is not None and detectable > bounds[1] - bounds[0]


def warn_of_undetectable(
    bounds: Range | None, detectable: float | None, alpha: float, *, power: float = 0.8
) -> Iterator[str]:
    """Yield a warning if a detectable difference exceeds the range of its measure."""
    if bounds is not None and is_undetectable(bounds, detectable):
        yield (
            f"the difference of {detectable:.4g} that a paired t-test at alpha {alpha:g} (a single test) "
            f"detects with power {power:g} exceeds the range of the measure ({bounds[0]:g} to {bounds[1]:g})"
            ", so these topics detect no possible difference with this power"
        )


def clip_mean(interval: Interval, bounds: Range | None) -> Interval:
    """Return the interval of a mean, clipped to the range of its measure."""
    return interval if bounds is None else interval.clipped(*bounds)


def clip_difference(interval: Interval, bounds: Range | None) -> Interval:
    """Return the interval of a difference, clipped to the largest possible one."""
    if bounds is None:
        return interval
    width = bounds[1] - bounds[0]
    return interval.clipped(-width, width)
