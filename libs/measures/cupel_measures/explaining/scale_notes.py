"""What may be done with the values of a measure: its type of scale (spec 4.2)."""

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
    """type: of the measure's scale on the collection's aspects. operations: what it allows. aggregate: what
    is done to make one number of all topics. warning: a sentence where that asks for more than is allowed."""

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


def of_measures(subject: ExplainedRun, measures: Sequence[Measure]) -> list[ScaleNote]:
    return [scale_of(measure, subject.qrels.aspects) for measure in measures]


def scale_of(measure: Measure, aspects: Sequence[Aspect]) -> ScaleNote:
    """What may be done with a measure's values for a collection with `aspects`."""
    found = scale_type(measure, aspects)
    said = warning(measure, aspects)
    return ScaleNote(found, OPERATIONS[found], measure.declaration.aggregate, said)
