"""The audit `unjudged`: the influence of unjudged documents, and the unjudged share of each run."""

from typing import Any

import numpy as np
import pytest

from cupel_audits.kinds.unjudged.document_influence import shift_scores
from cupel_audits.subject_files import NamedQrels, assemble_subject, view_of
from cupel_measures.catalogue.parser import parse
from cupel_measures.scoring.evaluator import Evaluator, evaluate
from support.data.audit_subjects import audited, board, lists, problems, reported, subject_of, trials_of
from support.data.small_collections import content_of, diverse, joined_of, qrels_of, ranking_of, texts_of

QRELS = qrels_of({"1": {"a": 1, "b": 0}, "2": {"c": 1, "n": -1}})
RUNS = lists(
    {
        "one": {"1": ["a", "x"], "2": ["c"]},
        "two": {"1": ["a", "b"], "2": ["c", "n"]},
        "three": {"1": ["b", "y"], "2": ["c", "z"]},
    }
)
FEW = {"depth": 2, "look": 3, "cutoffs": [1, 2]}


def test_influence_equals_rescoring_with_one_more_judgment() -> None:
    """Only `lower` has b, at rank 1, so judging b reverses `upper` and `lower` by every measure."""
    qrels = qrels_of({"1": {"a": 1, "c": 0}, "2": {"d": 1, "e": 1}})
    runs = lists(
        {
            "upper": {"1": ["a", "c"], "2": ["d", "e"]},
            "lower": {"1": ["b", "a"], "2": ["d", "e"]},
            "last": {"1": ["c"], "2": ["c"]},
        }
    )
    measures = [parse("AP"), parse("nDCG@10")]
    subject = subject_of(qrels, runs, "AP nDCG@10", top=5)
    trials = trials_of("unjudged", subject, {"depth": 2, "cutoffs": [2]})
    [document] = trials[0]["documents"]
    more = qrels_of({"1": {"a": 1, "b": 1, "c": 0}, "2": {"d": 1, "e": 1}})
    after = [evaluate(more, joined_of(run, more), measures).aggregates() for run in runs.values()]
    for measure in measures:
        influence, n_reversed, (upper, lower, _, left) = document["measures"][str(measure)]
        assert (upper, lower) == (0, 1)
        assert left == pytest.approx(after[0][measure] - after[1][measure], abs=1e-12)
        assert left < 0
        assert (influence, n_reversed) == (1, 1)
    assert trials[0]["turning"] == 1


def test_list_is_limited_and_sorted_by_influence() -> None:
    qrels, runs = board(judged=30)
    subject = subject_of(qrels, runs, "AP nDCG@10", top=40)
    complete = audited("unjudged", subject, {"tried": 200, "budget": 200, "most": 1000})
    influence = [float(cell or 0) for cell in complete.table("documents").column("influence")]
    assert influence == sorted(influence, reverse=True)
    assert len(influence) == complete.numbers["missing"]
    few = audited("unjudged", subject, {"tried": 200, "budget": 2, "most": 7})
    assert len(few.table("documents").rows) == 7
    topics = few.table("documents").column("topic")
    assert max(topics.count(topic) for topic in topics) <= 2
    assert few.table("documents").rows[0][:4] == complete.table("documents").rows[0][:4]
    some = audited("unjudged", subject, {"tried": 3})
    assert "were not examined" in some.warnings[0]
    assert set(some.table("topics").column("tried")) == {3}


def test_results_are_independent_of_the_order_of_trials() -> None:
    qrels, runs = board(judged=40, topics=4)
    in_order = trials_of("unjudged", subject_of(qrels, runs, "AP GMAP", top=40))
    single: dict[str, Any] = {}
    for topic in reversed(in_order):
        single |= trials_of("unjudged", subject_of(qrels, runs, "AP GMAP", top=40), only=[topic])
    assert single == in_order
    subject = subject_of(qrels, runs, "AP GMAP", top=40)
    assert reported("unjudged", subject, None, single) == reported("unjudged", subject, None, in_order)
    part = reported("unjudged", subject, None, {3: in_order[3]})
    assert part.table("topics").column("topic") == ["3"]


@pytest.mark.parametrize("text", ["AP", "NumRel", "GMAP"])
def test_shifted_scores_equal_rescoring_of_all_topics(text: str) -> None:
    """The measures are a mean, a sum and a geometric mean over topics."""
    qrels, runs = board(judged=40, topics=3)
    subject = subject_of(qrels, runs, text, top=10)
    measure = subject.measures[0]
    kept = np.ones(len(qrels.documents), dtype=bool)
    kept[: int(qrels.offsets[1]) : 2] = False  # of the first topic
    fewer = Evaluator(qrels, subject.joined).restricted_to(kept)
    old, new = subject.scores[str(measure)][0], subject.scores_by_topic(fewer)[str(measure)][0]
    after = shift_scores(measure, subject.means[str(measure)], old, new[None], 3)
    assert after[0] == pytest.approx(subject.means_under(fewer)[str(measure)], abs=2e-12)


def test_report_says_that_all_documents_are_judged() -> None:
    qrels, runs = board(documents=30, judged=30)
    report = audited("unjudged", subject_of(qrels, runs, "AP", top=100))
    assert report.numbers["unjudged@10"] == report.numbers["missing"] == 0
    assert report.verdict[-1] == "All documents in the top 10 of any run are judged."
    assert report.table("documents").rows == ()


def test_documents_are_listed_for_judgments_by_subtopic() -> None:
    qrels = diverse({"1": {"a": {"x": 1}, "b": {"y": 1}}})
    runs = lists({"one": {"1": ["a", "n"]}, "two": {"1": ["n", "m"]}})
    report = audited("unjudged", subject_of(qrels, runs, "alpha_nDCG@5", top=5), {"depth": 1, "cutoffs": [1]})
    [row] = report.table("documents").records()
    assert (row["topic"], row["document"]) == ("1", "n")
    assert report.numbers["unjudged@1(two)"] == 1


def test_report_says_that_text_based_measures_are_not_examined() -> None:
    qrels = diverse({"1": {"a": {"x": 1}, "b": {"y": 1}}})
    texts = texts_of({"a": "red apple", "b": "rain", "n": "wine"})
    runs = lists({"one": {"1": ["a", "n"]}, "two": {"1": ["n", "b"]}})
    seen = [
        (name, view_of(ranking_of(run), qrels, top=5, content=content_of(run, qrels, texts)))
        for name, run in runs.items()
    ]
    subject = assemble_subject(NamedQrels("q", qrels), seen, [parse("LMD"), parse("alpha_nDCG@5")], top=5)
    report = audited("unjudged", subject)
    assert report.undefined[0].startswith("LMD: not examined, because the measure reads texts")
    assert len(report.undefined) == 1


def test_runs_without_documents_have_no_unjudged_share() -> None:
    runs = {**RUNS, "none": {}}
    report = audited("unjudged", subject_of(QRELS, runs, "P@2", top=3), FEW)
    assert report.numbers["unjudged@2(none)"] is None
    assert report.numbers["unjudged@2"] == 0.25


def test_report_says_that_no_run_has_documents_for_the_topics() -> None:
    runs = lists({"one": {"9": ["a"]}, "two": {"9": ["b"]}})
    report = audited("unjudged", subject_of(QRELS, runs, "P@2", top=3), FEW)
    assert report.verdict == ("No run retrieves a document for these topics.",)
    assert report.numbers["unjudged@2"] is None


def test_single_run_is_refused() -> None:
    single = subject_of(QRELS, {"one": RUNS["one"]}, "AP", top=20)
    assert any("only one is given: give two or more" in sentence for sentence in problems("unjudged", single))
