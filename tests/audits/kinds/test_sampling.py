"""Tests of samples of judgments: sizes, nesting, minimum sizes and uniformity."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom, chi2

from cupel_audits.analysis.judgment_samples import Judged, shares, shuffled, stratified, uniform
from cupel_measures.model import Aspect
from cupel_measures.scoring.pool import Mask
from support.data.audit_subjects import subject_of
from support.data.small_collections import BySubtopic, diverse, qrels_of, ranked

RATIOS = (90.0, 70.0, 50.0, 30.0, 10.0, 5.0)
GRADES = [0] * 40 + [1] * 5 + [2] * 2
"""40 documents of grade 0, 5 of grade 1 and 2 of grade 2."""


def judged_of(*topics: list[int]) -> Judged:
    grades = {f"{t}": {f"d{i:03}": grade for i, grade in enumerate(topic)} for t, topic in enumerate(topics)}
    return Judged.of(subject_of(qrels_of(grades), {"run": {"0": ranked("d000")}}, "AP"), None)


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def sizes(judged: Judged, mask: Mask, topic: int = 0) -> tuple[int, ...]:
    """Return the numbers of kept documents of grade 0, 1 and 2 of a topic."""
    kept = mask[judged.document] & (judged.topic == topic)
    return tuple(int((kept & (judged.grade == grade)).sum()) for grade in range(3))


def test_stratified_sample_sizes_of_worked_example() -> None:
    judged = judged_of(GRADES)
    kept = [sizes(judged, mask) for mask in stratified(generator(1), judged, RATIOS)]
    assert kept == [(36, 4, 1), (28, 3, 1), (20, 2, 1), (12, 1, 1), (10, 1, 1), (10, 1, 1)]


def test_strata_below_minimum_size_are_kept_completely() -> None:
    judged = judged_of([0] * 7 + [1], [0] * 12, [2] * 3)
    masks = list(stratified(generator(1), judged, (10, 5)))
    for mask in masks:
        assert [sizes(judged, mask, topic) for topic in range(3)] == [(7, 1, 0), (10, 0, 0), (0, 0, 1)]


def test_stratified_samples_are_nested() -> None:
    judged = judged_of(GRADES, GRADES[::-1])
    masks = list(stratified(generator(3), judged, RATIOS))
    for larger, smaller in itertools.pairwise(masks):
        assert not (smaller & ~larger).any()


def test_sample_of_100_per_cent_keeps_all_judgments() -> None:
    judged = judged_of(GRADES)
    for sample in (stratified, uniform):
        [mask] = sample(generator(1), judged, [100])
        assert mask.sum() == len(GRADES)


def is_plausible(counts: np.ndarray, draws: int, share: float, alpha: float = 1e-4) -> bool:
    """Return whether the counts are plausible if each document is kept with probability `share`.

    Each count must be within its binomial interval, with a Bonferroni correction of `alpha`. The sum of
    squared deviations must be within its chi-square interval. That interval is conservative, because the
    sample size is fixed.
    """
    low, high = binom.interval(1 - alpha / len(counts), draws, share)
    deviation = ((counts - draws * share) ** 2 / (draws * share * (1 - share))).sum()
    return bool(((counts >= low) & (counts <= high)).all() and deviation < chi2.isf(alpha, len(counts)))


def test_stratified_sample_is_uniform_within_strata() -> None:
    judged, draws, rng = judged_of(GRADES), 2000, generator(11)
    counts = np.sum([next(stratified(rng, judged, [50])) for _ in range(draws)], axis=0)
    grade = judged.grade
    assert is_plausible(counts[grade == 0], draws, 20 / 40)
    assert is_plausible(counts[grade == 1], draws, 2 / 5)
    assert is_plausible(counts[grade == 2], draws, 1 / 2)


def test_uniform_sample_is_uniform_without_redraws() -> None:
    judged, draws, rng = judged_of([1] * 30), 2000, generator(12)
    counts = np.sum([next(uniform(rng, judged, [30])) for _ in range(draws)], axis=0)
    assert is_plausible(counts, draws, 9 / 30)


def test_uniform_sample_is_redrawn_until_it_has_a_relevant_document() -> None:
    """Compare counts with the conditional probabilities; 2 of 20 documents are relevant, and 5 are kept.

    P(a given relevant document is kept | some relevant document is kept) = (5/20) / (1 - C(18,5)/C(20,5)) =
    .25 / (1 - 210/380) = .558824; for another document: (C(19,4) - C(17,4)) / C(20,5) / (170/380) = (3876 -
    2380) / 15504 / .447368 = .215686.
    """
    judged, draws, rng = judged_of([1, 1] + [0] * 18), 3000, generator(13)
    masks = [next(uniform(rng, judged, [25])) for _ in range(draws)]
    assert all(mask[:2].any() and mask.sum() == 5 for mask in masks)
    counts = np.sum(masks, axis=0)
    assert is_plausible(counts[:2], draws, 0.558824)
    assert is_plausible(counts[2:], draws, 0.215686)


def test_topic_without_relevant_documents_is_not_redrawn() -> None:
    judged = judged_of([0] * 20, [0] * 19 + [1])
    [mask] = uniform(generator(1), judged, [5])
    assert [sizes(judged, mask, topic) for topic in (0, 1)] == [(1, 0, 0), (0, 1, 0)]


def test_sample_keeps_at_least_one_document_of_each_topic() -> None:
    judged = judged_of([0] * 3, [1])
    [mask] = uniform(generator(1), judged, [5])
    assert mask.sum() == 2


def test_uniform_samples_are_independent_unless_nested() -> None:
    """Independent halves of 40 documents share 10 on average; nested halves are equal."""
    judged, draws, rng = judged_of([1] * 40), 500, generator(14)
    shared = []
    for _ in range(draws):
        first, second = uniform(rng, judged, [50, 50])
        shared.append(int((first & second).sum()))
    variance = 20 * 0.5 * 0.5 * 20 / 39  # hypergeometric
    assert abs(np.mean(shared) - 10) < 4 * np.sqrt(variance / draws)
    first, second = uniform(rng, judged, [50, 50], nested=True)
    assert (first == second).all()
    masks = list(uniform(rng, judged, RATIOS, nested=True))
    assert all(not (b & ~a).any() for a, b in itertools.pairwise(masks))


def test_shares_are_exact_for_decimal_percentages() -> None:
    assert shares(70, np.array([10, 9, 0])).tolist() == [7, 6, 0]
    assert shares(0.1, np.array([1000, 999])).tolist() == [1, 0]
    assert shares(33.3, np.array([1000])).tolist() == [333]


def test_shuffled_places_are_permutations_of_each_group() -> None:
    group = np.array([3, 0, 3, 0, 0, 3])
    place, size = shuffled(generator(1), group)
    assert sorted(place[group == 0]) == sorted(place[group == 3]) == [0, 1, 2]
    assert size.tolist() == [3] * 6


def test_grades_of_negative_and_of_subtopic_judgments() -> None:
    assert judged_of([-1, 0, 2]).grade.tolist() == [0, 0, 2]
    by_subtopic: BySubtopic = {"1": {"a": {"x": 1}, "b": {"x": 0, "y": -2}, "c": {"y": 3}}}
    judged = Judged.of(subject_of(diverse(by_subtopic), {"run": {}}, "alpha_nDCG@20"), None)
    assert judged.grade.tolist() == [1, 0, 1]
    assert judged.relevant.tolist() == [True, False, True]


@pytest.mark.parametrize(("aspect", "documents"), [(None, 3), ("one", 2), ("two", 1)])
def test_judged_documents_of_an_aspect_have_a_label_of_the_aspect(aspect: str | None, documents: int) -> None:
    qrels = qrels_of(
        {
            Aspect(name="one", labels=range(2)): {"1": {"a": 1, "b": -1}},
            Aspect(name="two", labels=range(3)): {"1": {"c": 2}},
        }
    )
    judged = Judged.of(subject_of(qrels, {"run": {}}, "AP"), aspect)
    assert len(judged.document) == documents
