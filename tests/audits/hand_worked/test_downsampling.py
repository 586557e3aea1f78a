"""The report of `downsampling` on four runs, derived with an independent sampler in a few lines.

Topic 1 has two documents of grade 2 (1a, 1b), two of grade 1 (1c, 1d) and thirteen of grade 0 (1n01 to 1n13).
Topic 2 has two of grade 1 (2e, 2f) and one of grade 0 (2g). P@2 counts the relevant documents among the
first two.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pytest

from cupel_audits.report import AuditReport
from support.data.audit_subjects import audited, lists, subject_of
from support.data.expected_audits import (
    Row,
    assert_numbers,
    assert_table,
    curve_rows,
    generator_of,
    shuffle_groups,
)
from support.data.small_collections import qrels_of

ZEROS = [f"1n{number:02}" for number in range(1, 14)]
GRADES = {
    "1": {"1a": 2, "1b": 2, "1c": 1, "1d": 1, **dict.fromkeys(ZEROS, 0)},
    "2": {"2e": 1, "2f": 1, "2g": 0},
}
RANKINGS = {
    "best": {"1": ["1a", "1b"], "2": ["2e", "2f"]},
    "good": {"1": ["1a", "1c"], "2": ["2e", "2g"]},
    "fair": {"1": ["1c", "1n01"], "2": ["2f", "2g"]},
    "poor": {"1": ["1n01", "1d"], "2": ["2g"]},
}
PERCENTS = [100, 90, 50]
REPEATS = 3
Sample = set[str]
POINTS = "measure percent kept mean low high least greatest n score"


def precision_at_2(sample: Sample) -> list[float]:
    """Return the mean P@2 of each run if only the documents of the sample are judged."""
    relevant = {
        document for grades in GRADES.values() for document, grade in grades.items() if grade
    } & sample
    return [sum(len(relevant & set(top)) / 2 for top in run.values()) / 2 for run in RANKINGS.values()]


def stratified(rng: np.random.Generator) -> Iterator[Sample]:
    """Shuffle each stratum once, and yield the first documents of each stratum for each percentage.

    Of n documents, keep max(10, floor(p n)) in a stratum of grade 0, and max(1, floor(p n)) in others.
    """
    strata = {"1-2": ["1a", "1b"], "1-1": ["1c", "1d"], "1-0": ZEROS, "2-1": ["2e", "2f"], "2-0": ["2g"]}
    order = shuffle_groups(rng, strata)
    for percent in PERCENTS:
        yield {
            document
            for name, stratum in order.items()
            for document in stratum[: max(10 if name.endswith("-0") else 1, percent * len(stratum) // 100)]
        }


def uniform(rng: np.random.Generator, percents: Sequence[int]) -> Iterator[Sample]:
    """Keep max(1, floor(p n)) of n documents per topic.

    Samples are redrawn until the smallest one contains a relevant document.
    """
    topics = {topic: sorted(grades) for topic, grades in GRADES.items()}
    sizes = {topic: max(1, min(percents) * len(documents) // 100) for topic, documents in topics.items()}
    order = shuffle_groups(rng, topics)
    while redrawn := [t for t in topics if not any(GRADES[t][d] for d in order[t][: sizes[t]])]:
        order |= shuffle_groups(rng, {topic: topics[topic] for topic in redrawn})
    for percent in percents:
        kept = {topic: max(1, percent * len(documents) // 100) for topic, documents in topics.items()}
        yield {document for topic in topics for document in order[topic][: kept[topic]]}


def uniform_nested(rng: np.random.Generator) -> Iterator[Sample]:
    return uniform(rng, PERCENTS)


def uniform_independent(rng: np.random.Generator) -> Iterator[Sample]:
    for percent in PERCENTS:
        yield from uniform(rng, [percent])


Sampler = Callable[[np.random.Generator], Iterator[Sample]]


def expected(sampler: Sampler) -> tuple[list[Row], list[Row]]:
    full = precision_at_2({document for grades in GRADES.values() for document in grades})
    assert full == [1, 0.75, 0.5, 0.25]
    repeats = []
    for trial in range(REPEATS):
        samples = list(sampler(generator_of("downsampling", trial)))
        repeats.append([(len(kept) / 20, precision_at_2(kept)) for kept in samples])
    return curve_rows("P@2", list(RANKINGS), full, repeats, PERCENTS)


def report_of(parameters: Mapping[str, object]) -> AuditReport:
    subject = subject_of(qrels_of(GRADES), lists(RANKINGS), "P@2")
    return audited("downsampling", subject, {"ratios": PERCENTS, "repeats": REPEATS, **parameters})


ALL_JUDGMENTS = "with all judgments, but not at the next step"


@pytest.mark.parametrize(
    ("parameters", "sampler", "extent"),
    [
        ({"method": "stratified"}, stratified, ALL_JUDGMENTS),
        ({"method": "uniform"}, uniform_independent, ALL_JUDGMENTS),
        ({"method": "uniform", "nested": True}, uniform_nested, "down to 85.0% of the judgments"),
    ],
)
def test_report_equals_an_independent_sampler(
    parameters: Mapping[str, object], sampler: Sampler, extent: str
) -> None:
    points, ranks = expected(sampler)
    report = report_of(parameters)
    assert_table(report, "points", POINTS, points)
    assert_table(report, "ranks", "measure percent run rank best worst", ranks)
    taus = {percent: point[3] for percent, point in zip(PERCENTS, points, strict=True)}
    kept = {percent: point[2] for percent, point in zip(PERCENTS, points, strict=True)}
    numbers = {f"tau(P@2)@{percent}": tau for percent, tau in taus.items()}
    assert_numbers(report, numbers | {f"kept@{percent}": share for percent, share in kept.items()})
    least = min(point[6] for point in points if point[3] >= 0.9)
    note = f" (least {least:.4f})" if least < 0.9 else ""
    assert taus[100] == 1
    assert (taus[90] < 0.9) == (extent == ALL_JUDGMENTS)
    assert report.verdict == (
        f"P@2: mean tau over 3 repeats is at least 0.9 {extent}{note}; with {kept[50]:.1%} of the judgments "
        f"it is {taus[50]:.2f}.",
        "If no scores are tied, a tau of 0.9 means that 1 in 20 pairs of runs is swapped.",
    )
    assert report.undefined == report.warnings == ()
    assert [table.name for table in report.tables] == ["points", "ranks"]


def test_stratified_samples_have_the_hand_worked_sizes() -> None:
    """90%: 1 + 1 + floor(11.7) + 1 + 1 = 15 of 20; 50%: 1 + 1 + max(10, 6) + 1 + 1 = 14 of 20."""
    report = report_of({"method": "stratified"})
    assert report.table("points").column("kept") == [1, 15 / 20, 14 / 20]


def test_uniform_samples_have_the_hand_worked_sizes() -> None:
    """90%: floor(15.3) + floor(2.7) = 17 of 20; 50%: floor(8.5) + floor(1.5) = 9 of 20."""
    report = report_of({"method": "uniform"})
    assert report.table("points").column("kept") == [1, 17 / 20, 9 / 20]
