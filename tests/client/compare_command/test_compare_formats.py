"""Tests of the output formats of `cupel compare`."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from support.compared_files import check_latex, cupel, json_of
from support.data.html_reader import HtmlReader

pytestmark = pytest.mark.usefixtures("folder")


class TestFormats:
    def test_table_states_tests_and_significance(self) -> None:
        printed = cupel("qrels.txt", "base.txt", "best.txt", "near.txt", "-m", "RR P@1").stdout
        for part in (
            "significant at 0.05 after Holm's correction over 4 tests.",
            "not significant",
            "Detectable: with 12 topics, a paired t-test at 0.05 (a single test) detects this true "
            "difference with power 0.8, at the spread pooled over all 3 pairs, and smaller ones less often.",
            "exact: all 4,096 assignments of signs",
            "4 tests (2 pairs, 2 measures)",
            "Runs that share a letter are not significantly different (step-down max-T test, alpha 0.05).",
            "best.txt has the highest true mean by RR of these 3 runs, with 95% confidence (multiple "
            "comparisons with the best, this measure alone).",
            "Groups and best set: multiple comparisons with the best (alpha 0.05) from the step-down max-T",
        ):
            assert part in printed, part
        [row] = re.findall(r"^ *near\.txt +\+.*not significant.*$", printed, re.M)[:1]
        [measure] = json_of("qrels.txt", "base.txt", "best.txt", "near.txt", "-m", "RR")["measures"]
        assert row.split()[-1] == f"{measure['detectable']:.4f}"
        assert "nan" not in printed.lower()

    def test_single_pair_is_described_in_a_sentence(self) -> None:
        arguments = ("qrels.txt", "base.txt", "near.txt", "-m")
        assert "The difference is not significant at 0.05." in cupel(*arguments, "RR").stdout
        several = cupel(*arguments, "RR P@1").stdout
        assert "The difference is not significant at 0.05 after Holm's correction over 2 tests." in several
        rate = cupel(*arguments, "RR P@1", "--correction", "benjamini-hochberg").stdout
        assert "after Benjamini and Hochberg's correction over 2 tests" in rate
        none = cupel(*arguments, "RR P@1", "--correction", "none").stdout
        assert "significant at 0.05, without correction for 2 tests." in none
        assert "corrected p" not in none

    def test_csv_and_jsonl_have_a_row_per_measure_pair_and_aspect(self) -> None:
        arguments = ("c.yaml", "base.txt", "best.txt", "near.txt", "-m", "nDCG@3 RR", "--format")
        rows = [json.loads(line) for line in cupel(*arguments, "jsonl").stdout.splitlines()]
        assert [(row["measure"], row["aspect"], row["run"]) for row in rows[:4]] == [
            ("nDCG@3", None, "best.txt"),
            ("nDCG@3", None, "near.txt"),
            ("RR", None, "best.txt"),
            ("RR", None, "near.txt"),
        ]
        assert {row["aspect"] for row in rows[4:]} == {"relevance", "quality"}
        table = list(csv.DictReader(io.StringIO(cupel(*arguments, "csv").stdout)))
        assert [float(row["difference"]) for row in table] == [row["difference"] for row in rows]

    def test_latex_table_escapes_special_characters(self, folder: Path) -> None:
        for name in ("a_b&c%$#{}.txt", "[x]~^\\--*.txt"):
            (folder / name).write_text((folder / "best.txt").read_text())
        printed = cupel(
            "qrels.txt",
            "base.txt",
            "a_b&c%$#{}.txt",
            "[x]~^\\--*.txt",
            "-m",
            "RR RBP(p=1/2)",
            "--format",
            "latex",
        ).stdout
        assert r"a\_b\&c\%\$\#\{\}.txt & $\mathbf{0.8750}^{+}$" in printed
        assert r"{[}x]\textasciitilde{}\textasciicircum{}\textbackslash{}-{}-{*}.txt & " in printed
        assert "Holm's correction over 4 tests" in printed
        check_latex(printed)

    def test_latex_marks_the_runs_that_a_run_exceeds(self) -> None:
        arguments = ("qrels.txt", "base.txt", "best.txt", "twin.txt", "-m", "RR", "--format", "latex")
        printed = cupel(*arguments, "--all-pairs").stdout
        assert r"(b) best.txt & $\mathbf{0.8750}^{\mathrm{a},\mathrm{c}}$ \\" in printed
        assert r"(a) base.txt & $0.4889$ \\" in printed
        check_latex(printed)
        below = cupel("qrels.txt", "best.txt", "base.txt", "-m", "RR", "--format", "latex").stdout
        assert r"base.txt & $0.4889^{-}$ \\" in below

    def test_highest_mean_of_each_measure_is_bold(self) -> None:
        arguments = ("qrels.txt", "base.txt", "near.txt", "best.txt", "twin.txt", "-m", "RR P@5", "--format")
        latex = cupel(*arguments, "latex").stdout
        check_latex(latex)
        means = [item["mean"] for item in json_of(*arguments[:-1])["measures"][0]["means"]]
        assert means.index(max(means)) == 2
        assert [line.count(r"\mathbf") for line in latex.splitlines() if ".txt &" in line] == [0, 1, 2, 0]
        assert "| best.txt | **0.8750 +** | **0.2000** |" in cupel(*arguments, "markdown").stdout

    def test_html_is_a_closed_table_with_notes(self) -> None:
        arguments = ("qrels.txt", "base.txt", "best.txt", "-m", "RR", "--format")
        reader = HtmlReader(cupel(*arguments, "html").stdout)
        assert reader.open == []
        assert reader.tables == [[["run", "RR"], ["base.txt", "0.4889"], ["best.txt", "0.8750 +"]]]
        assert reader.texts["caption"][0].startswith("Means over 12 topics. + and -: significantly higher")
        assert reader.texts["caption"][0] in cupel(*arguments, "markdown").stdout


class TestPage:
    def test_page_is_written_beside_the_printed_format(self, folder: Path) -> None:
        result = cupel(
            "qrels.txt", "base.txt", "best.txt", "-m", "RR", "--format", "latex", "--out", "d.html"
        )
        assert result.exit_code == 0
        check_latex(result.stdout)
        assert "d.html is written." in result.stderr
        reader = HtmlReader((folder / "d.html").read_text(encoding="utf-8"))
        assert reader.open == []
        assert reader.tables[0] == [
            ["run", "RR", "marks of RR"], ["best", "0.8750", "+"], ["base", "0.4889", ""],
        ]  # fmt: skip
        assert "best is significantly higher than base" in " ".join(reader.texts["li"])

    def test_page_has_no_comparison_of_the_same_system(self) -> None:
        result = cupel("--same", "qrels.txt", "base.txt", "near.txt", "--out", "d.html")
        assert result.exit_code == 2
        assert "--out has no page for --same" in result.stderr

    @pytest.mark.parametrize("form", ["latex", "markdown", "html"])
    def test_margin_needs_a_format_with_verdicts(self, form: str) -> None:
        result = cupel("qrels.txt", "base.txt", "near.txt", "--margin", "0.1", "--format", form)
        assert result.exit_code == 2
        assert f"--margin requires --format table, json, jsonl or csv, not {form}" in result.stderr
