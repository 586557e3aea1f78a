"""Tests of `cupel compare --same`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cupel_client.main import cli

RUNS = {"original": "abcd", "reproduced": "bacx", "old-base": "cdab", "new-base": "dcba"}
"""Ranked documents of two topics; the second topic is in reverse order. Document a is relevant."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a current folder with qrels and runs."""
    (tmp_path / "qrels.txt").write_text("1 0 a 1\n1 0 b 0\n2 0 a 1\n2 0 b 0\n")
    for name, documents in RUNS.items():
        lines = [
            f"{topic} Q0 {document} {rank} {9 - rank} r\n"
            for topic, order in (("1", documents), ("2", documents[::-1]))
            for rank, document in enumerate(order, 1)
        ]
        (tmp_path / name).write_text("".join(lines))
    monkeypatch.chdir(tmp_path)


def cupel(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["compare", "--same", "qrels.txt", *arguments], catch_exceptions=False)


def test_json_has_lists_scores_and_improvements() -> None:
    done = cupel(
        "original", "reproduced", "-m", "RR", "--baselines", "old-base", "new-base", "--format", "json"
    )
    assert done.exit_code == 0, done.stderr
    data = json.loads(done.stdout)
    assert (data["original"], data["reproduction"]) == ("original", "reproduced")
    documents = data["documents"]
    # The rankings are a b c and b a c on both topics: two pairs agree, one does not.
    assert [topic["tau"] for topic in documents["topics"]] == pytest.approx([1 / 3, 1 / 3])
    assert documents["shared"] == pytest.approx(3 / 5)
    [row] = data["measures"]
    # RR by topic: original 1 and 1/4, reproduced 1/2 and 1/3, old-base 1/3 and 1/2, new-base 1/4 and 1.
    assert row["original_mean"] == pytest.approx(0.625)
    assert row["rmse"] == pytest.approx((((1 / 2) ** 2 + (1 / 12) ** 2) / 2) ** 0.5)
    improved, reproduced = 0.625 - 5 / 12, 5 / 12 - 0.625
    assert row["effect_ratio"] == pytest.approx(reproduced / improved)
    assert row["delta_ri"] == pytest.approx(improved / (5 / 12) - reproduced / 0.625)


def test_tables_do_not_claim_that_the_systems_are_the_same() -> None:
    printed = " ".join(cupel("original", "reproduced", "-m", "RR").stdout.split())
    assert "The means do not differ significantly at alpha 0.05 (paired t-test, uncorrected)" in printed
    assert "This does not establish that the systems are the same" in printed
    assert "RBO (p = 0.9)" in printed
    assert "effect ratio" not in printed
    with_baselines = cupel("original", "reproduced", "-m", "RR", "--baselines", "old-base", "new-base")
    assert "effect ratio" in with_baselines.stdout


def test_identical_runs_agree_fully(tmp_path: Path) -> None:
    (tmp_path / "copy").write_text((tmp_path / "original").read_text())
    data = json.loads(cupel("original", "copy", "-m", "RR", "--format", "json").stdout)
    documents = data["documents"]
    assert [documents[name] for name in ("tau", "tau_union", "rbo", "shared")] == pytest.approx([1] * 4)
    assert data["measures"][0]["rmse"] == 0
    assert "variance is zero" in data["measures"][0]["p_undefined"]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_rows_have_the_scores(form: str) -> None:
    assert "rmse" in cupel("original", "reproduced", "-m", "RR P@1", "--format", form).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["original", "reproduced", "new-base"], "--same compares two runs"),
        (["original", "reproduced", "--margin", "0.1"], "--margin does not apply to --same"),
        (["original", "reproduced", "--format", "latex"], "--same requires --format table, json, jsonl, csv"),
    ],
)
def test_impossible_requests_are_usage_errors(arguments: list[str], message: str) -> None:
    result = cupel(*arguments, "-m", "RR")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
