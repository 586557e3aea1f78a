"""Scale types of measures and the statistics that they allow.

They follow Ferrante, Ferro and Losiouk, TKDE 2019.

Runs of one length have a total order. Set-based measures are compared with the order by the counts of the
highest degree in which two runs differ (SBTO). Rank-based measures are compared with the order by the first
rank at which two runs differ (RBTO). A measure is

- ordinal: it orders runs in the same way, and runs at different positions in the order have different values;
- interval: its values are also equally spaced, so equal differences mean the same and means are meaningful;
- neither: it contradicts the order.

The type holds for all run lengths. For runs of one or two documents, a measure can have a stronger type. The
degrees are the distinct gains, including 0 for an unjudged document. A judged-only variant has the same type
as its measure, for runs without unjudged documents.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.parameters import exact
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.model import Aspect, Exact

ORDERS = ("median", "ranks", "Kruskal-Wallis")
OPERATIONS: Mapping[ScaleType, tuple[str, ...]] = {
    "neither": ORDERS,
    "ordinal": ORDERS,
    "interval": (*ORDERS, "mean", "ANOVA"),
    "count": (*ORDERS, "mean", "ANOVA", "sum"),
}
"""Operations that each scale type allows. Other operations are carried out with a warning."""

CLOSE = Fraction(1, 10**9)
"""Tolerance in comparing a decimal parameter with a bound; a rational such as 1/3 is compared exactly."""


def scale_type(measure: Measure, aspects: Sequence[Aspect]) -> ScaleType:
    """Return the scale type for a collection with `aspects`.

    Raise MeasureError as `Measure.bound` does.
    """
    bound = measure.bound(aspects)
    if bound.declaration.combines or bound.declaration.subtopics:
        return _by_rule(bound, aspects)
    name = bound.arguments["aspect"] or aspects[0].name
    return scale_type_in(bound, next(aspect for aspect in aspects if aspect.name == name))


def warning(measure: Measure, aspects: Sequence[Aspect]) -> str | None:
    """Return a warning if the scale type does not allow the aggregate over topics.

    Return None otherwise.
    """
    type_, aggregate = scale_type(measure, aspects), measure.declaration.aggregate
    if aggregate in OPERATIONS[type_]:
        return None
    kind = "ordinal" if type_ == "ordinal" else "neither interval nor ordinal"
    return f"{measure}: a {aggregate} over topics requires an interval scale, but its scale is {kind}"


def scale_type_in(measure: Measure, aspect: Aspect) -> ScaleType:
    """Return the scale type of a single-aspect measure for the labels of `aspect`."""
    return _by_rule(measure, aspect)


def _by_rule(measure: Measure, scales: Aspect | Sequence[Aspect]) -> ScaleType:
    declared = measure.declaration
    if declared.scale_rule is not None:
        return declared.scale_rule(scales, measure.arguments)
    assert declared.scale != "depends"
    return declared.scale


def rank_biased(p: float | Fraction, gains: Sequence[Exact]) -> ScaleType:
    """Return the scale type of (1 - p) * sum of p^(rank - 1) * gain.

    Let G be the smallest step between gains divided by the greatest gain. One step at a rank outweighs all
    later ranks if and only if p <= G / (G + 1). At equality with equal steps, scores are equally spaced; for
    c + 1 degrees this is p = 1 / (c + 1).
    """
    degrees = _degrees(gains)
    steps = [better - worse for worse, better in pairwise(degrees)]
    if not steps:
        return "neither"
    least = Fraction(min(steps)) / degrees[-1]
    bound, tolerance = least / (least + 1), 0 if isinstance(p, Fraction) else CLOSE
    if abs(exact(p) - bound) <= tolerance:
        return "interval" if len(set(steps)) == 1 else "ordinal"
    return "ordinal" if exact(p) < bound else "neither"


def total_gain(gains: Sequence[Exact]) -> ScaleType:
    """Return the scale type of a sum of gains.

    It is interval for exactly two degrees, otherwise neither.
    """
    return "interval" if len(_degrees(gains)) == 2 else "neither"


def _degrees(gains: Sequence[Exact]) -> list[Exact]:
    """Return the distinct gains, including 0, the gain of an unjudged document."""
    return sorted({0, *gains})
