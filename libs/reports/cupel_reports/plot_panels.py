"""The data of each panel of a plot: rows, order, scale and colours."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cupel_audits.report import Plot, ReportTable
from cupel_reports.number_formats import is_number, rounded, shown

Row = Mapping[str, Any]

COLOURS = 7
"""The number of colours that most people can distinguish (Okabe and Ito 2008)."""
DASHES = 2
"""Each colour is used for a solid and for a dashed line."""
REST = -1
"""The colour of all further series."""
MOST_PANELS = 24

CHANNELS = {
    "x": "x",
    "y": "y",
    "series": "s",
    "low": "low",
    "high": "high",
    "value": "v",
    "label": "l",
    "observed": "o",
    "groups": "g",
    "difference": "d",
}
"""The channels of a plot, with the names of their values in the drawn rows."""


@dataclass(frozen=True)
class Key:
    """A series in the legend: its colour and its dash."""

    name: str
    colour: int
    dash: int


@dataclass(frozen=True)
class Panel:
    """One panel of a plot: all rows, or those of one value of `facet`."""

    title: str | None
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Picture:
    """A plot with its table."""

    plot: Plot
    table: ReportTable

    @cached_property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """Return the rows to draw.

        Each row has an x and a y. Only in a curve can y be None. The keys are the values of CHANNELS, and `f`
        for the facet.
        """
        used = {short: getattr(self.plot, long) for long, short in CHANNELS.items()} | {"f": self.plot.facet}
        columns = {short: self.table.column(name) for short, name in used.items() if name is not None}
        rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
        return tuple(self._formatted(row) for row in rows if row["x"] is not None and self._has_y(row))

    def _has_y(self, row: Row) -> bool:
        """Return whether to draw the row; an undefined value makes a gap in a curve."""
        return row["y"] is not None or self.plot.form == "curve"

    def _formatted(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the row with its names, and its positions on categorical axes, as text."""
        has_named_rows = self.plot.form in {"heatmap", "critical_difference"}
        categories = (
            {"s", "l", "f"} | ({"x"} if self.is_categorical else set()) | ({"y"} if has_named_rows else set())
        )
        row = row | ({"s": self._series(row["s"])} if "s" in row else {})
        return {name: shown(value) if name in categories else value for name, value in row.items()}

    def _series(self, value: Any) -> Any:
        """Return the name of a series in the legend; a boolean is named after its column."""
        if not isinstance(value, bool):
            return value
        return self.title("series") if value else f"not {self.title('series')}"

    @property
    def is_categorical(self) -> bool:
        """Return whether x has categories rather than a numeric scale."""
        return self.plot.form in {"heatmap", "changes", "bars", "boxes"} or not self.is_numeric

    @cached_property
    def is_numeric(self) -> bool:
        """Return whether all values of x are numbers."""
        return all(value is None or is_number(value) for value in self.table.column(self.plot.x))

    @cached_property
    def is_falling(self) -> bool:
        """Return whether x decreases from left to right, as in the table.

        It is always False for points.
        """
        if self.plot.form == "points":
            return False
        values = [value for value in self.table.column(self.plot.x) if is_number(value)]
        return bool(values) and float(values[0] or 0) > float(values[-1] or 0)

    @cached_property
    def categories(self) -> list[str]:
        """Return the categories of x.

        Those of `x_order` come first, then the others in the order of the rows.
        """
        return list(dict.fromkeys([*(self.plot.x_order or ()), *(row["x"] for row in self.rows)]))

    def title(self, channel: str) -> str:
        """Return the heading of the column of a channel (x, y, series, ...)."""
        name = getattr(self.plot, channel)
        return {column.name: column.title for column in self.table.columns}[name]

    @property
    def reference_label(self) -> str:
        """Return the label of the reference; without one, its value and the heading of y."""
        if self.plot.reference_label is not None or self.plot.reference is None:
            return self.plot.reference_label or ""
        return f"{self.title('y')} {rounded(self.plot.reference)}"

    @cached_property
    def series(self) -> list[str]:
        """Return the names of the series.

        They have the order of the rows. Numbers ascend, unless those of the first panel descend.
        """
        names = list(dict.fromkeys(row["s"] for row in self.rows if "s" in row))
        if self.plot.series is None or not names:
            return names
        values = {shown(value): value for value in self.table.column(self.plot.series)}
        numbers = {name: float(value or 0) for name, value in values.items() if is_number(value)}
        if len(numbers) < len(values):
            return names
        descends = numbers[names[0]] > numbers[names[-1]]
        return sorted(names, key=lambda name: numbers[name], reverse=descends)

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Return the series that have a colour.

        If there are too many, these are the first ones or, in the form `changes`, those that change most.
        """
        chosen = self.series
        if len(chosen) > COLOURS * DASHES:
            chosen = self._by_change()[:COLOURS] if self.plot.form == "changes" else chosen[:COLOURS]
        return tuple(Key(name, place % COLOURS, place // COLOURS) for place, name in enumerate(chosen))

    def _by_change(self) -> list[str]:
        """Return the series by their largest change in a panel, largest first."""
        changes = dict.fromkeys(self.series, 0.0)
        for panel in self.panels:
            for name, path in paths(panel.rows).items():
                changes[name] = max(changes[name], max(path) - min(path))
        return sorted(changes, key=lambda name: -changes[name])

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """Return the drawn panels, at most MOST_PANELS.

        Panels that have no defined value are left out.
        """
        return self._all_panels[:MOST_PANELS]

    @property
    def hidden(self) -> int:
        """Return the number of panels that are not drawn."""
        return len(self._all_panels) - len(self.panels)

    @cached_property
    def _all_panels(self) -> tuple[Panel, ...]:
        by_facet: dict[str | None, list[Row]] = {}
        for row in self.rows:
            by_facet.setdefault(row.get("f"), []).append(row)
        return tuple(
            Panel(title, tuple(rows))
            for title, rows in by_facet.items()
            if any(row["y"] is not None for row in rows)
        )

    def coloured(self, panel: Panel) -> list[dict[str, Any]]:
        """Return the rows of a panel with their colour `k`.

        It is the index of the series in `keys`, or REST.
        """
        places = {key.name: place for place, key in enumerate(self.keys)}
        coloured = [{name: value for name, value in row.items() if name != "f"} for row in panel.rows]
        for row in coloured:
            if "s" in row:
                row["k"] = places.get(row["s"], REST)
        return coloured

    @cached_property
    def extent(self) -> tuple[float, float]:
        """Return the range of the scale that all panels share."""
        if self.plot.domain is not None:
            return self.plot.domain
        names = ("v",) if self.plot.form == "heatmap" else ("y", "low", "high", "o")
        values = [float(row[name]) for row in self.rows for name in names if is_number(row.get(name))]
        if self.plot.reference is not None:
            values.append(self.plot.reference)
        return (min(values), max(values)) if values else (0.0, 1.0)


def paths(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Return the values y of each series, in the order of the rows."""
    by_series: dict[str, list[float]] = {}
    for row in rows:
        by_series.setdefault(row["s"], []).append(float(row["y"]))
    return by_series


def pictures(plots: Sequence[Plot], tables: Sequence[ReportTable]) -> Iterator[Picture]:
    """Return the plots of a report, each with its table."""
    by_name = {table.name: table for table in tables}
    return (Picture(plot, by_name[plot.table]) for plot in plots)
