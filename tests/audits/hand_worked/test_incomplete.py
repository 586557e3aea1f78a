"""The report of `incomplete` on four runs, derived with an independent sampler in a few lines.

1a, 1b and 1c are relevant to a subtopic of topic 1, and 2e and 2f to one of topic 2. 1d has grade 1 but is
relevant to no subtopic, so it is in the stratum of the twelve non-relevant documents 1n01 to 1n12 and of 2g.
"""

import pytest

from support.data.audit_subjects import audited, lists, reported, subject_of, trials_of
from support.data.expected_audits import (
    assert_numbers,
    assert_table,
    curve_rows,
    generator_of,
    shuffle_groups,
)
from support.data.small_collections import qrels_of, scale

ZEROS = [f"1n{number:02}" for number in range(1, 13)]
GRADES = {
    "1": {"1a": 1, "1b": 1, "1c": 1, "1d": 1, **dict.fromkeys(ZEROS, 0)},
    "2": {"2e": 1, "2f": 1, "2g": 0},
}
SUBTOPICS = {
    "1": {"1a": {"x": 1}, "1b": {"x": 0, "y": 1}, "1c": {"y": 1}, "1d": {"x": 0, "y": 0}},
    "2": {"2e": {"x": 1}, "2f": {"x": 1}},
}
STRATA = {"1+": ["1a", "1b", "1c"], "1-": ["1d", *ZEROS], "2+": ["2e", "2f"], "2-": ["2g"]}
RANKINGS = {
    "best": {"1": ["1a", "1b"], "2": ["2e", "2f"]},
    "good": {"1": ["1a", "1d"], "2": ["2e", "2g"]},
    "fair": {"1": ["1c", "1n01"], "2": ["2f", "2g"]},
    "poor": {"1": ["1n01", "1b"], "2": ["2g"]},
}
SIZES = {100: {"1+": 3, "1-": 13, "2+": 2, "2-": 1}, 90: {"1+": 2, "1-": 11, "2+": 1, "2-": 1},
         20: {"1+": 1, "1-": 10, "2+": 1, "2-": 1}}  # fmt: skip
"""Percentage -> stratum -> sample size, by hand. Of the n documents of a stratum, a sample has
max(1, floor(p n / 100)) if they are relevant, and max(10, floor(p n / 100)) if not, but at most n.
"""


def precision_at_2(sample: set[str]) -> list[float]:
    """Return the mean P@2 of each run if only the documents of the sample are judged."""
    relevant = {"1a", "1b", "1c", "1d", "2e", "2f"} & sample
    return [sum(len(relevant & set(top)) / 2 for top in run.values()) / 2 for run in RANKINGS.values()]


def test_report_equals_an_independent_sampler() -> None:
    full = [1, 0.75, 0.5, 0.25]
    repeats = []
    for trial in range(3):
        order = shuffle_groups(generator_of("incomplete", trial), STRATA)
        samples = [
            {document for name in STRATA for document in order[name][: size[name]]} for size in SIZES.values()
        ]
        repeats.append([(len(kept) / 19, precision_at_2(kept)) for kept in samples])
    assert repeats[0][0] == (1, full)
    points, ranks = curve_rows("P@2", list(RANKINGS), full, repeats, list(SIZES))

    qrels = qrels_of({scale(1): GRADES}, subtopics=SUBTOPICS)
    subject = subject_of(qrels, lists(RANKINGS), "P@2")
    report = audited("incomplete", subject, {"percents": list(SIZES), "repeats": 3})
    assert_table(report, "points", "measure percent kept mean low high least greatest n score", points)
    assert report.table("points").column("kept") == [1, 15 / 19, 13 / 19]
    assert_table(report, "ranks", "measure percent run rank best worst", ranks)
    assert [table.name for table in report.tables] == ["points", "ranks"]
    tau = {percent: point[3] for percent, point in zip(SIZES, points, strict=True)}
    assert_numbers(
        report,
        {f"tau(P@2)@{percent}": tau[percent] for percent in SIZES}
        | {"kept@100": 1, "kept@90": 15 / 19, "kept@20": 13 / 19},
    )
    assert tau[100] == 1
    assert tau[90] > 0.9 > tau[20]
    assert report.verdict == (
        "P@2: mean tau over 3 repeats is at least 0.9 down to 78.9% of the judgments; with 68.4% of the "
        f"judgments it is {tau[20]:.2f}.",
        "If no scores are tied, a tau of 0.9 means that 1 in 20 pairs of runs is swapped.",
    )
    assert report.actions == (
        "In random samples of these judgments, mean tau with the order of these runs stays at 0.9 or more "
        "down to: 78.9% for P@2. If fewer documents are judged, report how far it falls.",
        "Run `cupel audit pool_depth` to see what a shallower pool would change, because judgments are "
        "rarely missing at random.",
    )
    assert report.undefined == report.warnings == ()


@pytest.mark.parametrize(("kind", "steps"), [("incomplete", "percents"), ("downsampling", "ratios")])
def test_report_says_that_stored_repeats_removed_documents_from_the_pool(kind: str, steps: str) -> None:
    """Earlier releases removed unjudged documents, and the results that they stored have no key `pooled`."""
    subject = subject_of(qrels_of({scale(1): GRADES}, subtopics=SUBTOPICS), lists(RANKINGS), "P@2 infAP")
    parameters = {steps: [100, 20], "repeats": 2}
    trials = trials_of(kind, subject, parameters)
    report = reported(kind, subject, parameters, trials)
    assert report.warnings == ()
    for step in trials[1]:
        del step["pooled"]
    stored = reported(kind, subject, parameters, trials)
    assert stored.tables == report.tables
    without = subject_of(qrels_of({scale(1): GRADES}, subtopics=SUBTOPICS), lists(RANKINGS), "P@2")
    old = {
        n: [{**step, "pooled": False} for step in trial]
        for n, trial in trials_of(kind, without, parameters).items()
    }
    assert reported(kind, without, parameters, old).warnings == ()
    assert stored.warnings == (
        "infAP: 1 of 2 repeats were computed by an earlier release, which removed documents from the pool "
        "together with their judgments. The measure is therefore underestimated; run the audit again",
    )
