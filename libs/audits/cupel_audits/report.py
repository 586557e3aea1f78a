"""Reports: what an audit found, as sentences, numbers, tables and plots of them; all of it JSON."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, Literal

Cell = float | int | str | bool | None
Form = Literal["curve", "heatmap", "changes", "bars", "points"]


@dataclass(frozen=True)
class Column:
    """A column of a table: its name in files, its heading, and what stands in it."""

    name: str
    title: str
    about: str = ""


@dataclass(frozen=True)
class ReportTable:
    """Rows under columns. None is undefined, or there is nothing."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def column(self, name: str) -> list[Cell]:
        """The cells of a column, top down."""
        place = [column.name for column in self.columns].index(name)
        return [row[place] for row in self.rows]

    def as_csv(self) -> str:
        """With a line of the columns' names; numbers as Python prints them, nothing for None."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([column.name for column in self.columns])
        writer.writerows(self.rows)
        return stream.getvalue()


@dataclass(frozen=True)
class Plot:
    """A picture of a table, by the names of its columns.

    form: `curve`: y over x, a line for each `series`, with a band from `low` to `high`; `heatmap`: `value` by
    x and y; `changes`: the rank `y` of each `series` at the stages `x`, from one to the next; `bars`: y for
    each x, with an interval from `low` to `high`, in colours by `series`; `points`: y over x, named by
    `label`. x_order: the stages of x in order, where they are words. domain: the least and greatest value of
    y (of `value` in a heatmap) that can be, where it should be shown whole. reference: a line at this y.
    facet: a column that makes a picture of its own for each of its values.
    """

    name: str
    title: str
    caption: str
    form: Form
    table: str
    x: str
    y: str
    series: str | None = None
    low: str | None = None
    high: str | None = None
    value: str | None = None
    label: str | None = None
    x_order: tuple[str, ...] | None = None
    domain: tuple[float, float] | None = None
    reference: float | None = None
    facet: str | None = None


@dataclass(frozen=True)
class AuditReport:
    """What an audit found.

    verdict: what came out, in sentences with their numbers, the most important first. numbers: by name, what
    alerts and histories go by; None is undefined. tables: the first holds the points that were measured.
    reading: how to read it, and what it does not say. undefined: what has no value, and why, in sentences.
    """

    verdict: tuple[str, ...]
    numbers: Mapping[str, float | int | None]
    tables: tuple[ReportTable, ...]
    plots: tuple[Plot, ...] = ()
    reading: tuple[str, ...] = ()
    undefined: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    def table(self, name: str) -> ReportTable:
        """The table of this name; KeyError if there is none."""
        return {table.name: table for table in self.tables}[name]

    def as_data(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "AuditReport":
        """From what JSON held."""
        tables = [
            ReportTable(one["name"], one["title"], _columns(one["columns"]), tuple(map(tuple, one["rows"])))
            for one in data["tables"]
        ]
        plots = [Plot(**{name: _settled(part) for name, part in one.items()}) for one in data["plots"]]
        prose = {name: tuple(data[name]) for name in ("verdict", "reading", "undefined", "warnings")}
        return cls(numbers=data["numbers"], tables=tuple(tables), plots=tuple(plots), **prose)


def merged(reports: Sequence[AuditReport]) -> AuditReport:
    """Reports on several questions as one, in their order; their tables and plots have different names."""
    prose = ("verdict", "tables", "plots", "reading", "undefined", "warnings")
    numbers = {name: value for report in reports for name, value in report.numbers.items()}
    found = {name: tuple(dict.fromkeys(one for r in reports for one in getattr(r, name))) for name in prose}
    return AuditReport(numbers=numbers, **found)


def digest(data: Any) -> str:
    """SHA-256 of a result: of its JSON with sorted keys and without spaces."""
    return sha256(
        json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    ).hexdigest()


def _columns(data: Sequence[Mapping[str, str]]) -> tuple[Column, ...]:
    return tuple(Column(**one) for one in data)


def _settled(part: Any) -> Any:
    return tuple(part) if isinstance(part, list) else part
