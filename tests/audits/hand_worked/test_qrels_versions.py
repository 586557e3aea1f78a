"""The whole report of `qrels_versions` on four runs.

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

from collections.abc import Mapping

from support.data.audit_subjects import audited, lists, subject_of
from support.data.expected_reports import ExpectedTable, assert_report
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
REPLICATES, ALPHA = 200, 0.1


# The scores 3 2 1 0 become 2 3 3 0: 3 pairs of runs agree, 2 do not, 1 is tied in the second version.
TAU = (3 - 2) / (6 * 5) ** 0.5
# The second order is r2 = r3, r1, r4. Of the runs above r3, 1/2 of 1 was above it before (a tie). Of the
# runs above r1, 0 of 2 were above it before; of those above r4, 3 of 3.
TAU_AP = 2 / 3 * (0.5 / 1 + 0 / 2 + 3 / 3) - 1
# 3 of 7 labels disagree. The expected disagreement is (3 * 3 + 4 * 4) / 49 for kappa, and
# 2 * 7 * 7 / (14 * 13) for alpha of Krippendorff.
KAPPA, KRIPPENDORFF = 1 - (3 / 7) / (25 / 49), 1 - (3 / 7) / (98 / 182)

TABLES: Mapping[str, ExpectedTable] = {
    "measures": (
        "measure tau tau_ap moved farthest regrouped alone opposite apart_first apart_second",
        [("P@1", TAU, TAU_AP, 3, 2, 0, 0, 0, 0, 0)],
    ),
    "runs": (
        "measure run score_first score_second rank_first rank_second rise group_first group_second regrouped",
        [
            ("P@1", "r1", 1, 2 / 3, 1, 3, -2, "a", "a", False),
            ("P@1", "r2", 2 / 3, 1, 2, 1, 1, "a", "a", False),
            ("P@1", "r3", 1 / 3, 1, 3, 1, 2, "a", "a", False),
            ("P@1", "r4", 0, 0, 4, 4, 0, "a", "a", False),
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
        [("relevance", 7, 4 / 7, KAPPA, KRIPPENDORFF, 3, 1, 1)],
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
}


def test_report_equals_the_hand_worked_report() -> None:
    subject = subject_of(qrels_of({scale(1): FIRST}), RUNS, "P@1", other=qrels_of({scale(1): SECOND}))
    report = audited("qrels_versions", subject, {"replicates": REPLICATES, "alpha": ALPHA})
    # With 3 topics p of max-T is at least 2 / 2**3, so no pair differs and all runs are in one group.
    assert_report(
        report,
        verdict=[
            "P@1: tau between the two orders is 0.18; 3 of 4 runs change rank, none more than r1 (from 1 to "
            "3); r2 and 1 more with equal scores have rank 1 instead of r1. 0 runs are in pairs whose "
            "significance changes; 0 of 6 pairs of runs differ significantly under one version only "
            "(step-down max-T test, alpha 0.1).",
            "relevance: 57.1% of the 7 topic-document pairs judged in both versions have the same label "
            "(kappa 0.16, alpha 0.20); 3 have different labels; judgments in qrels only: 1, in "
            "other only: 1.",
        ],
        numbers={
            "topics": 3,
            "tau(P@1)": TAU,
            "tau_ap(P@1)": TAU_AP,
            "moved(P@1)": 3,
            "farthest(P@1)": 2,
            "regrouped(P@1)": 0,
            "alone(P@1)": 0,
            "opposite(P@1)": 0,
            "apart_first(P@1)": 0,
            "apart_second(P@1)": 0,
            "kappa(relevance)": KAPPA,
            "alpha(relevance)": KRIPPENDORFF,
            "same(relevance)": 4 / 7,
            "changed(relevance)": 3,
            "removed(relevance)": 1,
            "added(relevance)": 1,
        },
        tables=TABLES,
        warnings=["qrels has 4 topics and other has 3; only the 3 topics of both are compared."],
        titles=[
            "No run moves more than r1: from rank 1 to 3 by P@1",
            "57.1% of the topic-document pairs judged in both versions have the same label (relevance)",
        ],
    )
    assert report.actions[:3] == (
        "Name the version of the judgments with every result, and never compare scores across versions; tau "
        "is below 0.9 or undefined by P@1.",
        "Look at the 3 judgments whose relevance label differs, starting with the topics that have most of "
        "them.",
        "Judge the documents that only one of qrels and other contains in the other version, or leave them "
        "out of both, before you attribute a changed order to the assessors.",
    )
