"""Which documents keep their judgments: sizes, nesting, floors, uniformity (spec 4.6)."""

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
"""Of the worked example of spec 4.6."""


def judged_of(*topics: list[int]) -> Judged:
    grades = {f"{t}": {f"d{i:03}": grade for i, grade in enumerate(of)} for t, of in enumerate(topics)}
    return Judged.of(subject_of(qrels_of(grades), {"run": {"0": ranked("d000")}}, "AP"), None)


def chance(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def sizes(judged: Judged, mask: Mask, topic: int = 0) -> tuple[int, ...]:
    """How many documents of degree 0, 1, 2 of a topic are kept."""
    kept = mask[judged.document] & (judged.topic == topic)
    return tuple(int((kept & (judged.degree == degree)).sum()) for degree in range(3))


def test_the_worked_example_of_the_specification() -> None:
    judged = judged_of(GRADES)
    found = [sizes(judged, mask) for mask in stratified(chance(1), judged, RATIOS)]
    assert found == [(36, 4, 1), (28, 3, 1), (20, 2, 1), (12, 1, 1), (10, 1, 1), (10, 1, 1)]


def test_strata_below_the_floor_are_kept_whole() -> None:
    judged = judged_of([0] * 7 + [1], [0] * 12, [2] * 3)
    masks = list(stratified(chance(1), judged, (10, 5)))
    for mask in masks:
        assert [sizes(judged, mask, topic) for topic in range(3)] == [(7, 1, 0), (10, 0, 0), (0, 0, 1)]


def test_stratified_samples_are_nested() -> None:
    judged = judged_of(GRADES, GRADES[::-1])
    masks = list(stratified(chance(3), judged, RATIOS))
    for larger, smaller in itertools.pairwise(masks):
        assert not (smaller & ~larger).any()


def test_all_judgments_are_kept_at_100_per_cent() -> None:
    judged = judged_of(GRADES)
    for sample in (stratified, uniform):
        [mask] = sample(chance(1), judged, [100])
        assert mask.sum() == len(GRADES)


def even(counts: np.ndarray, draws: int, share: float, alpha: float = 1e-4) -> bool:
    """Whether documents that are each kept with the same chance may well be kept so often.

    Each count is within its binomial bounds (all together at `alpha`), and their squared deviations within
    those of chi-square, which is conservative: counts of a sample of fixed size vary less.
    """
    low, high = binom.interval(1 - alpha / len(counts), draws, share)
    deviation = ((counts - draws * share) ** 2 / (draws * share * (1 - share))).sum()
    return bool(((counts >= low) & (counts <= high)).all() and deviation < chi2.isf(alpha, len(counts)))


def test_every_document_of_a_stratum_is_kept_as_often() -> None:
    judged, draws, random = judged_of(GRADES), 2000, chance(11)
    counts = np.sum([next(stratified(random, judged, [50])) for _ in range(draws)], axis=0)
    degree = judged.degree
    assert even(counts[degree == 0], draws, 20 / 40)
    assert even(counts[degree == 1], draws, 2 / 5)
    assert even(counts[degree == 2], draws, 1 / 2)


def test_uniform_samples_have_every_document_as_often_if_none_is_drawn_again() -> None:
    judged, draws, random = judged_of([1] * 30), 2000, chance(12)
    counts = np.sum([next(uniform(random, judged, [30])) for _ in range(draws)], axis=0)
    assert even(counts, draws, 9 / 30)


def test_uniform_samples_are_drawn_again_until_they_have_a_relevant_document() -> None:
    """Of 20 documents 2 are relevant and 5 kept: given that one is, as often each of the 18 others.

    P(a relevant one is kept | some is) = (5/20) / (1 - C(18,5)/C(20,5)) = .25 / (1 - 210/380) = .558824;
    for another one: (C(19,4) - C(17,4)) / C(20,5) / (170/380) = (3876 - 2380) / 15504 / .447368 = .215686.
    """
    judged, draws, random = judged_of([1, 1] + [0] * 18), 3000, chance(13)
    masks = [next(uniform(random, judged, [25])) for _ in range(draws)]
    assert all(mask[:2].any() and mask.sum() == 5 for mask in masks)
    counts = np.sum(masks, axis=0)
    assert even(counts[:2], draws, 0.558824)
    assert even(counts[2:], draws, 0.215686)


def test_a_topic_without_relevant_documents_is_drawn_once() -> None:
    judged = judged_of([0] * 20, [0] * 19 + [1])
    [mask] = uniform(chance(1), judged, [5])
    assert [sizes(judged, mask, topic) for topic in (0, 1)] == [(1, 0, 0), (0, 1, 0)]


def test_at_least_one_document_of_a_topic_is_kept() -> None:
    judged = judged_of([0] * 3, [1])
    [mask] = uniform(chance(1), judged, [5])
    assert mask.sum() == 2


def test_uniform_draws_at_two_ratios_are_independent_unless_nested() -> None:
    """Halves of 40 documents share 10 on average; nested they are the same."""
    judged, draws, random = judged_of([1] * 40), 500, chance(14)
    shared = []
    for _ in range(draws):
        first, second = uniform(random, judged, [50, 50])
        shared.append(int((first & second).sum()))
    variance = 20 * 0.5 * 0.5 * 20 / 39  # hypergeometric
    assert abs(np.mean(shared) - 10) < 4 * np.sqrt(variance / draws)
    first, second = uniform(random, judged, [50, 50], nested=True)
    assert (first == second).all()
    masks = list(uniform(random, judged, RATIOS, nested=True))
    assert all(not (b & ~a).any() for a, b in itertools.pairwise(masks))


def test_shares_are_those_of_the_typed_percentage() -> None:
    assert shares(70, np.array([10, 9, 0])).tolist() == [7, 6, 0]
    assert shares(0.1, np.array([1000, 999])).tolist() == [1, 0]
    assert shares(33.3, np.array([1000])).tolist() == [333]


def test_places_are_permutations_of_each_group() -> None:
    group = np.array([3, 0, 3, 0, 0, 3])
    place, size = shuffled(chance(1), group)
    assert sorted(place[group == 0]) == sorted(place[group == 3]) == [0, 1, 2]
    assert size.tolist() == [3] * 6


def test_negative_grades_are_of_degree_0_and_judgments_by_subtopic_of_1_or_0() -> None:
    assert judged_of([-1, 0, 2]).degree.tolist() == [0, 0, 2]
    by_subtopic: BySubtopic = {"1": {"a": {"x": 1}, "b": {"x": 0, "y": -2}, "c": {"y": 3}}}
    judged = Judged.of(subject_of(diverse(by_subtopic), {"run": {}}, "alpha_nDCG@20"), None)
    assert judged.degree.tolist() == [1, 0, 1]
    assert judged.relevant.tolist() == [True, False, True]


@pytest.mark.parametrize(("aspect", "documents"), [(None, 3), ("one", 2), ("two", 1)])
def test_documents_of_one_aspect_are_those_with_a_label_of_it(aspect: str | None, documents: int) -> None:
    qrels = qrels_of(
        {Aspect("one", range(2)): {"1": {"a": 1, "b": -1}}, Aspect("two", range(3)): {"1": {"c": 2}}}
    )
    judged = Judged.of(subject_of(qrels, {"run": {}}, "AP"), aspect)
    assert len(judged.document) == documents
