"""Tests of the warnings of `cupel evaluate` about runs whose scores mean little."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import cupel_measures as cupel_library
from support.evaluated_files import cupel

TOPICS = [f"t{number}" for number in range(10)]
DOCUMENTS = [f"d{number:02}" for number in range(20)]
Scores = Mapping[str, Sequence[float]]
"""Scores of DOCUMENTS by topic."""


def descending(topics: Sequence[str] = TOPICS) -> dict[str, list[float]]:
    return {topic: [20.0 - place for place in range(20)] for topic in topics}


def write_run(name: str, scores: Scores, documents: Sequence[str] = DOCUMENTS) -> None:
    lines = [
        f"{topic} Q0 {document} 1 {score} tag\n"
        for topic, values in scores.items()
        for document, score in zip(documents, values, strict=True)
    ]
    Path(name).write_text("".join(lines))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a current folder with qrels of 10 topics, in which documents 0 to 14 are judged."""
    monkeypatch.chdir(tmp_path)
    judged = [
        f"{topic} 0 {document} {document < 'd05':d}\n" for topic in TOPICS for document in DOCUMENTS[:15]
    ]
    Path("qrels.txt").write_text("".join(judged))
    write_run("good", descending())
    write_run("equal", {topic: [1.0] * 20 for topic in TOPICS})
    write_run("crossing", descending() | {topic: [5.0] * 12 + [1.0] * 8 for topic in TOPICS[:3]})
    write_run("crossing-once", descending() | {"t9": [9.0] * 8 + [5.0] * 4 + [1.0] * 8})
    write_run("other-topics", descending([*TOPICS[:2], *(f"u{number}" for number in range(8))]))
    write_run("other-documents", descending(), [f"x{number}" for number in range(20)])


def warnings(*runs: str, measures: str = "nDCG@10 P@5 AP") -> list[str]:
    """Return the lines on standard error. They are the notes of the report from Python, too."""
    result = cupel("qrels.txt", *runs, "-m", measures)
    assert result.exit_code == 0
    report = cupel_library.evaluate("qrels.txt", list(runs), measures)
    notes = [line.removeprefix("note: ") for line in repr(report).splitlines() if line.startswith("note: ")]
    lines = result.stderr.splitlines()
    assert [line for line in lines if ": warning " not in line] == notes
    return notes


def test_good_run_has_no_warnings() -> None:
    assert warnings("good") == []


def test_run_with_equal_scores_is_named() -> None:
    assert warnings("good", "equal") == [
        "equal has equal scores for all documents of a topic (10 of 10 topics), so that document ids decide "
        "their order."
    ]


def test_runs_with_equal_scores_across_a_cutoff_are_counted() -> None:
    assert warnings("crossing") == [
        "crossing has equal scores on both sides of the cutoff of nDCG@10, P@5 (3 of 10 topics), so that "
        "document ids decide which of them count."
    ]
    assert warnings("good", "crossing-once", "crossing", measures="P@10 AP") == [
        "2 runs have equal scores on both sides of the cutoff of P@10 (most: crossing, 3 of 10 topics), so "
        "that document ids decide which of them count."
    ]
    assert warnings("crossing", measures="AP P@12 CAM(of=nDCG@12)") == []
    assert "cutoff of CAM(of=nDCG@10)" in warnings("crossing", measures="CAM(of=nDCG@10)")[0]


def test_run_that_shares_few_topics_with_the_qrels_is_named() -> None:
    few, missing = warnings("other-topics", "good")
    assert few == (
        "other-topics shares few topics with the qrels (2 of its 10 topics); check that the topic ids are "
        "those of the qrels."
    )
    assert missing.startswith("1 run lacks topics of the qrels (up to 8 of 10)")


def test_run_with_hardly_any_judged_document_is_named() -> None:
    write_run("half", descending(), [*DOCUMENTS[:2], *(f"x{number}" for number in range(18))])
    assert warnings("other-documents", "good", "half") == [
        "other-documents has hardly any judged documents at ranks 1 to 10 (0 of 100); check that the "
        "document ids are those of the qrels, and report Judged@10."
    ]


def test_sparse_judgments_alone_give_no_warning() -> None:
    """One judged document per topic, which the run retrieves first: 9 of 10 documents are unjudged."""
    Path("qrels.txt").write_text("".join(f"{topic} 0 d00 1\n" for topic in TOPICS))
    assert warnings("good") == []


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "trec_eval"])
def test_every_format_has_the_warnings_on_standard_error(form: str) -> None:
    result = cupel("qrels.txt", "equal", "-m", "nDCG@10", "--format", form)
    assert "equal has equal scores for all documents of a topic" in result.stderr
