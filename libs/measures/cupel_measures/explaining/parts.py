"""What a combining measure is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cupel_measures.explaining.subject import Subject
from cupel_measures.measure import Measure


@dataclass(frozen=True, eq=False)
class Parts:
    def as_data(self) -> dict[str, Any]:
        return {}


def of_measures(subject: Subject, measures: Sequence[Measure]) -> list[Parts | None]:
    return [None for _ in measures]
