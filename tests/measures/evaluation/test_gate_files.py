"""Tests of files of gates."""

from pathlib import Path

import pytest

import cupel_measures as cupel
from support.data.gated_runs import demote_relevant, swap_neighbours, topic_names, write_qrels, write_runs

VALID = """\
qrels: qrels.txt
baseline: base.txt
max_drop: 0.03
gates:
  - measures: [nDCG@10, AP]
  - name: strict
    measures: P@10
    max_drop: 0.001
    alpha: 0.01
    test: sign-flip
    min_topics: 20
    max_unjudged: 0
  - {name: old, measures: nDCG@10, baseline: old/base.txt}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    """Make a folder with judgments and a run that is no worse than its baseline."""
    write_qrels(tmp_path / "qrels.txt", topic_names(40))
    write_runs(tmp_path, topic_names(40), swap_neighbours)
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "cupel-gates.yaml"
    path.write_text(text)
    return path


def errors_of(folder: Path, text: str) -> list[tuple[str, int | None, str]]:
    """Return code, line and message of each error."""
    with pytest.raises(cupel.Refused) as refused:
        cupel.gates(write(folder, text), folder / "run.txt")
    return [(finding.code, finding.line, finding.message) for finding in refused.value.findings]


def test_gates_inherit_the_defaults_of_the_file(folder: Path) -> None:
    (folder / "old").mkdir()
    write_runs(folder / "old", topic_names(40), demote_relevant)
    report = cupel.gates(write(folder, VALID), folder / "run.txt")
    assert [outcome.title for outcome in report] == ["nDCG@10", "AP", "strict: P@10", "old: nDCG@10"]
    strict = report["strict"].rule
    assert (strict.max_drop, strict.alpha, strict.test) == (0.001, 0.01, "sign-flip")
    assert (strict.min_topics, strict.max_unjudged) == (20, 0)
    assert (report["AP"].rule.max_drop, report["AP"].rule.alpha) == (0.03, 0.05)
    assert report["AP"].verdict == "no worse"


def test_least_favourable_verdict_counts(folder: Path) -> None:
    write_runs(folder, topic_names(40), demote_relevant)
    text = (
        "{qrels: qrels.txt, baseline: base.txt, max_drop: 0.9, gates: [{measures: AP}, "
        "{measures: nDCG@10, max_drop: 0.01}, {measures: P@10, min_topics: 50}]}"
    )
    report = cupel.gates(write(folder, text), folder / "run.txt")
    assert [outcome.verdict for outcome in report] == ["no worse", "worse", "undecided"]
    assert (report.verdict, report.exit_code) == ("worse", 1)


def test_all_errors_are_reported_at_once_with_their_lines(folder: Path) -> None:
    text = """\
qrels: qrels.txt
baseline: bass.txt
alpha: 0.7
gates:
  - {name: a, measures: nDCG@10}
  - {name: a, measures: [nDGC@10, "AP(aspect='x')"], max_drop: -1}
  - {measures: Unjudged@10, max_drop: much, test: wilcoxon}
  - {measures: AP, max_drop: 0.1, marign: 2, max_unjudged: 7}
  - {measures: AP, max_drop: 0.1, min_topics: 2.5, qrels: nowhere/qrels.txt}
"""
    errors = errors_of(folder, text)
    assert len(errors) == len(set(errors))
    by_line: dict[int | None, list[str]] = {}
    for code, line, message in errors:
        by_line.setdefault(line, []).append(f"{code} {message}")
    expected = {
        2: ["gates-file-missing baseline: file 'bass.txt' not found; did you mean base.txt?"],
        3: ["gates-number alpha: expected a number between 0 and 0.5, such as 0.05, got 0.7"],
        5: ["document-missing-key gates[1]: missing key 'max_drop'"],
        6: [
            "gates-name gates[2].name: another gate has the name 'a'",
            "gates-number gates[2].max_drop: expected a positive number",
            "gates-measure gates[2].measures[1]: unknown measure",
            "gates-measure gates[2].measures[2]:",
        ],
        7: [
            "gates-number gates[3].max_drop",
            "gates-measure gates[3].measures: a greater Unjudged is not better",
            "gates-test gates[3].test: unknown test 'wilcoxon'",
        ],
        8: [
            "document-unknown-key gates[4].marign: unknown key 'marign'",
            "gates-number gates[4].max_unjudged: expected a share from 0 to 1",
        ],
        9: [
            "gates-number gates[5].min_topics: expected a whole number",
            "gates-file-missing gates[5].qrels: file 'nowhere/qrels.txt' not found",
        ],
    }
    assert set(by_line) == set(expected), by_line
    for line, beginnings in expected.items():
        for beginning in beginnings:
            if "max_drop" in beginning and "[3]" in beginning:
                beginning = "document-other-kind gates[3].max_drop: expected a number, got 'much'"
            assert any(message.startswith(beginning) for message in by_line[line]), (line, beginning, by_line)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "missing key 'gates'"),
        ("gates: []", "expected at least one gate"),
        ("gates: word", "expected a list of gates"),
        ("gates: [word]", "expected {measures: nDCG@10, max_drop: 0.01}"),
        (
            "qrels: qrels.txt\nbaseline: base.txt\ngates: [{measures: [], max_drop: 1}]",
            "at least one measure",
        ),
        ("gates: [", ""),
    ],
)
def test_files_without_gates_are_refused(folder: Path, text: str, message: str) -> None:
    assert any(message in problem for _, _, problem in errors_of(folder, text))


def test_errors_of_judgments_are_reported_with_those_of_the_file(folder: Path) -> None:
    (folder / "qrels.txt").write_text("q001 0 d1 high\n")
    text = "qrels: qrels.txt\nbaseline: base.txt\ngates:\n  - {measures: AP, max_drop: 0}\n"
    assert {code for code, _, _ in errors_of(folder, text)} == {"gates-number", "qrels-grade-not-integer"}


def test_missing_file_of_gates_is_refused(folder: Path) -> None:
    with pytest.raises(cupel.Refused, match="No such file"):
        cupel.gates(folder / "none.yaml", folder / "run.txt")


def test_collection_file_supplies_aspects_and_profile_is_replaced(folder: Path) -> None:
    (folder / "c.yaml").write_text("aspects: {relevance: {labels: [0, 1, 2]}}\nqrels: [{file: qrels.txt}]\n")
    text = "{qrels: c.yaml, baseline: base.txt, gates: [{measures: AP(rel=2), max_drop: 0.03}]}"
    report = cupel.gates(write(folder, text), folder / "run.txt", profile="trec_eval-9", depth=20)
    shallow = cupel.evaluate(folder / "c.yaml", folder / "run.txt", "AP(rel=2)", depth=20)
    assert report["AP(rel=2)"].run_mean == pytest.approx(shallow["run.txt"]["AP(rel=2)"])
