"""The whole report of `correlation` on four runs, derived by hand.

P@1 and P@2 of r1 to r4, by topic, and their means:

    relevance, P@1:  1 0.5 0 0        topic 1:  1 1 0 0      topic 2:  1 0 0 0
    relevance, P@2:  .75 .5 .5 0      topic 1:  1 .5 .5 0    topic 2:  .5 .5 .5 0
    quality, P@1:    .5 .5 .5 0       topic 1:  0 0 1 0      topic 2:  1 1 0 0
    quality, P@2:    .75 .75 .75 .5   topic 1:  .5 .5 1 .5   topic 2:  1 1 .5 .5

tau-b = (P - Q) / sqrt((P + Q + T) (P + Q + U)), where T pairs are tied in the first order
only, and U pairs in the second only:

    P@1, P@2:          overall P 4, T 1, U 1    topic 1: P 3, T 2, U 1         topic 2: P 1, T 2, U 2
    P@1 by aspect:     overall P 2, T 1, U 3    topic 1: Q 2, T 1, U 2         topic 2: P 2, T 2, U 1
    P@2 by aspect:     overall P 3, T 0, U 2    topic 1: P 1, Q 1, T 1, U 3    topic 2: P 2, T 2, U 1
"""

from collections.abc import Mapping
from math import sqrt

from cupel_measures.model import Aspect
from support.data.audit_subjects import audited, lists, subject_of
from support.data.expected_reports import ExpectedTable, assert_report
from support.data.small_collections import qrels_of

QRELS = qrels_of(
    {
        Aspect(name="relevance", labels=range(2)): {
            "1": {"a": 1, "b": 1, "c": 0, "d": 0},
            "2": {"e": 1, "f": 0, "g": 0},
        },
        Aspect(name="quality", labels=range(2)): {
            "1": {"a": 0, "b": 1, "c": 1, "d": 0},
            "2": {"e": 1, "f": 1, "g": 0},
        },
    }
)
RUNS = lists(
    {
        "r1": {"1": ["a", "b"], "2": ["e", "f"]},
        "r2": {"1": ["a", "c"], "2": ["f", "e"]},
        "r3": {"1": ["c", "b"], "2": ["g", "e"]},
        "r4": {"1": ["d", "c"], "2": ["g", "f"]},
    }
)
Q1, Q2 = "P(aspect=quality)@1", "P(aspect=quality)@2"
OVERALL = {"measures": 4 / 5, "P@1": 2 / sqrt(15), "P@2": 3 / sqrt(15)}
BY_TOPIC = {
    "measures": (3 / sqrt(20), 1 / 3),
    "P@1": (-2 / sqrt(12), 2 / sqrt(12)),
    "P@2": (0.0, 2 / sqrt(12)),
}
RANKS = {"P@1": (1, 2, 3.5, 3.5), "P@2": (1, 2.5, 2.5, 4)}  # by quality, both give 2, 2, 2, 4
MEAN = {name: sum(taus) / 2 for name, taus in BY_TOPIC.items()}


TABLES: Mapping[str, ExpectedTable] = {
    "pairs": (
        "first second overall by_topic undefined_topics greatest_move",
        [("P@1", "P@2", OVERALL["measures"], MEAN["measures"], 0, 1)],
    ),
    "aspects": (
        "base aspects first second overall by_topic undefined_topics greatest_move",
        [
            ("P@1", "relevance and quality", "P@1", Q1, OVERALL["P@1"], MEAN["P@1"], 0, 1.5),
            ("P@2", "relevance and quality", "P@2", Q2, OVERALL["P@2"], MEAN["P@2"], 0, 1),
        ],
    ),
    "matrix": (
        "first second overall by_topic",
        [
            ("P@1", "P@1", 1, 1),
            ("P@1", "P@2", OVERALL["measures"], MEAN["measures"]),
            ("P@2", "P@1", OVERALL["measures"], MEAN["measures"]),
            ("P@2", "P@2", 1, 1),
        ],
    ),
    "ranks": (
        "measure run rank",
        [
            (measure, run, rank)
            for measure, ranks in RANKS.items()
            for run, rank in zip(RUNS, ranks, strict=True)
        ],
    ),
    "movers": (
        "first second run first_rank second_rank move",
        [
            ("P@1", "P@2", "r3", 3.5, 2.5, -1),
            ("P@1", "P@2", "r2", 2, 2.5, 0.5),
            ("P@1", "P@2", "r4", 3.5, 4, 0.5),
            ("P@1", Q1, "r3", 3.5, 2, -1.5),
            ("P@1", Q1, "r1", 1, 2, 1),
            ("P@1", Q1, "r4", 3.5, 4, 0.5),
            ("P@2", Q2, "r1", 1, 2, 1),
            ("P@2", Q2, "r2", 2.5, 2, -0.5),
            ("P@2", Q2, "r3", 2.5, 2, -0.5),
        ],
    ),
    "topics": (
        "first second topic tau",
        [
            (first, second, topic, tau)
            for name, first, second in (
                ("measures", "P@1", "P@2"),
                ("P@1", "P@1", Q1),
                ("P@2", "P@2", Q2),
            )
            for topic, tau in zip("12", BY_TOPIC[name], strict=True)
        ],
    ),
}


def test_report_equals_the_hand_worked_report() -> None:
    report = audited("correlation", subject_of(QRELS, RUNS, "P@1 P@2"))
    assert_report(
        report,
        verdict=[
            "By these topics, the order of runs differs between P@1 and P@2 (tau 0.80 overall, 0.50 by "
            "topic; r3 moves most, "
            "from rank 3.5 to 2.5).",
            f"By these topics, the order of runs differs most between P@1 and {Q1} (tau 0.52 overall, 0.00 "
            "by topic; r3 moves "
            "most, from rank 3.5 to 2).",
            f"It differs least between P@2 and {Q2} (tau 0.77 overall, 0.29 by topic; r1 moves most, from "
            "rank 1 to 2). Of 2 pairs of aspects, 0 have a tau of 0.9 or more.",
        ],
        numbers={
            "tau(P@1,P@2)": OVERALL["measures"],
            "tau_by_topic(P@1,P@2)": MEAN["measures"],
            f"tau(P@1,{Q1})": OVERALL["P@1"],
            f"tau_by_topic(P@1,{Q1})": MEAN["P@1"],
            f"tau(P@2,{Q2})": OVERALL["P@2"],
            f"tau_by_topic(P@2,{Q2})": MEAN["P@2"],
        },
        tables=TABLES,
        titles=[
            "P@1 and P@2 have tau 0.80 overall",
            "P@1 and P@2 have tau 0.50 by topic",
            "r3 moves most: rank 3.5 by P@1, 2.5 by P@2",
            f"P@1 and {Q1} have tau 0.52 between two aspects; no pair has a lower tau",
        ],
    )
