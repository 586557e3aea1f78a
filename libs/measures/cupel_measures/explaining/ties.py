"""How much of a value depends on the order of documents with equal scores (spec 12, "Tie sensitivity")."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cupel_measures.explaining.subject import Series, Subject, as_data
from cupel_measures.measure import Measure


@dataclass(frozen=True, eq=False)
class Ties:
    """The values over all orders of documents with equal scores.

    range_by: how least and greatest were found: "exact", or "sampled": the extremes among shuffles, which
    the true ones may lie beyond. expected_by: "exact" (all orders were counted), "closed form", or
    "sampled", with its standard_error. shuffles: how many; None where nothing was sampled. topics: how
    many have a value that depends on the order.
    """

    value: Series
    least: Series
    expected: Series
    greatest: Series
    range_by: str
    expected_by: str
    shuffles: int | None
    standard_error: Series | None
    topics: int

    def as_data(self) -> dict[str, Any]:
        names = ("value", "least", "expected", "greatest", "standard_error")
        return {
            "range_by": self.range_by,
            "expected_by": self.expected_by,
            "shuffles": self.shuffles,
            "topics": self.topics,
            **as_data({name: getattr(self, name) for name in names}),
        }


def of_measures(subject: Subject, measures: Sequence[Measure]) -> list[Ties]:
    return [_ties(subject, measure) for measure in measures]


def _ties(subject: Subject, measure: Measure) -> Ties:
    value = Series.of(measure, subject.values(measure))
    return Ties(value, value, value, value, "exact", "exact", None, None, 0)
