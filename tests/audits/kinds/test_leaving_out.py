"""The audits `leave_one_run_out` and `leave_one_team_out`: contributions, losses and verdicts."""

import math
from typing import Any

import numpy as np
import pytest

from cupel_audits.analysis.run_orders import ranks
from cupel_audits.declarations import AuditError, read_audit
from cupel_measures.catalogue.parser import parse
from cupel_measures.scoring.evaluator import evaluate
from support.data.audit_subjects import audited, board, lists, problems, reported, subject_of, trials_of
from support.data.small_collections import joined_of, qrels_of

JUDGED = {"1": {"a": 1, "b": 0, "c": 2, "d": 1, "e": 0, "f": 1}, "2": {"g": 1, "h": 1, "i": 0}}
QRELS = qrels_of(JUDGED)
RUNS = lists(
    {
        "one": {"1": ["a", "c", "x"], "2": ["g", "y"]},
        "two": {"1": ["a", "b", "c"], "2": ["h", "g"]},
        "three": {"1": ["d", "x", "e"], "2": ["i"]},
    }
)
TWO = {"depth": 2, "depths": [1, 2, 3]}
"""The pools of depth 2 are {a, c, b, d, x} and {g, y, h, i}. Only `one` contributes c and y, only `two` b and
h, and only `three` d, i and x (`one` has x at rank 3). x and y are unjudged."""


def means_without(removed: dict[str, set[str]]) -> list[float]:
    """Return AP of each run under new qrels without the judgments of the removed documents."""
    qrels = qrels_of({t: {d: g for d, g in of.items() if d not in removed[t]} for t, of in JUDGED.items()})
    scores = [evaluate(qrels, joined_of(run, qrels), [parse("AP")]) for run in RUNS.values()]
    return [round(run_scores.aggregates()[parse("AP")], 12) for run_scores in scores]


def test_runs_of_one_team_are_a_problem_only_if_there_are_several() -> None:
    alone = subject_of(QRELS, {"one": RUNS["one"]}, "AP", teams=["X"])
    assert not any("one team" in problem for problem in problems("leave_one_team_out", alone))
    several = subject_of(QRELS, RUNS, "AP", teams=["X", "X", "X"])
    assert problems("leave_one_team_out", several) == [
        "all runs belong to one team, X: give runs of two or more teams"
    ]


def test_scores_equal_rescoring_without_the_contributions_of_a_run() -> None:
    results = trials_of("leave_one_run_out", subject_of(QRELS, RUNS, "AP"), TWO)
    alone = [{"1": {"c"}, "2": set()}, {"1": {"b"}, "2": {"h"}}, {"1": {"d"}, "2": {"i"}}]
    full = means_without({"1": set(), "2": set()})
    for run, lost in enumerate(alone):
        trial, after = results[run], means_without(lost)
        assert trial["scores"]["AP"] == [[full[run]], [after[run]]]
        assert trial["lost"] == sum(map(len, lost.values()))
        assert trial["ranks"]["AP"][1] == [[1, 2, 3][sorted(after, reverse=True).index(after[run])]]
        assert trial["depth"] == 2


def test_contributions_by_depth_equal_hand_worked_values() -> None:
    """At rank 1, two runs retrieve a, and one run each retrieves d, g, h and i. Only i is not relevant."""
    report = audited("leave_one_run_out", subject_of(QRELS, RUNS, "AP"), TWO)
    rows = {(row[0], row[1]): row[2:] for row in report.table("contributions").rows}
    assert rows["one", 1] == rows["two", 1] == (1, 1)
    assert rows["three", 1] == (2, 1)
    assert rows["one", 2] == (1, 1)
    assert rows["two", 2] == (2, 1)
    assert rows["three", 2] == (2, 1)
    assert rows["one", 3] == (0, 0)
    assert rows["two", 3] == (2, 1)
    assert report.numbers["unique@2"] == pytest.approx(5 / 3)
    assert report.numbers["unique_relevant@2"] == 1


def test_unjudged_shares_equal_hand_worked_values() -> None:
    """Within depth 2, run `one` has the unjudged document y. If the run is left out, c is unjudged too."""
    report = audited("leave_one_run_out", subject_of(QRELS, RUNS, "AP"), TWO)
    rows = {(row[0], row[1]): row[2:] for row in report.table("unjudged").rows}
    assert rows["one", 2] == (0.25, 0.5)
    assert rows["two", 2] == (0, 0.5)
    assert rows["three", 2] == (0.25, 1)  # x; without the run also d and i, its only document of topic 2
    assert report.numbers["unjudged_outside@2"] == pytest.approx(2 / 3)
    assert report.numbers["worst(unjudged_outside@2)"] == 1


def test_all_runs_of_a_team_are_left_out_together() -> None:
    subject = subject_of(QRELS, RUNS, "AP", teams=["X", "Y", "X"])
    results = trials_of("leave_one_team_out", subject, TWO)
    assert [trial["runs"] for trial in results.values()] == [[0, 2], [1]]
    after = means_without({"1": {"c", "d"}, "2": {"i"}})
    assert results[0]["scores"]["AP"][1] == [after[0], after[2]]
    report = audited("leave_one_team_out", subject, TWO)
    assert {row[1] for row in report.table("points").rows} == {"X", "Y"}
    assert not report.warnings


def test_teams_with_a_single_run_give_the_results_of_single_runs() -> None:
    subject = subject_of(QRELS, RUNS, "AP", teams=["A", "B", "C"])
    teams, runs = (audited(kind, subject, TWO) for kind in ("leave_one_team_out", "leave_one_run_out"))
    assert teams.numbers == runs.numbers
    assert teams.warnings == (
        "Every team has a single run, so the results equal those of leave_one_run_out.",
    )


def test_runs_without_own_contributions_lose_no_judgments() -> None:
    runs = {**RUNS, "again": RUNS["one"], "once more": RUNS["three"], "two too": RUNS["two"]}
    retrieved = qrels_of({"1": {"a": 1, "b": 0, "c": 2, "d": 1}, "2": JUDGED["2"]})
    report = audited("leave_one_run_out", subject_of(retrieved, runs, "AP"), TWO)
    assert report.numbers["tau(AP)"] == report.numbers["least_tau(AP)"] == 1
    assert report.verdict[0] == (
        "No verdict on fairness: leaving out any run removes no judgment, so nothing was tested."
    )
    assert report.verdict[1].startswith("AP: A run that is left out")
    assert report.actions[0] == "Add runs that retrieve different documents: these runs test nothing."
    assert report.numbers["worst_rank_loss(AP)"] == report.numbers["score_loss(AP)"] == 0
    assert any("in 6 of 6 cases it removes none" in sentence for sentence in report.verdict)


def test_verdict_gives_the_losses() -> None:
    """`three` ranks last in any case; `one` falls behind `two` without the judgment of c."""
    report = audited("leave_one_run_out", subject_of(QRELS, RUNS, "AP"), TWO)
    points = report.table("points")
    places = points.column("places")
    full = means_without({"1": set(), "2": set()})
    assert points.column("rank") == ranks_of(full)
    assert report.numbers["worst_rank_loss(AP)"] == max(int(places_lost or 0) for places_lost in places)
    assert report.numbers["rank_loss(AP)"] == pytest.approx(math.fsum(map(float, places)) / 3)  # type: ignore[arg-type]
    assert report.verdict[-2].startswith(
        "Pool depth 2 (as given). Leaving out one of 3 runs removes a median of 2 judgments"
    )
    assert "Unjudged share of the top 1:" in report.verdict[-1]


def ranks_of(scores: list[float]) -> list[int]:
    return [sum(other > score for other in scores) + 1 for score in scores]


def test_equal_scores_share_the_best_rank() -> None:
    assert ranks(np.array([0.5, 0.9, 0.5, 0.1])) == ranks_of([0.5, 0.9, 0.5, 0.1]) == [2, 1, 2, 4]


@pytest.mark.parametrize("kind", ["leave_one_run_out", "leave_one_team_out"])
def test_results_are_independent_of_the_order_of_trials(kind: str) -> None:
    qrels, runs = board(runs=7, judged=80)
    teams = ["A", "B", "A", "C", "C", "B", "D"]
    in_order = trials_of(kind, subject_of(qrels, runs, "AP nDCG@10", teams=teams))
    single: dict[str, Any] = {}
    for trial in reversed(in_order):
        subject = subject_of(qrels, runs, "AP nDCG@10", teams=teams)
        single |= trials_of(kind, subject, only=[trial])
    assert single == in_order
    subject = subject_of(qrels, runs, "AP nDCG@10", teams=teams)
    assert reported(kind, subject, None, single) == reported(kind, subject, None, in_order)
    assert reported(kind, subject, None, {2: in_order[2]}).verdict


def test_depths_end_at_the_deepest_rank_of_any_run() -> None:
    subject = subject_of(QRELS, RUNS, "AP")
    [trial] = trials_of("leave_one_run_out", subject, {"depths": [2, 10, 100]}, only=[0]).values()
    assert [row[0] for row in trial["brought"]] == sorted({2, 3, trial["depth"]})
    assert 1 <= trial["depth"] <= 3


def test_impossible_audits_are_refused_with_a_reason() -> None:
    alone = subject_of(QRELS, {"one": RUNS["one"]}, "AP")
    assert any(
        "only one is given: give two or more" in sentence for sentence in problems("leave_one_run_out", alone)
    )
    unknown = subject_of(QRELS, RUNS, "AP")
    assert problems("leave_one_team_out", unknown) == [
        "the teams of the runs are unknown: give the team of each run, or leave out single runs with "
        "leave_one_run_out"
    ]
    single = subject_of(QRELS, RUNS, "AP", teams=["A"] * 3)
    assert problems("leave_one_team_out", single) == [
        "all runs belong to one team, A: give runs of two or more teams"
    ]
    with pytest.raises(AuditError, match="increasing depths"):
        read_audit("leave_one_run_out", {"depths": [20, 10]})
    nothing = subject_of(qrels_of({"1": {"a": 0}}), RUNS, "AP")
    assert any(
        "no document is judged relevant" in problem for problem in problems("leave_one_run_out", nothing)
    )


def test_report_warns_of_a_single_topic() -> None:
    single = qrels_of({"1": JUDGED["1"]})
    report = audited("leave_one_run_out", subject_of(single, RUNS, "AP"), TWO)
    assert report.warnings[0].startswith("There is only one topic")


def test_verdict_says_unfair_if_runs_lose_many_ranks() -> None:
    """Each run has relevant documents that no other run has, and falls to the last rank without them."""
    names = "abcdefgh"
    retrieved = {
        f"r{n}": {f"{t}": [f"{d}{t}" for d in names[2 * n : 2 * n + 2]][: 2 - (t < n)] for t in range(3)}
        for n in range(4)
    }
    qrels = qrels_of({f"{t}": {d: 1 for run in retrieved.values() for d in run[f"{t}"]} for t in range(3)})
    subject = subject_of(qrels, lists(retrieved), "P@2")
    report = audited("leave_one_run_out", subject, {"depth": 2, "depths": [2]})
    assert report.verdict[1].startswith(
        "P@2: unfair to runs from outside the pool that resemble the given ones, by the convention of Cupel "
        "(fair: at most 1 rank lost and tau at least 0.9 whichever run is left out; untested). A run that is "
        "left out loses"
    )
    assert report.numbers["worst_rank_loss(P@2)"] == 3
    assert report.numbers["unjudged_outside@2"] == 1


@pytest.mark.parametrize(
    ("losses", "taus", "verdict"),
    [
        ([2] * 40, [0.9] * 40, "fair"),
        ([3] + [0] * 39, [1] * 40, "mostly fair"),
        ([3] * 13 + [1] + [0] * 26, [1] * 40, "mostly fair"),
        ([3] * 13 + [2] + [0] * 26, [1] * 40, "unfair"),
        ([0] * 40, [0.8] * 20 + [1] * 20, "mostly fair"),
        ([0] * 40, [0.8] * 20 + [0.99] * 20, "unfair"),
        ([1, 0, 0], [1] * 3, "fair"),
        ([2, 0, 0], [1] * 3, "unfair"),
        ([0, 0, 0], [0.8, 1, 1], "mostly fair"),
        ([0, 0, 0], [0.0] * 3, "unfair"),
    ],
)
def test_fair_pool_costs_a_twentieth_of_the_ranks(losses: list[int], taus: list[float], verdict: str) -> None:
    """With 40 runs, 2 ranks are a twentieth. The mean loss of a mostly fair pool is at most half of that."""
    runs = {f"r{n}": RUNS["one"] for n in range(len(losses))}
    subject = subject_of(QRELS, runs, "AP")
    trial = trials_of("leave_one_run_out", subject, TWO, only=[0])[0]
    found = {
        n: {
            **trial,
            "runs": [n],
            "ranks": {"AP": [[1], [1 + loss]]},
            "tau": {"AP": tau},
            "unexplained": 0,
            "lost": 1,
        }
        for n, (loss, tau) in enumerate(zip(losses, taus, strict=True))
    }
    [_, sentence, *_] = reported("leave_one_run_out", subject, TWO, found).verdict
    limit = "2 ranks" if len(losses) == 40 else "1 rank"
    assert sentence.startswith(
        f"AP: {verdict} to runs from outside the pool that resemble the given ones, by the convention of "
        f"Cupel (fair: at most {limit} lost and"
    )


def test_equal_scores_leave_tau_undefined() -> None:
    runs = {"one": RUNS["one"], "two": RUNS["one"]}
    report = audited("leave_one_run_out", subject_of(QRELS, runs, "AP"), TWO)
    assert report.numbers["tau(AP)"] is None
    assert report.verdict[2] == "AP: undefined because all runs have the same score."
    assert report.undefined == ("tau of AP: all runs have the same score",)


def test_unjudged_share_without_retrieved_documents_is_undefined() -> None:
    runs = {"one": RUNS["one"], "none": {"1": {}, "2": {}}}
    report = audited("leave_one_run_out", subject_of(QRELS, runs, "AP"), TWO)
    rows = {(row[0], row[1]): row[2:] for row in report.table("unjudged").rows}
    assert rows["none", 2] == (None, None)


@pytest.mark.parametrize(
    ("judged", "depth"),
    [
        ([20, 14, 0], 2),  # the share drops most after rank 2, from 70%
        ([4, 4, 2], 2),  # the only drop is 0.1
        ([11, 10, 9], 2),  # all drops are smaller, and half of the documents are judged at rank 2
        ([9, 9, 9], 1),  # less than half of the documents are judged
    ],
)
def test_depth_of_the_pool_is_estimated_from_judged_shares_by_rank(judged: list[int], depth: int) -> None:
    """Two equal runs rank three documents in each of 20 topics. judged: topics whose document is judged."""
    ranking = {str(topic): [f"{topic}{rank}" for rank in "abc"] for topic in range(20)}
    grades = {
        topic: {document: 1 for document, number in zip(ranked, judged, strict=True) if int(topic) < number}
        for topic, ranked in ranking.items()
    }
    subject = subject_of(
        qrels_of({topic: grades[topic] or {"other": 0} for topic in grades}),
        lists({"one": ranking, "two": ranking}),
        "P@2",
    )
    assert audited("leave_one_run_out", subject, {"depths": [1, 3]}).numbers["pool_depth"] == depth
