"""What a comparison asks of a measure, and which other measures are told beside it, all by their texts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cupel_measures.catalogue.parser import parse
from cupel_measures.families.multiaspect import inner
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.grammar.scale_types import scale_type
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, Qrels
from cupel_measures.scoring.evaluator import check

DEPTH = 10
"""How deep unjudged documents are counted for a measure without a cutoff."""

NO_MEANS = {
    "sum": "its mean over topics is compared, not its sum",
    "geometric mean": "the means of its topics' logarithms are compared",
}
"""What is said of measures that are not averaged over topics."""


@dataclass(frozen=True)
class Under:
    """A measure under one aspect. whole: the same without its aspect, by which these are told together."""

    whole: str
    aspect: str
    measure: str


@dataclass(frozen=True)
class Asked:
    """A measure to compare systems by.

    logarithms: whether it is compared by those of its values. under: the same under each aspect, or what a
    combining measure is made of; none with a single aspect. unjudged: the share of documents without a
    judgment, as far down as the measure looks; None for measures of subtopics. notes: what is to be said.
    """

    measure: str
    scale: ScaleType
    logarithms: bool = False
    under: tuple[Under, ...] = ()
    unjudged: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def texts(self) -> Iterator[str]:
        """All measures whose scores are needed."""
        yield self.measure
        yield from (one.measure for one in self.under)
        if self.unjudged is not None:
            yield self.unjudged


def asked_for(measure: Measure, qrels: Qrels) -> Asked:
    """What to compare systems by where `measure` is asked for; MeasureError as in `Measure.bound`."""
    bound, declared = measure.bound(qrels.aspects), measure.declaration
    notes = [NO_MEANS[declared.aggregate]] if declared.aggregate in NO_MEANS else []
    under = []
    for whole, aspect, one in _under(bound, qrels.aspects):
        try:
            check(qrels, [one])
        except MeasureError as problem:
            notes.append(f"not told under {aspect}: {problem}")
        else:
            under.append(Under(whole, aspect, str(one)))
    return Asked(
        str(measure),
        scale_type(measure, qrels.aspects),
        declared.aggregate == "geometric mean",
        tuple(under),
        None if declared.subtopics else str(_unjudged(bound, qrels.aspects)),
        tuple(notes),
    )


def _under(measure: Measure, aspects: Sequence[Aspect]) -> Iterator[tuple[str, str, Measure]]:
    """(the measure without its aspect, the aspect, the measure under it)."""
    arguments, combines = measure.arguments, measure.declaration.combines
    if len(aspects) < 2 or measure.declaration.subtopics or (combines and "of" not in arguments):
        return
    of = arguments["of"] if combines else measure.having(aspect=None)
    whole = str(of if isinstance(of, Measure) else measure)
    for name in arguments["aspects"] if combines else [aspect.name for aspect in aspects]:
        one = inner(of, name) if combines else of
        yield whole, name, _with_aspect(one, name, aspects)


def _unjudged(measure: Measure, aspects: Sequence[Aspect]) -> Measure:
    """By the measure's own aspect, or the first that it combines."""
    arguments = measure.arguments
    listed = arguments.get("aspects") or [aspects[0].name]
    name = arguments.get("aspect") or listed[0]
    of = arguments.get("of")
    within = (inner(of, name) if of is not None else measure).arguments
    found = parse(f"Unjudged@{within.get('cutoff') or DEPTH}")
    return _with_aspect(found, name, aspects)


def _with_aspect(measure: Measure, name: str, aspects: Sequence[Aspect]) -> Measure:
    """The first aspect is left out of a text."""
    return measure if name == aspects[0].name else measure.having(aspect=name)
