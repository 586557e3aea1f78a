"""The reports of `leave_one_run_out` and `leave_one_team_out` on four runs, derived by hand.

Relevant: 1a, 1c, 2e, 2f, 2h. Judged, not relevant: 1b, 1x, 2g. Unjudged: 2y.
P@2 by run: `one` (1/2 + 1/2)/2 = 0.5, `two` (1 + 1)/2 = 1, `three` (1/2 + 0)/2 = 0.25, `four` 0.
"""

import math
from collections.abc import Mapping

from support.data.audit_subjects import audited, lists, reported, subject_of, trials_of
from support.data.expected_reports import ExpectedTable, assert_report
from support.data.small_collections import qrels_of

QRELS = qrels_of({"1": {"1a": 1, "1b": 0, "1c": 1, "1x": 0}, "2": {"2e": 1, "2f": 1, "2g": 0, "2h": 1}})
RUNS = lists(
    {
        "one": {"1": ["1a", "1b"], "2": ["2e", "2y"]},
        "two": {"1": ["1a", "1c"], "2": ["2f", "2h"]},
        "three": {"1": ["1b", "1a"], "2": ["2g", "2y"]},
        "four": {"1": ["1x", "1b"], "2": ["2g"]},
    }
)
PARAMETERS = {"depth": 2, "depths": [1, 2]}
TAU_ONE = 5 / math.sqrt(6 * 5)
"""Without 2e: one 0.25, two 1, three 0.25, four 0. Five of six pairs keep their order, one is tied."""
TAU_TWO = 3 / math.sqrt(6 * 5)
"""Without 1c, 2f and 2h: one 0.5, two 0.25, three 0.25, four 0. Four pairs agree, one is reversed, one is
tied.
"""
POINTS = "measure left run before after change rank outside places"
SUMMARY = "measure tau least places worst run change greatest"


RUN_TAU = (TAU_ONE + TAU_TWO + 1 + 1) / 4
RUN_TABLES: Mapping[str, ExpectedTable] = {
    "points": (
        POINTS,
        [
            ("P@2", "one", "one", 0.5, 0.25, -0.25, 2, 2, 0),
            ("P@2", "two", "two", 1.0, 0.25, -0.75, 1, 2, 1),
            ("P@2", "three", "three", 0.25, 0.25, 0.0, 3, 3, 0),
            ("P@2", "four", "four", 0.0, 0.0, 0.0, 4, 4, 0),
        ],
    ),
    "summary": (SUMMARY, [("P@2", RUN_TAU, TAU_TWO, 0.25, 1, "two", -0.25, 0.75)]),
    "taus": (
        "left measure tau lost",
        [
            ("one", "P@2", TAU_ONE, 1),
            ("two", "P@2", TAU_TWO, 3),
            ("three", "P@2", 1, 0),
            ("four", "P@2", 1, 1),
        ],
    ),
    "contributions": (
        "left depth judged relevant",
        [
            ("one", 1, 1, 1),
            ("one", 2, 1, 1),
            ("two", 1, 1, 1),
            ("two", 2, 3, 3),
            ("three", 1, 1, 0),
            ("three", 2, 0, 0),
            ("four", 1, 1, 0),
            ("four", 2, 1, 0),
        ],
    ),
    "unjudged": (
        "run depth before after",
        [
            ("one", 1, 0, 0.5),
            ("one", 2, 0.25, 0.5),
            ("two", 1, 0, 0.5),
            ("two", 2, 0, 0.75),
            ("three", 1, 0, 0),
            ("three", 2, 0.25, 0.25),
            ("four", 1, 0, 0.5),
            ("four", 2, 0, 0.25),
        ],
    ),
    "stages": (
        "measure run stage rank",
        [
            ("P@2", "one", "in the pool", 2),
            ("P@2", "one", "left out", 2),
            ("P@2", "two", "in the pool", 1),
            ("P@2", "two", "left out", 2),
            ("P@2", "three", "in the pool", 3),
            ("P@2", "three", "left out", 3),
            ("P@2", "four", "in the pool", 4),
            ("P@2", "four", "left out", 4),
        ],
    ),
}


RUN_VERDICT = (
    "A run that is left out of the pool loses at most 1 of 4 ranks (two by P@2); on average 0.25 by P@2.",
    "P@2: unfair to runs from outside the pool that resemble the given ones, by the convention of Cupel "
    "(fair: at most 1 rank lost and tau at least 0.9 whichever run is left out; untested). A run that is "
    "left out loses 0.25 of 4 ranks on average "
    "and at most 1 (two). Its score changes by -0.2500 on average. Tau with the original order "
    "is 0.865 on average and at least 0.548.",
    "0 of 8 judged documents (0.0%) are not in the top 2 of any audited run.",
    "Pool depth 2 (as given). Leaving out one of 4 runs removes a median of 1 judgments and at most 3; "
    "in 1 of 4 cases it removes none.",
    "Unjudged share of the top 1: 37.5% on average and at most 50.0% (one and 2 others) for a "
    "run that is left out, 0.0% on average for a run in the pool.",
)


def test_leave_one_run_out_report_equals_the_hand_worked_report() -> None:
    """Within depth 2, only `one` has 2e, only `two` has 1c, 2f and 2h, and only `four` has 1x."""
    report = audited("leave_one_run_out", subject_of(QRELS, RUNS, "P@2"), PARAMETERS)
    assert_report(
        report,
        verdict=RUN_VERDICT,
        numbers={
            "pool_depth": 2,
            "tau(P@2)": RUN_TAU,
            "least_tau(P@2)": TAU_TWO,
            "rank_loss(P@2)": 0.25,
            "worst_rank_loss(P@2)": 1,
            "score_loss(P@2)": 0.25,
            "worst_score_loss(P@2)": 0.75,
            "unique@1": 4 / 4,
            "unique_relevant@1": 2 / 4,
            "unjudged_outside@1": 1.5 / 4,
            "worst(unjudged_outside@1)": 0.5,
            "unique@2": 5 / 4,
            "unique_relevant@2": 4 / 4,
            "unjudged_outside@2": 1.75 / 4,
            "worst(unjudged_outside@2)": 0.75,
            "unexplained": 0,
        },
        tables=RUN_TABLES,
        titles=[
            "When left out, a run loses up to 1 of 4 ranks (two by P@2)",
            "Whichever run is left out, tau with the original order is at least 0.55 (P@2)",
            "A run alone contributes up to 3 judged documents (two, depth 2)",
        ],
    )


TEAM_TAU = (TAU_ONE + TAU_TWO) / 2
TEAM_TABLES: Mapping[str, ExpectedTable] = {
    "points": (
        POINTS,
        [
            ("P@2", "X", "one", 0.5, 0.25, -0.25, 2, 2, 0),
            ("P@2", "X", "three", 0.25, 0.25, 0.0, 3, 2, -1),
            ("P@2", "Y", "two", 1.0, 0.25, -0.75, 1, 2, 1),
            ("P@2", "Y", "four", 0.0, 0.0, 0.0, 4, 4, 0),
        ],
    ),
    "summary": (SUMMARY, [("P@2", TEAM_TAU, TAU_TWO, 0.0, 1, "two", -0.25, 0.75)]),
    "taus": ("left measure tau lost", [("X", "P@2", TAU_ONE, 1), ("Y", "P@2", TAU_TWO, 4)]),
    "contributions": (
        "left depth judged relevant",
        [("X", 1, 2, 1), ("X", 2, 1, 1), ("Y", 1, 2, 1), ("Y", 2, 4, 3)],
    ),
    "unjudged": (
        "run depth before after",
        [
            ("one", 1, 0, 0.5),
            ("three", 1, 0, 0),
            ("one", 2, 0.25, 0.5),
            ("three", 2, 0.25, 0.25),
            ("two", 1, 0, 0.5),
            ("four", 1, 0, 0.5),
            ("two", 2, 0, 0.75),
            ("four", 2, 0, 0.25),
        ],
    ),
    "stages": (
        "measure run stage rank",
        [
            ("P@2", "one", "in the pool", 2),
            ("P@2", "one", "left out", 2),
            ("P@2", "three", "in the pool", 3),
            ("P@2", "three", "left out", 2),
            ("P@2", "two", "in the pool", 1),
            ("P@2", "two", "left out", 2),
            ("P@2", "four", "in the pool", 4),
            ("P@2", "four", "left out", 4),
        ],
    ),
}


TEAM_VERDICT = (
    "A run whose team is left out of the pool loses at most 1 of 4 ranks (two by P@2); on average 0.00 "
    "by P@2.",
    "P@2: unfair to teams from outside the pool that resemble the given ones, by the convention of Cupel "
    "(fair: at most 1 rank lost and tau at least 0.9 whichever team is left out; untested). A run whose team "
    "is left out loses 0.00 of 4 ranks on average "
    "and at most 1 (two). Its score changes by -0.2500 on average. Tau with the original "
    "order is 0.730 on average and at least 0.548.",
    "0 of 8 judged documents (0.0%) are not in the top 2 of any audited run.",
    "Pool depth 2 (as given). Leaving out one of 2 teams removes a median of 2.5 judgments and at most 4.",
    "Unjudged share of the top 1: 37.5% on average and at most 50.0% (one and 2 others) for a "
    "run whose team is left out, 0.0% on average for a run in the pool.",
)


def test_leave_one_team_out_report_equals_the_hand_worked_report() -> None:
    """Team X has the runs `one` and `three`, team Y has `two` and `four`.

    Within depth 2, only team X has 2e, and only team Y has 1c, 2f and 2h. At rank 1, only `three` has 1b.
    Within depth 2, both teams have 1b.
    """
    subject = subject_of(QRELS, RUNS, "P@2", teams=["X", "Y", "X", "Y"])
    report = audited("leave_one_team_out", subject, PARAMETERS)
    assert_report(
        report,
        verdict=TEAM_VERDICT,
        numbers={
            "pool_depth": 2,
            "tau(P@2)": TEAM_TAU,
            "least_tau(P@2)": TAU_TWO,
            "rank_loss(P@2)": 0,
            "worst_rank_loss(P@2)": 1,
            "score_loss(P@2)": 0.25,
            "worst_score_loss(P@2)": 0.75,
            "unique@1": 4 / 2,
            "unique_relevant@1": 2 / 2,
            "unjudged_outside@1": 1.5 / 4,
            "worst(unjudged_outside@1)": 0.5,
            "unique@2": 5 / 2,
            "unique_relevant@2": 4 / 2,
            "unjudged_outside@2": 1.75 / 4,
            "worst(unjudged_outside@2)": 0.75,
            "unexplained": 0,
        },
        tables=TEAM_TABLES,
        titles=[
            "When left out, a run loses up to 1 of 4 ranks (two by P@2)",
            "Whichever team is left out, tau with the original order is at least 0.55 (P@2)",
            "A team alone contributes up to 4 judged documents (Y, depth 2)",
        ],
    )


def test_leave_one_team_out_report_warns_of_teams_with_a_single_run() -> None:
    subject = subject_of(QRELS, RUNS, "P@2", teams=["A", "B", "C", "D"])
    report = audited("leave_one_team_out", subject, PARAMETERS)
    assert report.warnings == (
        "Every team has a single run, so the results equal those of leave_one_run_out.",
    )


def test_report_gives_no_verdict_if_other_runs_contributed_to_the_pool() -> None:
    """No run retrieves 1z, so 1 of 9 judged documents (11.1%) is unexplained."""
    qrels = qrels_of(
        {"1": {"1a": 1, "1b": 0, "1c": 1, "1x": 0, "1z": 1}, "2": {"2e": 1, "2f": 1, "2g": 0, "2h": 1}}
    )
    report = audited("leave_one_run_out", subject_of(qrels, RUNS, "P@2"), PARAMETERS)
    assert report.numbers["unexplained"] == 1 / 9
    assert report.verdict[:3] == (
        "A run that is left out of the pool loses at most 1 of 4 ranks (two by P@2); on average 0.25 by "
        "P@2. "
        "This is not a verdict on fairness, because 11% of the judged documents are from outside the pool of "
        "these runs.",
        "No verdict on fairness: 1 of 9 judged documents (11.1%) are not in the top 2 of any audited "
        "run, so other runs or methods contributed to the pool. They may also have contributed documents "
        "that only one audited run retrieves. Then the contributions and losses below are overestimated.",
        "P@2: A run that is left out loses 0.25 of 4 ranks on average "
        "and at most 1 (two). Its score "
        "changes by -0.2500 on average. Tau with the original order is 0.865 on average and at least 0.548.",
    )
    assert "fair to" not in " ".join(report.verdict)


def test_documents_below_the_depth_of_the_pool_are_unexplained() -> None:
    """At rank 1, the runs retrieve 1a, 1b, 1x, 2e, 2f and 2g, but not 1c and 2h: 2 of 8 judged documents."""
    report = audited("leave_one_run_out", subject_of(QRELS, RUNS, "P@2"), {"depth": 1, "depths": [1, 2]})
    assert report.numbers["unexplained"] == 2 / 8
    assert report.verdict[0].startswith("A run that is left out of the pool loses")
    assert report.verdict[1].startswith("No verdict on fairness: 2 of 8 judged documents (25.0%)")


def test_report_on_stored_trials_without_the_explained_share_gives_no_verdict() -> None:
    subject = subject_of(QRELS, RUNS, "P@2")
    trials = trials_of("leave_one_run_out", subject, PARAMETERS)
    for trial in trials.values():
        del trial["unexplained"]
    report = reported("leave_one_run_out", subject, PARAMETERS, trials)
    assert report.numbers["unexplained"] is None
    assert report.verdict[1].startswith("No verdict on fairness: an earlier release computed the result,")
    assert "fair to" not in " ".join(report.verdict)


def test_advice_if_a_run_loses_a_rank() -> None:
    report = audited("leave_one_run_out", subject_of(QRELS, RUNS, "P@2"), PARAMETERS)
    assert report.actions[0].startswith("Before you score a run that did not contribute to the pool")
    assert {plot.name: plot.domain for plot in report.plots}["taus"] == (0.0, 1.0)


def test_report_gives_no_verdict_if_no_judgment_is_removed() -> None:
    """Both runs retrieve the same documents, so leaving out one of them removes no judgment."""
    runs = dict.fromkeys(("two", "copy"), RUNS["two"])
    qrels = qrels_of({"1": {"1a": 1, "1c": 1}, "2": {"2f": 1, "2h": 0}})
    report = audited("leave_one_run_out", subject_of(qrels, runs, "P@2"), PARAMETERS)
    assert report.numbers["worst_rank_loss(P@2)"] == 0
    assert report.verdict[0].startswith("No verdict on fairness: leaving out any run removes no judgment")
    assert report.actions[0] == "Add runs that retrieve different documents: these runs test nothing."
