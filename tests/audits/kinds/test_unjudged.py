"""Which unjudged documents matter most, and how much of each run is unjudged."""

import numpy as np
import pytest

from cupel_audits.kinds.unjudged.unjudged_kind import shifted
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


def test_influence_by_hand() -> None:
    """P@2 over two topics: .5, .5, .25. If x is relevant, one gets .75 and is told apart from two, with which
    it is tied: 1. With y, or z, three gets .5 and takes all of two's lead: 1. None turns a pair round."""
    report = audited("unjudged", subject_of(QRELS, RUNS, "P@2", top=3), FEW)
    rows = report.table("documents").rows
    assert [row[1:4] for row in rows] == [("1", "x", 1), ("1", "y", 1), ("2", "z", 1)]
    assert [row[4] for row in rows] == pytest.approx([1 / 3, 2 / 3, 1])
    assert [row[5] for row in rows] == [0, 0, 0]
    assert rows[0][9] == "one over two by P@2: a lead of 0.00000 would be 0.25000"
    assert rows[1][9] == "two over three by P@2: a lead of 0.25000 would be 0.00000"
    assert rows[0][6:9] == (1, 2, "one 2")
    assert report.numbers["missing"] == 3
    assert report.numbers["turning"] == 0


def test_unjudged_shares_of_each_run() -> None:
    """A negative grade is a judgment. Of one: x of topic 1's two, none of topic 2."""
    report = audited("unjudged", subject_of(QRELS, RUNS, "P@2", top=3), FEW)
    assert report.numbers["unjudged@2(one)"] == 0.25
    assert report.numbers["unjudged@2(two)"] == 0
    assert report.numbers["unjudged@2(three)"] == 0.5
    assert report.numbers["unjudged@2"] == 0.25
    assert report.numbers["worst(unjudged@2)"] == 0.5
    assert report.numbers["unjudged@1"] == 0
    assert "25.0% are unjudged on average, and 50.0% at worst (three)" in report.verdict[0]


def test_pairs_that_a_document_turns_round_are_those_of_new_judgments() -> None:
    """Two runs are close: b, at the top of the lower one alone, turns them round by each measure."""
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
    found = trials_of("unjudged", subject, {"depth": 2, "cutoffs": [2]})
    [told] = found[0]["documents"]
    more = qrels_of({"1": {"a": 1, "b": 1, "c": 0}, "2": {"d": 1, "e": 1}})
    after = [evaluate(more, joined_of(run, more), measures).aggregates() for run in runs.values()]
    for measure in measures:
        influence, turned, (upper, lower, _, left) = told["measures"][str(measure)]
        assert (upper, lower) == (0, 1)
        assert left == pytest.approx(after[0][measure] - after[1][measure], abs=1e-12)
        assert left < 0
        assert (influence, turned) == (1, 1)
    assert found[0]["turning"] == 1


def test_lists_are_bounded_and_the_most_influential_come_first() -> None:
    qrels, runs = board(judged=30)
    subject = subject_of(qrels, runs, "AP nDCG@10", top=40)
    whole = audited("unjudged", subject, {"tried": 200, "budget": 200, "most": 1000})
    influence = [float(row[3] or 0) for row in whole.table("documents").rows]
    assert influence == sorted(influence, reverse=True)
    assert len(influence) == whole.numbers["missing"]
    few = audited("unjudged", subject, {"tried": 200, "budget": 2, "most": 7})
    assert len(few.table("documents").rows) == 7
    topics = few.table("documents").column("topic")
    assert max(topics.count(topic) for topic in topics) <= 2
    assert few.table("documents").rows[0][:4] == whole.table("documents").rows[0][:4]
    some = audited("unjudged", subject, {"tried": 3})
    assert "were not tried" in some.warnings[0]
    assert set(some.table("topics").column("tried")) == {3}


def test_results_do_not_depend_on_the_order_of_trials() -> None:
    qrels, runs = board(judged=40, topics=4)
    whole = trials_of("unjudged", subject_of(qrels, runs, "AP GMAP", top=40))
    single = {}
    for topic in reversed(whole):
        single |= trials_of("unjudged", subject_of(qrels, runs, "AP GMAP", top=40), only=[topic])
    assert single == whole
    subject = subject_of(qrels, runs, "AP GMAP", top=40)
    assert reported("unjudged", subject, None, single) == reported("unjudged", subject, None, whole)
    part = reported("unjudged", subject, None, {3: whole[3]})
    assert part.table("topics").column("topic") == ["3"]


@pytest.mark.parametrize("text", ["AP", "NumRel", "GMAP"])
def test_scores_shift_as_they_do_over_all_topics(text: str) -> None:
    """A mean, a sum, and a geometric mean."""
    qrels, runs = board(judged=40, topics=3)
    subject = subject_of(qrels, runs, text, top=10)
    measure = subject.measures[0]
    kept = np.ones(len(qrels.documents), dtype=bool)
    kept[: int(qrels.offsets[1]) : 2] = False  # of the first topic
    fewer = Evaluator(qrels, subject.joined).keeping(kept)
    old, new = subject.scores[str(measure)][0], subject.by_topic(fewer)[str(measure)][0]
    found = shifted(measure, subject.means[str(measure)], old, new[None], 3)
    assert found[0] == pytest.approx(subject.means_under(fewer)[str(measure)], abs=2e-12)


def test_nothing_is_left_to_judge() -> None:
    qrels, runs = board(documents=30, judged=30)
    report = audited("unjudged", subject_of(qrels, runs, "AP", top=100))
    assert report.numbers["unjudged@10"] == report.numbers["missing"] == 0
    assert report.verdict[-1] == "Nothing is left to judge among the first 10 documents of any run."
    assert report.table("documents").rows == ()


def test_judgments_by_subtopic() -> None:
    qrels = diverse({"1": {"a": {"x": 1}, "b": {"y": 1}}})
    runs = lists({"one": {"1": ["a", "n"]}, "two": {"1": ["n", "m"]}})
    report = audited("unjudged", subject_of(qrels, runs, "alpha_nDCG@5", top=5), {"depth": 1, "cutoffs": [1]})
    [row] = report.table("documents").rows
    assert row[1:3] == ("1", "n")
    assert report.numbers["unjudged@1(two)"] == 1


def test_measures_that_read_texts_are_not_tried_and_the_report_says_so() -> None:
    qrels = diverse({"1": {"a": {"x": 1}, "b": {"y": 1}}})
    texts = texts_of({"a": "red apple", "b": "rain", "n": "wine"})
    runs = lists({"one": {"1": ["a", "n"]}, "two": {"1": ["n", "b"]}})
    seen = [
        (name, view_of(ranking_of(run), qrels, top=5, content=content_of(run, qrels, texts)))
        for name, run in runs.items()
    ]
    subject = assemble_subject(NamedQrels("q", qrels), seen, [parse("LMD"), parse("alpha_nDCG@5")], top=5)
    report = audited("unjudged", subject)
    assert report.undefined[0].startswith("LMD: not tried, for it reads texts")
    assert len(report.undefined) == 1


def test_runs_without_any_document_have_no_share() -> None:
    runs = {**RUNS, "none": {}}
    report = audited("unjudged", subject_of(QRELS, runs, "P@2", top=3), FEW)
    assert report.numbers["unjudged@2(none)"] is None
    assert report.numbers["unjudged@2"] == 0.25


def test_runs_of_other_topics_have_nothing_to_judge() -> None:
    runs = lists({"one": {"9": ["a"]}, "two": {"9": ["b"]}})
    report = audited("unjudged", subject_of(QRELS, runs, "P@2", top=3), FEW)
    assert report.verdict == ("No run has a document of these topics.",)
    assert report.numbers["unjudged@2"] is None


def test_one_run_has_no_order() -> None:
    one = subject_of(QRELS, {"one": RUNS["one"]}, "AP", top=20)
    assert any("only one: give two or more" in sentence for sentence in problems("unjudged", one))
