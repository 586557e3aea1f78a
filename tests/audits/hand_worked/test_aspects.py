"""The whole report of `aspects` on four runs, derived by hand.

Labels for relevance and quality (- is not judged; document u is in no pool):

    topic 1:  a 1 0   b 1 1   c 0 2   d 0 -        topic 2:  e 0 1   f 0 0

P@1 for relevance and for quality, with CAM, their mean, and MM, their harmonic mean:

    run    topic 1: ranking, P@1, CAM, MM    topic 2               means: relevance, quality, CAM, MM
    r1     b d    1 1    1    1              f e    0 0    0    0    1/2  1/2  1/2  1/2
    r2     a b    1 0    1/2  0              e u    0 1    1/2  0    1/2  1/2  1/2  0
    r3     u b    0 0    0    0              e f    0 1    1/2  0    0    1/2  1/4  0
    r4     d a    0 0    0    0              u e    0 0    0    0    0    0    0    0
"""

from collections.abc import Mapping
from math import sqrt

from support.data.audit_subjects import audited, lists, subject_of
from support.data.expected_reports import ExpectedTable, assert_report
from support.data.small_collections import qrels_of, scale

QRELS = qrels_of(
    {
        scale(1, "relevance"): {"1": {"a": 1, "b": 1, "c": 0, "d": 0}, "2": {"e": 0, "f": 0}},
        scale(2, "quality"): {"1": {"a": 0, "b": 1, "c": 2}, "2": {"e": 1, "f": 0}},
    }
)
RUNS = lists(
    {
        "r1": {"1": ["b", "d"], "2": ["f", "e"]},
        "r2": {"1": ["a", "b"], "2": ["e", "u"]},
        "r3": {"1": ["u", "b"], "2": ["e", "f"]},
        "r4": {"1": ["d", "a"], "2": ["u", "e"]},
    }
)
CAM, MM = "CAM(of=P@1)", "MM(of=P@1)"
DEEP_CAM, DEEP_MM = "CAM(of=P@2)", "MM(of=P@2)"

# The document that each strategy ranks first on topic 1. By relevance and then quality, it is b (1 1). By
# quality, it is c (0 2). By the sum, b and c are tied at 2, and b precedes c. By squares and by the maximum,
# it is c. On topic 2, every strategy ranks e (0 1) first.
FIRST = {"relevance > quality": "b", "quality > relevance": "c", "sum": "b", "squares": "c", "maximum": "c"}
SCORES: dict[str, dict[str, float]] = {CAM: {"b": 1, "c": 0.5, "e": 0.5}, MM: {"b": 1, "c": 0, "e": 0}}

# Pairs of runs by relevance (1/2 1/2 0 0) and quality (1/2 1/2 1/2 0): 2 agree, 1 is tied by relevance only,
# and 2 by quality only. By CAM (1/2 1/2 1/4 0) and MM (1/2 0 0 0): 2 agree, 1 is tied by CAM only, and 3 by
# MM only. On topic 1 (CAM 1 1/2 0 0, MM 1 0 0 0): 3 agree, and 2 are tied by MM only. On topic 2, MM is
# constant.
ASPECT_TAU = 2 / sqrt(3 * 4)
TAU, TOPIC_TAU = 2 / sqrt(3 * 5), 3 / sqrt(5 * 3)


TABLES: Mapping[str, ExpectedTable] = {
    "bounds": (
        "measure topics full low low_whole least topic",
        [(CAM, 2, 0.5, 0.5, 0, 0.5, "2"), (MM, 2, 0.5, 0.5, 0, 0, "2")],
    ),
    "topic_bounds": (
        "measure place topic bound strategy lacking",
        [
            (CAM, 1, "2", 0.5, "relevance > quality", 1),
            (CAM, 2, "1", 1, "relevance > quality", 0),
            (MM, 1, "2", 0, "relevance > quality", 1),
            (MM, 2, "1", 1, "relevance > quality", 0),
        ],
    ),
    "strategies": (
        "measure topic strategy score",
        [
            (measure, topic, strategy, SCORES[measure][first if topic == "1" else "e"])
            for measure in (CAM, MM)
            for topic in "12"
            for strategy, first in FIRST.items()
        ],
    ),
    "zero": ("measure count documents percent", [(CAM, 0, 2, 0), (MM, 1, 2, 50)]),
    "zero_ranks": (
        "component kind measure rank count percent",
        [("P@1", "CAM", CAM, 1, 0, 0), ("P@1", "MM", MM, 1, 1, 50)],
    ),
    "quality": (
        "component kind measure ranks labels documents",
        [
            ("P@2", kind, measure, ranks, labels, 2)
            for kind, measure in (("CAM", DEEP_CAM), ("MM", DEEP_MM))
            for ranks, labels in (("1-1", 0.5), ("2-2", 1.5))
        ],
    ),
    "disagreement": (
        "component first second opposite tied share tau topics first_kind second_kind",
        [
            ("P@1", CAM, MM, 0, 4, 0, TAU, TOPIC_TAU, "CAM", "MM"),
            ("P@1", MM, CAM, 0, 4, 0, TAU, TOPIC_TAU, "MM", "CAM"),
        ],
    ),
    "trade_off": (
        "component run on_front dominated_by score_relevance score_quality",
        [
            ("P@1", "r1", True, None, 0.5, 0.5),
            ("P@1", "r2", True, None, 0.5, 0.5),
            ("P@1", "r3", False, "r1", 0, 0.5),
            ("P@1", "r4", False, "r1", 0, 0),
        ],
    ),
    "aspect_tau": ("component first second tau", [("P@1", "relevance", "quality", ASPECT_TAU)]),
}


def test_report_equals_the_hand_worked_report() -> None:
    # At cutoff 1, r1 (b) is the best run on topic 1 by CAM and MM. On topic 2, r2 and r3 (e) are best by CAM,
    # and r2 is first by name. By MM, all runs score 0, so r1 is first by name (f has no label above 0).
    # At cutoff 2, r2 (a b) is best on topic 1, with P@2 of 1 and 1/2. On topic 2, all runs are equal, so
    # r1 (f e) is first by name. The sums of labels are 1 (a) and 0 (f) at rank 1, and 2 (b) and 1 (e) at rank
    # 2.
    subject = subject_of(QRELS, RUNS, f"{CAM} {MM}", top=2)
    report = audited("aspects", subject, {"first": 1, "depth": 2, "width": 1})
    assert_report(
        report,
        verdict=[
            "P@1: 2 of 4 runs are on the Pareto front of the aspects (by observed means, untested): r1 "
            "and r2. Tau between the aspects is "
            "0.58 (the orders by relevance and by quality).",
            "Of 6 pairs of runs, aggregates disagree on the order of 0 (0.0%) with P@1.",
            f"{MM}: the best ranking found scores below 0.9 on 1 of 2 topics (no other average has more); on "
            "1 of these, an aspect has no document above the lowest label. The lowest score of a best "
            "ranking found is 0.00, on topic 2.",
            f"Zero-aspect documents among the first judged documents of the best runs: highest by {MM} "
            f"(50.0%), lowest by {CAM} (0.0%).",
            "Mean sum of the labels of a document of the best runs at ranks 1-1: 0.50 by every measure.",
        ],
        numbers={
            **{f"bound_1({measure})": 0.5 for measure in (CAM, MM)},
            **{f"bound_below_0.9({measure})": 0.5 for measure in (CAM, MM)},
            f"zero({CAM})": 0,
            f"zero({MM})": 50,
            **{f"quality({measure})@1-1": 0.5 for measure in (DEEP_CAM, DEEP_MM)},
            **{f"quality({measure})@2-2": 1.5 for measure in (DEEP_CAM, DEEP_MM)},
            "disagree(P@1)": 0,
            f"tau({CAM},{MM})": TAU,
            "front(P@1)": 2,
            "dominated(P@1)": 0.5,
            "tau(P@1,relevance,quality)": ASPECT_TAU,
        },
        tables=TABLES,
        titles=[
            "Highest means by P@1: r1 and r2 on relevance, 3 runs on quality",
            "No two aggregates disagree on a pair of runs",
            f"The best ranking found of topic 2 scores 0.00 by {MM}",
            f"Median score of ideal rankings: highest for {CAM} (0.75), lowest for {MM} (0.50)",
            "Median score of rankings by one sort key: highest for sum and 1 other (0.75), lowest for "
            "squares and 2 others (0.25)",
            f"Zero-aspect documents of the best runs: highest by {MM} (50.0%), lowest by {CAM} (0.0%)",
            "Labels at the first ranks of the best runs: 0.50 by every measure",
        ],
    )
