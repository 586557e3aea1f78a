"""Sentences and titles of audits if values are tied, or differences cannot be detected.

Run a ranks the relevant document x first on every topic, b on two of the four topics and else second, and c
last. So the ranks of a, b and c by P@1 are 1, 2, 3; by P@2, a and b are tied at 1.5.
"""

from collections.abc import Mapping

import pytest

from cupel_audits.report import AuditReport
from cupel_audits.subject import AuditSubject
from support.data.audit_subjects import audited, board, lists, reported, subject_of, trials_of
from support.data.small_collections import qrels_of, scale

TOPICS = "1234"
QRELS = qrels_of({topic: {"x": 1, "y": 0, "z": 0} for topic in TOPICS})
BETTER, WORSE, WORST = ["x", "y", "z"], ["y", "x", "z"], ["z", "y", "x"]
RUNS = lists(
    {
        "a": dict.fromkeys(TOPICS, BETTER),
        "b": {topic: BETTER if topic < "3" else WORSE for topic in TOPICS},
        "c": dict.fromkeys(TOPICS, WORST),
    }
)


def subject(measures: str) -> AuditSubject:
    return subject_of(QRELS, RUNS, measures)


def titles_of(report: AuditReport) -> list[str]:
    return [plot.title for plot in report.plots]


def test_correlation_names_no_single_pair_or_run_if_others_are_tied() -> None:
    report = audited("correlation", subject("P@1 P@2 RR AP"))
    assert report.verdict == (
        "By these topics, the order of runs differs most between P@1 and P@2 (tau 0.82 overall, 0.75 by "
        "topic; no run moves more than a, from rank 1 to 1.5) and 2 other pairs with this tau.",
        "It differs least between RR and AP (tau 1.00 overall, 1.00 by topic) and 2 other pairs with this "
        "tau. Of 6 pairs of measures, 3 have a tau of 0.9 or more.",
    )
    assert titles_of(report) == [
        "P@1 and P@2 have tau 0.82 overall; no pair has a lower tau",
        "P@1 and P@2 have tau 0.75 by topic; no pair has a lower tau",
        "No run moves more than a: rank 1 by P@1, 1.5 by P@2",
    ]


def test_titles_of_scales_name_the_tests_and_count_tied_measures() -> None:
    report = audited("scales", subject("P@1 P@2 RR AP"))
    assert titles_of(report)[:2] == [
        "Pairs of runs that differ significantly by ranks (Nemenyi's test): highest by RR and 1 other "
        "(33.3%), lowest by P@2 and 1 other (0.0%)",
        "Pairs of runs that differ significantly by means (max-T): 0.0% by every measure",
    ]


def test_reliability_advises_by_the_estimate_with_its_interval() -> None:
    report = audited("reliability", subject("RR AP"))
    assert report.actions == (
        "To compare runs at 0.95, add topics to the 4: by the estimate, RR needs 5 (interval: 1 to 61); no "
        "other measure needs fewer.",
        "To interpret scores themselves at 0.95, add topics to the 4: by the estimate, RR needs 5 (interval: "
        "1 to 54); no other measure needs fewer.",
    )
    assert (
        titles_of(report)[1]
        == "Share of the variance of a score that is between runs: 79.3% by every measure"
    )


def test_topics_that_detect_no_possible_difference() -> None:
    """By P@1, the paired t-test detects a difference of 1.003, but scores are from 0 to 1."""
    report = audited("topics", subject("P@1"), {"draws": 20, "sizes": [2]})
    assert (
        "P@1: a paired t-test on 4 topics at alpha 0.05 detects no possible true difference with power 0.8 "
        "(a single test, at the spread pooled over all pairs of these runs)." in report.verdict
    )
    assert report.warnings[-1].endswith(
        "that a paired t-test at alpha 0.05 (a single test) detects with power 0.8 exceeds the range of the "
        "measure (0 to 1), so these topics detect no possible difference with this power"
    )
    assert titles_of(report)[0] == "No lasting difference was found"


def test_tied_topics_are_counted() -> None:
    report = audited("topics", subject("P@2"), {"draws": 20})
    assert titles_of(report)[-1] == "Topics 1, 2, 3 and 1 other have the lowest median scores by P@2"


def test_power_with_topics_that_detect_no_possible_difference() -> None:
    given = {"replicates": 300, "alpha": 0.02, "power": 0.9, "sizes": [3]}
    report = audited("discriminative_power", subject("P@1"), given)
    [warning] = report.warnings
    assert warning.startswith("P@1: the difference of 1.")
    assert "a paired t-test at alpha 0.02 (a single test) detects with power 0.9 exceeds the range" in warning
    assert "3 topics detect no possible difference (paired t-test, alpha 0.02, power 0.9)" in titles_of(
        report
    )


def test_downsampling_names_the_first_step_and_tied_runs() -> None:
    report = audited("downsampling", subject_of(*board(), "P@5 AP"), {"repeats": 3, "ratios": [50, 10]})
    assert "mean tau over 3 repeats is below 0.9 at the first step; with " in report.verdict[0]
    assert titles_of(report)[1].startswith("No run changes its median rank more than run")
    assert report.plots[0].reference_label == "tau 0.9: 1 in 20 pairs swapped (no ties)"


def test_runs_that_lose_equally_many_ranks() -> None:
    """When it is left out, every run loses its only relevant document and two ranks."""
    qrels = qrels_of({topic: {"x": 1, "y": 1, "z": 1} for topic in TOPICS})
    firsts = {"a": "x", "b": "y", "c": "z"}
    runs = lists({run: {topic: [first, "u"] for topic in TOPICS} for run, first in firsts.items()})
    report = audited("leave_one_run_out", subject_of(qrels, runs, "P@1"))
    assert titles_of(report)[0] == "When left out, a run loses up to 2 of 3 ranks (a and 2 others by P@1)"
    assert "at most 100.0% (a and 2 others) for a run that is left out" in " ".join(report.verdict)
    assert (
        "Invite runs that retrieve different documents. The most that a single run contributes, and no "
        "other, is 4 judged documents (a and 2 others, depth 1 or 2)." in report.actions
    )
    assert titles_of(report)[2] == (
        "A run alone contributes up to 4 judged documents (a and 2 others, depth 1 or 2)"
    )


@pytest.mark.parametrize(
    ("other", "best", "title"),
    [
        ({"y": 1}, "b has rank 1 instead of a", "No run moves more than a: from rank 1 to 2 by P@1"),
        ({"x": 1}, "a keeps rank 1", "No run changes its rank"),
    ],
)
def test_ranks_under_two_versions(other: Mapping[str, int], best: str, title: str) -> None:
    judged = {topic: {"x": 0, "y": 0, "z": 0} | other for topic in TOPICS}
    report = audited("qrels_versions", subject_of(QRELS, RUNS, "P@1", other=qrels_of({scale(1): judged})))
    assert f"; {best}." in report.verdict[0]
    assert title in titles_of(report)


def test_verdict_on_one_run_of_a_changed_pair_is_in_the_singular() -> None:
    """Trials of an earlier release counted runs whose group changed, so a single run is possible."""
    subject = subject_of(QRELS, RUNS, "P@1", other=QRELS)
    trials = trials_of("qrels_versions", subject)
    for trial in trials.values():
        if "regrouped" in trial:
            trial["regrouped"][0] = True
    report = reported("qrels_versions", subject, None, trials)
    assert "1 run is in pairs whose significance changes" in report.verdict[0]
