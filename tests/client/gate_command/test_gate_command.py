"""Tests of `cupel gate`: verdicts, exit codes, files and annotations."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from cupel_client.main import cli
from support.data.gated_runs import (
    Change,
    demote_relevant,
    promote_relevant,
    put_unjudged_first,
    replace_most,
    reshuffle,
    swap_neighbours,
    topic_names,
    write_qrels,
    write_runs,
)

RULE = ("base.txt", "run.txt", "--qrels", "qrels.txt", "-m", "nDCG@10", "--max-drop", "0.03")
JUDGED_ONLY = "nDCG(judged_only=True)@10"


def cupel(*arguments: str, environment: dict[str, str] | None = None) -> Result:
    return CliRunner(env=environment or {}).invoke(cli, ["gate", *arguments], catch_exceptions=False)


def plant(change: Change, topics: int = 50) -> None:
    """Write judgments, a baseline and a run to the current folder."""
    write_qrels(Path("qrels.txt"), topic_names(topics))
    write_runs(Path(), topic_names(topics), change)


@pytest.mark.parametrize(
    ("change", "measure", "exit_code", "verdict", "reason"),
    [
        (promote_relevant, "nDCG@10", 0, "better", "up 0."),
        (swap_neighbours, "nDCG@10", 0, "no worse", "a drop of 0.03 or more is ruled out"),
        (demote_relevant, "nDCG@10", 1, "worse", "a drop of more than 0.03 is established"),
        (reshuffle, "nDCG@10", 3, "undecided", "neither establish a drop nor rule out one of 0.03"),
        (put_unjudged_first, "nDCG@10", 3, "undecided", "30.0% of the new top ten is unjudged"),
        (replace_most, JUDGED_ONLY, 3, "undecided", "of the new top ten is unjudged"),
    ],
)
def test_planted_case_has_its_verdict_and_exit_code(
    change: Change, measure: str, exit_code: int, verdict: str, reason: str
) -> None:
    plant(change)
    result = cupel(*RULE[:5], measure, *RULE[6:])
    assert result.exit_code == exit_code, result.output
    assert f"run.txt vs. base.txt: {verdict}" in result.stdout
    assert reason in result.stdout


def test_few_topics_are_undecided() -> None:
    plant(demote_relevant, topics=6)
    result = cupel(*RULE)
    assert result.exit_code == 3
    assert "too few topics: 6 are compared, and at least 10 are required" in result.stdout
    assert cupel(*RULE, "--min-topics", "6").exit_code == 1


@pytest.mark.parametrize(("first", "reason"), [(31, "it lacks 30 of the 50"), (61, "it lacks 50 of the 50")])
def test_baseline_on_other_topics_is_undecided(first: int, reason: str) -> None:
    write_qrels(Path("qrels.txt"), topic_names(200))
    write_runs(Path(), topic_names(50, first), swap_neighbours)
    Path("base.txt").rename("other.txt")
    write_runs(Path(), topic_names(50), swap_neighbours)
    result = cupel("other.txt", *RULE[1:])
    assert result.exit_code == 3
    assert reason in result.stdout


def test_baseline_without_judged_topics_is_undecided_but_such_a_run_is_an_error() -> None:
    plant(swap_neighbours)
    Path("other.txt").write_text("x1 Q0 d1 1 1 other\n")
    result = cupel("other.txt", *RULE[1:])
    assert result.exit_code == 3
    assert "the baseline has results for none of the judged topics" in result.stdout
    result = cupel("base.txt", "other.txt", *RULE[2:])
    assert result.exit_code == 2
    assert "other.txt: error run-topics-none" in result.stderr


def test_json_has_the_report() -> None:
    plant(demote_relevant)
    result = cupel(*RULE, "--format", "json")
    data = json.loads(result.stdout)
    assert (result.exit_code, data["exit_code"], data["verdict"]) == (1, 1, "worse")
    assert data["gates"][0]["baseline"] == "base.txt"


def test_files_for_ci_systems_are_written() -> None:
    plant(demote_relevant)
    Path("summary.md").write_text("before\n")
    result = cupel(*RULE, "--junit", "gates.xml", environment={"GITHUB_STEP_SUMMARY": "summary.md"})
    assert result.exit_code == 1
    assert ElementTree.parse("gates.xml").getroot().attrib["failures"] == "1"
    before, heading, *lines = Path("summary.md").read_text().splitlines()
    assert (before, heading) == ("before", "## run.txt vs. base.txt: worse")
    assert any(line.startswith("| nDCG@10 |") and line.endswith("| ❌ worse |") for line in lines)
    cupel(*RULE, "--summary", "other.md")
    assert Path("other.md").read_text() == cupel(*RULE, "--format", "markdown").stdout + "\n"


@pytest.mark.parametrize(
    ("change", "level"), [(demote_relevant, "error"), (reshuffle, "warning"), (swap_neighbours, "notice")]
)
def test_annotations_are_printed_in_github_actions(change: Change, level: str) -> None:
    plant(change)
    result = cupel(*RULE, "--format", "json", environment={"GITHUB_ACTIONS": "true"})
    assert json.loads(result.stdout)
    assert f"\n::{level} title=cupel gate%3A nDCG@10%3A " in f"\n{result.stderr}"
    assert "::" not in cupel(*RULE).stderr


def test_annotations_escape_percent_signs() -> None:
    plant(put_unjudged_first)
    assert "30.0%25 of the new top ten" in cupel(*RULE, "--annotate").stderr


def test_file_of_gates_is_applied() -> None:
    plant(swap_neighbours)
    Path("cupel-gates.yaml").write_text(
        "{qrels: qrels.txt, baseline: base.txt, max_drop: 0.03, gates: [{measures: nDCG@10 AP},"
        " {name: strict, measures: P@10, max_drop: 0.0001}]}"
    )
    result = cupel("--gates", "cupel-gates.yaml", "run.txt")
    assert result.exit_code == 3
    assert "strict: P@10: undecided" in result.stdout
    assert "Each of 3 gates is tested at 0.05." in result.stdout


def test_errors_of_a_file_of_gates_have_lines() -> None:
    plant(swap_neighbours)
    Path("cupel-gates.yaml").write_text(
        "qrels: no.txt\nbaseline: base.txt\ngates:\n  - {measures: nothing}\n"
    )
    result = cupel("--gates", "cupel-gates.yaml", "run.txt")
    assert result.exit_code == 2
    for begin in ("1: error gates-file-missing", "4: error gates-measure", "4: error document-missing-key"):
        assert f"cupel-gates.yaml:{begin}" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run.txt", *RULE[2:]], "expected BASELINE RUN, got 1 files"),
        ([*RULE[:2], *RULE[4:]], "--qrels is missing; give it, or --gates FILE"),
        ([*RULE[:4], *RULE[6:]], "-m is missing"),
        ([*RULE[:6]], "--max-drop is missing"),
        ([*RULE[:6], "--max-drop", "0"], "--max-drop: expected a positive number"),
        ([*RULE, "--alpha", "0.6"], "--alpha: expected a number between 0 and 0.5"),
        ([*RULE, "-m", "nonsense"], "unknown measure"),
        ([*RULE, "-m", "Judged@10"], "a greater Judged is not better"),
        (["--gates", "qrels.txt", "base.txt", "run.txt"], "--gates names the baselines; expected RUN only"),
        (["--gates", "qrels.txt", "run.txt", "--alpha", "0.05"], "--alpha contradicts --gates"),
    ],
)
def test_impossible_options_are_usage_errors(arguments: list[str], message: str) -> None:
    plant(swap_neighbours)
    result = cupel(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", "").split())


def test_invalid_run_is_no_verdict() -> None:
    plant(swap_neighbours)
    Path("run.txt").write_text("q001 Q0 d1 1 nan run\n")
    result = cupel(*RULE)
    assert result.exit_code == 2
    assert "run.txt:1:" in result.stderr
    assert not result.stdout
