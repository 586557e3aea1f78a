"""Tests of the output formats of `cupel compare`."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from support.compared_files import check_latex, cupel, json_of

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
        assert r"a\_b\&c\%\$\#\{\}.txt & $0.8750^{+}$" in printed
        assert r"{[}x]\textasciitilde{}\textasciicircum{}\textbackslash{}-{}-{*}.txt & " in printed
        assert "Holm's correction over 4 tests" in printed
        check_latex(printed)

    def test_latex_marks_the_runs_that_a_run_exceeds(self) -> None:
        arguments = ("qrels.txt", "base.txt", "best.txt", "twin.txt", "-m", "RR", "--format", "latex")
        printed = cupel(*arguments, "--all-pairs").stdout
        assert r"(b) best.txt & $0.8750^{\mathrm{a},\mathrm{c}}$ \\" in printed
        assert r"(a) base.txt & $0.4889$ \\" in printed
        check_latex(printed)
        below = cupel("qrels.txt", "best.txt", "base.txt", "-m", "RR", "--format", "latex").stdout
        assert r"base.txt & $0.4889^{-}$ \\" in below
