"""The report of `unjudged` on four runs, derived by hand.

Relevant: 1a and 2c. Judged, not relevant: 1b and 2n (a negative grade). Unjudged: 1x, 1y and 2z.

| run   | topic 1 | topic 2 | P@2  | RR   |
|-------|---------|---------|------|------|
| one   | 1a 1x   | 2c      | 0.5  | 1    |
| two   | 1a 1b   | 2c 2n   | 0.5  | 1    |
| three | 1b 1y   | 2c 2z   | 0.25 | 0.5  |
| four  | 1y 1a   | 2z 2n   | 0.25 | 0.25 |

If 1x is relevant, P@2 of `one` is 0.75, which breaks its tie with `two` (influence 1). RR does not change
(influence 0).
If 1y is relevant, P@2 of `three` and `four` is 0.5, so `two` loses its lead of 0.25 (influence 1). RR of
`three` is 0.75 and of `four` 0.5, so `two` loses half of its lead of 0.5 (influence 0.5).
If 2z is relevant, P@2 of `three` and `four` is 0.5 (influence 1). RR of `four` is 0.75, which reverses the
order of `three` and `four` (influence 1).
"""

from support.data.audit_subjects import audited, lists, subject_of
from support.data.expected_audits import assert_numbers, assert_table
from support.data.small_collections import qrels_of

QRELS = qrels_of({"1": {"1a": 1, "1b": 0}, "2": {"2c": 1, "2n": -1}})
RUNS = lists(
    {
        "one": {"1": ["1a", "1x"], "2": ["2c"]},
        "two": {"1": ["1a", "1b"], "2": ["2c", "2n"]},
        "three": {"1": ["1b", "1y"], "2": ["2c", "2z"]},
        "four": {"1": ["1y", "1a"], "2": ["2z", "2n"]},
    }
)
PARAMETERS = {"depth": 2, "look": 3, "cutoffs": [1, 2]}
DOCUMENTS = "place topic document influence share reversed runs best highest_ranks settles"
BREAKS_TIE = "the lead of one over two by P@2 changes from 0.00000 to 0.25000"
CLOSES_LEAD = "the lead of two over three by P@2 changes from 0.25000 to 0.00000"
CHANGES = [
    ("2", "2z", "P@2", 1.0, 0, "two", "three", 0.25, 0.0),
    ("2", "2z", "RR", 1.0, 1, "three", "four", 0.25, -0.25),
    ("1", "1y", "P@2", 1.0, 0, "two", "three", 0.25, 0.0),
    ("1", "1y", "RR", 0.5, 0, "two", "three", 0.5, 0.25),
    ("1", "1x", "P@2", 1.0, 0, "one", "two", 0.0, 0.25),
    ("1", "1x", "RR", 0.0, 0, None, None, None, None),
]


def test_report_equals_the_hand_worked_report() -> None:
    report = audited("unjudged", subject_of(QRELS, RUNS, "P@2 RR", top=3), PARAMETERS)
    assert_table(
        report,
        "documents",
        DOCUMENTS,
        [
            (1, "2", "2z", 1.0, 1 / 2.25, 1, 2, 1, "four 1, three 2", CLOSES_LEAD),
            (2, "1", "1y", 0.75, 1.75 / 2.25, 0, 2, 1, "four 1, three 2", CLOSES_LEAD),
            (3, "1", "1x", 0.5, 2.25 / 2.25, 0, 1, 2, "one 2", BREAKS_TIE),
        ],
    )
    assert_table(
        report,
        "changes",
        "topic document measure influence reversed upper lower lead left",
        CHANGES,
    )
    assert_table(
        report,
        "unjudged",
        "run depth share",
        [("one", 1, 0), ("two", 1, 0), ("three", 1, 0), ("four", 1, 1), ("one", 2, 0.25), ("two", 2, 0),
         ("three", 2, 0.5), ("four", 2, 0.5)],
    )  # fmt: skip
    assert_table(
        report,
        "topics",
        "topic missing tried reversing influence",
        [("1", 2, 2, 0, 1.25), ("2", 1, 1, 1, 1.0)],
    )
    assert len(report.tables) == 4
    assert_numbers(
        report,
        {
            "unjudged@1": 0.25, "worst(unjudged@1)": 1, "unjudged@1(one)": 0, "unjudged@1(two)": 0,
            "unjudged@1(three)": 0, "unjudged@1(four)": 1, "unjudged@2": 1.25 / 4, "worst(unjudged@2)": 0.5,
            "unjudged@2(one)": 0.25, "unjudged@2(two)": 0, "unjudged@2(three)": 0.5, "unjudged@2(four)": 0.5,
            "missing": 3, "turning": 1,
        },
    )  # fmt: skip
    assert report.verdict == (
        "On average 31.2% of the top 2 of a run are unjudged; the largest share is 50.0% (three "
        "and 1 other).",
        "3 documents in the top 2 of some run are unjudged. Of 3 examined documents, 1 could alone "
        "reverse the order of two runs.",
        "The listed documents (3) have 100% of the influence of all examined documents. If 2z of topic 2 "
        f"is highly relevant, {CLOSES_LEAD}.",
    )
    assert [plot.title for plot in report.plots] == [
        "The first 3 documents have 100% of the influence of all examined documents",
        "Top 2: the largest unjudged share is 50% (three and 1 other)",
    ]
    assert report.actions[0] == (f"Judge 2z of topic 2 first: if it is highly relevant, {CLOSES_LEAD}.")
    assert report.undefined == report.warnings == ()


def test_limits_keep_the_hand_worked_documents() -> None:
    """On topic 1, only 1y is examined: its sum of reciprocal ranks is 3/2, that of 1x is 1/2.

    2z has more influence than 1y, so the table lists only 2z.
    """
    subject = subject_of(QRELS, RUNS, "P@2 RR", top=3)
    report = audited("unjudged", subject, {**PARAMETERS, "tried": 1, "most": 1})
    assert_table(
        report,
        "documents",
        DOCUMENTS,
        [(1, "2", "2z", 1.0, 1 / 1.75, 1, 2, 1, "four 1, three 2", CLOSES_LEAD)],
    )
    assert_table(
        report,
        "topics",
        "topic missing tried reversing influence",
        [("1", 2, 1, 0, 0.75), ("2", 1, 1, 1, 1.0)],
    )
    assert report.warnings == (
        "1 unjudged documents with the smallest sums of 1 / rank were not examined: increase `tried` to "
        "examine more documents per topic.",
    )
