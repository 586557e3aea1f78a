"""Tests of the plots of the page of a result."""

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from cupel_audits.report import AuditReport
from cupel_reports import page
from support.data.sample_pages import plot, report_of, result, table


def drawn_rows(report: AuditReport) -> list[list[dict[str, Any]]]:
    text = page(result(report))
    specs = re.findall(r'<script type="application/json" class="spec">(.*?)</script>', text, re.S)
    return [json.loads(spec)["datasets"]["rows"] for spec in specs]


def test_series_with_largest_changes_are_coloured() -> None:
    ranks = [(f"run {i}", stage, i + 1) for i in range(30) for stage in "ab"]
    ranks[-1] = ("run 29", "b", 1)
    ranks[1] = ("run 0", "b", 30)
    (rows,) = drawn_rows(report_of(
        table("t", "run stage rank", ranks), plots=[plot("changes", "t", "stage", "rank", series="run")]
    ))  # fmt: skip
    coloured = {row["s"]: row["k"] for row in rows if row["k"] >= 0}
    assert coloured["run 0"] == 0
    assert coloured["run 29"] == 1
    assert len(coloured) == 7


def test_end_labels_do_not_overlap() -> None:
    ranks = [(f"run {i}", stage, rank) for i in range(12) for stage, rank in (("a", i + 1), ("b", 12))]
    (rows,) = drawn_rows(report_of(
        table("t", "run stage rank", ranks), plots=[plot("changes", "t", "stage", "rank", series="run")]
    ))  # fmt: skip
    ends = sorted(row["end"] for row in rows if "end" in row)
    assert len(ends) == 12
    least = min(below - above for above, below in pairwise(ends))
    assert least == pytest.approx(12 / 18)  # height of a line of text, and distance between ranks, in pixels
    assert ends[-1] <= 12.5


def test_plot_with_many_panels_reports_omitted_panels() -> None:
    points = [(step, 0.5, f"topic {i}") for i in range(30) for step in (1, 2)]
    text = page(result(report_of(
        table("t", "step tau topic", points), plots=[plot("curve", "t", "step", "tau", facet="topic")]
    )))  # fmt: skip
    assert "24 of 30 panels are drawn; the table has the values of all." in text


def first_svg(report: AuditReport) -> str:
    """Return the first picture of the page of a report."""
    (first, *_) = re.findall(r"<svg .*?</svg>", page(result(report)), re.S)
    return str(first)


def test_reference_is_drawn_once() -> None:
    points = table("t", "step tau", [(step, 0.5) for step in range(20)])
    picture = first_svg(report_of(points, plots=[plot("curve", "t", "step", "tau", reference=0.9)]))
    assert picture.count('stroke-dasharray="4,4"') == 1


def test_curve_has_a_gap_at_undefined_values() -> None:
    points = table("t", "step tau", [(1, 0.1), (2, 0.2), (3, None), (4, 0.4), (5, 0.5)])
    picture = first_svg(report_of(points, plots=[plot("curve", "t", "step", "tau")]))
    (line,) = re.findall(r'd="(M[^"]*L[^"Z]*M[^"]*L[^"Z]*)"', picture)
    assert line.count("M") == 2


def test_few_steps_of_a_curve_are_axis_labels() -> None:
    points = table("t", "level tau", [(level, 0.5) for level in (90, 30, 5, 0.001)])
    picture = first_svg(report_of(points, plots=[plot("curve", "t", "level", "tau")]))
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert {"90", "30", "5"} <= set(labels)
    points = table("t", "level tau", [(level, 0.5) for level in (0.001, 0.2)])
    picture = first_svg(report_of(points, plots=[plot("curve", "t", "level", "tau")]))
    assert {"0.001", "0.2"} <= set(re.findall(r"<text[^>]*>([^<]*)</text>", picture))


def test_axis_of_points_ascends() -> None:
    places = table("t", "one two", [(0.9, 0.1), (0.5, 0.5), (0.1, 0.9)])
    picture = first_svg(report_of(places, plots=[plot("points", "t", "one", "two")]))
    labels = re.findall(r"<text [^>]*translate\(([\d.]+),[^>]*>([^<]*)</text>", picture)
    below = labels[: [text for _, text in labels].index("the one")]
    assert len(below) > 4
    assert sorted(below, key=lambda point: float(point[0])) == sorted(
        below, key=lambda point: float(point[1])
    )


def test_overlapping_labels_of_points_are_left_out() -> None:
    rows = [("far", 0.0, 0.9, False), ("front", 0.5, 0.5, True), ("near", 0.5, 0.501, False)]
    places = table("t", "run one two best", rows)
    shown = plot("points", "t", "one", "two", series="best", label="run")
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", first_svg(report_of(places, plots=[shown])))
    assert {"far", "front"} <= set(labels)
    assert "near" not in labels


def test_heatmap_has_the_same_order_on_both_axes() -> None:
    pairs = table("t", "one two tau", [("a", "b", 0.1), ("b", "a", 0.1), ("a", "c", 0.2), ("c", "a", 0.2)])
    picture = first_svg(report_of(pairs, plots=[plot("heatmap", "t", "one", "two", value="tau")]))
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert [label for label in labels if label in "abc"] == ["a", "b", "c", "a", "b", "c"]


def test_box_plot_has_a_box_for_each_category_and_shows_outliers() -> None:
    """Of 1 to 9 and 30, the quartiles are 3.25 and 7.75, so only 30 lies outside the whiskers."""
    values = [("wide", float(value)) for value in [*range(1, 10), 30]] + [("one", 5.0)]
    picture = first_svg(
        report_of(table("t", "group value", values), plots=[plot("boxes", "t", "group", "value")])
    )
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert [label for label in labels if label in ("wide", "one")] == ["wide", "one"]
    assert len(re.findall(r"M2,0A2,2", picture)) == 1
    whole, *boxes = (float(width) for width in re.findall(r'd="M[\d.]+,[\d.]+h([\d.]+)v', picture))
    assert any(width == pytest.approx(4.5 / 30 * whole, rel=1e-3) for width in boxes)


def diagram(names: Sequence[str], *rows: tuple[float, str], difference: float | None) -> AuditReport:
    """Return a report with the critical-difference diagram of these mean ranks and letters of groups."""
    cells = [(name, *row, difference) for name, row in zip(names, rows, strict=True)]
    form = plot("critical_difference", "t", "rank", "run", groups="letters", difference="width")
    return report_of(table("t", "run rank letters width", cells), plots=[form])


def horizontal_lines(picture: str, width: int) -> list[tuple[float, float, float]]:
    """Return the left end, the height and the length of the horizontal lines of this stroke width."""
    lines = re.findall(r"<line [^>]*>", picture)
    drawn = []
    for line in lines:
        length = float((re.search(r' x2="([-\d.]+)"', line) or ["", "0"])[1])
        if f'stroke-width="{width}"' in line and length:
            left, height = map(float, re.findall(r"[-\d.]+", line.partition("translate")[2])[:2])
            drawn.append((left + min(length, 0), height, abs(length)))
    return drawn


FIVE = ((1.0, "a"), (2.0, "a b"), (2.5, "b"), (4.5, "c"), (5.0, "c"))
"""Mean ranks of 5 runs, and the groups of runs that differ by at most 1.2: 1 and 2, 2 and 3, 4 and 5."""


def test_diagram_joins_groups_by_bars_on_the_scale_of_the_critical_difference() -> None:
    """The bars have lengths 1, 0.5 and 0.5. The second touches the first, so it is on another level."""
    picture = first_svg(diagram("abcde", *FIVE, difference=1.2))
    bars, (ruler,) = horizontal_lines(picture, 4), horizontal_lines(picture, 2)
    unit = bars[0][2]
    assert [bar[2] / unit for bar in bars] == pytest.approx([1, 0.5, 0.5], rel=1e-3)
    assert [(bar[0] - ruler[0]) / unit for bar in bars] == pytest.approx([0, 1, 3.5], rel=1e-3)
    assert bars[0][1] == bars[2][1] < bars[1][1]
    assert ruler[2] / unit == pytest.approx(1.2, rel=1e-3)
    assert ruler[1] < bars[0][1]


def test_diagram_has_names_with_mean_ranks_from_the_best_and_an_axis_from_1() -> None:
    picture = first_svg(diagram("edcba", *FIVE[::-1], difference=1.2))
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert [label for label in labels if label in "abcde"] == ["a", "b", "c", "d", "e"]
    assert [label for label in labels if re.fullmatch(r"\d\.\d\d", label)] == [
        "5.00", "4.50", "2.50", "2.00", "1.00",
    ]  # fmt: skip
    assert [label for label in labels if label.isdigit()] == ["1", "2", "3", "4", "5"]
    assert "critical difference 1.20" in labels
    assert "the rank (1 is best)" in labels


def test_diagram_without_critical_difference_has_bars_only() -> None:
    picture = first_svg(diagram("abcde", *FIVE, difference=None))
    assert "critical difference" not in picture
    assert len(horizontal_lines(picture, 4)) == 3
    assert not horizontal_lines(picture, 2)


def test_diagram_has_no_bar_for_a_group_of_one_run() -> None:
    picture = first_svg(diagram("abc", (1.0, "a"), (2.0, "b"), (3.0, "b"), difference=None))
    assert picture.count('stroke-width="4"') == 1
    apart = first_svg(diagram("abc", (1.0, "a"), (2.0, "b"), (3.0, "c"), difference=None))
    assert apart.count('stroke-width="4"') == 0


def test_axis_of_diagram_is_as_long_as_the_critical_difference() -> None:
    picture = first_svg(diagram("ab", (1.25, "a"), (1.75, "a"), difference=3.0))
    (bar,), (ruler,) = horizontal_lines(picture, 4), horizontal_lines(picture, 2)
    assert ruler[2] / bar[2] == pytest.approx(6, rel=1e-3)
    assert ruler[0] + ruler[2] < 880


def test_names_in_diagram_are_shortened_in_the_middle_but_stay_different() -> None:
    names = [f"{'x' * 20}{place}{'y' * 20}" for place in "12"]
    pair = ((1.25, "a"), (1.75, "a"))
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", first_svg(diagram(names, *pair, difference=1.0)))
    assert len({label for label in labels if label.startswith("xxx")}) == 2
    names = [f"one{'-' * 40}", f"two{'-' * 40}"]
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", first_svg(diagram(names, *pair, difference=1.0)))
    assert "one--------…----------" in labels


def test_axis_labels_of_many_steps_do_not_overlap() -> None:
    points = table("t", "share tau", [(step / 34, 0.5) for step in range(2, 20)])
    picture = first_svg(report_of(points, plots=[plot("curve", "t", "share", "tau")]))
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert 4 <= labels.index("the share") <= 12


def test_reference_has_a_label() -> None:
    points = table("t", "step tau", [(step, 0.5) for step in range(3)])
    named = plot("curve", "t", "step", "tau", reference=0.9, reference_label="tau 0.9: similar")
    assert ">tau 0.9: similar</text>" in first_svg(report_of(points, plots=[named]))
    unnamed = plot("curve", "t", "step", "tau", reference=0.9)
    assert ">the tau 0.9</text>" in first_svg(report_of(points, plots=[unnamed]))


def test_curve_can_draw_a_fit_and_observed_points() -> None:
    rows = [(1, 0.5, 0.4), (2, 0.3, 0.35), (3, 0.2, None)]
    fitted = plot("curve", "t", "step", "fit", observed="rate")
    report = report_of(table("t", "step fit rate", rows), plots=[fitted])
    [drawn] = drawn_rows(report)
    assert [(row["y"], row.get("o")) for row in drawn] == [(0.5, 0.4), (0.3, 0.35), (0.2, None)]
    assert first_svg(report).count("<path") >= 3


def test_blank_value_of_a_heatmap_has_no_colour() -> None:
    rows = [("D1", "a", 0.0), ("D2", "a", 0.5), ("D3", "a", 100.0)]
    drawn = plot("heatmap", "t", "check", "measure", value="percent", domain=(0.0, 100.0), blank=0.0)
    picture = first_svg(report_of(table("t", "check measure percent", rows), plots=[drawn]))
    opacities = [float(value) for value in re.findall(r'fill-opacity="([\d.]+)"', picture)]
    assert sorted(opacities)[-2:] == pytest.approx([0.3035, 1])
    assert 0 in opacities
