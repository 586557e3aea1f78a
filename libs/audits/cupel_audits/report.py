"""JSON-serialisable reports of audits: sentences, named numbers, tables and plots.

A table is declared by a row class and a schema. The fields of the row class are the columns, in their order:

    @dataclass(frozen=True, kw_only=True)
    class ScoreRow:
        measure: MeasureCell
        run: RunCell
        score: Annotated[float | None, Heading("mean score", "over the topics")]

    SCORES = TableSchema.of("scores", "Scores of the runs", ScoreRow)

Compute a list of rows first. Then derive the verdict, the numbers and the table from these rows, so that no
cell is read by its position: `SCORES.table(rows)`. Plots name the columns that they draw, and are checked
against the schema when they are built: `Plot.bars(SCORES, "scores", title=..., caption=..., x="run",
y="score")`.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from hashlib import sha256
from operator import attrgetter
from typing import Annotated, Any, Generic, Literal, NotRequired, TypedDict, TypeVar, Unpack, get_type_hints

Cell = float | int | str | bool | None
Form = Literal["curve", "heatmap", "changes", "bars", "points", "boxes", "critical_difference"]
Row = TypeVar("Row")
PROSE = ("verdict", "reading", "undefined", "warnings", "actions")
"""The fields of a report that hold sentences."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its name in files, its heading, and what its cells mean."""

    name: str
    title: str
    about: str = ""


@dataclass(frozen=True)
class Heading:
    """The heading of a column and an explanation of its cells.

    It annotates a field of a row class.
    """

    title: str
    about: str = ""


MeasureCell = Annotated[str, Heading("measure")]
RunCell = Annotated[str, Heading("run")]


@dataclass(frozen=True)
class ReportTable:
    """Rows under columns. A cell is None where its value is undefined or missing."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def names(self) -> list[str]:
        """Return the names of the columns, from left to right."""
        return [column.name for column in self.columns]

    def column(self, name: str) -> list[Cell]:
        """Return the cells of a column from top to bottom."""
        place = self.names.index(name)
        return [row[place] for row in self.rows]

    def records(self) -> list[dict[str, Cell]]:
        """Return each row as a mapping from column names to cells."""
        names = self.names
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def as_csv(self) -> str:
        """Return the table as CSV with a header line.

        Numbers have full precision. Cells are empty for None.
        """
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.names)
        writer.writerows(self.rows)
        return stream.getvalue()


@dataclass(frozen=True)
class TableSchema(Generic[Row]):
    """The name, the title and the columns of a table.

    The rows of the table are instances of a row class. columns_by_field: the columns of each field of the row
    class. Most fields are one column. A field whose type is a row class has all columns of that class. A
    field that is a tuple of cells has one column for each cell.
    """

    name: str
    title: str
    columns_by_field: Mapping[str, tuple[Column, ...]]

    @classmethod
    def of(cls, name: str, title: str, row_class: type[Row]) -> "TableSchema[Row]":
        """Derive the columns from the fields of a row class.

        Each field is `Annotated` with a Heading.
        """
        hints = get_type_hints(row_class, include_extras=True)
        names = [item.name for item in fields(row_class)]  # type: ignore[arg-type]
        return cls(name, title, {name: _columns_of_field(name, hints[name]) for name in names})

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the columns, from left to right."""
        return tuple(column for columns in self.columns_by_field.values() for column in columns)

    def with_columns(self, field_name: str, *columns: Column) -> "TableSchema[Row]":
        """Return this schema with other columns for one field.

        The field is omitted if no columns are given.
        """
        if field_name not in self.columns_by_field:
            raise KeyError(f"table {self.name!r} has no field {field_name!r}")
        return TableSchema(self.name, self.title, {**self.columns_by_field, field_name: columns})

    def table(self, rows: Iterable[Row]) -> ReportTable:
        """Return the table of these rows."""
        readers = [_cell_reader(name, columns) for name, columns in self.columns_by_field.items() if columns]
        cells = tuple(tuple(cell for read in readers for cell in read(row)) for row in rows)
        return ReportTable(self.name, self.title, self.columns, cells)


def _columns_of_field(name: str, hint: Any) -> tuple[Column, ...]:
    """Return the columns of one field of a row class.

    These are all columns of the field's row class, or one column for each of its headings.
    """
    if is_dataclass(hint):
        return TableSchema.of(name, "", hint).columns  # type: ignore[arg-type]
    headings = [item for item in getattr(hint, "__metadata__", ()) if isinstance(item, Heading)]
    return tuple(Column(name, heading.title, heading.about) for heading in headings)


def _cell_reader(name: str, columns: Sequence[Column]) -> Callable[[Any], tuple[Cell, ...]]:
    """Return a function that returns the cells of one field of a row."""
    value_of = attrgetter(name)

    def read(row: Any) -> tuple[Cell, ...]:
        cells = _cells(value_of(row))
        if len(cells) != len(columns):
            raise ValueError(f"field {name!r} has {len(cells)} cells for {len(columns)} columns")
        return cells

    return read


def _cells(value: Any) -> tuple[Cell, ...]:
    if isinstance(value, tuple):
        return value
    if is_dataclass(value):
        return tuple(cell for item in fields(value) for cell in _cells(getattr(value, item.name)))
    return (value,)


class PlotDescription(TypedDict):
    """The fields that every constructor of a plot takes, as in `Plot`."""

    title: str
    caption: str
    x: str
    y: str
    facet: NotRequired[str | None]


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A plot of a table, described by column names.

    It is built by a constructor such as `Plot.bars`. title: the finding that the plot shows, in a few words.
    caption: what is drawn. form: the kind of plot, set by the constructor. x_order: the categories of x in
    order, if x is categorical. domain: the smallest and the largest possible value of y (of `value` in a heat
    map), if the plot must show this whole range. reference: the y of a horizontal line. reference_label: the
    meaning of this line, drawn beside it. facet: a column; each of its values has its own panel. observed: a
    column that a curve draws as points, if its line y is a fit. blank: the value of a heat map that has no
    colour, so that all others stand out. groups, difference: as in `critical_difference`.
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
    reference_label: str | None = None
    observed: str | None = None
    blank: float | None = None
    groups: str | None = None
    difference: str | None = None

    @classmethod
    def curve(
        cls,
        schema: TableSchema[Any],
        name: str,
        *,
        series: str | None = None,
        low: str | None = None,
        high: str | None = None,
        x_order: tuple[str, ...] | None = None,
        domain: tuple[float, float] | None = None,
        reference: float | None = None,
        reference_label: str | None = None,
        observed: str | None = None,
        **described: Unpack[PlotDescription],
    ) -> "Plot":
        """Draw y over x: a line for each value of `series`, and a band.

        The band reaches from `low` to `high`.
        """
        return cls(
            name=name, form="curve", table=schema.name,
            series=series, low=low, high=high,
            x_order=x_order, domain=domain, reference=reference,
            reference_label=reference_label, observed=observed, **described,
        ).checked(schema)  # fmt: skip

    @classmethod
    def heatmap(
        cls,
        schema: TableSchema[Any],
        name: str,
        *,
        value: str,
        x_order: tuple[str, ...] | None = None,
        domain: tuple[float, float] | None = None,
        blank: float | None = None,
        **described: Unpack[PlotDescription],
    ) -> "Plot":
        """Colour a cell for each x and y by `value`."""
        return cls(
            name=name, form="heatmap", table=schema.name,
            value=value, x_order=x_order, domain=domain, blank=blank, **described,
        ).checked(schema)  # fmt: skip

    @classmethod
    def changes(
        cls,
        schema: TableSchema[Any],
        name: str,
        *,
        series: str,
        x_order: tuple[str, ...] | None = None,
        **described: Unpack[PlotDescription],
    ) -> "Plot":
        """Draw ranks y at the stages x, with a line for each value of `series`."""
        return cls(
            name=name, form="changes", table=schema.name,
            series=series, x_order=x_order, **described,
        ).checked(schema)  # fmt: skip

    @classmethod
    def bars(
        cls,
        schema: TableSchema[Any],
        name: str,
        *,
        series: str | None = None,
        low: str | None = None,
        high: str | None = None,
        x_order: tuple[str, ...] | None = None,
        domain: tuple[float, float] | None = None,
        reference: float | None = None,
        **described: Unpack[PlotDescription],
    ) -> "Plot":
        """Draw a bar of height y for each x, coloured by `series`.

        Each bar has an interval from `low` to `high`.
        """
        return cls(
            name=name, form="bars", table=schema.name,
            series=series, low=low, high=high,
            x_order=x_order, domain=domain, reference=reference, **described,
        ).checked(schema)  # fmt: skip

    @classmethod
    def points(
        cls,
        schema: TableSchema[Any],
        name: str,
        *,
        series: str | None = None,
        label: str | None = None,
        domain: tuple[float, float] | None = None,
        reference: float | None = None,
        **described: Unpack[PlotDescription],
    ) -> "Plot":
        """Draw a point at x and y for each row, coloured by `series` and named by `label`."""
        return cls(
            name=name, form="points", table=schema.name,
            series=series, label=label, domain=domain,
            reference=reference, **described,
        ).checked(schema)  # fmt: skip

    @classmethod
    def boxes(
        cls,
        schema: TableSchema[Any],
        name: str,
        *,
        domain: tuple[float, float] | None = None,
        **described: Unpack[PlotDescription],
    ) -> "Plot":
        """Draw a box plot of the values y of the rows with the same x.

        It shows quartiles, range and outliers.
        """
        return cls(
            name=name, form="boxes", table=schema.name,
            domain=domain, **described,
        ).checked(schema)  # fmt: skip

    @classmethod
    def critical_difference(
        cls,
        schema: TableSchema[Any],
        name: str,
        *,
        groups: str,
        difference: str,
        **described: Unpack[PlotDescription],
    ) -> "Plot":
        """Draw mean ranks x of the systems y on an axis (Demšar, JMLR 2006).

        groups: a column with letters, separated by spaces; a bar joins the systems that share a letter.
        difference: a column with the critical difference, None if the test has none.
        """
        return cls(
            name=name, form="critical_difference", table=schema.name,
            groups=groups, difference=difference, **described,
        ).checked(schema)  # fmt: skip

    @property
    def column_names(self) -> tuple[str, ...]:
        """Return the names of the columns that the plot uses."""
        optional = (
            self.series, self.low, self.high, self.value, self.label, self.facet, self.observed,
            self.groups, self.difference,
        )  # fmt: skip
        return (self.x, self.y, *(name for name in optional if name is not None))

    def checked(self, schema: TableSchema[Any]) -> "Plot":
        """Return this plot after a check of its columns.

        Raises ValueError if the plot uses a column that the schema does not have.
        """
        known = [column.name for column in schema.columns]
        for name in self.column_names:
            if name not in known:
                raise ValueError(
                    f"plot {self.name!r}: table {schema.name!r} has no column {name!r}; "
                    f"its columns are {', '.join(known)}"
                )
        return self


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """The findings of an audit.

    verdict: the findings as sentences with their numbers, the most important first. numbers: values by name
    for alerts and histories; None is undefined. tables: the first one contains the main results. reading: how
    to interpret the result, and its limits. undefined: sentences on values that are undefined, with the
    reason. actions: what the reader can do about the findings, the most useful first.
    """

    verdict: tuple[str, ...]
    numbers: Mapping[str, float | int | None]
    tables: tuple[ReportTable, ...]
    plots: tuple[Plot, ...] = ()
    reading: tuple[str, ...] = ()
    undefined: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()

    def table(self, name: str) -> ReportTable:
        """Return the table of this name; raise KeyError if there is none."""
        return {table.name: table for table in self.tables}[name]

    def as_data(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return asdict(self)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "AuditReport":
        """Return the report that has these JSON data; inverse of `as_data`.

        Reports that an earlier release stored may lack `actions` and some fields of plots.
        """
        tables = [
            ReportTable(
                table["name"], table["title"], _columns(table["columns"]), tuple(map(tuple, table["rows"]))
            )
            for table in data["tables"]
        ]
        plots = [Plot(**{name: _as_tuple(part) for name, part in plot.items()}) for plot in data["plots"]]
        prose = {name: tuple(data.get(name, ())) for name in PROSE}
        return cls(numbers=data["numbers"], tables=tuple(tables), plots=tuple(plots), **prose)


def merged(reports: Sequence[AuditReport]) -> AuditReport:
    """Merge reports on several questions, in their order.

    The names of tables and plots must be unique.
    """
    names = (*PROSE, "tables", "plots")
    numbers = {name: value for report in reports for name, value in report.numbers.items()}
    parts = {name: tuple(dict.fromkeys(part for r in reports for part in getattr(r, name))) for name in names}
    return AuditReport(numbers=numbers, **parts)


def name_some(names: Sequence[str], noun: str, *, most: int = 2) -> str:
    """Return names for a sentence, such as "AP and P@10".

    If there are more than `most` names, return their number, such as "5 measures".
    """
    return f"{len(names)} {noun}" if len(names) > most else " and ".join(names)


def digest(data: Any) -> str:
    """Return the SHA-256 of JSON data as hexadecimal digits.

    The data is written with sorted keys and without spaces.
    """
    return sha256(
        json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    ).hexdigest()


def _columns(data: Sequence[Mapping[str, str]]) -> tuple[Column, ...]:
    return tuple(Column(**column) for column in data)


def _as_tuple(part: Any) -> Any:
    return tuple(part) if isinstance(part, list) else part
