"""Tests of pages and plots of scores and comparisons, made from Python."""

import importlib.util
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import cupel_measures as cupel
from cupel_measures.evaluation.comparison_result import ComparisonResult
from cupel_measures.evaluation.evaluation_report import EvaluationReport
from cupel_reports import comparison_pages, policy, score_pages
from support.data.html_reader import HtmlReader

TOPICS = [f"t{number}" for number in range(12)]
QRELS = {topic: {f"d{place}": int(place < 3) for place in range(10)} for topic in TOPICS}
SPECIFICATION = r'<script type="application/json" class="spec">(.*?)</script>'
HOSTILE = "<b>&\"'{{ 7 * 7 }}"


def run(rng: np.random.Generator, gain: float) -> dict[str, dict[str, float]]:
    return {
        topic: {document: float(rng.random() + gain * grade) for document, grade in grades.items()}
        for topic, grades in QRELS.items()
    }


def runs() -> dict[str, dict[str, dict[str, float]]]:
    rng = np.random.default_rng(3)
    return {"base": run(rng, 0), "near": run(rng, 0.1), HOSTILE: run(rng, 3)}


@pytest.fixture(scope="module")
def scores() -> EvaluationReport:
    return cupel.evaluate(QRELS, runs(), "AP nDCG@3 GMAP")


@pytest.fixture(scope="module")
def result(scores: EvaluationReport) -> ComparisonResult:
    return cupel.compare(scores)


@pytest.fixture(scope="module")
def score_page(scores: EvaluationReport, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("scores") / "scores.html"
    scores.page(path)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def comparison_page(result: ComparisonResult, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("comparison") / "differences.html"
    result.page(path)
    return path.read_text(encoding="utf-8")


class TestScorePage:
    def test_page_ranks_runs_and_draws_bars_with_intervals(
        self, scores: EvaluationReport, score_page: str
    ) -> None:
        page = HtmlReader(score_page)
        assert page.open == []
        head, *rows = page.tables[0]
        assert head == ["rank", "run", "AP", "nDCG@3", "GMAP"]
        assert [row[:3] for row in rows] == [
            [str(rank), name, f"{scores[name]['AP']:.4f}"]
            for rank, name in enumerate(sorted(scores, key=lambda name: -scores[name]["AP"]), 1)
        ]
        assert page.tables[1][0] == ["run", "score", "low", "high"]
        assert page.tables[3][0] == ["run", "score"]
        assert len(page.all("svg", role="img")) == 3
        assert f"AP: {HOSTILE} has the highest score of 3 runs" in page.texts["li"][5]

    def test_page_loads_nothing_and_runs_only_its_own_script(self, scores: EvaluationReport) -> None:
        text = score_pages.page(scores, name="my <qrels>")
        page = HtmlReader(text)
        addresses = [attrs[name] for _, attrs in page.elements for name in ("src", "href") if attrs.get(name)]
        assert all(str(address).startswith(("data:text/csv", "#")) for address in addresses)
        assert "script-src 'sha256-" in policy(text)
        assert page.texts["bdi"][0] == "my <qrels>"

    def test_interval_is_a_t_interval_over_topics(self, scores: EvaluationReport, score_page: str) -> None:
        values = np.array(list(scores["base"].by_topic["AP"].values()), dtype=float)
        half = 2.200985160082949 * values.std(ddof=1) / np.sqrt(len(values))  # t quantile with 11 df
        page = HtmlReader(score_page)
        [row] = [row for row in page.tables[1] if row[0] == "base"]
        expected = [values.mean(), values.mean() - half, values.mean() + half]
        assert row[1:] == [f"{value:.4f}" for value in expected]

    def test_single_topic_has_no_interval(self) -> None:
        page = HtmlReader(score_pages.page(cupel.evaluate({"t0": QRELS["t0"]}, runs()["near"], "P@5")))
        assert page.tables[1][1][2:] == ["–", "–"]

    def test_long_tables_of_topics_are_left_out(
        self, scores: EvaluationReport, score_page: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert "The page does not contain" not in score_page
        monkeypatch.setattr(score_pages, "MOST_ROWS", 10)
        text = score_pages.page(scores)
        assert "The page does not contain the 108 values by topic" in text
        assert "Values by topic" not in text


class TestComparisonPage:
    def test_page_has_means_differences_and_topics(
        self, result: ComparisonResult, comparison_page: str
    ) -> None:
        page = HtmlReader(comparison_page)
        assert page.open == []
        assert page.tables[0][0][:3] == ["run", "AP", "marks of AP"]
        assert page.tables[0][1][0] == HOSTILE
        assert page.tables[0][1][2] == "+"
        records = [row for row in result.records() if row["measure"] == "AP"]
        assert [row[2] for row in page.tables[1][1:]] == [
            f"{row['difference']:.4f}".replace("-", "−") for row in records
        ]
        # Three plots of pairs, one by measure, and two plots of topics, one by pair.
        assert len(page.all("svg", role="img")) == 5
        assert "AP: " + HOSTILE + " is significantly higher than base" in " ".join(page.texts["li"])

    def test_bars_by_topic_are_sorted_differences(
        self, result: ComparisonResult, comparison_page: str
    ) -> None:
        specs = [json.loads(found) for found in re.findall(SPECIFICATION, comparison_page, re.S)]
        rows = specs[3]["datasets"]["rows"]
        base, near = (result.scored[name].by_topic["AP"] for name in ("base", "near"))
        expected = {topic: (near[topic] or 0) - (base[topic] or 0) for topic in TOPICS}
        assert {row["x"]: row["y"] for row in rows} == pytest.approx(expected)
        assert [row["y"] for row in rows] == sorted(expected.values(), reverse=True)

    def test_all_pairs_have_labels(self, scores: EvaluationReport) -> None:
        page = HtmlReader(comparison_pages.page(cupel.compare(scores, all_pairs=True)))
        assert [row[0] for row in page.tables[1]] == [
            "pair", "near − base", f"{HOSTILE} − base", f"{HOSTILE} − near",
        ]  # fmt: skip

    def test_long_names_of_pairs_are_letters(self) -> None:
        named = {f"{name[:4]}{'-long' * 6}": table for name, table in runs().items()}
        page = HtmlReader(
            comparison_pages.page(cupel.compare(cupel.evaluate(QRELS, named, "AP"), all_pairs=True))
        )
        assert [row[0] for row in page.tables[1]] == ["pair", "b − a", "c − a", "c − b"]

    def test_verdict_with_a_margin_is_a_column(self, scores: EvaluationReport) -> None:
        page = HtmlReader(comparison_pages.page(cupel.compare(scores, margin=0.01)))
        place = page.tables[1][0].index("verdict with the margin")
        assert page.tables[1][2][place] == "better"
        assert "With the margin 0.01: better." in " ".join(page.texts["li"])

    def test_rank_tests_show_no_intervals(self, scores: EvaluationReport) -> None:
        page = HtmlReader(comparison_pages.page(cupel.compare(scores, test="nemenyi")))
        head, *rows = page.tables[1]
        assert {row[head.index("low")] for row in rows} == {"–"}
        assert "intervals of differences of means are not shown" in " ".join(page.texts["li"])


class TestPlots:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({}, ["AP: differences from base", "near"]),
            ({"measure": "ndcg_cut.3"}, ["nDCG@3: differences from base"]),
            ({"run": "near"}, ["AP by topic: near − base", "t11"]),
            ({"run": "near", "measure": "nDCG@3"}, ["nDCG@3 by topic: near − base"]),
        ],
    )
    def test_plot_of_a_comparison_is_svg(
        self, result: ComparisonResult, options: Mapping[str, Any], words: list[str]
    ) -> None:
        drawing = result.plot(**options)
        texts = " ".join(ElementTree.fromstring(drawing.svg).itertext())
        assert all(word in texts for word in words)
        assert "var(" not in drawing.svg

    def test_plot_of_scores_is_shown_and_saved(self, scores: EvaluationReport, tmp_path: Path) -> None:
        drawing = scores.plot("map")
        drawing.save(tmp_path / "ap.svg")
        assert (tmp_path / "ap.svg").read_text(encoding="utf-8") == drawing._repr_svg_()
        assert "AP by run" in "".join(ElementTree.fromstring(drawing.svg).itertext())

    def test_unknown_measure_or_run_is_an_error(
        self, scores: EvaluationReport, result: ComparisonResult
    ) -> None:
        with pytest.raises(KeyError, match="RR is not among the measures: AP, nDCG@3, GMAP"):
            scores.plot("RR")
        with pytest.raises(KeyError, match="not compared with the baseline: near"):
            result.plot(run="far")
        with pytest.raises(ValueError, match="compare without all_pairs"):
            cupel.compare(scores, all_pairs=True).plot(run="near")

    def test_missing_packages_are_named(
        self, scores: EvaluationReport, result: ComparisonResult, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = importlib.util.find_spec
        monkeypatch.setattr(
            "cupel_measures.evaluation.exports.page_library.find_spec",
            lambda name: None if name in ("cupel_reports", "vl_convert") else found(name),
        )
        needed = "run: pip install cupel-reports vl-convert-python$"
        for action in (
            scores.plot,
            result.plot,
            lambda: scores.page("x.html"),
            lambda: result.page("x.html"),
        ):
            with pytest.raises(ImportError, match=needed):
                action()


def test_page_of_a_comparison_has_the_remarks_on_its_scores() -> None:
    some = {topic: scored for topic, scored in runs()["near"].items() if topic != "t3"}
    compared = cupel.compare(cupel.evaluate(QRELS, {"base": runs()["base"], "some": some}, "AP"))
    assert "1 run lacks topics of the qrels (up to 1 of 12)" in comparison_pages.page(compared)
