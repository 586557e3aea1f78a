"""What `aspects` asks of each aspect, and the measures that make one number of the answers."""

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
    """Measures that ask the same of each aspect.

    of: a measure of one aspect, or one by aspect. aggregates: bound to the aspects of the qrels.
    """

    of: Any
    aggregates: tuple[Measure, ...]

    @property
    def text(self) -> str:
        return of_text(self.of)


def families(subject: AuditSubject, weighting: str) -> tuple[tuple[AspectFamily, ...], tuple[str, ...]]:
    """The families of a subject's measures; and why some aggregate is not among them, in sentences.

    A measure that asks of one aspect gets the aggregates of AGGREGATES, `weighting` being that of TOMA where
    it is binary. One that aggregates such a measure is in its family.
    """
    found: dict[str, tuple[Any, dict[str, Measure]]] = {}
    lacking: list[str] = []
    for measure in subject.measures:
        if measure.declaration.combination is not None:
            of = measure.arguments["of"]
            found.setdefault(shown(of), (of, {}))[1][str(measure)] = measure
        elif combinable(measure):
            of = measure.having(aspect=None)
            made = found.setdefault(shown(of), (of, {}))[1]
            for one in _made(of, weighting, lacking):
                bound = one.bound(subject.qrels.aspects)
                made.setdefault(str(bound), bound)
    return tuple(AspectFamily(of, tuple(made.values())) for of, made in found.values()), tuple(lacking)


def combinable(measure: Measure) -> bool:
    """Whether aggregates take it: it asks of one aspect and is averaged over topics."""
    said = measure.declaration
    return not said.combines and not said.subtopics and said.aggregate == "mean"


def _made(of: Measure, weighting: str, lacking: list[str]) -> list[Measure]:
    made = []
    binary = "" if of.declaration.graded or weighting == "top_half" else f",weighting={weighting}"
    for text in AGGREGATES:
        try:
            made.append(parse(text.format(of, binary)))
        except MeasureError as problem:
            lacking.append(str(problem))
    return made


def plain(measure: Measure, aspects: Sequence[str]) -> Measure:
    """The same, without the list of aspects where that is all there are."""
    whole = measure.arguments.get("aspects") == tuple(aspects)
    return measure.having(aspects=None) if whole else measure


def kind_of(measure: Measure) -> str:
    """How it aggregates, whatever it asks of each aspect: CAM, TOMA manhattan, CAM weights={...}."""
    distance = measure.arguments.get("distance")
    others = [(k, v) for k, v in measure.parameters if k not in ("of", "distance", "weighting")]
    words = [measure.declaration.name, distance, *(f"{k}={shown(v)}" for k, v in others)]
    return " ".join(word for word in words if word)


def asked(measure: Measure) -> str:
    """What it asks of each aspect."""
    return of_text(measure.arguments["of"])


def of_text(of: Any) -> str:
    """A measure, or one by aspect, as its text."""
    return shown(of) if isinstance(of, ArgumentPairs) else str(of)


def cut(measure: Measure, depth: int) -> Measure | None:
    """An aggregate of what is asked of each aspect at this cutoff; None where it takes none."""
    if any("cutoff" not in one.declaration.parameters for one in measure.within):
        return None
    of = measure.arguments["of"]
    if isinstance(of, ArgumentPairs):
        return measure.having(of=ArgumentPairs((name, one.having(cutoff=depth)) for name, one in of))
    return measure.having(of=of.having(cutoff=depth))
