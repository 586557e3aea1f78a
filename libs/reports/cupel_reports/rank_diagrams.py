"""Critical-difference diagrams of mean ranks (Demšar, JMLR 2006, section 3.2.2)."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from cupel_reports.plot_panels import Panel, Picture, Row

STEP, NARROW_STEP = 17, 13
"""The height of a row, in pixels, for up to MOST_ROWS runs and for more."""
MOST_ROWS = 30
LEVEL = 7
"""The distance between two bars, in pixels."""
NUMBERS = 44
"""The space for mean ranks between the names and the lines, in pixels."""
LONGEST = 22
"""Names with more characters are shortened in the middle, unless two names would then look alike."""
WIDEST = 200
"""The space for the longest name, in pixels."""
GAP = 0.015
"""The smallest distance between two bars on the same level, as a part of the axis."""


def rank_diagram(picture: Picture, panel: Panel) -> tuple[Any, int]:
    """Return the chart of a panel, and the height of its rows in pixels.

    The axis is above the rows. Each row has a name, a mean rank, and a line that leads to the mean rank on
    the axis. The bars, which join the runs of a group, lie between the axis and the rows, at negative y (y is
    0 at the top of the rows and grows downwards). The critical difference lies above the axis.
    """
    rows = sorted(panel.rows, key=lambda row: float(row["x"]))
    most = axis_end(rows)
    bars = group_bars(rows, GAP * (most - 1))
    top = -(14 + LEVEL * max((bar["level"] + 1 for bar in bars), default=0))
    x = _ranks(picture, most, -top)
    layers = [*_lines(x, _names(rows), top), *_bars(x, bars, top), *_length(x, rows, top - 58)]
    return alt.layer(*layers), len(rows) * (STEP if len(rows) <= MOST_ROWS else NARROW_STEP)


def group_bars(rows: Sequence[Row], gap: float) -> list[dict[str, Any]]:
    """Return a bar for each group of at least two rows.

    A bar extends from the best to the worst mean rank of the group.

    rows: by ascending mean rank `x`; `g` has the letters of their groups, separated by spaces. Bars on the
    same level are more than `gap` apart; level 0 is the uppermost.
    """
    ranks_by_group: dict[str, list[float]] = {}
    for row in rows:
        for group in str(row["g"]).split():
            ranks_by_group.setdefault(group, []).append(float(row["x"]))
    bars: list[dict[str, Any]] = []
    ends: list[float] = []
    for ranks in sorted(ranks for ranks in ranks_by_group.values() if len(ranks) > 1):
        level = next((level for level, end in enumerate(ends) if end + gap < ranks[0]), len(ends))
        ends[level : level + 1] = [ranks[-1]]
        bars.append({"from": ranks[0], "to": ranks[-1], "level": level})
    return bars


def axis_end(rows: Sequence[Row]) -> float:
    """Return the right end of the axis.

    It is the number of rows, or more if the critical difference needs it.
    """
    return max([2.0, float(len(rows)), *(1 + float(row["d"]) for row in rows if row.get("d") is not None)])


def _ranks(picture: Picture, most: float, offset: int) -> alt.X:
    """Return the axis of mean ranks, `offset` pixels above the rows; it begins with 1."""
    step = next(step for step in (1, 5, 10, 20, 50, 100, 1000) if most / step <= 12 or step == 1000)
    ticks = [1, *range(2 if step == 1 else step, int(most) + 1, step)]
    axis = alt.Axis(
        orient="top",
        offset=offset,
        values=ticks,
        grid=False,
        format="d",
        labelSeparation=8,
        domainColor="var(--muted)",
    )
    scale = alt.Scale(domain=[1, most], nice=False, zero=False)
    return alt.X("x:Q", scale=scale, title=f"{picture.title('x')} (1 is best)", axis=axis)


def _names(rows: Sequence[Row]) -> alt.Y:
    axis = alt.Axis(
        ticks=False, domain=False, grid=False, labelOverlap=False, labelPadding=NUMBERS, labelLimit=WIDEST,
        labelFontSize=11, labelColor="var(--ink)", labelExpr=_short_label([str(row["y"]) for row in rows]),
    )  # fmt: skip
    order = [row["y"] for row in rows]
    return alt.Y("y:N", sort=order, title=None, axis=axis, scale=alt.Scale(type="point", padding=0.5))


def _short_label(names: Sequence[str]) -> str:
    """Return an expression for a name, shortened in the middle if it is long.

    A shortened name has LONGEST characters or a few more.

    Different names have different shortened names.
    """
    longest = max(LONGEST, *map(len, names)) if names else LONGEST
    for most in range(LONGEST, longest + 1):
        head, tail = most // 2, most - most // 2 - 1
        shortened = {name if len(name) <= most else f"{name[:head]}…{name[-tail:]}" for name in names}
        if len(shortened) == len(set(names)):
            break
    middle = f"slice(datum.label, 0, {head}) + '…' + slice(datum.label, {-tail})"
    return f"length(datum.label) > {most} ? {middle} : datum.label"


def _lines(x: alt.X, y: alt.Y, top: int) -> list[Any]:
    """Return the mean ranks as numbers, and the lines from there to the axis."""
    drawn = alt.Chart(alt.NamedData("rows"))
    line = drawn.mark_rule(strokeWidth=1, opacity=0.5)
    numbers = drawn.mark_text(align="right", dx=-6, color="var(--muted)")
    return [
        line.encode(x=x, x2=alt.value(0), y=y),
        line.encode(x=x, y=y, y2=alt.value(top)),
        drawn.mark_point(filled=True, size=26, opacity=1).encode(x=x, y=y, color=alt.value("var(--c0)")),
        numbers.encode(x=alt.value(0), y=y, text=alt.Text("x:Q", format=".2f")),
    ]


def _bars(x: alt.X, bars: Sequence[Row], top: int) -> list[Any]:
    """Return the bars that join groups, below the axis."""
    return [
        alt.Chart(alt.InlineData([bar]))
        .mark_rule(strokeWidth=4, strokeCap="round", color="var(--c0)")
        .encode(x=_on(x, "from"), x2="to:Q", y=alt.value(top + 10 + LEVEL * bar["level"]))
        for bar in bars
    ]


def _length(x: alt.X, rows: Sequence[Row], height: int) -> list[Any]:
    """Return the critical difference as a line with ends and a label.

    The list is empty if there is no critical difference.
    """
    difference = rows[0].get("d") if rows else None
    if difference is None:
        return []
    ends = [{"from": 1, "to": 1 + difference}]
    length = alt.Chart(alt.InlineData(ends)).mark_rule(strokeWidth=2, color="var(--ink)")
    label = alt.Chart(alt.InlineData([{}])).mark_text(align="left", baseline="bottom", fontSize=12)
    low, high = alt.value(height - 4), alt.value(height + 4)
    return [
        length.encode(x=_on(x, "from"), x2="to:Q", y=alt.value(height)),
        *(length.encode(x=_on(x, end), y=low, y2=high) for end in ("from", "to")),
        label.encode(
            x=alt.value(0), y=alt.value(height - 8), text=alt.value(f"critical difference {difference:.2f}")
        ),
    ]


def _on(x: alt.X, field: str) -> alt.X:
    """Return the channel of another field on the axis of mean ranks."""
    return alt.X(f"{field}:Q", scale=x["scale"], title=x["title"], axis=x["axis"])
