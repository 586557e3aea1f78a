"""Tests of the page of a result, parsed without running its scripts."""

import json
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

import pytest

from cupel_audits.report import AuditReport, Plot, ReportTable
from cupel_reports import page, policy
from cupel_reports.short_names import shortened
from support.data.sample_pages import HOSTILE, RUNS, forms, large, plot, result, table

VOID = {"meta", "link", "img", "br", "hr", "input"}


class Reader(HTMLParser):
    """The elements of a page, the texts by tag, and the elements that are still open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_optional({"td": {"td"}, "tr": {"td", "tr"}}.get(tag, set()))
        self.elements.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        for tag in self.open:
            self.texts[tag][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._end_optional({"td", "tr"} - {tag})
        assert self.open, f"</{tag}> has no start tag"
        assert self.open.pop() == tag

    def _end_optional(self, tags: set[str]) -> None:
        """Close cells and rows, whose end tags are optional."""
        while self.open and self.open[-1] in tags:
            self.open.pop()

    def all(self, tag: str, **having: str) -> list[dict[str, str | None]]:
        return [
            attrs
            for name, attrs in self.elements
            if name == tag and all(value in (attrs.get(key) or "").split() for key, value in having.items())
        ]


@pytest.fixture(scope="module")
def hostile() -> str:
    return page(result(forms(), HOSTILE))


@pytest.fixture(scope="module")
def ordinary() -> str:
    return page(result(forms(RUNS)))


def test_page_shows_request_and_findings(ordinary: str) -> None:
    reader = Reader(ordinary)
    assert reader.open == []
    assert reader.texts["h1"] == ["Pool downsampling"]
    assert "How much does the order of runs change" in reader.texts["p"][1]
    assert "The order of aster holds." in reader.texts["li"]
    names, values = reader.texts["dt"], [text.strip() for text in reader.texts["dd"]]
    request = dict(zip(names, values, strict=True))
    assert request["repeats"].startswith("30")
    assert request["ratios"].startswith("90, 50")
    assert request["aspect"].startswith("not given")
    assert request["seed"] == "7"
    assert request["host"] == "a machine"
    assert "number of random samples" in reader.texts["small"]
    assert result(forms(RUNS))["digest"] in reader.texts["code"]


def test_every_form_has_a_text_alternative(hostile: str) -> None:
    reader = Reader(hostile)
    drawn = reader.all("svg", role="img")
    assert len(drawn) == 9 + 3  # one plot has three panels, and two plots have no data to draw
    assert hostile.count("There is nothing to draw") == 2
    ids = [attrs["id"] for _, attrs in reader.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    for picture in drawn:
        assert set(str(picture["aria-labelledby"]).split()) <= set(ids)
    assert len(reader.all("title")) == len(drawn) + 1


def test_page_escapes_hostile_names(hostile: str) -> None:
    reader = Reader(hostile)
    assert not reader.all("img")
    assert not reader.all("b")
    assert [
        script.get("type") for script in reader.all("script") if script.get("type") != "application/json"
    ] == [None]
    assert not [
        name for _, attrs in reader.elements for name in attrs if name.startswith("on") or name == "style"
    ]
    assert "{{ 7 * 7 }}" in hostile
    assert "\x00" not in hostile
    assert hostile.encode()  # no lone surrogate
    assert any(HOSTILE[0] in text for text in reader.texts["bdi"])


def test_page_loads_nothing_from_the_network(hostile: str) -> None:
    reader = Reader(hostile)
    for _, attrs in reader.elements:
        for name in ("src", "href", "xlink:href", "action", "srcset", "data"):
            address = attrs.get(name) or ""
            assert address.startswith(("data:text/csv", "#")) or not address
    assert "url(" not in "".join(reader.texts["style"])
    assert "@import" not in hostile


def test_specifications_are_json_without_end_tags(hostile: str) -> None:
    specs = re.findall(r'<script type="application/json" class="spec">(.*?)</script>', hostile, re.S)
    assert len(specs) == 12
    assert all("<" not in spec for spec in specs)
    names = {row.get("s") for spec in specs for row in json.loads(spec)["datasets"]["rows"]}
    assert {HOSTILE[0], shortened(HOSTILE[1]), shortened(HOSTILE[3])} <= names


def test_page_is_deterministic(hostile: str, ordinary: str) -> None:
    assert ordinary != hostile
    assert page(json.loads(json.dumps(result(forms(), HOSTILE)))) == hostile


def test_page_is_equal_in_another_process(hostile: str) -> None:
    code = (
        "import json, sys; from cupel_reports import page;"
        "sys.stdout.buffer.write(page(json.load(sys.stdin)).encode())"
    )
    environment = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "1"}
    data = json.dumps(result(forms(), HOSTILE))
    done = subprocess.run(
        [sys.executable, "-c", code], input=data.encode(), env=environment, capture_output=True
    )
    assert done.stdout.decode() == hostile, done.stderr.decode()


def test_import_loads_no_slow_library() -> None:
    code = "import sys, cupel_reports; print(sorted({'altair', 'vl_convert', 'jinja2'} & set(sys.modules)))"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_page_of_unfinished_audit_has_a_banner(ordinary: str) -> None:
    some = page(result(forms(RUNS), done=12))
    assert "12 of 30 trials are done. These results are preliminary." in some
    assert "trials are done" not in ordinary
    none = page(result(None))
    assert "0 of 30 trials are done. There are no results yet." in none
    assert "vegaEmbed" not in none


def test_page_of_unknown_kind_is_titled_by_its_name() -> None:
    reader = Reader(page(result(forms(RUNS), kind="forgotten")))
    assert reader.texts["h1"] == ["forgotten"]


def report_of(*tables: ReportTable, plots: Sequence[Plot] = (), **numbers: float | None) -> AuditReport:
    return AuditReport(verdict=(), numbers=numbers, tables=tables, plots=tuple(plots))


def read_page(*tables: ReportTable) -> Reader:
    return Reader(page(result(report_of(*tables))))


def cells(reader: Reader) -> list[str]:
    return [text.strip() for text in reader.texts["td"]]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1, 20, 12345], ["1", "20", "12,345"]),
        ([90.0, 5.0], ["90", "5"]),
        ([0.5, 1.0, 0.123456], ["0.5000", "1.0000", "0.1235"]),
        ([0.5, -0.25, None], ["0.50", "−0.25", "–"]),
        ([0.5, 1e-9, -1e-9], ["0.5000", "<0.0001", ">−0.0001"]),
        ([1234.56, 7.25], ["1234.6", "7.2"]),
        ([31.415, 2.0], ["31.41", "2.00"]),
        ([7.5, 28.0], ["7.5", "28.0"]),
        ([True, False], ["yes", "no"]),
        (["a", None], ["a", "–"]),
        ([2**70], ["1,180,591,620,717,411,303,424"]),
    ],
)
def test_numbers_of_a_column_have_equally_many_decimals(values: list[Any], shown: list[str]) -> None:
    assert cells(read_page(table("t", "x", [[value] for value in values]))) == shown


def test_columns_of_numbers_are_right_aligned() -> None:
    reader = read_page(table("t", "run tau n", [("a", 0.5, None), ("b", None, 2)]))
    assert [table["class"] for table in reader.all("table")] == ["n2 n3 "]


def test_long_tables_are_collapsed_and_truncated_but_csv_is_complete() -> None:
    rows = [(i, i / 7) for i in range(3000)]
    reader = read_page(table("short", "n x", rows[:3]), table("t", "n x", rows))
    assert "Table of t " in reader.texts["summary"][0]
    assert len(cells(reader)) == 2 * (3 + 2000)
    assert "The first 2000 of 3000 rows; the file has all." in reader.texts["p"]
    links = reader.all("a")
    assert [link["download"] for link in links] == ["downsampling-short.csv", "downsampling-t.csv"]
    kind, _, text = unquote(str(links[1]["href"])).partition(",")
    assert kind == "data:text/csv;charset=utf-8"
    assert text == table("t", "n x", rows).as_csv()


def test_csv_link_keeps_hostile_names(hostile: str) -> None:
    link = next(link_ for link_ in Reader(hostile).all("a") if link_["download"] == "downsampling-places.csv")
    text = unquote(str(link["href"]).partition(",")[2])
    assert HOSTILE[1] in text
    assert HOSTILE[4] in text


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


def test_page_of_large_report_is_below_3_megabytes() -> None:
    text = page(result(large(), [f"run-{i}" for i in range(100)], measures=[f"M{i}@10" for i in range(10)]))
    assert len(text.encode()) < 3e6
    assert "100 in total; those with the largest changes are in colour." in text


def test_policy_allows_only_inline_scripts_and_styles(hostile: str) -> None:
    allowed = policy(hostile)
    (script,) = re.findall(r"<script>(.*?)</script>", hostile, re.S)
    (style,) = re.findall(r"<style>(.*?)</style>", hostile, re.S)
    assert allowed.split("; ") == [
        "default-src 'none'",
        f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'",
        f"style-src 'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
    (in_page,) = [
        meta["content"] for meta in Reader(hostile).all("meta") if "content" in meta and "http-equiv" in meta
    ]
    assert allowed == f"{in_page}; frame-ancestors 'none'"
    assert "script-src 'none'" in policy(page(result(None)))


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


def test_named_numbers_have_individual_decimals() -> None:
    reader = Reader(page(result(report_of(**{"unjudged@10": 0.21884, "missing": 1498, "tau": None}))))
    assert cells(reader) == ["unjudged@10", "0.2188", "missing", "1498", "tau", "–"]


def test_page_of_stored_report_is_equal() -> None:
    stored = json.loads(json.dumps(result(large(3, 1), ["a", "b", "c"])))
    assert page(stored) == page(result(large(3, 1), ["a", "b", "c"]))


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


def test_boolean_series_is_named_by_its_column() -> None:
    places = table("t", "run one two best", [("a", 0.0, 0.9, False), ("b", 0.5, 0.5, True)])
    report = report_of(places, plots=[plot("points", "t", "one", "two", series="best", label="run")])
    assert {"the best", "not the best"} <= set(Reader(page(result(report))).texts["bdi"])


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


def test_provenance_is_collapsed() -> None:
    reader = Reader(page(result(report_of()) | {"provenance": {"command": "cupel audit"}}))
    assert reader.texts["summary"][-1] == "Provenance"
    assert "cupel audit" in reader.texts["details"][-1]


def test_page_ends_with_what_the_reader_can_do() -> None:
    report = AuditReport(verdict=("It holds.",), numbers={}, tables=(), actions=("Judge `d1` first.",))
    text = page(result(report))
    assert text.index("What you can do</h2>") > text.index("<h2>Request</h2>")
    assert "<li>Judge <code>d1</code> first.</li>" in text
    assert '<a href="#actions">What you can do</a>' in text
    assert "What you can do" not in page(result(report_of()))


def test_stored_report_of_an_earlier_release_has_a_page(ordinary: str) -> None:
    stored = json.loads(json.dumps(result(forms(RUNS))))
    del stored["report"]["actions"]
    for drawn in stored["report"]["plots"]:
        for name in ("reference_label", "observed", "blank"):
            del drawn[name]
    assert page(stored) == ordinary


def test_reference_has_a_label() -> None:
    points = table("t", "step tau", [(step, 0.5) for step in range(3)])
    named = plot("curve", "t", "step", "tau", reference=0.9, reference_label="tau 0.9: similar")
    assert ">tau 0.9: similar</text>" in first_svg(report_of(points, plots=[named]))
    unnamed = plot("curve", "t", "step", "tau", reference=0.9)
    assert ">the tau 0.9</text>" in first_svg(report_of(points, plots=[unnamed]))


def test_legends_and_panels_are_labelled(ordinary: str) -> None:
    reader = Reader(ordinary)
    assert "the run:" in reader.texts["li"]
    assert "the topic" in reader.texts["small"]
    assert any(text.startswith("the tau: 0") for text in reader.texts["p"])


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
