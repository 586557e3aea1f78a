"""The forms of plots, in Vega-Lite by way of Altair.

Every panel is a specification of its own, with one view, so that a page can set panels side by side if
there is room, else below each other. Colours are variables of the page's style sheet, which knows whether
it is dark. The parameter `focus` names the series that stands out; null is none. Layers called `touch` are
for the mouse and the finger alone, those called `names` say what is what.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import altair as alt

from cupel_reports.number_formats import decimals, shown
from cupel_reports.plot_panels import DASHES, REST, Panel, Picture, Row

Spec = dict[str, Any]
Drawn = tuple[Any, int]
"""A chart of Altair's, and its height in pixels."""

WIDE, NARROW = 880, 440
"""The width of a panel, in pixels, that is alone, and of one among others."""
LABELLED = 40
"""So many series, or fewer, are all named at the end of their lines; of more, only those with a colour."""
LEAD = 22
"""From the end of a line to its name, in pixels."""
NAMED = 25
"""So many points, or fewer, are named."""
LINE = 13
"""The height of a name, in pixels."""
CROWD = 30
"""More rows than these are narrower."""
ROOM = 120
"""For the longest name, in pixels; a page that is narrower has less."""
CELL = 34
"""Pixels that a number in a heatmap takes."""

CONFIG: Spec = {
    "aria": False,
    "background": None,
    "font": "Arial, Helvetica, Liberation Sans, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--muted)",
        "titleColor": "var(--muted)",
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titlePadding": 12,
        "labelLimit": 160,
        "labelOverlap": True,
        "gridColor": "var(--line)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "tickSize": 4,
        "labelPadding": 4,
    },
    "text": {"color": "var(--ink)", "fontSize": 11},
    "rule": {"color": "var(--muted)"},
}

STANDING = "focus === null ? (datum.k < 0 ? 0.45 : 1) : datum.s === focus ? 1 : 0.12"
STRONGER = "focus !== null && datum.s === focus ? 3 : datum.k < 0 ? 1.2 : 2"


def specification(picture: Picture, panel: Panel) -> Spec:
    """The panel in Vega-Lite, at its width on a large screen."""
    chart, height = FORMS[picture.plot.form](picture, panel)
    spec: Spec = chart.to_dict()
    return {
        "data": {"name": "rows"},
        "layer": spec["layer"],
        "datasets": spec.get("datasets", {}) | {"rows": rows(picture, panel)},
        "config": CONFIG,
        "params": [{"name": "focus", "value": None}],
        "width": _width(picture),
        "height": height,
        "padding": {"left": 8, "top": 8, "bottom": 2, "right": 16},
        "autosize": {"type": "fit-x", "contains": "padding"},
    }


def rows(picture: Picture, panel: Panel) -> Sequence[Row]:
    """What the panel draws: changes have `end`, where a name stands, heatmaps `t`, the value in digits, and
    points `n`, their names, where there is room for them."""
    found = picture.coloured(panel)
    if picture.plot.form == "heatmap":
        places = min(decimals(picture.table.column(picture.plot.value or picture.plot.y)), 2)
        return [row | {"t": shown(row.get("v"), places)} for row in found]
    if picture.plot.form == "changes":
        return _ended(picture, found)
    if picture.plot.form == "points" and picture.plot.label is not None:
        return _named(picture, found)
    return found


def curve(picture: Picture, panel: Panel) -> Drawn:
    x, layers = _x(picture), []
    if picture.plot.low and picture.plot.high:
        colours = _of_series(picture) | {"opacity": alt.value(1), "fillOpacity": _live(_band(picture))}
        layers.append(_layer().mark_area().encode(x=x, y=_y(picture, "low:Q"), y2="high:Q", **colours))
    y = _y(picture)
    stroke: Spec = {"strokeWidth": _live(STRONGER), "strokeDash": _dash(picture)} if picture.series else {}
    layers.append(_layer().mark_line().encode(x=x, y=y, **_of_series(picture), **stroke))
    layers.append(_layer().mark_point(filled=True, size=32).encode(x=x, y=y, **_of_series(picture)))
    layers.append(_touch(250).encode(x=x, y=y))
    return alt.layer(*_reference(picture), *layers), 220 if picture.plot.facet else 320


def _band(picture: Picture) -> str:
    """How much of a band is seen: of many, that of the series in focus."""
    usual = 0.15 if len(picture.series) <= 5 else 0.05
    return f"focus === null ? {usual} : datum.s === focus ? 0.25 : 0.02" if picture.series else str(usual)


def changes(picture: Picture, panel: Panel) -> Drawn:
    last, step = _last(picture), _step(picture)
    scale = alt.Scale(reverse=True, domain=[0.5, last + 0.5], zero=False, nice=False)
    y = alt.Y("y:Q", scale=scale, title=picture.title("y"), axis=alt.Axis(tickMinStep=1, grid=False))
    x = _x(picture, alt.Scale(type="point", padding=0.1))
    layers = [_layer().mark_line(strokeJoin="round").encode(
        x=x, y=y, strokeWidth=_live(STRONGER), strokeDash=_dash(picture), **_of_series(picture)
    )]  # fmt: skip
    if len(picture.stages) == 1 or len(picture.series) <= LABELLED:
        points = _layer().mark_point(filled=True, size=24, opacity=1)
        layers.append(points.encode(x=x, y=y, **_of_series(picture)))
    layers.extend(_names_at_the_end(picture, x, y))
    layers.append(_touch(min(step, 16) ** 2).encode(x=x, y=y))
    return alt.layer(*layers), round(max(last, 6) * step)


def heatmap(picture: Picture, panel: Panel) -> Drawn:
    order = list(dict.fromkeys(row["y"] for row in picture.rows))
    if set(order) == set(picture.stages):
        order = picture.stages  # so that the diagonal is one
    cell = _width(picture) / max(len(picture.stages), 1)
    x = _x(picture, alt.Scale(type="band", padding=0.04))
    axis = alt.Axis(domain=False, ticks=False, grid=False)
    band = alt.Scale(type="band", padding=0.04)
    y = alt.Y("y:N", sort=order, title=picture.title("y"), axis=axis, scale=band)
    share = _share(picture)
    fill = alt.condition("datum.v < 0", alt.value("var(--c1)"), alt.value("var(--c0)"))
    cells = _layer().mark_rect(stroke="var(--line)", strokeWidth=0.5, cornerRadius=2)
    layers = [cells.encode(x=x, y=y, fill=fill, fillOpacity=_live(f"isValid(datum.v) ? {share} : 0"))]
    if cell >= CELL:
        dark = alt.condition(
            f"isValid(datum.v) && {share} > 0.55", alt.value("var(--paper)"), alt.value("var(--ink)")
        )
        fitting = _live(f"bandwidth('x') < {CELL - 4} ? 0 : 1")
        layers.append(_layer().mark_text().encode(x=x, y=y, text="t:N", color=dark, opacity=fitting))
    return alt.layer(*layers), len(order) * (26 if len(order) <= CROWD else 14)


def bars(picture: Picture, panel: Panel) -> Drawn:
    """Upright where x is a number; else lying, for names take room."""
    upright, number = picture.numeric, len({row["x"] for row in panel.rows})
    way, across = ("y", "x") if upright else ("x", "y")
    places: Spec = {across: _category(picture, upright)}
    if picture.series:
        offset = alt.XOffset if upright else alt.YOffset
        places[f"{across}Offset"] = offset("s:N", sort=picture.series)

    def along(field: str) -> Any:
        return _y(picture, field, alt.Y if upright else alt.X, zero=True, stack=None)

    marks = _layer().mark_bar(cornerRadius=2)
    layers = [marks.encode(**places, **{way: along("y:Q")}, **_of_series(picture))]
    if picture.plot.low and picture.plot.high:
        ends = {way: along("low:Q"), f"{way}2": "high:Q"}
        layers.append(_layer().mark_rule(strokeWidth=1.5, color="var(--ink)").encode(**places, **ends))
    thick = max(18 if number <= CROWD else 12, 10 * len(picture.series) + 6)
    return alt.layer(*layers, *_reference(picture, way)), 280 if upright else max(number * thick, 60)


def points(picture: Picture, panel: Panel) -> Drawn:
    x, y = _x(picture), _y(picture)
    marks = _layer().mark_point(filled=True, size=60, fillOpacity=0.8)
    layers = [marks.encode(x=x, y=y, **_of_series(picture)), _touch(250).encode(x=x, y=y)]
    if picture.plot.label is not None and len(panel.rows) <= NAMED:
        layers.append(_names(7).transform_filter("isValid(datum.n)").encode(x=x, y=y, text="n:N"))
    return alt.layer(*_reference(picture), *layers), _height(picture)


FORMS: dict[str, Callable[[Picture, Panel], Drawn]] = {
    "curve": curve,
    "heatmap": heatmap,
    "changes": changes,
    "bars": bars,
    "points": points,
}


def _names_at_the_end(picture: Picture, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """The names of series, each with a thin line from where its own line ends."""
    leader = _layer().mark_rule(strokeWidth=0.7, x2Offset=LEAD, xOffset=4)
    colours = _of_series(picture)
    ended = "isValid(datum.end)"
    return [
        leader.transform_filter(ended).encode(x=x, x2="x:N", y=y, y2="end:Q", **colours),
        _names(LEAD + 3)
        .transform_filter(ended)
        .encode(
            x=x,
            y=alt.Y("end:Q", scale=y["scale"]),
            text="s:N",
            color=colours["color"],
            opacity=_live("focus === null || datum.s === focus ? 1 : 0.2"),
        ),
    ]


def _ended(picture: Picture, found: list[dict[str, Any]]) -> list[Row]:
    """With where the name stands of each series that is named: where it ends, or as near as there is room."""
    last = picture.stages[-1] if picture.stages else None
    all_named = len(picture.series) <= LABELLED
    ending = [row for row in found if row["x"] == last and (all_named or row["k"] != REST)]
    ending.sort(key=lambda row: (row["y"], row["s"]))
    places = spaced([float(row["y"]) for row in ending], 12 / _step(picture), _last(picture) + 0.5)
    ends = {id(row): place for row, place in zip(ending, places, strict=True)}
    return [row | ({"end": ends[id(row)]} if id(row) in ends else {}) for row in found]


def _named(picture: Picture, found: list[dict[str, Any]]) -> list[Row]:
    """With the name of each point beside which there is room; rarer series have theirs first."""
    places = _places(picture, found)
    often = Counter(row.get("s") for row in found)
    names: dict[int, str] = {}
    for at in sorted(range(len(found)), key=lambda at: often[found[at].get("s")]):
        if not any(_touching(places[at], places[other]) for other in names):
            names[at] = found[at]["l"]
    return [row | ({"n": names[at]} if at in names else {}) for at, row in enumerate(found)]


def _places(picture: Picture, found: Sequence[Row]) -> list[tuple[float, float]]:
    """Where points are, in pixels, about."""
    across = [picture.stages.index(row["x"]) if picture.stepped else float(row["x"]) for row in found]
    up, (low, high) = [float(row["y"]) for row in found], picture.extent
    left, wide = min(across, default=0), (max(across, default=0) - min(across, default=0)) or 1
    scale = (_width(picture) - ROOM) / wide, _height(picture) / ((high - low) or 1)
    return [((x - left) * scale[0], y * scale[1]) for x, y in zip(across, up, strict=True)]


def _touching(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether names beside these places would."""
    return abs(one[0] - other[0]) < ROOM and abs(one[1] - other[1]) < LINE


def _height(picture: Picture) -> int:
    """Of a panel of points, in pixels."""
    return 300 if picture.plot.facet else 420


def spaced(places: Sequence[float], gap: float, most: float) -> list[float]:
    """Rising places, moved so that they are `gap` apart: down, and up again from beyond `most`."""
    found: list[float] = []
    for place in places:
        found.append(max(place, found[-1] + gap) if found else place)
    for back in range(len(found) - 1, -1, -1):
        found[back] = min(found[back], most if back == len(found) - 1 else found[back + 1] - gap)
    return found


def _width(picture: Picture) -> int:
    """Of a panel, in pixels; a heatmap of few columns needs less than there is."""
    room = WIDE if picture.plot.facet is None else NARROW
    return min(room, 2 * ROOM + 4 * CELL * len(picture.stages)) if picture.plot.form == "heatmap" else room


def _last(picture: Picture) -> float:
    return max((float(row["y"]) for row in picture.rows), default=1.0)


def _step(picture: Picture) -> int:
    """Pixels from one rank to the next."""
    return max(5, min(18, round(680 / max(_last(picture), 1))))


def _layer(name: Any = alt.Undefined) -> Any:
    return alt.Chart(alt.NamedData("rows"), name=name)


def _names(dx: int) -> Any:
    return _layer("names").mark_text(align="left", dx=dx, limit=ROOM)


def _touch(size: int) -> Any:
    return _layer("touch").mark_point(filled=True, opacity=0, size=size)


def _live(expression: str) -> Any:
    return alt.value(alt.expr(expression))


def _x(picture: Picture, scale: alt.Scale | None = None) -> alt.X:
    title = picture.title("x")
    if picture.stepped:
        scale = scale or alt.Scale(type="point")
        return alt.X("x:N", sort=picture.stages, title=title, scale=scale, axis=_flat(picture))
    values = sorted({row["x"] for row in picture.rows})
    ticks = len(values) <= 12 and picture.plot.form == "curve"
    axis = (
        alt.Axis(grid=False, values=values, labelExpr="datum.value")
        if ticks
        else alt.Axis(grid=False, tickCount=10)
    )
    scale = alt.Scale(reverse=picture.falling, zero=False, nice=False, padding=14)
    return alt.X("x:Q", title=title, scale=scale, axis=axis)


def _category(picture: Picture, upright: bool) -> Any:
    """Where each bar, or group of bars, stands."""
    if upright:
        return alt.X("x:N", sort=picture.stages, title=picture.title("x"), axis=_flat(picture))
    size = 12 if len(picture.stages) <= CROWD else 10
    axis = alt.Axis(ticks=False, domain=False, grid=False, labelOverlap=False, labelFontSize=size)
    return alt.Y("x:N", sort=picture.stages, title=None, axis=axis)


def _flat(picture: Picture) -> alt.Axis:
    """The axis of categories, whose names are aslant where they would not fit."""
    each = (_width(picture) - ROOM) / max(len(picture.stages), 1)
    fits = max(map(len, picture.stages), default=0) * 7 < each
    return alt.Axis(grid=False, labelAngle=0 if fits else -40, labelOverlap=fits or each < 12)


def _y(picture: Picture, field: str = "y:Q", channel: Any = alt.Y, *, zero: bool = False, **more: Any) -> Any:
    """What is measured, on the scale of all panels."""
    low, high = picture.extent
    if zero:
        low, high = min(low, 0), max(high, 0)
    if low == high:
        low, high = low - 0.1, high + 0.1
    scale = alt.Scale(domain=[low, high], nice=picture.plot.domain is None, zero=False)
    return channel(field, scale=scale, title=picture.title("y"), axis=alt.Axis(tickCount=6), **more)


def _of_series(picture: Picture) -> Spec:
    if not picture.series:
        return {"color": alt.value("var(--c0)")}
    colours = alt.Color("k:N", legend=None, scale=alt.Scale(
        domain=[REST, *range(len(picture.keys))],
        range=["var(--rest)", *(f"var(--c{key.colour})" for key in picture.keys)],
    ))  # fmt: skip
    found = alt.condition("datum.k < 0 && datum.s === focus", alt.value("var(--ink)"), colours)
    return {"color": found, "opacity": _live(STANDING), "detail": "s:N"}


def _dash(picture: Picture) -> alt.StrokeDash:
    dashes = ([1, 0], [6, 3])[:DASHES]
    scale = alt.Scale(
        domain=[REST, *range(len(picture.keys))],
        range=[dashes[0], *(dashes[key.dash] for key in picture.keys)],
    )
    return alt.StrokeDash("k:N", scale=scale, legend=None)


def _share(picture: Picture) -> str:
    """How much of a cell's colour is seen, by its value: the whole at the ends of the scale."""
    low, high = picture.extent
    if low < 0:
        return f"(0.06 + 0.94 * abs(datum.v) / {max(-low, high)})"
    return f"(0.06 + 0.94 * (datum.v - {low}) / {high - low or 1.0})"


def _reference(picture: Picture, way: str = "y") -> list[alt.Chart]:
    if picture.plot.reference is None:
        return []
    line = alt.Chart(alt.InlineData([{}])).mark_rule(strokeDash=[4, 4])  # once, not once a row
    return [line.encode(**{way: alt.datum(picture.plot.reference)})]
