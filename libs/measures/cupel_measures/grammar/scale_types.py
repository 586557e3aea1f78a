"""The scale type of a measure (spec 4.2; Ferrante, Ferro and Losiouk 2019), and what may be done with it.

Runs of one length are ordered: measures that see a run as a set are held against the order by the counts of
the highest degree where two runs differ (SBTO counts along it), measures that look at ranks against the order
by the first rank where they differ (RBTO). A measure is

- ordinal: it puts runs in that order, without ties of its own;
- interval: also equally spaced, so that equal differences mean the same everywhere, and means make sense;
- neither: it contradicts the order.

The rules speak of all lengths at once: at a length of one or two documents a measure may be better than
its type. Where gains give labels the same number, or the lowest one more than an unjudged document has, the
degrees are the different numbers, 0 among them. A judged-only variant has the type of its measure, on
condensed runs.
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
"""What each type allows. A request for more is carried out with a warning."""

CLOSE = Fraction(1, 10**9)
"""Decimals this close to a bound are taken for it; a rational such as 1/3 is compared exactly."""


def scale_type(measure: Measure, aspects: Sequence[Aspect]) -> ScaleType:
    """The scale type of a measure for a collection with `aspects`; MeasureError as in `Measure.bound`."""
    bound = measure.bound(aspects)
    if bound.declaration.combines or bound.declaration.subtopics:
        return _by_rule(bound, aspects)
    own = bound.arguments["aspect"] or aspects[0].name
    return scale_type_in(bound, next(aspect for aspect in aspects if aspect.name == own))


def warning(measure: Measure, aspects: Sequence[Aspect]) -> str | None:
    """A sentence where the measure's aggregate over topics asks for more than its scale gives (spec 4.2)."""
    found, asked = scale_type(measure, aspects), measure.declaration.aggregate
    if asked in OPERATIONS[found]:
        return None
    kind = "ordinal" if found == "ordinal" else "neither interval nor ordinal"
    return f"{measure}: a {asked} over topics asks for more than its scale gives, which is {kind}"


def scale_type_in(measure: Measure, aspect: Aspect) -> ScaleType:
    """The scale type of a single-aspect measure under the labels of `aspect`."""
    return _by_rule(measure, aspect)


def _by_rule(measure: Measure, scales: Aspect | Sequence[Aspect]) -> ScaleType:
    declared = measure.declaration
    if declared.scale_rule is not None:
        return declared.scale_rule(scales, measure.arguments)
    assert declared.scale != "depends"
    return declared.scale


def rank_biased(p: float | Fraction, gains: Sequence[Exact]) -> ScaleType:
    """The type of (1 - p) * sum of p^(rank - 1) * gain.

    With G the smallest step between gains over the greatest gain: one step at a rank outweighs all that can
    follow iff p <= G / (G + 1). At equality, with equal steps, scores are equally spaced: p is then
    1 / (c + 1) for c + 1 degrees.
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
    """The type of a sum of gains: equally spaced with two degrees; with more, gains are traded for counts."""
    return "interval" if len(_degrees(gains)) == 2 else "neither"


def _degrees(gains: Sequence[Exact]) -> list[Exact]:
    """What the measure tells apart, an unjudged document, which gains 0, included."""
    return sorted({0, *gains})
