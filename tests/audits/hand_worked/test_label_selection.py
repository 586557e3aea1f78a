"""The report of `label_selection` on four runs, with the selection derived by hand.

Topic t: a and b are relevant to subtopic 1, c to subtopic 2. Labelling starts with the pool of depth 1: a
and b are equally central, so they come in alphabetical order. In the pool of depth 2, d and e share no word
with any other document. At depth 3, c is relevant to subtopic 2. So the order is a, b, d, e, c.
Topic u: q is relevant to subtopic 1. All documents are in the pool of depth 1. p and q share a word, so they
come before r, and labelling ends after p, q.
With a batch of one document per topic, 2, 4, 5, 6 and 7 of the 8 documents are labelled.
"""

import pytest

from support.data.audit_subjects import audited, lists, subject_of
from support.data.expected_audits import (
    assert_numbers,
    assert_table,
    generator_of,
    kendall_tau_b,
    score_lmd,
    shuffle_groups,
    spread_cells,
)
from support.data.small_collections import qrels_of, scale, texts_of

TEXTS = {
    "a": "apple fruit tree apple",
    "b": "apple pie fruit",
    "c": "mac computer apple",
    "d": "rain weather",
    "e": "computer keyboard",
    "p": "moon",
    "q": "moon star",
    "r": "sun",
}
SUBTOPICS = {"t": {"1": ["a", "b"], "2": ["c"]}, "u": {"1": ["q"]}}
RANKINGS = {
    "one": {"t": ["a", "d", "c"], "u": ["p", "q", "r"]},
    "two": {"t": ["b", "e", "c"], "u": ["q", "p", "r"]},
    "three": {"t": ["b", "a", "d"], "u": ["p", "r", "q"]},
    "four": {"t": [], "u": ["r", "q", "p"]},
}
RECIPROCAL_RANKS = [(1 + 1 / 2) / 2, (1 + 1) / 2, (1 + 1 / 3) / 2, (0 + 1 / 2) / 2]
SELECTED = {"t": ["a", "b", "d", "e", "c"], "u": ["p", "q"]}


def taus_of(order: dict[str, list[str]]) -> list[float | None]:
    """Return tau-b between RR under all judgments and LMD under the first 1 to 5 labels per topic."""
    taus = []
    for size in range(1, 6):
        labelled = {document for documents in order.values() for document in documents[:size]}
        lmd = [
            sum(
                score_lmd(
                    run[topic],
                    TEXTS,
                    {name: [document for document in of if document in labelled] for name, of in by.items()},
                )
                for topic, by in SUBTOPICS.items()
            )
            / 2
            for run in RANKINGS.values()
        ]
        taus.append(kendall_tau_b(RECIPROCAL_RANKS, lmd))
    return taus


def test_report_equals_the_hand_worked_selection() -> None:
    drawn = []
    for trial in (1, 2):
        pools = shuffle_groups(generator_of("label_selection", trial), {"t": list("abcde"), "u": list("pqr")})
        drawn.append(taus_of({"t": pools["t"], "u": pools["u"][:2]}))
    selected = taus_of(SELECTED)
    labels = [2, 4, 5, 6, 7]
    points = [("selected", n, n / 8, *spread_cells([tau])) for n, tau in zip(labels, selected, strict=True)]
    points += [
        ("at random", n, n / 8, *spread_cells(taus))
        for n, taus in zip(labels, zip(*drawn, strict=True), strict=True)
    ]

    grades = {"t": {"a": 1, "b": 1, "c": 1, "d": 0}, "u": {"p": 0, "q": 1}}
    subtopics = {
        topic: {document: {name: 1} for name, of in by_name.items() for document in of}
        for topic, by_name in SUBTOPICS.items()
    }
    qrels = qrels_of({scale(1): grades}, subtopics=subtopics)
    subject = subject_of(qrels, lists(RANKINGS), "RR", top=20, texts=texts_of(TEXTS))
    parameters = {"reference": "RR", "depth": 1, "batch": 1, "repeats": 2}
    report = audited("label_selection", subject, parameters)
    assert_table(report, "points", "way labels share mean low high least greatest n", points)
    assert_table(
        report,
        "topics",
        "topic labels pool share depth subtopics missed",
        [("t", 5, 5, 1.0, 3, 2, 0), ("u", 2, 3, 2 / 3, 1, 1, 0)],
    )
    assert [table.name for table in report.tables] == ["points", "topics"]
    everything = taus_of({"t": list("abcde"), "u": list("pqr")})[-1]
    tau, tau_random = selected[-1], points[-1][3]
    strong = next((n / 8 for n, value in zip(labels, selected, strict=True) if value and value >= 0.8), None)
    assert_numbers(
        report,
        {"labels": 7, "labelled": 7 / 8, "labelled_whole": 7 / 8, "labelled@0.8": strong,
         "subtopics": 3, "missed": 0,
         "tau": tau, "tau_random": tau_random, "tau_all": everything},
    )  # fmt: skip
    assert report.verdict[0] == (
        "The selection labels 7 of the 8 documents in the pools of depth 20 (87.5%), over 2 topics."
    )
    assert report.verdict[1] == (
        f"LMD: tau between its order of runs and that of RR under all judgments is {tau:.2f} with the "
        f"selected labels, {tau_random:.2f} with the labels of as many random documents, {everything:.2f} "
        "with all judgments."
    )
    assert report.verdict[2:] == (
        () if strong is None else (f"tau first reaches 0.8 when {strong:.1%} of the pools are labelled.",)
    )
    assert report.undefined == (() if strong is not None else ("labelled@0.8: tau does not reach 0.8",))
    assert report.warnings == ()


def test_missed_subtopic_labels_its_whole_pool() -> None:
    """No run has the document of subtopic 2 of topic t, so all five documents of its pool are labelled."""
    grades = {"t": {"a": 1, "b": 1, "elsewhere": 1}, "u": {"q": 1}}
    subtopics = {"t": {"a": {"1": 1}, "b": {"1": 1}, "elsewhere": {"2": 1}}, "u": {"q": {"1": 1}}}
    qrels = qrels_of({scale(1): grades}, subtopics=subtopics)
    subject = subject_of(qrels, lists(RANKINGS), "RR", top=20, texts=texts_of(TEXTS))
    report = audited("label_selection", subject, {"reference": "RR", "depth": 1, "batch": 1, "repeats": 0})
    assert_table(
        report,
        "topics",
        "topic labels pool share depth subtopics missed",
        [("t", 5, 5, 1.0, 20, 2, 1), ("u", 2, 3, 2 / 3, 1, 1, 0)],
    )
    assert report.numbers["labelled"] == 7 / 8
    assert report.numbers["labelled_whole"] == pytest.approx(2 / 3)
    assert report.verdict[1] == (
        "1 of 3 subtopics have no relevant document in the pools, so the pools of their topics are labelled "
        "completely. In the pools of the other topics, 66.7% of the documents are labelled."
    )
    assert "tau_random: no random documents were drawn" in report.undefined
