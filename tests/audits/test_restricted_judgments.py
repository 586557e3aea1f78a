"""Tests that scoring under a sample of the judgments equals scoring under qrels with the sample only."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.catalogue.parser import Measure, parse
from cupel_measures.model import ABSENT, UNJUDGED, Content, Ids, Joined, Qrels
from cupel_measures.model.profiles import PROFILES
from cupel_measures.scoring.evaluator import Evaluator
from cupel_measures.scoring.pool import Mask
from support.data.random_collections import TEXTS, collections, runs, supported_measures
from support.data.small_collections import Scored, content_of, diverse, joined_of, qrels_of, ranked, scale


def without_unrestricted(qrels: Qrels) -> Qrels:
    """Return the same judgments without the reference to the complete judgments."""
    return replace(qrels, unrestricted=None, cache={})


def without_unjudged(qrels: Qrels) -> Qrels:
    """Return the same judgments without documents that have no judgment of any kind."""
    known = np.any(qrels.labels > -3, axis=0)
    assert qrels.subtopics is not None
    known[qrels.subtopics.document] = True
    place = np.cumsum(known) - 1
    ids = [name for name, is_known in zip(qrels.documents.to_list(), known, strict=True) if is_known]
    count = np.bincount(qrels.topic_of[known], minlength=len(qrels.topics))
    subtopics = replace(qrels.subtopics, document=place[qrels.subtopics.document].astype(np.int32))
    return replace(
        qrels,
        offsets=np.concatenate([[0], np.cumsum(count)]),
        documents=Ids.of(ids),
        labels=qrels.labels[:, known],
        subtopics=subtopics,
        unrestricted=None,
        cache={},
    )


def bits(evaluator: Evaluator, measures: Sequence[Measure]) -> dict[Measure, bytes]:
    return {measure: values.tobytes() for measure, values in evaluator.evaluate(measures).values.items()}


def stack_runs(qrels: Qrels, given: Sequence[Scored], profile: str) -> tuple[Joined, Content]:
    chosen = PROFILES[profile]
    return (
        Joined.stack([joined_of(run, qrels, profile=chosen) for run in given]),
        Content.stack([content_of(run, qrels, TEXTS, profile=chosen) for run in given]),
    )


@given(
    collections(),
    st.lists(runs(), min_size=1, max_size=2),
    st.lists(st.booleans(), min_size=48, max_size=48),
    st.sampled_from([None, None, "relevance", "credibility"]),
    st.sampled_from([None, None, "relevance", "credibility"]),
    st.sampled_from(sorted(PROFILES)),
)
@settings(max_examples=20, deadline=None)
def test_restricted_evaluator_equals_rescoring(
    qrels: Qrels,
    given: list[Scored],
    chosen: list[bool],
    first: str | None,
    second: str | None,
    profile: str,
) -> None:
    documents = len(qrels.documents)
    once = np.resize(np.array(chosen[:24]), documents)
    twice = np.resize(np.array(chosen[24:]), documents)
    joined, content = stack_runs(qrels, given, profile)
    evaluator = Evaluator(qrels, joined, content=content)
    evaluator.evaluate(supported_measures(qrels)[::3])  # fill the cache, which must not change later scores
    kept = evaluator.restricted_to(once, first)
    _compare(kept, joined, content, given, profile)
    _compare(kept.restricted_to(twice, second), joined, content, given, profile)
    sample = evaluator.restricted_to(once, first, pooled=True)
    _compare_pooled(sample, kept, joined, content)
    nested = kept.restricted_to(twice, second)
    _compare_pooled(sample.restricted_to(twice, second, pooled=True), nested, joined, content)


def _compare(
    kept: Evaluator, joined: Joined, content: Content, given: Sequence[Scored], profile: str
) -> None:
    rebuilt = without_unrestricted(kept.qrels)
    if rebuilt.only_by_subtopic:
        return  # see test_sample_without_labels_of_an_aspect_scores_0
    measures = supported_measures(rebuilt)
    scores = bits(kept, measures)
    assert scores == bits(Evaluator(rebuilt, joined, content=content), measures)
    smaller = without_unjudged(kept.qrels)
    joined, content = stack_runs(smaller, given, profile)
    assert scores == bits(Evaluator(smaller, joined, content=content), measures)


def _compare_pooled(sample: Evaluator, absent: Evaluator, joined: Joined, content: Content) -> None:
    """Compare `sample`, which keeps unjudged documents in the pool, with rescoring and with `absent`.

    `absent` is the same sample without the unjudged documents. Only estimates such as infAP differ.
    """
    rebuilt = without_unrestricted(sample.qrels)
    if without_unrestricted(absent.qrels).only_by_subtopic:
        return
    measures = supported_measures(rebuilt)
    scores = bits(sample, measures)
    assert scores == bits(Evaluator(rebuilt, joined, content=content), measures)
    without_estimates = [measure for measure in measures if "infAP" not in str(measure)]
    assert bits(sample, without_estimates) == bits(absent, without_estimates)


def test_sample_leaves_documents_in_the_pool_unjudged() -> None:
    """infAP by hand, without smoothing. The ranking is x, a, c, and x loses its judgment.

    If x stays in the pool, the precision at a (rank 2) is 1/2 + 1/2 * 1/1 * 1/2, because nothing above it is
    judged, and at c (rank 3) 1/3 + 2/3 * 2/2 * 1/1. If x leaves the pool, it is 1/2 + 1/2 * 0/1 * 1/2 at a,
    and 1/3 + 2/3 * 1/2 * 1/1 at c.
    """
    qrels = qrels_of({"1": {"a": 1, "b": 0, "c": 1, "x": 1}})
    evaluator = Evaluator(qrels, joined_of({"1": ranked("x", "a", "c")}, qrels))
    kept, measure = np.array([True, True, True, False]), parse("infAP")
    scores = {
        pooled: evaluator.restricted_to(kept, pooled=pooled).evaluate([measure]).values[measure].item()
        for pooled in (True, False)
    }
    assert scores[True] == pytest.approx((3 / 4 + 1) / 2, abs=1e-5)
    assert scores[False] == pytest.approx((1 / 2 + 2 / 3) / 2, abs=1e-5)


def test_documents_outside_the_pool_stay_outside_in_a_sample() -> None:
    qrels = qrels_of({scale(1): {"1": {"a": 1}}, scale(1, "credibility"): {"1": {"a": 1, "b": 1}}})
    sample = qrels.restricted_to(np.array([False, False]), pooled=True)
    assert sample.labels.tolist() == [[UNJUDGED, ABSENT], [UNJUDGED, UNJUDGED]]


def test_two_restrictions_equal_their_intersection() -> None:
    qrels = qrels_of({"1": {"a": 1, "b": 2, "c": 0}, "2": {"a": 1}})
    joined = joined_of({"1": ranked("b", "a", "c"), "2": ranked("a")}, qrels)
    measures = [parse("AP"), parse("nDCG"), parse("Bpref")]
    first: Mask = np.array([True, False, True, True])
    second: Mask = np.array([True, True, False, True])
    evaluator = Evaluator(qrels, joined)
    nested = evaluator.restricted_to(first).restricted_to(second).evaluate(measures).values
    both = evaluator.restricted_to(first & second).evaluate(measures).values
    assert {m: v.tolist() for m, v in nested.items()} == {m: v.tolist() for m, v in both.items()}


def test_sample_without_labels_of_an_aspect_scores_0() -> None:
    """If only judgments by subtopic are left, measures of an aspect are 0, not undefined."""
    qrels = qrels_of({"1": {"a": 1}}, subtopics={"1": {"b": {"x": 1}}})
    joined = joined_of({"1": ranked("a", "b")}, qrels)
    kept = Evaluator(qrels, joined).restricted_to(np.array([False, True]))
    measures = [parse("AP"), parse("alpha_nDCG@20")]
    assert [values.tolist() for values in kept.evaluate(measures).values.values()] == [
        [0.0],
        [pytest.approx(0.63093)],
    ]


def test_sample_keeps_the_flag_only_by_subtopic() -> None:
    qrels = diverse({"1": {"a": {"x": 1}, "b": {"x": 1}}})
    assert qrels.restricted_to(np.array([True, False])).only_by_subtopic


@pytest.mark.parametrize("pooled", [True, False])
def test_nested_samples_equal_separate_samples(pooled: bool) -> None:
    rng = np.random.default_rng(4)
    names = [f"d{number:02}" for number in range(30)]
    qrels = qrels_of({f"{t}": {name: int(rng.integers(3)) for name in names} for t in range(3)})
    run = {f"{t}": {name: float(rng.random()) for name in names} for t in range(3)}
    place = rng.permutation(len(qrels.documents))
    samples = [place < size for size in range(84, 0, -7)]
    measures = [parse(text) for text in ("AP", "nDCG", "Bpref", "P@5", "infAP")]
    evaluator = Evaluator(qrels, joined_of(run, qrels))
    for kept, nested in zip(samples, evaluator.nested_samples(samples, pooled=pooled), strict=True):
        rebuilt = Evaluator(
            without_unrestricted(qrels.restricted_to(kept, pooled=pooled)), joined_of(run, qrels)
        )
        assert bits(nested, measures) == bits(rebuilt, measures)
