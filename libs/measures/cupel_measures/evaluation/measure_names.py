"""Measures as Python objects, such as `nDCG @ 10` and `AP(rel=2) @ 100`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cupel_measures.catalogue.parser import all_declarations, parse_many
from cupel_measures.catalogue.reference import ReferencePage
from cupel_measures.grammar.measure import Measure, measure_of
from cupel_measures.grammar.registry import NAMES
from cupel_measures.grammar.syntax import Call


@dataclass(frozen=True, eq=False)
class MeasureName:
    """The name of a measure; `name @ cutoff` is a measure.

    `name(rel=2)` sets parameters. `str(name)` is the text of the measure.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **parameters: Any) -> "MeasureName":
        """Return the name with further parameters."""
        given = {name: _without_names(value) for name, value in parameters.items()}
        return MeasureName(self.name, {**self.parameters, **given})

    def __matmul__(self, cutoff: float) -> Measure:
        """Return the measure with a cutoff, or for IPrec with a recall level.

        Raise MeasureError if the measure takes none, or if a parameter is invalid.
        """
        return measure_of(Call(self.name, tuple(self.parameters.items()), cutoff))

    @property
    def measure(self) -> Measure:
        """Return the measure without a cutoff. Raise MeasureError if it needs one."""
        return measure_of(Call(self.name, tuple(self.parameters.items())))

    def __str__(self) -> str:
        return str(self.measure)

    def __repr__(self) -> str:
        given = ",".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"<{self.name}{f'({given})' if given else ''}>"


def _without_names(value: Any) -> Any:
    """Return the value of a parameter with measures in place of names of measures."""
    if isinstance(value, Mapping):
        return {key: _without_names(item) for key, item in value.items()}
    return value.measure if isinstance(value, MeasureName) else value


MeasureText = str | Measure | MeasureName
MeasureRequest = MeasureText | Iterable[MeasureText]
"""One or several measures: text such as "nDCG@10 AP", measures, or names of measures."""


def measures_of(request: MeasureRequest) -> tuple[Measure, ...]:
    """Return the distinct measures of a request.

    Raise MeasureError if a text is invalid.
    """
    one = isinstance(request, str | Measure | MeasureName) or not isinstance(request, Iterable)
    items: Iterable[Any] = [request] if one else request  # type: ignore[assignment]
    return tuple(dict.fromkeys(measure for item in items for measure in parse_many(str(item))))


def is_measure(name: str) -> bool:
    """Return whether a measure has this name or alias."""
    return name in NAMES


def measures() -> dict[str, str]:
    """Return the summary of every measure by its name, in alphabetical order."""
    return {declaration.name: ReferencePage(declaration).paragraphs[0] for declaration in all_declarations()}
