"""Tests of the audit kind `qrels_versions`."""

import random
from collections.abc import Mapping

import pytest

from cupel_audits import AuditError, read_audit
from cupel_audits.report import AuditReport
from cupel_audits.subject import AuditSubject
from cupel_measures.comparing.agreement import agreement
from cupel_measures.model import Aspect, Qrels
from support.data.audit_subjects import audited, problems, reported, subject_of, trials_of
from support.data.small_collections import Scored, diverse, qrels_of, ranked, scale

OLD = {
    "1": {"a": 2, "b": 1, "c": 0, "d": 0},
    "2": {"a": 1, "b": 0, "c": 1},
    "3": {"a": 0, "b": 2, "c": 0},
}
NEW = {
    "1": {"a": 2, "b": 0, "c": 0, "e": 1},
    "2": {"a": 1, "b": 2, "c": 1},
    "3": {"a": 0, "b": 2, "c": 0},
}
RUNS = {
    "one": {"1": ranked("a", "b", "c"), "2": ranked("a", "b"), "3": ranked("b", "a")},
    "two": {"1": ranked("e", "a", "b"), "2": ranked("b", "c"), "3": ranked("c", "b")},
    "three": {"1": ranked("c", "d"), "2": ranked("c"), "3": ranked("a", "c")},
}
FAST = {"replicates": 500}


def subject_of_versions(
    old: Mapping[str, Mapping[str, int]], new: Mapping[str, Mapping[str, int]], text: str
) -> AuditSubject:
    return subject_of(qrels_of({scale(2): old}), RUNS, text, other=qrels_of({scale(2): new}))


@pytest.fixture
def versions() -> AuditSubject:
    return subject_of_versions(OLD, NEW, "AP nDCG@3")


def report_of(subject: AuditSubject) -> AuditReport:
    return audited("qrels_versions", subject, FAST)


def test_relevant_documents_in_one_version_suffice() -> None:
    nothing = {topic: dict.fromkeys(labels, 0) for topic, labels in OLD.items()}
    assert problems("qrels_versions", subject_of_versions(OLD, nothing, "AP")) == []
    assert problems("qrels_versions", subject_of_versions(nothing, NEW, "AP")) == []
    assert problems("qrels_versions", subject_of_versions(nothing, nothing, "AP")) == [
        "no document is judged relevant in either version: all runs have the same score"
    ]


def test_agreement_uses_documents_judged_in_both_versions(versions: AuditSubject) -> None:
    report = report_of(versions)
    # 7 of the 9 documents judged in both versions have the same label. b falls from 1 to 0 on topic 1 and
    # rises from 0 to 2 on topic 2.
    [row] = report.table("agreement").records()
    assert (row["aspect"], row["pairs"], row["same"]) == ("relevance", 9, 7 / 9)
    assert report.numbers["same(relevance)"] == 7 / 9
    assert report.numbers["changed(relevance)"] == 2
    assert report.numbers["removed(relevance)"] == report.numbers["added(relevance)"] == 1
    assert versions.other_subject is not None
    [expected] = agreement(versions.qrels, versions.other_subject.qrels)
    assert report.numbers["kappa(relevance)"] == expected.kappa
    assert report.numbers["alpha(relevance)"] == expected.alpha
    # With linear weights, the observed distance is (1 + 2) / 9. The labels 0, 1 and 2 occur 4, 3 and 2 times
    # in the first version, and 4, 2 and 3 times in the second. So the expected distance is (4*2*1 + 4*3*2 +
    # 3*4*1 + 3*3*1 + 2*4*2 + 2*2*1) / 81 = 73 / 81.
    assert report.numbers["kappa(relevance)"] == pytest.approx(1 - (3 / 9) / (73 / 81))


def test_confusion_matrix_counts_changed_labels(versions: AuditSubject) -> None:
    rows = report_of(versions).table("confusion").records()
    cells = {(row["first"], row["second"]): row["pairs"] for row in rows}
    assert cells == {("0", "0"): 3, ("0", "2"): 1, ("1", "0"): 1, ("1", "1"): 2, ("2", "2"): 2}


def test_changes_are_counted_by_topic(versions: AuditSubject) -> None:
    assert report_of(versions).table("topics").rows == (
        ("relevance", "1", 2, 1, 1, 1),
        ("relevance", "2", 2, 1, 0, 0),
        ("relevance", "3", 3, 0, 0, 0),
    )


def test_runs_are_ranked_under_both_versions(versions: AuditSubject) -> None:
    report = report_of(versions)
    rows = {row["run"]: row for row in report.table("runs").records() if row["measure"] == "AP"}
    # AP of `one` under the old judgments: 1; a of 2 relevant, 1/2; 1. New: a of 2, 1/2; a and b of 3, 2/3; 1.
    # AP of `two`, old: a and b, (1/2 + 2/3)/2; c at rank 2, 1/4; b at rank 2, 1/2. New: e and a, 1; b and c
    # of 3, 2/3; 1/2.
    assert rows["one"]["score_first"] == pytest.approx((1 + 1 / 2 + 1) / 3, abs=1e-9)
    assert rows["one"]["score_second"] == pytest.approx((1 / 2 + 2 / 3 + 1) / 3, abs=1e-9)
    assert rows["two"]["score_first"] == pytest.approx((7 / 12 + 1 / 4 + 1 / 2) / 3, abs=1e-9)
    assert rows["two"]["score_second"] == pytest.approx((1 + 2 / 3 + 1 / 2) / 3, abs=1e-9)
    # Under the new judgments, `one` and `two` are tied.
    assert [rows["one"][name] for name in ("rank_first", "rank_second", "rise")] == [1, 1, 0]
    assert [rows["two"][name] for name in ("rank_first", "rank_second", "rise")] == [2, 1, 1]
    assert report.numbers["moved(AP)"] == 1
    assert report.numbers["tau(AP)"] == pytest.approx(2 / (3 * 2) ** 0.5)


def test_equal_versions_agree_fully_and_keep_all_ranks() -> None:
    report = report_of(subject_of_versions(OLD, OLD, "AP"))
    assert report.numbers["kappa(relevance)"] == report.numbers["alpha(relevance)"] == 1
    assert report.numbers["tau(AP)"] == report.numbers["tau_ap(AP)"] == 1
    changed = ("moved", "farthest", "regrouped", "alone", "opposite")
    assert [report.numbers[f"{name}(AP)"] for name in changed] == [0] * 5
    assert "; one keeps rank 1." in report.verdict[0]


def runs_with_shares(good: Mapping[str, float]) -> tuple[Mapping[str, Scored], list[str]]:
    """Return runs that rank document x first on about the given share of 24 topics."""
    topics = [f"t{number:02}" for number in range(24)]
    runs = {}
    for name, share in good.items():
        rng = random.Random(name)
        runs[name] = {t: ranked(*(("x", "y") if rng.random() < share else ("y", "x"))) for t in topics}
    return runs, topics


def test_groups_change_if_other_documents_are_relevant() -> None:
    runs, topics = runs_with_shares({"best": 1.0, "also": 0.95, "worst": 0.0})
    old = qrels_of({scale(1): {t: {"x": 1, "y": 0} for t in topics}})
    new = qrels_of({scale(1): {t: {"x": 0, "y": 1} for t in topics}})
    report = report_of(subject_of(old, runs, "P@1", other=new))
    table = report.table("runs")
    assert table.column("run") == ["best", "also", "worst"]
    assert table.column("group_first") == ["a", "a", "b"]
    assert table.column("group_second") == ["b", "b", "a"]
    assert table.column("regrouped") == [True, True, True]
    assert report.numbers["opposite(P@1)"] == 2
    assert report.numbers["alone(P@1)"] == 0
    assert "worst has rank 1 instead of best" in report.verdict[0]
    assert "and 2 in opposite directions" in report.verdict[0]


def test_only_runs_of_changed_pairs_change_their_group() -> None:
    runs, topics = runs_with_shares({"best": 1.0, "good": 0.9, "fair": 0.5, "worst": 0.0})
    old = qrels_of({scale(1): {t: {"x": 1, "y": 0} for t in topics}})
    subject = subject_of(old, runs, "P@1", other=old)
    assert not any(report_of(subject).table("runs").column("regrouped"))
    # Under the new judgments, all runs have the same score on a third of the topics.
    new = qrels_of({scale(1): {t: {"x": int(at % 3 > 0), "y": 0} for at, t in enumerate(topics)}})
    report = report_of(subject_of(old, runs, "P@1", other=new))
    changed = {row["run"] for row in report.table("runs").records() if row["regrouped"]}
    assert report.numbers["regrouped(P@1)"] == len(changed)
    assert report.numbers["alone(P@1)"] > 0  # type: ignore[operator]
    assert 2 <= len(changed) <= 2 * report.numbers["alone(P@1)"]  # type: ignore[operator]


def test_versions_are_compared_over_the_common_topics() -> None:
    fewer = {topic: NEW[topic] for topic in ("2", "3")} | {"9": {"a": 1}}
    report = report_of(subject_of_versions(OLD, fewer, "AP"))
    assert report.numbers["topics"] == 2
    assert report.warnings[0] == (
        "qrels has 3 topics and other has 3; only the 2 topics of both are compared."
    )
    [row_of_one] = [row for row in report.table("runs").records() if row["run"] == "one"]
    assert row_of_one["score_first"] == pytest.approx((1 / 2 + 1) / 2)
    assert report.numbers["removed(relevance)"] == 0


def test_one_common_topic_has_no_groups() -> None:
    report = report_of(subject_of_versions(OLD, {"1": NEW["1"]}, "AP"))
    assert report.numbers["regrouped(AP)"] is None
    assert "groups of AP: there is only one topic" in report.undefined
    assert report.numbers["tau(AP)"] is not None


def test_inferred_scales_of_different_lengths_are_compared() -> None:
    def version(highest: int, judged: Mapping[str, Mapping[str, int]]) -> Qrels:
        return qrels_of({Aspect(name="relevance", labels=range(highest + 1), inferred=True): judged})

    report = report_of(subject_of(version(2, OLD), RUNS, "AP", other=version(3, {"1": {"a": 3, "c": 0}})))
    assert report.table("confusion").column("second") == ["0", "3"]


def test_aspect_with_other_labels_or_without_counterpart_is_left_out() -> None:
    old = qrels_of({scale(2): OLD, scale(1, "trust"): {"1": {"a": 1}}})
    other = qrels_of({Aspect(name="relevance", labels=("no", "yes", "very")): OLD})
    report = report_of(subject_of(old, RUNS, "AP", other=other))
    assert not report.table("agreement").rows
    assert report.undefined[-2:] == (
        "relevance: the two versions have different labels",
        "trust: the second version has no such aspect",
    )


RANKED = {"one": "ab", "two": "b"}


@pytest.mark.parametrize("labels", [1000, 1001])
def test_aspect_with_more_than_1000_labels_is_left_out(labels: int) -> None:
    judged = {Aspect(name="many", labels=range(labels)): {"1": {"a": 1}, "2": {"a": 1}}}
    runs = {name: {topic: ranked(*documents) for topic in "12"} for name, documents in RANKED.items()}
    subject = subject_of(qrels_of(judged), runs, "P@1", other=qrels_of(judged))
    lacking = "many: it has more than 1000 labels"
    assert (lacking in audited("qrels_versions", subject).undefined) == (labels > 1000)


def test_measure_of_other_aspects_is_left_out() -> None:
    old = qrels_of({scale(2): OLD, scale(1, "trust"): {"1": {"a": 1}}})
    report = report_of(subject_of(old, RUNS, "AP CAM(of=AP)", other=qrels_of({scale(2): NEW})))
    assert report.table("measures").column("measure") == ["AP"]
    assert any(sentence.startswith("CAM(of=AP,") for sentence in report.undefined)


def test_measure_that_the_other_version_does_not_support_is_left_out() -> None:
    judged = {"1": {"a": {"1": 1, "2": 1}, "b": {"1": 0}}}
    old = qrels_of({scale(2): OLD, scale(1, "trust"): {"1": {"a": 1}}}, subtopics=judged)
    measures = "AP alpha_nDCG@20 nDCG(aspect=trust)"
    report = report_of(subject_of(old, RUNS, measures, other=qrels_of({scale(2): NEW})))
    assert report.table("measures").column("measure") == ["AP"]
    assert report.undefined[:2] == (
        "alpha_nDCG@20: it cannot be computed under other with the same aspects",
        "nDCG(aspect=trust): it cannot be computed under other with the same aspects",
    )


def test_judgments_by_subtopic_are_compared_by_document() -> None:
    old = diverse({"1": {"a": {"1": 1, "2": 1}, "b": {"1": 0}}, "2": {"a": {"1": 1}}})
    new = diverse({"1": {"a": {"1": 1}, "b": {"2": 1}}, "2": {"a": {"1": 1}}})
    report = report_of(subject_of(old, RUNS, "alpha_nDCG@20", other=new))
    # On topic 1, the labels by subtopics 1 and 2 change from 11 to 10 (a) and from 00 to 01 (b). On topic 2,
    # the label of a stays 1. So 3 of 5 labels are the same.
    [row] = report.table("agreement").records()
    assert (row["aspect"], row["pairs"], row["same"]) == ("subtopics", 5, 3 / 5)
    assert report.numbers["changed(subtopics)"] == 2


def test_tau_of_equal_runs_is_undefined() -> None:
    report = report_of(subject_of_versions(OLD, {topic: {"z": 1} for topic in OLD}, "AP"))
    assert report.numbers["tau(AP)"] is None
    assert "one has rank 1 instead of" not in report.verdict[0]
    assert "all 3 runs with equal scores have rank 1 instead of one" in report.verdict[0]
    assert "tau of AP: all runs have the same score under one version" in report.undefined
    assert "agreement on relevance: no topic-document pair is judged in both" in report.undefined


def test_report_has_no_notes_on_scale_types(versions: AuditSubject) -> None:
    """`scales` reports scale types; AP and nDCG have no interval scale."""
    assert report_of(versions).warnings == ()


def test_trial_does_not_depend_on_other_trials(versions: AuditSubject) -> None:
    alone = {trial: trials_of("qrels_versions", versions, FAST, only=[trial])[trial] for trial in (2, 0, 1)}
    assert alone == trials_of("qrels_versions", versions, FAST)


@pytest.mark.parametrize("trial", [0, 1, 2])
def test_partial_report_covers_one_trial(versions: AuditSubject, trial: int) -> None:
    results = trials_of("qrels_versions", versions, FAST, only=[trial])
    report = reported("qrels_versions", versions, FAST, results)
    assert report.verdict
    assert set(report.numbers) < set(report_of(versions).numbers)


def test_unsuitable_subjects_and_settings_are_refused(versions: AuditSubject) -> None:
    with pytest.raises(AuditError, match="give the second version as `other`"):
        report_of(subject_of(versions.qrels, RUNS, "AP"))
    with pytest.raises(AuditError, match="qrels and other have no topic in common"):
        report_of(subject_of_versions(OLD, {"9": {"a": 1}}, "AP"))
    with pytest.raises(AuditError, match="no document is judged relevant in either version"):
        report_of(subject_of_versions({"1": {"a": 0}}, {"1": {"a": 0}}, "AP"))
    with pytest.raises(AuditError, match="alpha: expected a number between 0 and 1"):
        read_audit("qrels_versions", {"alpha": 0})
