"""The whole report of `qrels_versions` on four runs, with an independent randomised Tukey HSD.

Labels of the two versions, by topic and document (- is not judged):

    topic    1: a b c d    2: e f g    3: h i    0 (in the first version only): j
    first       1 0 0 -       1 0 0       1 0    1
    second      1 1 - 1       0 1 0       1 0

Of the 7 documents judged in both versions, a, g, h and i have the same label. P@1 of the first documents,
over topics 1, 2 and 3:

    run    first documents    first version    second version
    r1     a e h              1 1 1            1 0 1
    r2     a f h              1 0 1            1 1 1
    r3     b f h              0 0 1            1 1 1
    r4     c g i              0 0 0            0 0 0
"""

from itertools import combinations

import numpy as np

from support.data.audit_subjects import SEED, audited, lists, subject_of
from support.data.expected_reports import assert_report
from support.data.small_collections import qrels_of, scale

FIRST = {"1": {"a": 1, "b": 0, "c": 0}, "2": {"e": 1, "f": 0, "g": 0}, "3": {"h": 1, "i": 0}, "0": {"j": 1}}
SECOND = {"1": {"a": 1, "b": 1, "d": 1}, "2": {"e": 0, "f": 1, "g": 0}, "3": {"h": 1, "i": 0}}
RUNS = lists(
    {
        "r1": {"1": ["a"], "2": ["e"], "3": ["h"]},
        "r2": {"1": ["a"], "2": ["f"], "3": ["h"]},
        "r3": {"1": ["b"], "2": ["f"], "3": ["h"]},
        "r4": {"1": ["c"], "2": ["g"], "3": ["i"]},
    }
)
SCORES = (
    [[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0]],
    [[1, 1, 1, 0], [0, 1, 1, 0], [1, 1, 1, 0]],
)
"""By version, topic and run."""
REPLICATES, ALPHA = 200, 0.3


def count_ranges(scores: list[list[int]]) -> list[int]:
    """Return the range of the sums of scores in each replicate (3 times the range of the means).

    A replicate permutes the scores of the runs on each topic.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((SEED, 0))))
    orders = rng.permuted(np.broadcast_to(np.arange(4, dtype=np.int32), (3, REPLICATES, 4)), axis=2)
    ranges = []
    for replicate in range(REPLICATES):
        sums = [sum(scores[t][orders[t, replicate, run]] for t in range(3)) for run in range(4)]
        ranges.append(max(sums) - min(sums))
    return ranges


def significant_pairs(scores: list[list[int]]) -> set[tuple[int, int]]:
    """Return pairs with p <= alpha; p = (1 + replicates with range >= difference) / (1 + replicates)."""
    sums = [sum(topic_scores[run] for topic_scores in scores) for run in range(4)]
    ranges = count_ranges(scores)
    p = {
        (i, j): (sum(range_ >= abs(sums[i] - sums[j]) for range_ in ranges) + 1) / (REPLICATES + 1)
        for i, j in combinations(range(4), 2)
    }
    return {pair for pair, value in p.items() if value <= ALPHA}


def test_report_equals_the_hand_worked_report() -> None:
    subject = subject_of(qrels_of({scale(1): FIRST}), RUNS, "P@1", other=qrels_of({scale(1): SECOND}))
    report = audited("qrels_versions", subject, {"replicates": REPLICATES, "alpha": ALPHA})
    # No pair differs significantly under the first version. Under the second, r4 differs from the best runs,
    # r2 and r3. So group a has r1, r2 and r3, and group b has r1 and r4.
    assert significant_pairs(SCORES[0]) == set()
    assert significant_pairs(SCORES[1]) == {(1, 3), (2, 3)}
    # The scores 3 2 1 0 become 2 3 3 0: 3 pairs of runs agree, 2 do not, 1 is tied in the second version.
    tau = (3 - 2) / (6 * 5) ** 0.5
    # The second order is r2 = r3, r1, r4. Of the runs above r3, 1/2 of 1 was above it before (a tie). Of the
    # runs above r1, 0 of 2 were above it before; of those above r4, 3 of 3.
    tau_ap = 2 / 3 * (0.5 / 1 + 0 / 2 + 3 / 3) - 1
    # 3 of 7 labels disagree. The expected disagreement is (3 * 3 + 4 * 4) / 49 for kappa, and
    # 2 * 7 * 7 / (14 * 13) for alpha.
    kappa, alpha = 1 - (3 / 7) / (25 / 49), 1 - (3 / 7) / (98 / 182)
    assert_report(
        report,
        verdict=[
            "P@1: tau between the two orders is 0.18; 3 of 4 runs change rank, r1 most (from 1 to 3); r2 and "
            "1 more (tied) are best instead of r1. 3 runs are in pairs whose significance changes; 2 of 6 "
            "pairs of runs differ significantly under one version only (randomised Tukey HSD, alpha 0.3).",
            "relevance: 57.1% of the 7 documents judged in both versions have the same label (kappa 0.16, "
            "alpha 0.20); 3 have different labels; judgments in qrels only: 1, in other only: 1.",
        ],
        numbers={
            "topics": 3,
            "tau(P@1)": tau,
            "tau_ap(P@1)": tau_ap,
            "moved(P@1)": 3,
            "farthest(P@1)": 2,
            "regrouped(P@1)": 3,
            "alone(P@1)": 2,
            "opposite(P@1)": 0,
            "apart_first(P@1)": 0,
            "apart_second(P@1)": 2,
            "kappa(relevance)": kappa,
            "alpha(relevance)": alpha,
            "same(relevance)": 4 / 7,
            "changed(relevance)": 3,
            "removed(relevance)": 1,
            "added(relevance)": 1,
        },
        tables={
            "measures": (
                "measure tau tau_ap moved farthest regrouped alone opposite apart_first apart_second",
                [("P@1", tau, tau_ap, 3, 2, 3, 2, 0, 0, 2)],
            ),
            "runs": (
                "measure run score_first score_second rank_first rank_second rise group_first group_second "
                "regrouped",
                [
                    ("P@1", "r1", 1, 2 / 3, 1, 3, -2, "a", "ab", False),
                    ("P@1", "r2", 2 / 3, 1, 2, 1, 1, "a", "a", True),
                    ("P@1", "r3", 1 / 3, 1, 3, 1, 2, "a", "a", True),
                    ("P@1", "r4", 0, 0, 4, 4, 0, "a", "b", True),
                ],
            ),
            "ranks": (
                "measure run version rank",
                [
                    ("P@1", run, version, rank)
                    for run, *ranks in (("r1", 1, 3), ("r2", 2, 1), ("r3", 3, 1), ("r4", 4, 4))
                    for version, rank in zip(("qrels", "other"), ranks, strict=True)
                ],
            ),
            "agreement": (
                "aspect pairs same kappa alpha changed removed added",
                [("relevance", 7, 4 / 7, kappa, alpha, 3, 1, 1)],
            ),
            "confusion": (
                "aspect first second pairs share",
                [
                    ("relevance", "0", "0", 2, 2 / 7),
                    ("relevance", "0", "1", 2, 2 / 7),
                    ("relevance", "1", "0", 1, 1 / 7),
                    ("relevance", "1", "1", 2, 2 / 7),
                ],
            ),
            "topics": (
                "aspect topic same changed removed added",
                [
                    ("relevance", "1", 1, 1, 1, 1),
                    ("relevance", "2", 1, 2, 0, 0),
                    ("relevance", "3", 2, 0, 0, 0),
                ],
            ),
        },
        warnings=["qrels has 4 topics and other has 3; only the 3 topics of both are compared."],
    )
