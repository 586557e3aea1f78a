"""Tests of `cupel compare --margin`."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy import stats

from cupel_client.main import cli

RANKS = {
    "base.txt": [1, 2, 4, 1, 3, 5, 2, 1, 4, 3, 1, 2],
    "near.txt": [1, 2, 3, 1, 3, 5, 2, 1, 5, 3, 1, 2],
    "best.txt": [1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 1],
    "twin.txt": [1, 2, 4, 1, 3, 5, 2, 1, 4, 3, 1, 2],
}
"""The rank of the only relevant document of each of 12 topics; RR is 1 / rank."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a current folder with qrels and runs."""
    (tmp_path / "qrels.txt").write_text(
        "".join(f"q{topic:02} 0 a 1\nq{topic:02} 0 n1 0\n" for topic in range(12))
    )
    for name, ranks in RANKS.items():
        (tmp_path / name).write_text(
            "".join(
                f"q{topic:02} Q0 {'a' if place == rank else f'n{place}'} {place} {9 - place} r\n"
                for topic, rank in enumerate(ranks)
                for place in range(1, 6)
            )
        )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cupel(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["compare", "qrels.txt", *arguments], catch_exceptions=False)


def json_of(*arguments: str) -> dict[str, Any]:
    result = cupel(*arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    data: dict[str, Any] = json.loads(result.stdout)
    return data


def rr(name: str) -> "np.ndarray[Any, np.dtype[np.float64]]":
    return 1 / np.array(RANKS[name])


class TestNumbers:
    def test_json_has_the_tests_of_each_pair(self) -> None:
        data = json_of("base.txt", "best.txt", "near.txt", "-m", "RR", "--margin", "0.05")
        assert data["margin"] == {"test": "t", "alpha": 0.05, "confidence": 0.9, "margins": {"RR": 0.05}}
        for row in data["measures"][0]["differences"]:
            apart = rr(row["run"]) - rr("base.txt")
            interval = stats.ttest_1samp(apart, 0).confidence_interval(0.9)
            assert (row["margin_low"], row["margin_high"]) == pytest.approx((interval.low, interval.high))
            expected = stats.ttest_1samp(apart, -0.05, alternative="greater").pvalue
            assert row["p_no_worse"] == pytest.approx(expected)
        verdicts = [row["margin_verdict"] for row in data["measures"][0]["differences"]]
        assert verdicts == ["better", "equal within"]
        assert [row["margin_acceptable"] for row in data["measures"][0]["differences"]] == [True, True]

    def test_baseline_that_is_better_makes_the_run_worse(self) -> None:
        [row] = json_of("best.txt", "base.txt", "-m", "RR", "--margin", "0.05")["measures"][0]["differences"]
        assert (row["margin_verdict"], row["margin_acceptable"]) == ("worse", False)

    def test_bayes_adds_probabilities_that_sum_to_one(self) -> None:
        arguments = ("base.txt", "near.txt", "-m", "RR", "--margin", "0.05")
        [row] = json_of(*arguments, "--bayes")["measures"][0]["differences"]
        parts = [row[f"probability_{name}"] for name in ("below", "within", "above")]
        assert sum(parts) == pytest.approx(1)
        assert parts[0] == pytest.approx(row["p_no_worse"])
        assert "probability_below" not in json_of(*arguments)["measures"][0]["differences"][0]

    def test_margin_of_a_measure_overrides_the_general_margin(self) -> None:
        data = json_of("base.txt", "near.txt", "-m", "RR P@1 AP", "--margin", "0.1", "--margin", "AP=0.3")
        assert data["margin"]["margins"] == {"RR": 0.1, "P@1": 0.1, "AP": 0.3}
        only = json_of("base.txt", "near.txt", "-m", "RR P@1", "--margin", "P@1=0.1")
        assert [item["differences"][0]["margin_verdict"] for item in only["measures"]] == [
            None,
            "equal within",
        ]

    def test_sign_flip_test_enumerates_twelve_topics(self) -> None:
        arguments = ("base.txt", "best.txt", "-m", "RR", "--margin", "0.05", "--margin-test", "sign-flip")
        [row] = json_of(*arguments)["measures"][0]["differences"]
        expected = stats.permutation_test(
            (rr("best.txt") - rr("base.txt"),), np.sum, permutation_type="samples", alternative="greater"
        )
        assert row["p_better"] == pytest.approx(expected.pvalue)
        assert "(all 4,096 assignments of signs)" in cupel(*arguments).stdout

    def test_results_without_a_margin_have_no_new_fields(self) -> None:
        data = json_of("base.txt", "best.txt", "-m", "RR")
        assert "margin" not in data
        assert not [key for key in data["measures"][0]["differences"][0] if key.startswith("margin")]

    def test_run_of_equal_scores_is_equal_within_the_margin(self) -> None:
        [row] = json_of("base.txt", "twin.txt", "-m", "RR", "--margin", "0.01")["measures"][0]["differences"]
        assert (row["margin_verdict"], row["margin_test"]) == ("equal within", "sign-flip")
        printed = cupel("base.txt", "twin.txt", "-m", "RR", "--margin", "0.01", "--bayes").stdout
        assert "RR of twin.txt: the difference is the same on every topic" in printed
        assert "nan" not in printed.lower()


class TestFormats:
    def test_table_has_verdicts_with_their_meaning(self) -> None:
        printed = cupel("base.txt", "best.txt", "near.txt", "-m", "RR", "--margin", "0.05", "--bayes").stdout
        for part in (
            "comparison with a margin",
            "90% interval",
            "equal within 0.05",
            "better: the difference is significantly above 0",
            "Verdicts: one-sided t-tests at 0.05, without correction for 2 verdicts.",
            "With no direction fixed beforehand, better and worse together have level 0.1 (2 alpha). They "
            "may differ from the two-sided verdicts above, which may be corrected.",
            "(Student's t with 11 degrees of freedom)",
        ):
            assert part in printed, part

    def test_all_pairs_get_verdicts(self) -> None:
        printed = cupel(
            "base.txt", "best.txt", "near.txt", "-m", "RR", "--margin", "0.05", "--all-pairs"
        ).stdout
        assert ", without correction for 3 verdicts" in printed

    def test_margin_of_logarithms_is_noted(self) -> None:
        printed = cupel("base.txt", "best.txt", "-m", "GMAP", "--margin", "0.05").stdout
        assert "GMAP: the margin applies to the difference of mean logarithms." in printed

    def test_csv_and_jsonl_have_the_verdicts(self) -> None:
        arguments = ("base.txt", "best.txt", "near.txt", "-m", "RR", "--margin", "0.05", "--format")
        rows = [json.loads(line) for line in cupel(*arguments, "jsonl").stdout.splitlines()]
        table = list(csv.DictReader(io.StringIO(cupel(*arguments, "csv").stdout)))
        assert [row["margin_verdict"] for row in rows] == ["better", "equal within"]
        assert [row["margin_verdict"] for row in table] == ["better", "equal within"]
        assert [float(row["margin_low"]) for row in table] == [row["margin_low"] for row in rows]


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--margin", "wide"], "expected a number such as 0.01, or MEASURE=NUMBER, got 'wide'"),
            (["--margin", "0"], "the margin must be a positive number, got 0"),
            (["--margin", "nDCG@5=inf"], "the margin must be a positive number, got inf"),
            (["--margin", "nonsense=0.1"], "nonsense"),
            (["--margin", "nDCG@5=0.1"], "--margin names nDCG@5, which is not compared; add it to -m"),
            (["--margin", "0.1", "--margin", "0.2"], "--margin is given twice for all measures"),
            (["--margin", "RR=0.1", "--margin", "RR=0.2"], "--margin is given twice for RR"),
            (["--bayes"], "--bayes requires --margin"),
            (["--margin", "0.1", "--alpha", "0.5"], "--margin requires an --alpha below 0.5, got 0.5"),
            (
                ["--margin", "0.1", "--format", "latex"],
                "--margin requires --format table, json, jsonl or csv",
            ),
        ],
    )
    def test_impossible_options_are_usage_errors(self, arguments: list[str], message: str) -> None:
        result = cupel("base.txt", "best.txt", "-m", "RR", *arguments)
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())
