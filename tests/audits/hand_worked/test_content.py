"""The report of `content` on four runs, derived with an independent sampler and scorer in a few lines.

Grades: 1a 2; 1b, 1c, 2e, 2f 1; 1d, 2g 0. Subtopics: 1a and 1b are relevant to x and 1c to y of topic 1, 2e
to x and 2f to y of topic 2. Document 1u is unjudged and has no text. The reference is P@2.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pytest

from support.data.audit_subjects import audited, lists, subject_of
from support.data.expected_audits import (
    assert_numbers,
    assert_table,
    curve_rows,
    generator_of,
    score_lmd,
    shuffle_groups,
)
from support.data.small_collections import qrels_of, scale, texts_of

GRADES = {"1": {"1a": 2, "1b": 1, "1c": 1, "1d": 0}, "2": {"2e": 1, "2f": 1, "2g": 0}}
SUBTOPICS = {"1": {"x": ["1a", "1b"], "y": ["1c"]}, "2": {"x": ["2e"], "y": ["2f"]}}
TEXTS = {
    "1a": "red apple",
    "1b": "red cherry pie",
    "1c": "blue sky blue",
    "1d": "blue red apple sky",
    "2e": "cat food",
    "2f": "dog food dog",
    "2g": "cat dog food",
}
RANKINGS = {
    "best": {"1": ["1a", "1c"], "2": ["2e", "2f"]},
    "good": {"1": ["1a", "1u"], "2": ["2f", "2e"]},
    "fair": {"1": ["1d", "1b"], "2": ["2g", "2e"]},
    "poor": {"1": ["1d", "1u"], "2": ["2f"]},
}
MEASURES = ("P@2", "LMD")
Sample = set[str]


def score_runs(measure: str, sample: Sample) -> list[float]:
    """Return the mean score of each run if only the documents of the sample are judged."""

    def score(topic: str, ranking: list[str]) -> float:
        if measure == "P@2":
            return (
                sum(GRADES[topic].get(document, 0) > 0 for document in ranking[:2] if document in sample) / 2
            )
        judged = {
            name: [document for document in relevant if document in sample]
            for name, relevant in SUBTOPICS[topic].items()
        }
        return score_lmd(ranking, TEXTS, judged)

    return [sum(score(topic, ranking) for topic, ranking in run.items()) / 2 for run in RANKINGS.values()]


def incomplete(rng: np.random.Generator) -> Iterator[Sample]:
    """Keep max(1, floor(p n)) of n relevant documents, and all others, because there are fewer than 10."""
    order = shuffle_groups(rng, {"1+": ["1a", "1b", "1c"], "1-": ["1d"], "2+": ["2e", "2f"], "2-": ["2g"]})
    for relevant in (3, 2), (1, 1):
        yield {*order["1+"][: relevant[0]], *order["2+"][: relevant[1]], "1d", "2g"}


def downsampling(rng: np.random.Generator) -> Iterator[Sample]:
    """Keep max(1, floor(p n)) of n documents of grade 1, and all documents of grades 0 and 2."""
    strata = {"1:2": ["1a"], "1:1": ["1b", "1c"], "1:0": ["1d"], "2:1": ["2e", "2f"], "2:0": ["2g"]}
    order = shuffle_groups(rng, strata)
    for size in 2, 1:
        yield {*order["1:1"][:size], *order["2:1"][:size], "1a", "1d", "2g"}


def pool_depth(rng: np.random.Generator) -> Iterator[Sample]:
    """Yield the judged documents in the pools of depth 2 and 1."""
    yield {"1a", "1b", "1c", "1d", "2e", "2f", "2g"}
    yield {"1a", "1d", "2e", "2f", "2g"}


Sampler = Callable[[np.random.Generator], Iterator[Sample]]
POINTS = "measure {} kept mean low high least greatest n score"


@pytest.mark.parametrize(
    ("sampler", "parameters", "steps", "axis", "words"),
    [
        (
            incomplete,
            {"percents": [100, 50], "repeats": 3},
            [100, 50],
            "percent",
            "{kept:.1%} of the judgments",
        ),
        (
            downsampling,
            {"percents": [100, 50], "repeats": 3},
            [100, 50],
            "percent",
            "{kept:.1%} of the judgments",
        ),
        (pool_depth, {"deepest": 2}, [2, 1], "depth", "a pool of depth {step}"),
    ],
)
def test_report_equals_an_independent_computation(
    sampler: Sampler, parameters: Mapping[str, object], steps: list[int], axis: str, words: str
) -> None:
    everything = {document for grades in GRADES.values() for document in grades}
    full = {measure: score_runs(measure, everything) for measure in MEASURES}
    assert full["P@2"] == [1, 0.75, 0.5, 0.25]
    trials = range(3 if sampler is not pool_depth else 1)
    samples = [list(sampler(generator_of("content", trial))) for trial in trials]
    points, ranks, own_ranks = [], [], []
    for measure in MEASURES:
        repeats = [[(len(kept) / 7, score_runs(measure, kept)) for kept in repeat] for repeat in samples]
        curve, of_runs = curve_rows(measure, list(RANKINGS), full["P@2"], repeats, steps)
        points += curve
        ranks += of_runs
        curve, _ = curve_rows(measure, list(RANKINGS), full[measure], repeats, steps)
        own_ranks += [(*point[:2], *point[3:9]) for point in curve]

    qrels = qrels_of(
        {scale(2): GRADES},
        subtopics={
            topic: {document: {name: 1} for name, of in by_name.items() for document in of}
            for topic, by_name in SUBTOPICS.items()
        },
    )
    subject = subject_of(qrels, lists(RANKINGS), "P@2", top=2, texts=texts_of(TEXTS))
    report = audited("content", subject, {"curve": sampler.__name__, "reference": "P@2", **parameters})
    assert_table(report, "points", POINTS.format(axis), points)
    assert_table(report, "ranks", f"measure {axis} run rank best worst", ranks)
    assert_table(report, "own", f"measure {axis} mean low high least greatest n", own_ranks)
    assert [table.name for table in report.tables] == ["points", "ranks", "own"]
    tau = {(point[0], point[1]): point[3] for point in points}
    assert_numbers(
        report,
        {f"tau({measure})@{step}": value for (measure, step), value in tau.items()}
        | {f"kept@{point[1]}": point[2] for point in points}
        | {f"own({row[0]})@{row[1]}": row[2] for row in own_ranks},
    )
    first, last = steps
    names = {point[1]: words.format(step=point[1], kept=point[2]) for point in points}
    higher = [step for step in steps if tau["LMD", step] > tau["P@2", step] + 1e-12]
    since = f", first with {names[higher[0]]}" if higher else ""
    assert report.verdict == (
        f"LMD: tau with the order of P@2 under all judgments is {tau['LMD', first]:.2f} with "
        f"{names[first]}, and {tau['LMD', last]:.2f} with {names[last]}. "
        f"With {names[last]}, tau of P@2 itself is {tau['P@2', last]:.2f}. "
        f"LMD has the higher tau at {len(higher)} of 2 steps{since}.",
    )
    advice = (
        "Do not infer from a higher tau alone that LMD orders runs better"
        if higher
        else "At every step where both are defined, tau of P@2 is at least as high as tau of LMD"
    )
    assert report.actions[0].startswith(advice)
    assert tau["P@2", first] == 1 > tau["LMD", first]
    assert report.undefined == report.warnings == ()
