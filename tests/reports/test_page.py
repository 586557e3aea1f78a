"""Tests of the page of a result, parsed without running its scripts."""

import json
import re
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256
from typing import Any
from urllib.parse import unquote

import pytest

from cupel_audits.report import AuditReport, ReportTable
from cupel_reports import page, policy
from cupel_reports.short_names import shortened
from support.data.html_reader import HtmlReader
from support.data.sample_pages import HOSTILE, RUNS, forms, large, plot, report_of, result, table


@pytest.fixture(scope="module")
def hostile() -> str:
    return page(result(forms(), HOSTILE))


@pytest.fixture(scope="module")
def ordinary() -> str:
    return page(result(forms(RUNS)))


def test_page_shows_request_and_findings(ordinary: str) -> None:
    reader = HtmlReader(ordinary)
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
    reader = HtmlReader(hostile)
    drawn = reader.all("svg", role="img")
    assert len(drawn) == 9 + 3  # one plot has three panels, and two plots have no data to draw
    assert hostile.count("There is nothing to draw") == 2
    ids = [attrs["id"] for _, attrs in reader.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    for picture in drawn:
        assert set(str(picture["aria-labelledby"]).split()) <= set(ids)
    assert len(reader.all("title")) == len(drawn) + 1


def test_page_escapes_hostile_names(hostile: str) -> None:
    reader = HtmlReader(hostile)
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
    reader = HtmlReader(hostile)
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
    reader = HtmlReader(page(result(forms(RUNS), kind="forgotten")))
    assert reader.texts["h1"] == ["forgotten"]


def read_page(*tables: ReportTable) -> HtmlReader:
    return HtmlReader(page(result(report_of(*tables))))


def cells(reader: HtmlReader) -> list[str]:
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
    link = next(
        link_ for link_ in HtmlReader(hostile).all("a") if link_["download"] == "downsampling-places.csv"
    )
    text = unquote(str(link["href"]).partition(",")[2])
    assert HOSTILE[1] in text
    assert HOSTILE[4] in text


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
        meta["content"]
        for meta in HtmlReader(hostile).all("meta")
        if "content" in meta and "http-equiv" in meta
    ]
    assert allowed == f"{in_page}; frame-ancestors 'none'"
    assert "script-src 'none'" in policy(page(result(None)))


def test_named_numbers_have_individual_decimals() -> None:
    reader = HtmlReader(page(result(report_of(**{"unjudged@10": 0.21884, "missing": 1498, "tau": None}))))
    assert cells(reader) == ["unjudged@10", "0.2188", "missing", "1498", "tau", "–"]


def test_page_of_stored_report_is_equal() -> None:
    stored = json.loads(json.dumps(result(large(3, 1), ["a", "b", "c"])))
    assert page(stored) == page(result(large(3, 1), ["a", "b", "c"]))


def test_boolean_series_is_named_by_its_column() -> None:
    places = table("t", "run one two best", [("a", 0.0, 0.9, False), ("b", 0.5, 0.5, True)])
    report = report_of(places, plots=[plot("points", "t", "one", "two", series="best", label="run")])
    assert {"the best", "not the best"} <= set(HtmlReader(page(result(report))).texts["bdi"])


def test_provenance_is_collapsed() -> None:
    reader = HtmlReader(page(result(report_of()) | {"provenance": {"command": "cupel audit"}}))
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


def test_legends_and_panels_are_labelled(ordinary: str) -> None:
    reader = HtmlReader(ordinary)
    assert "the run:" in reader.texts["li"]
    assert "the topic" in reader.texts["small"]
    assert any(text.startswith("the tau: 0") for text in reader.texts["p"])
