"""The scale type of a measure, and the operations that it allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cupel_measures.explaining.explained_run import ExplainedRun
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.registry import Aggregate, ScaleType
from cupel_measures.grammar.scale_types import OPERATIONS, scale_type, warning
from cupel_measures.model import Aspect


@dataclass(frozen=True)
class ScaleNote:
    """The scale type of a measure on a collection's aspects.

    operations: the operations that the scale type allows. aggregate: the aggregate over topics. warning: a
    sentence if the scale type does not allow the aggregate, else None.
    """

    type: ScaleType
    operations: tuple[str, ...]
    aggregate: Aggregate
    warning: str | None

    def as_data(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "operations": list(self.operations),
            "aggregate": self.aggregate,
            "warning": self.warning,
        }


def explain_scales(subject: ExplainedRun, measures: Sequence[Measure]) -> list[ScaleNote]:
    return [scale_of(measure, subject.qrels.aspects) for measure in measures]


def scale_of(measure: Measure, aspects: Sequence[Aspect]) -> ScaleNote:
    """Return the scale type of a measure, and the operations it allows.

    The scale type is that for a collection with `aspects`.
    """
    type_ = scale_type(measure, aspects)
    aggregate = measure.declaration.aggregate
    return ScaleNote(type_, OPERATIONS[type_], aggregate, warning(measure, aspects))
