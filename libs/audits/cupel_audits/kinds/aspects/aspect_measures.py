"""Families of aggregates that have the same component measure.

The aggregates combine the component measure over several aspects.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cupel_audits.subject import AuditSubject
from cupel_measures.catalogue.parser import parse
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.syntax import ArgumentPairs, MeasureError, shown

AGGREGATES = (
    "CAM(of={})",
    "MM(of={})",
    "TOMA(of={}{})",
    "TOMA(of={}{},distance=manhattan)",
    "TOMA(of={}{},distance=chebyshev)",
)


@dataclass(frozen=True, eq=False)
class AspectFamily:
    """Aggregates that combine the same component measure.

    component: a measure that scores any single aspect, or a separate measure for each aspect. aggregates: the
    aggregates, bound to the aspects of the qrels.
    """

    component: Any
    aggregates: tuple[Measure, ...]

    @property
    def text(self) -> str:
        return component_text(self.component)


def find_families(subject: AuditSubject, weighting: str) -> tuple[tuple[AspectFamily, ...], tuple[str, ...]]:
    """Return the families of a subject, and a sentence for each missing aggregate.

    An aggregate is missing if it cannot be computed.

    Each measure of one aspect that is averaged over topics is the component of a family, which consists of
    the aggregates in AGGREGATES.
    If the component is binary, TOMA uses `weighting`. A measure that is itself an aggregate is added to the
    family of its component.
    """
    members: dict[str, tuple[Any, dict[str, Measure]]] = {}
    missing: list[str] = []
    for measure in subject.measures:
        if measure.declaration.combination is not None:
            component = measure.arguments["of"]
            members.setdefault(shown(component), (component, {}))[1][str(measure)] = measure
        elif can_be_aggregated(measure):
            component = measure.having(aspect=None)
            aggregates = members.setdefault(shown(component), (component, {}))[1]
            for aggregate in _build_aggregates(component, weighting, missing):
                bound = aggregate.bound(subject.qrels.aspects)
                aggregates.setdefault(str(bound), bound)
    return (
        tuple(AspectFamily(component, tuple(by_text.values())) for component, by_text in members.values()),
        tuple(missing),
    )


def can_be_aggregated(measure: Measure) -> bool:
    """Return whether the measure scores one aspect and is averaged over topics."""
    declaration = measure.declaration
    return not declaration.combines and not declaration.subtopics and declaration.aggregate == "mean"


def _build_aggregates(component: Measure, weighting: str, missing: list[str]) -> list[Measure]:
    aggregates = []
    is_default = component.declaration.graded or weighting == "top_half"
    toma_argument = "" if is_default else f",weighting={weighting}"
    for text in AGGREGATES:
        try:
            aggregates.append(parse(text.format(component, toma_argument)))
        except MeasureError as problem:
            missing.append(str(problem))
    return aggregates


def without_default_aspects(measure: Measure, aspects: Sequence[str]) -> Measure:
    """Return the measure without an `aspects` argument that lists all aspects.

    The argument is omitted only if it lists all aspects of the qrels.
    """
    has_all = measure.arguments.get("aspects") == tuple(aspects)
    return measure.having(aspects=None) if has_all else measure


def aggregate_name(measure: Measure) -> str:
    """Return the name of the aggregation without its component.

    An example is "TOMA manhattan".
    """
    distance = measure.arguments.get("distance")
    others = [(k, v) for k, v in measure.parameters if k not in ("of", "distance", "weighting")]
    words = [measure.declaration.name, distance, *(f"{k}={shown(v)}" for k, v in others)]
    return " ".join(word for word in words if word)


def component_of(measure: Measure) -> str:
    """Return the text of the component that an aggregate combines."""
    return component_text(measure.arguments["of"])


def component_text(component: Any) -> str:
    """Return the text of a component: one measure, or a measure for each aspect."""
    return shown(component) if isinstance(component, ArgumentPairs) else str(component)


def with_component_cutoff(measure: Measure, depth: int) -> Measure | None:
    """Return the aggregate with its component cut off at `depth`.

    The result is None if the component has no cutoff.
    """
    if any("cutoff" not in component.declaration.parameters for component in measure.within):
        return None
    component = measure.arguments["of"]
    if isinstance(component, ArgumentPairs):
        return measure.having(
            of=ArgumentPairs((name, inner.having(cutoff=depth)) for name, inner in component)
        )
    return measure.having(of=component.having(cutoff=depth))
