"""Tests of the formats and the page of `cupel evaluate`, for papers and other tools."""

import json
import re
from pathlib import Path

import pytest
import pytrec_eval

import cupel_measures as api
from support.compared_files import check_latex
from support.data.html_reader import HtmlReader
from support.evaluated_files import GOOD, cupel

pytestmark = pytest.mark.usefixtures("folder")
CUTOFFS = (1, 3, 5, 10, 100, 1000)
NAMES = {
    "ndcg": ("NDCG", "ndcg_cut"),
    "map": ("MAP", "map_cut"),
    "recall": ("Recall", "recall"),
    "precision": ("P", "P"),
}
"""Group of BEIR: the names of its measures in results of BEIR, and in trec_eval."""


class TestTables:
    def test_latex_has_the_best_value_of_each_measure_in_bold(self, folder: Path) -> None:
        (folder / "a_b.txt").write_text(GOOD)
        result = cupel("qrels.txt", "poor.txt", "a_b.txt", "-m", "nDCG@10 P@5", "--format", "latex")
        assert result.exit_code == 0
        check_latex(result.stdout)
        assert r"a\_b.txt & \textbf{0.6667} & \textbf{0.2000} \\" in result.stdout
        assert result.stdout.index("a\\_b") < result.stdout.index("poor")

    def test_markdown_and_html_are_those_of_the_library(self) -> None:
        scores = api.evaluate("qrels.txt", ["good.txt", "poor.txt"], "nDCG@10 P@5")
        arguments = ("qrels.txt", "good.txt", "poor.txt", "-m", "nDCG@10 P@5", "--format")
        assert cupel(*arguments, "markdown").stdout == scores.to_markdown()
        assert cupel(*arguments, "html").stdout == scores.to_html() + "\n"
        assert cupel(*arguments, "latex").stdout == scores.to_latex()

    def test_html_is_a_closed_table(self) -> None:
        reader = HtmlReader(cupel("qrels.txt", "good.txt", "poor.txt", "-m", "AP", "--format", "html").stdout)
        assert reader.open == []
        assert reader.tables == [[["run", "AP"], ["good.txt", "0.6667"], ["poor.txt", "0.2500"]]]
        assert reader.texts["b"] == ["0.6667"]

    def test_equal_floats_are_ranked_by_exact_values(self, folder: Path) -> None:
        (folder / "two.txt").write_text("1 0 a 1\n1 0 b 1\n1 0 c 1\n2 0 a 1\n2 0 b 1\n")
        (folder / "split.txt").write_text("1 Q0 a 1 9 x\n2 Q0 a 1 9 x\n2 Q0 b 2 8 x\n")
        (folder / "one.txt").write_text("1 Q0 a 1 9 x\n1 Q0 b 2 8 x\n1 Q0 c 3 7 x\n")
        for form in ("markdown", "table"):  # in floats, (0.1 + 0.2) / 2 of split is above 0.3 / 2
            printed = cupel("two.txt", "split.txt", "one.txt", "-m", "P@10", "--format", form).stdout
            assert printed.index("one.txt") < printed.index("split.txt")


class TestResultFiles:
    def test_beir_result_has_the_values_that_beir_computes(self) -> None:
        arguments = ("--profile", "trec_eval-9", "--average-over", "run", "--format", "beir")
        result = json.loads(cupel("qrels.txt", "poor.txt", *arguments).stdout)
        qrels = {"1": {"a": 2, "b": 1, "c": 0}, "2": {"a": 1, "d": 0}, "3": {"e": 0}}
        run = {"1": {"c": 9.0, "b": 8.0}, "2": {"d": 2.0, "a": 1.0}}
        requested = {f"{name}.{','.join(map(str, CUTOFFS))}" for _, name in NAMES.values()}
        topics = pytrec_eval.RelevanceEvaluator(qrels, requested).evaluate(run)
        for group, (ours, theirs) in NAMES.items():
            assert [*result[group]] == [f"{ours}@{cutoff}" for cutoff in CUTOFFS]
            for cutoff in CUTOFFS:
                mean = sum(topic[f"{theirs}_{cutoff}"] for topic in topics.values()) / len(topics)
                assert result[group][f"{ours}@{cutoff}"] == pytest.approx(mean, abs=1e-12)
        assert result["mrr"]["MRR@10"] == 0.5

    def test_mteb_result_has_the_fields_of_a_task_result(self) -> None:
        result = json.loads(cupel("qrels.txt", "good.txt", "--format", "mteb").stdout)
        assert [*result] == [
            "dataset_revision", "task_name", "mteb_version", "scores", "evaluation_time", "kg_co2_emissions",
        ]  # fmt: skip
        [entry] = result["scores"]["test"]
        assert result["task_name"] == "qrels.txt"
        assert re.fullmatch("[0-9a-f]{64}", result["dataset_revision"])
        assert (entry["hf_subset"], entry["languages"]) == ("default", [])
        assert entry["main_score"] == entry["ndcg_at_10"] == pytest.approx(2 / 3)
        assert {"map_at_100", "recall_at_20", "precision_at_1000", "mrr_at_3"} <= entry.keys()

    def test_tira_result_has_a_block_for_each_measure(self) -> None:
        printed = cupel("qrels.txt", "good.txt", "-m", "P@5 AP(rel=2)", "--format", "tira").stdout
        blocks = re.findall(r'measure \{\n  key: "([^"]*)"\n  value: "([^"]*)"\n\}\n', printed)
        assert [(key, float(value)) for key, value in blocks] == [
            ("P@5", pytest.approx(0.2)),
            ("AP(rel=2)", pytest.approx(1 / 3)),
        ]
        assert printed.count("measure {") == 2

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("good.txt", "poor.txt", "--format", "tira"), "tira describes one run, but 2 are given"),
            (("good.txt", "-m", "AP P@5", "--format", "beir"), "have no name for AP; they have nDCG@k, AP@k"),
            (("good.txt", "-m", "AP(rel=2)@5", "--format", "mteb"), "have no name for AP(rel=2)@5"),
            (("good.txt", "--format", "latex", "--per-topic"), "--per-topic requires --format table"),
            (("good.txt", "--format", "html", "--explain", "ties"), "--explain requires --format table"),
        ],
    )
    def test_format_that_cannot_have_the_request_is_refused(
        self, arguments: tuple[str, ...], message: str
    ) -> None:
        result = cupel("qrels.txt", *arguments)
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())

    @pytest.mark.parametrize("form", ["latex", "markdown", "html", "beir", "mteb", "tira"])
    def test_nothing_is_printed_if_every_run_is_refused(self, form: str) -> None:
        result = cupel("qrels.txt", "bad.txt", "--format", form)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "bad.txt is refused and not scored." in result.stderr


class TestPage:
    def test_page_is_written_beside_the_printed_format(self, folder: Path) -> None:
        result = cupel("qrels.txt", "good.txt", "poor.txt", "-m", "AP", "--format", "csv", "--out", "p.html")
        assert result.exit_code == 0
        assert result.stdout.startswith("run,measure,topic,value\n")
        assert "p.html is written." in result.stderr
        reader = HtmlReader((folder / "p.html").read_text(encoding="utf-8"))
        assert reader.open == []
        assert reader.tables[0] == [
            ["rank", "run", "AP"], ["1", "good", "0.6667"], ["2", "poor", "0.2500"],
        ]  # fmt: skip
        assert reader.texts["bdi"][0] == "qrels.txt"

    @pytest.mark.parametrize(
        ("out", "message"),
        [("scores.pdf", "it must end in .html"), ("no/scores.html", "there is no folder 'no'")],
    )
    def test_invalid_name_is_refused_before_the_work(self, folder: Path, out: str, message: str) -> None:
        result = cupel("qrels.txt", "good.txt", "--out", out)
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in " ".join(result.stderr.split())
        assert not (folder / out).exists()

    def test_missing_packages_are_named_before_the_work(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            "cupel_client.offline.presentation.page_files.missing_packages", lambda: ["altair", "jinja2"]
        )
        result = cupel("qrels.txt", "good.txt", "--out", "p.html")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "run: pip install altair jinja2" in " ".join(result.stderr.split())

    def test_no_page_is_written_if_every_run_is_refused(self, folder: Path) -> None:
        assert cupel("qrels.txt", "bad.txt", "--out", "p.html").exit_code == 1
        assert not (folder / "p.html").exists()
