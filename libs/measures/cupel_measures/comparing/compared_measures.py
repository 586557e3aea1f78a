"""The measures of a comparison, and the related measures reported with each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.topic_sets.detectable_differences import Range, range_of_means
from cupel_measures.families.multiaspect import inner
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.grammar.scale_types import scale_type
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, Qrels
from cupel_measures.scoring.evaluator import check

DEPTH = 10
"""Depth to which unjudged documents are counted for a measure without a cutoff."""

NO_MEANS = {
    "sum": "compared by its mean over topics instead of its sum",
    "geometric mean": "compared by the mean of the logarithms of its per-topic values",
}
"""Notes on measures that are not averaged over topics, by aggregate."""


@dataclass(frozen=True)
class AspectVariant:
    """A measure under one aspect. base: the text of the measure without its aspect."""

    base: str
    aspect: str
    measure: str


@dataclass(frozen=True, kw_only=True)
class ComparedMeasure:
    """A measure by which systems are compared.

    The fields name measures by their texts.

    uses_logarithms: whether the logarithms of its scores are compared. variants: the measure under each
    aspect; for a measure that combines aspects, its component under each aspect. `variants` is empty if the
    collection has a single aspect. unjudged: the measure `Unjudged` at the cutoff of the measure, or at DEPTH
    if the measure has no cutoff; None for measures of subtopics. bounds: its range if it is averaged over
    topics.
    """

    text: str
    scale: ScaleType
    uses_logarithms: bool = False
    variants: tuple[AspectVariant, ...] = ()
    unjudged: str | None = None
    notes: tuple[str, ...] = ()
    bounds: Range | None = None

    @property
    def required(self) -> Iterator[str]:
        """The texts of all measures whose scores the comparison needs."""
        yield self.text
        yield from (variant.measure for variant in self.variants)
        if self.unjudged is not None:
            yield self.unjudged


def compared_measure(measure: Measure, qrels: Qrels) -> ComparedMeasure:
    """Return `measure` with its related measures.

    Raises MeasureError as `Measure.bound` does.
    """
    bound, declaration = measure.bound(qrels.aspects), measure.declaration
    notes = [NO_MEANS[declaration.aggregate]] if declaration.aggregate in NO_MEANS else []
    variants = []
    for base, aspect, variant in _variants(bound, qrels.aspects):
        try:
            check(qrels, [variant])
        except MeasureError as error:
            notes.append(f"not compared under {aspect}: {error}")
        else:
            variants.append(AspectVariant(base, aspect, str(variant)))
    return ComparedMeasure(
        text=str(measure),
        bounds=range_of_means(str(measure)),
        scale=scale_type(measure, qrels.aspects),
        uses_logarithms=declaration.aggregate == "geometric mean",
        variants=tuple(variants),
        unjudged=None if declaration.subtopics else str(_unjudged(bound, qrels.aspects)),
        notes=tuple(notes),
    )


def _variants(measure: Measure, aspects: Sequence[Aspect]) -> Iterator[tuple[str, str, Measure]]:
    """Yield the measure under each aspect.

    An item is (text of the measure without its aspect, aspect, measure under the aspect).
    """
    arguments, combines = measure.arguments, measure.declaration.combines
    if len(aspects) < 2 or measure.declaration.subtopics or (combines and "of" not in arguments):
        return
    base = arguments["of"] if combines else measure.having(aspect=None)
    text = str(base if isinstance(base, Measure) else measure)
    for name in arguments["aspects"] if combines else [aspect.name for aspect in aspects]:
        variant = inner(base, name) if combines else base
        yield text, name, _with_aspect(variant, name, aspects)


def _unjudged(measure: Measure, aspects: Sequence[Aspect]) -> Measure:
    """Return `Unjudged` for the aspect of the measure.

    If the measure combines several aspects, the first one is used.
    """
    arguments = measure.arguments
    combined = arguments.get("aspects") or [aspects[0].name]
    name = arguments.get("aspect") or combined[0]
    components = arguments.get("of")
    component = inner(components, name) if components is not None else measure
    unjudged = parse(f"Unjudged@{component.arguments.get('cutoff') or DEPTH}")
    return _with_aspect(unjudged, name, aspects)


def _with_aspect(measure: Measure, name: str, aspects: Sequence[Aspect]) -> Measure:
    """Return the measure under an aspect.

    The parameter is omitted for the first aspect, its default.
    """
    return measure if name == aspects[0].name else measure.having(aspect=name)
