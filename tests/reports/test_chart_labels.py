"""Labels, legends and margins of charts."""

import re
from collections.abc import Sequence

import pytest

from cupel_audits.report import AuditReport, Plot, ReportTable
from cupel_reports import page
from support.data.sample_pages import plot, result, table


def report_of(drawn: ReportTable, plots: Sequence[Plot]) -> AuditReport:
    return AuditReport(verdict=(), numbers={}, tables=(drawn,), plots=tuple(plots))


def first_svg(report: AuditReport) -> str:
    (first, *_) = re.findall(r"<svg .*?</svg>", page(result(report)), re.S)
    return str(first)


def test_label_that_would_cover_another_point_is_left_out() -> None:
    rows = [("left", 0.0, 0.5), ("longname", 0.50, 0.5), ("near", 0.53, 0.5), ("right", 1.0, 0.5)]
    shown = plot("points", "t", "one", "two", label="run")
    report = report_of(table("t", "run one two", rows), plots=[shown])
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", first_svg(report))
    assert {"left", "near", "right"} <= set(labels)
    assert "longname" not in labels


@pytest.mark.parametrize(("last", "is_above"), [(0.5, True), (0.99, False)])
def test_label_of_reference_avoids_the_ends_of_curves(last: float, is_above: bool) -> None:
    points = table("t", "step tau", [(1, 0.2), (2, last)])
    shown = plot("curve", "t", "step", "tau", reference=0.9, reference_label="here", domain=(0, 1))
    picture = first_svg(report_of(points, plots=[shown]))
    [label] = re.findall(r"<text [^>]*translate\([-\d.]+,([-\d.]+)\)[^>]*>here<", picture)
    [line] = re.findall(r"<line [^>]*translate\([-\d.]+,([-\d.]+)\)[^>]*stroke-dasharray", picture)
    assert (float(label) < float(line)) == is_above


@pytest.mark.parametrize("bins", [(0.1, 0.3, 0.2), (0.2, 0.1, 0.3)])
def test_numbers_in_a_legend_ascend(bins: Sequence[float]) -> None:
    curves = table("t", "step tau bin", [(step, 0.5, each) for each in bins for step in (1, 2)])
    shown = plot("curve", "t", "step", "tau", series="bin")
    found = re.findall(r"<bdi>([^<]*)</bdi>", page(result(report_of(curves, plots=[shown]))))
    assert [text for text in found if text in ("0.1", "0.2", "0.3")] == ["0.1", "0.2", "0.3"]


def test_long_row_labels_have_more_space_on_the_left() -> None:
    """The font of the reader may be wider than the font that the layout is computed with."""

    def left_padding(name: str) -> int:
        rows = table("t", "run score", [(name, 0.1), (name, 0.4), ("b", 0.5)])
        text = page(result(report_of(rows, plots=[plot("boxes", "t", "run", "score")])))
        return int((re.search(r'"padding":\{"left":(\d+)', text) or ["", "0"])[1])

    assert left_padding("relevance > readability") == left_padding("a") + 22
    assert left_padding("x" * 90) == left_padding("x" * 26)
