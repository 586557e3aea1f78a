"""Vega-Lite specifications for each form of plot (curve, heatmap, ...).

They are made with Altair.

Every panel is a separate specification with one view, so that a page can place panels side by side or below
each other. Colours are variables of the style sheet of the page, which has a light and a dark scheme. The
parameter `focus` names the highlighted series, or is null. Layers named `touch` only react to the pointer;
layers named `names` hold labels.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import altair as alt

from cupel_reports.number_formats import decimals, shown
from cupel_reports.plot_panels import DASHES, REST, Panel, Picture, Row
from cupel_reports.rank_diagrams import rank_diagram

Spec = dict[str, Any]
Chart = tuple[Any, int]
"""An Altair chart, and its height in pixels."""

WIDE, NARROW = 880, 440
"""The width of a single panel, and of one of several panels, in pixels."""
LABELLED = 40
"""Up to this number of series, all lines have labels; beyond it, only those with a colour."""
LEAD = 22
"""The distance from the end of a line to its label, in pixels."""
NAMED = 25
"""Up to this number, points have labels."""
LETTER = 7
"""The width of a letter of a label, in pixels, at most."""
AXIS = 60
"""The space for the axis of values, in pixels."""
LINE = 13
"""The height of a label, in pixels."""
CROWD = 30
"""Plots with more than this number of rows have narrower rows."""
ROOM = 120
"""The space for the longest label on a large screen, in pixels."""
CELL = 34
"""The space for a number in a heat map, in pixels."""
LONGEST_LABEL = 26
"""The number of characters of a category that an axis shows."""
MARGIN = 130
"""The space for the row labels of a heat map on a narrow screen, in pixels."""

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
    """Return the Vega-Lite specification of a panel, at its width on a large screen."""
    chart, height = FORMS[picture.plot.form](picture, panel)
    spec: Spec = chart.to_dict()
    return {
        "data": {"name": "rows"},
        "layer": spec["layer"],
        "datasets": spec.get("datasets", {}) | {"rows": rows(picture, panel)},
        "config": CONFIG,
        "params": [{"name": "focus", "value": None}],
        "width": _width(picture),
        "usermeta": {"least": _least_width(picture)},
        "height": height,
        "padding": {"left": _left_padding(picture), "top": 8, "bottom": 2, "right": 16},
        "autosize": {"type": "fit-x", "contains": "padding"},
    }


def rows(picture: Picture, panel: Panel) -> Sequence[Row]:
    """Return the data of a panel.

    Depending on the form of the plot, rows have an additional key. In `changes`, it is `end`, the position of
    the label. In `heatmap`, it is `t`, the value as text. In `points`, it is `n`, the label, if there is
    room.
    """
    data = picture.coloured(panel)
    if picture.plot.form == "heatmap":
        places = min(decimals(picture.table.column(picture.plot.value or picture.plot.y)), 2)
        return [row | {"t": shown(row.get("v"), places)} for row in data]
    if picture.plot.form == "changes":
        return _with_ends(picture, data)
    if picture.plot.form == "points" and picture.plot.label is not None:
        return _with_labels(picture, data)
    return data


def curve(picture: Picture, panel: Panel) -> Chart:
    x, layers = _x(picture), []
    if picture.plot.low and picture.plot.high:
        colours = _of_series(picture) | {"opacity": alt.value(1), "fillOpacity": _live(_band(picture))}
        layers.append(_layer().mark_area().encode(x=x, y=_y(picture, "low:Q"), y2="high:Q", **colours))
    y = _y(picture)
    stroke: Spec = {"strokeWidth": _live(STRONGER), "strokeDash": _dash(picture)} if picture.series else {}
    layers.append(_layer().mark_line().encode(x=x, y=y, **_of_series(picture), **stroke))
    places = y if picture.plot.observed is None else _y(picture, "o:Q")
    layers.append(_layer().mark_point(filled=True, size=32).encode(x=x, y=places, **_of_series(picture)))
    layers.append(_touch(250).encode(x=x, y=y))
    return alt.layer(*_reference(picture), *layers), 220 if picture.plot.facet else 320


def _band(picture: Picture) -> str:
    """Return an expression for the opacity of bands.

    It highlights the band of the focused series.
    """
    usual = 0.15 if len(picture.series) <= 5 else 0.05
    return f"focus === null ? {usual} : datum.s === focus ? 0.25 : 0.02" if picture.series else str(usual)


def changes(picture: Picture, panel: Panel) -> Chart:
    last, step = _last(picture), _step(picture)
    scale = alt.Scale(reverse=True, domain=[0.5, last + 0.5], zero=False, nice=False)
    y = alt.Y("y:Q", scale=scale, title=picture.title("y"), axis=alt.Axis(tickMinStep=1, grid=False))
    x = _x(picture, alt.Scale(type="point", padding=0.1))
    layers = [_layer().mark_line(strokeJoin="round").encode(
        x=x, y=y, strokeWidth=_live(STRONGER), strokeDash=_dash(picture), **_of_series(picture)
    )]  # fmt: skip
    if len(picture.categories) == 1 or len(picture.series) <= LABELLED:
        points = _layer().mark_point(filled=True, size=24, opacity=1)
        layers.append(points.encode(x=x, y=y, **_of_series(picture)))
    layers.extend(_end_labels(picture, x, y))
    layers.append(_touch(min(step, 16) ** 2).encode(x=x, y=y))
    return alt.layer(*layers), round(max(last, 6) * step)


def heatmap(picture: Picture, panel: Panel) -> Chart:
    order = list(dict.fromkeys(row["y"] for row in picture.rows))
    if set(order) == set(picture.categories):
        order = picture.categories  # the same order on both axes keeps the diagonal straight
    cell = _width(picture) / max(len(picture.categories), 1)
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


def bars(picture: Picture, panel: Panel) -> Chart:
    """Draw vertical bars if x is numeric, else horizontal ones.

    Horizontal bars leave room for labels.
    """
    upright, number = picture.is_numeric, len({row["x"] for row in panel.rows})
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


def points(picture: Picture, panel: Panel) -> Chart:
    x, y = _x(picture), _y(picture)
    marks = _layer().mark_point(filled=True, size=60, fillOpacity=0.8)
    layers = [marks.encode(x=x, y=y, **_of_series(picture)), _touch(250).encode(x=x, y=y)]
    if picture.plot.label is not None and len(panel.rows) <= NAMED:
        layers.append(_names(7).transform_filter("isValid(datum.n)").encode(x=x, y=y, text="n:N"))
    return alt.layer(*_reference(picture), *layers), _height(picture)


def boxes(picture: Picture, panel: Panel) -> Chart:
    """Draw horizontal boxes with whiskers to 1.5 interquartile ranges.

    Horizontal boxes leave room for labels.
    """
    number = len({row["x"] for row in panel.rows})
    place, along = _category(picture, upright=False), _y(picture, channel=alt.X)
    marks = _layer().mark_boxplot(
        extent=1.5, size=12, median={"color": "var(--paper)"}, outliers={"size": 16}
    )
    return alt.layer(
        marks.encode(y=place, x=along, color=alt.value("var(--c0)")), *_reference(picture, "x")
    ), max(number * 24, 60)


FORMS: dict[str, Callable[[Picture, Panel], Chart]] = {
    "curve": curve,
    "heatmap": heatmap,
    "changes": changes,
    "bars": bars,
    "points": points,
    "boxes": boxes,
    "critical_difference": rank_diagram,
}


def _end_labels(picture: Picture, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Return layers with the labels of the series.

    The labels are connected to the ends of the lines of the series.
    """
    leader = _layer().mark_rule(strokeWidth=0.7, x2Offset=LEAD, xOffset=4)
    colours = _of_series(picture)
    has_label = "isValid(datum.end)"
    return [
        leader.transform_filter(has_label).encode(x=x, x2="x:N", y=y, y2="end:Q", **colours),
        _names(LEAD + 3)
        .transform_filter(has_label)
        .encode(
            x=x,
            y=alt.Y("end:Q", scale=y["scale"]),
            text="s:N",
            color=colours["color"],
            opacity=_live("focus === null || datum.s === focus ? 1 : 0.2"),
        ),
    ]


def _with_ends(picture: Picture, data: list[dict[str, Any]]) -> list[Row]:
    """Return the rows with the positions of labels.

    Labels that would overlap are moved apart.
    """
    last = picture.categories[-1] if picture.categories else None
    label_all = len(picture.series) <= LABELLED
    ending = [row for row in data if row["x"] == last and (label_all or row["k"] != REST)]
    ending.sort(key=lambda row: (row["y"], row["s"]))
    places = spaced([float(row["y"]) for row in ending], 12 / _step(picture), _last(picture) + 0.5)
    ends = {id(row): place for row, place in zip(ending, places, strict=True)}
    return [row | ({"end": ends[id(row)]} if id(row) in ends else {}) for row in data]


def _with_labels(picture: Picture, data: list[dict[str, Any]]) -> list[Row]:
    """Return the rows with labels that overlap no other label and no other point.

    Smaller series are labelled first.
    """
    places = _places(picture, data)
    sizes = Counter(row.get("s") for row in data)
    widths = {at: min(ROOM, LETTER * len(row["l"])) for at, row in enumerate(data)}
    names: dict[int, str] = {}
    for at in sorted(widths, key=lambda at: sizes[data[at].get("s")]):
        hides_point = any(_covers(places[at], widths[at], place) for place in places)
        if not hides_point and not any(
            _labels_overlap(places[at], widths[at], places[other], widths[other]) for other in names
        ):
            names[at] = data[at]["l"]
    return [row | ({"n": names[at]} if at in names else {}) for at, row in enumerate(data)]


def _places(picture: Picture, data: Sequence[Row]) -> list[tuple[float, float]]:
    """Return the approximate positions of points, in pixels."""
    across = [
        picture.categories.index(row["x"]) if picture.is_categorical else float(row["x"]) for row in data
    ]
    up, (low, high) = [float(row["y"]) for row in data], picture.extent
    left, wide = min(across, default=0), (max(across, default=0) - min(across, default=0)) or 1
    scale = (_width(picture) - ROOM - AXIS) / wide, _height(picture) / ((high - low) or 1)
    return [((x - left) * scale[0], y * scale[1]) for x, y in zip(across, up, strict=True)]


def _covers(start: tuple[float, float], width: float, point: tuple[float, float]) -> bool:
    """Return whether the label right of `start` would cover another point."""
    return 0 < point[0] - start[0] < width + LINE and abs(start[1] - point[1]) < LINE


def _labels_overlap(
    first: tuple[float, float], width: float, second: tuple[float, float], other_width: float
) -> bool:
    """Return whether the labels right of two points would overlap."""
    is_beside = -other_width < second[0] - first[0] < width
    return is_beside and abs(first[1] - second[1]) < LINE


def _height(picture: Picture) -> int:
    """Return the height of a panel of points, in pixels."""
    return 300 if picture.plot.facet else 420


def spaced(places: Sequence[float], gap: float, limit: float) -> list[float]:
    """Move ascending positions at least `gap` apart, and none beyond `limit`."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + gap) if moved else place)
    for back in range(len(moved) - 1, -1, -1):
        moved[back] = min(moved[back], limit if back == len(moved) - 1 else moved[back + 1] - gap)
    return moved


def _width(picture: Picture) -> int:
    """Return the width of a panel, in pixels; heat maps with few columns are narrower."""
    is_wide = picture.plot.facet is None or picture.plot.form == "critical_difference"
    room = WIDE if is_wide else NARROW
    return (
        min(room, 2 * ROOM + 4 * CELL * len(picture.categories)) if picture.plot.form == "heatmap" else room
    )


def _least_width(picture: Picture) -> int:
    """Return the width below which a panel scrolls, in pixels.

    The numbers of a heat map need their space.
    """
    if picture.plot.form != "heatmap" or _width(picture) < CELL * len(picture.categories):
        return 0
    return MARGIN + CELL * len(picture.categories)


def _left_padding(picture: Picture) -> int:
    """Return the space left of the labels, in pixels.

    It grows with the longest category, because the font of a reader can be wider than the font that the
    layout is computed with. Labels have at most about LONGEST_LABEL characters.
    """
    names = list(picture.categories) if picture.is_categorical else []
    if picture.plot.form == "heatmap":
        names = [row["y"] for row in picture.rows]
    return 8 + min(max(map(len, names), default=0), LONGEST_LABEL)


def _last(picture: Picture) -> float:
    return max((float(row["y"]) for row in picture.rows), default=1.0)


def _step(picture: Picture) -> int:
    """Return the distance between two ranks, in pixels."""
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
    if picture.is_categorical:
        scale = scale or alt.Scale(type="point")
        return alt.X("x:N", sort=picture.categories, title=title, scale=scale, axis=_flat(picture))
    values = sorted({row["x"] for row in picture.rows})
    ticks = len(values) <= 12 and picture.plot.form == "curve"
    axis = (
        alt.Axis(grid=False, values=values, labelExpr="datum.value")
        if ticks
        else alt.Axis(grid=False, tickCount=10)
    )
    scale = alt.Scale(reverse=picture.is_falling, zero=False, nice=False, padding=14)
    return alt.X("x:Q", title=title, scale=scale, axis=axis)


def _category(picture: Picture, upright: bool) -> Any:
    """Return the axis of the bars or groups of bars."""
    if upright:
        return alt.X("x:N", sort=picture.categories, title=picture.title("x"), axis=_flat(picture))
    size = 12 if len(picture.categories) <= CROWD else 10
    axis = alt.Axis(ticks=False, domain=False, grid=False, labelOverlap=False, labelFontSize=size)
    return alt.Y("x:N", sort=picture.categories, title=None, axis=axis)


def _flat(picture: Picture) -> alt.Axis:
    """Return the axis of categories.

    Its labels are slanted where horizontal ones would overlap.
    """
    width = (_width(picture) - ROOM) / max(len(picture.categories), 1)
    fits = max(map(len, picture.categories), default=0) * 7 < width
    return alt.Axis(grid=False, labelAngle=0 if fits else -40, labelOverlap=fits or width < 12)


def _y(picture: Picture, field: str = "y:Q", channel: Any = alt.Y, *, zero: bool = False, **more: Any) -> Any:
    """Return the channel of the values, on the scale that all panels share."""
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
    colour = alt.condition("datum.k < 0 && datum.s === focus", alt.value("var(--ink)"), colours)
    return {"color": colour, "opacity": _live(STANDING), "detail": "s:N"}


def _dash(picture: Picture) -> alt.StrokeDash:
    dashes = ([1, 0], [6, 3])[:DASHES]
    scale = alt.Scale(
        domain=[REST, *range(len(picture.keys))],
        range=[dashes[0], *(dashes[key.dash] for key in picture.keys)],
    )
    return alt.StrokeDash("k:N", scale=scale, legend=None)


def _share(picture: Picture) -> str:
    """Return an expression for the opacity of a cell.

    The opacity is 1 for the most extreme value of the scale.
    """
    low, high = picture.extent
    if (blank := picture.plot.blank) is not None:
        farthest = max(abs(low - blank), abs(high - blank)) or 1.0
        return f"(datum.v === {blank} ? 0 : 0.3 + 0.7 * abs(datum.v - {blank}) / {farthest})"
    if low < 0:
        return f"(0.06 + 0.94 * abs(datum.v) / {max(-low, high)})"
    return f"(0.06 + 0.94 * (datum.v - {low}) / {high - low or 1.0})"


def _reference(picture: Picture, way: str = "y") -> list[alt.Chart]:
    """Return a dashed line at the reference, with its label at the end."""
    if picture.plot.reference is None:
        return []
    # The rule has its own data; with the data of the panel it would be drawn once for every row.
    one = alt.Chart(alt.InlineData([{}]))
    at = {way: alt.datum(picture.plot.reference)}
    line = one.mark_rule(strokeDash=[4, 4]).encode(**at)
    upright: Spec = {"x": _live("width"), **at}
    distance = -6 if way == "x" or not _ends_above_reference(picture) else 14
    end: Spec = {"align": "right", "dx": -4} if way == "y" else {"align": "left", "dx": 4}
    end["dy"] = distance
    label = one.mark_text(color="var(--muted)", text=picture.reference_label, **end)
    return [line, label.encode(**(upright if way == "y" else {"y": alt.value(0), **at}))]


def _ends_above_reference(picture: Picture) -> bool:
    """Return whether all curves end above the reference, where its label usually is."""
    reference = picture.plot.reference
    if reference is None or picture.plot.form != "curve" or not picture.rows:
        return False
    last = picture.rows[-1]["x"]
    ends = [row["y"] for row in picture.rows if row["x"] == last and row["y"] is not None]
    return bool(ends) and min(ends) > reference
