"""The report of `pool_depth` on four runs, derived by hand.

Relevant: 1a, 1c and 1z in topic 1 (no run has 1z), 2e and 2g in topic 2. Judged, not relevant: 1b, 2f.

Pools of depth 1: {1a, 1b, 1x}, {2e, 2f}; depth 2 adds 1c, 2g and 2h; depth 3 adds 1y.
P@2 under all judgments: best (1 + 1)/2, fair (1/2 + 1/2)/2, good (1/2 + 1)/2, poor 0. The pool of depth 2
contains all documents that determine these scores. In the pool of depth 1, only 1a and 2e are relevant, so
best, fair and good score (1/2 + 1/2)/2.
"""

import math

from support.data.audit_subjects import audited, lists, subject_of
from support.data.expected_audits import assert_numbers, assert_table
from support.data.small_collections import qrels_of

QRELS = qrels_of({"1": {"1a": 1, "1b": 0, "1c": 1, "1z": 1}, "2": {"2e": 1, "2f": 0, "2g": 1}})
RUNS = lists(
    {
        "best": {"1": ["1a", "1c", "1x"], "2": ["2e", "2g", "2f"]},
        "fair": {"1": ["1a", "1b", "1c"], "2": ["2e", "2f", "2g"]},
        "good": {"1": ["1x", "1a", "1b"], "2": ["2e", "2g", "2f"]},
        "poor": {"1": ["1b", "1x", "1y"], "2": ["2f", "2h", "2e"]},
    }
)
TAU_1 = 3 / math.sqrt(6 * 3)
"""Under pool 1 three of six pairs are tied, and the other three (with poor) have the original order."""


def test_report_equals_the_hand_worked_report() -> None:
    report = audited("pool_depth", subject_of(QRELS, RUNS, "P@2", top=3), {"deepest": 3})
    assert_table(
        report,
        "points",
        "measure depth kept mean low high least greatest n score",
        [
            ("P@2", 3, 6 / 7, 1, None, None, 1, 1, 1, 2.25 / 4),
            ("P@2", 2, 6 / 7, 1, None, None, 1, 1, 1, 2.25 / 4),
            ("P@2", 1, 4 / 7, TAU_1, None, None, TAU_1, TAU_1, 1, 1.5 / 4),
        ],
    )
    ranks = {3: (1, 3, 2, 4), 2: (1, 3, 2, 4), 1: (1, 1, 1, 4)}
    assert_table(
        report,
        "ranks",
        "measure depth run rank best worst",
        [
            ("P@2", depth, run, rank, rank, rank)
            for depth, of_runs in ranks.items()
            for run, rank in zip(("best", "fair", "good", "poor"), of_runs, strict=True)
        ],
    )
    share_1 = (3 / 5 + 2 / 4) / 2
    share_2 = (4 / 5 + 4 / 4) / 2
    relevant_1 = (1 / 2 + 1 / 2) / 2  # 1a of {1a, 1c}; 2e of {2e, 2g}
    assert_table(
        report,
        "pools",
        "depth documents judged share relevant",
        [(1, 5, 4, share_1, relevant_1), (2, 8, 6, share_2, 1), (3, 9, 6, 1, 1)],
    )
    assert [table.name for table in report.tables] == ["points", "ranks", "pools"]
    assert report.plots[-2].title == "fair changes its rank most: between 1 and 3 by P@2"
    shares = report.plots[-1]
    assert (shares.x, shares.y, shares.domain) == ("share", "relevant", (0.0, 1.0))
    assert_numbers(
        report,
        {
            "tau(P@2)@3": 1, "kept@3": 6 / 7, "tau(P@2)@2": 1, "kept@2": 6 / 7, "tau(P@2)@1": TAU_1,
            "kept@1": 4 / 7,
            "pool@1": share_1, "relevant@1": relevant_1, "pool@2": share_2, "relevant@2": 1, "pool@3": 1,
            "relevant@3": 1,
        },
    )  # fmt: skip
    assert report.verdict == (
        "P@2: tau is at least 0.9 down to a pool of depth 2; with a pool of depth 1 it is 0.71.",
        "If no scores are tied, a tau of 0.9 means that 1 in 20 pairs of runs is swapped.",
        "Down to depth 2, tau of every measure is at least 0.9. The pool of this depth has on average 90% of "
        "the documents of a topic's pool of depth 3, and 100% of its relevant documents.",
    )
    assert report.warnings == (
        "1 of 7 judged documents are not in the top 3 of any audited run. They have no judgment at any "
        "depth, so tau can be below 1 at depth 3 too.",
    )
    assert report.undefined == ()


def test_advice_is_to_judge_deeper_if_tau_is_low_at_the_deepest_pool() -> None:
    report = audited("pool_depth", subject_of(QRELS, RUNS, "P@2", top=1), {"deepest": 1})
    assert report.actions[-1].startswith("Judge deeper than 1: at depth 1, tau of some measure is below 0.9")
