"""Plots as a page draws them: what of a table is in each, in which order, scale and colour."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cupel_audits.report import Plot, ReportTable
from cupel_reports.number_formats import is_number, shown

Row = Mapping[str, Any]

COLOURS = 7
"""That most people can tell apart (Okabe and Ito 2008)."""
DASHES = 2
"""How often they are used: with whole lines, then with dashed ones."""
REST = -1
"""The colour of series that are too many to have one of their own."""
MOST_PANELS = 24

CHANNELS = {
    "x": "x",
    "y": "y",
    "series": "s",
    "low": "low",
    "high": "high",
    "value": "v",
    "label": "l",
}
"""What a plot says of columns -> the name in the rows that are drawn, whatever the column is called."""


@dataclass(frozen=True)
class Key:
    """A series in the legend: its colour and its dash."""

    name: str
    colour: int
    dash: int


@dataclass(frozen=True)
class Panel:
    """One picture of a plot: all of it, or that of one value of `facet`."""

    title: str | None
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Picture:
    """A plot with the table that it is of."""

    plot: Plot
    table: ReportTable

    @cached_property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """What is drawn, by CHANNELS; `f` is the facet. A row without a place is left out."""
        used = {short: getattr(self.plot, long) for long, short in CHANNELS.items()} | {"f": self.plot.facet}
        columns = {short: self.table.column(name) for short, name in used.items() if name is not None}
        rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
        return tuple(self._worded(row) for row in rows if row["x"] is not None and self._has_y(row))

    def _has_y(self, row: Row) -> bool:
        """A line has a gap where it is undefined; other forms show nothing there."""
        return row["y"] is not None or self.plot.form == "curve"

    def _worded(self, row: dict[str, Any]) -> dict[str, Any]:
        """With words where places have names rather than positions."""
        words = {"s", "l", "f"} | ({"x"} if self.stepped else set()) | ({"y"} if "v" in row else set())
        row = row | ({"s": self._series(row["s"])} if "s" in row else {})
        return {name: shown(one) if name in words else one for name, one in row.items()}

    def _series(self, value: Any) -> Any:
        """A name for the legend: yes and no say nothing there."""
        if not isinstance(value, bool):
            return value
        return self.title("series") if value else f"not {self.title('series')}"

    @property
    def stepped(self) -> bool:
        """Whether x has stages or categories, rather than a scale."""
        return self.plot.form in {"heatmap", "changes", "bars"} or not self.numeric

    @cached_property
    def numeric(self) -> bool:
        """Whether x is a number throughout."""
        return all(value is None or is_number(value) for value in self.table.column(self.plot.x))

    @cached_property
    def falling(self) -> bool:
        """Whether the table goes from high x to low: so do lines, which go on from there; points do not."""
        if self.plot.form == "points":
            return False
        values = [value for value in self.table.column(self.plot.x) if is_number(value)]
        return bool(values) and float(values[0] or 0) > float(values[-1] or 0)

    @cached_property
    def stages(self) -> list[str]:
        """The words of x in order: as they are declared, then as they come."""
        return list(dict.fromkeys([*(self.plot.x_order or ()), *(row["x"] for row in self.rows)]))

    def title(self, channel: str) -> str:
        """The heading of the column behind this channel (x, y, series, ...)."""
        name = getattr(self.plot, channel)
        return {column.name: column.title for column in self.table.columns}[name]

    @cached_property
    def series(self) -> list[str]:
        """Their names, as they come."""
        return list(dict.fromkeys(row["s"] for row in self.rows if "s" in row))

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """The series that have a colour: all if there are few, else those that are most worth a look."""
        few = self.series
        if len(few) > COLOURS * DASHES:
            few = self._movers()[:COLOURS] if self.plot.form == "changes" else few[:COLOURS]
        return tuple(Key(name, place % COLOURS, place // COLOURS) for place, name in enumerate(few))

    def _movers(self) -> list[str]:
        """The series by how far they move in any one panel, furthest first."""
        moved = dict.fromkeys(self.series, 0.0)
        for panel in self.panels:
            for name, path in paths(panel.rows).items():
                moved[name] = max(moved[name], max(path) - min(path))
        return sorted(moved, key=lambda name: -moved[name])

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """Those that are drawn, at most MOST_PANELS; none where nothing is defined."""
        return self._all_panels[:MOST_PANELS]

    @property
    def hidden(self) -> int:
        """How many panels are not drawn."""
        return len(self._all_panels) - len(self.panels)

    @cached_property
    def _all_panels(self) -> tuple[Panel, ...]:
        found: dict[str | None, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.get("f"), []).append(row)
        return tuple(
            Panel(title, tuple(rows))
            for title, rows in found.items()
            if any(row["y"] is not None for row in rows)
        )

    def coloured(self, panel: Panel) -> list[dict[str, Any]]:
        """The rows of a panel, each with its colour `k`: the place of its series among `keys`, or REST."""
        places = {key.name: place for place, key in enumerate(self.keys)}
        found = [{name: one for name, one in row.items() if name != "f"} for row in panel.rows]
        for row in found:
            if "s" in row:
                row["k"] = places.get(row["s"], REST)
        return found

    @cached_property
    def extent(self) -> tuple[float, float]:
        """The least and greatest of what is measured, over all panels: the same scale for each."""
        if self.plot.domain is not None:
            return self.plot.domain
        names = ("v",) if self.plot.form == "heatmap" else ("y", "low", "high")
        values = [float(row[name]) for row in self.rows for name in names if is_number(row.get(name))]
        if self.plot.reference is not None:
            values.append(self.plot.reference)
        return (min(values), max(values)) if values else (0.0, 1.0)


def paths(rows: Sequence[Row]) -> dict[str, list[float]]:
    """The values y of each series, in the order of rows."""
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row["s"], []).append(float(row["y"]))
    return found


def pictures(plots: Sequence[Plot], tables: Sequence[ReportTable]) -> Iterator[Picture]:
    """The plots of a report, each with its table."""
    by_name = {table.name: table for table in tables}
    return (Picture(plot, by_name[plot.table]) for plot in plots)
