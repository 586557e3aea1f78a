"""Scoring under a part of the judgments is scoring under qrels that hold only these, to the last bit."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.catalogue.parser import Measure, parse
from cupel_measures.model import Content, Ids, Joined, Qrels
from cupel_measures.model.profiles import PROFILES
from cupel_measures.scoring.evaluator import Evaluator
from cupel_measures.scoring.pool import Mask
from support.data.random_collections import TEXTS, collections, possible, runs
from support.data.small_collections import Scored, content_of, diverse, joined_of, qrels_of, ranked


def fresh(qrels: Qrels) -> Qrels:
    """The same judgments, as if these had never been part of others."""
    return replace(qrels, whole=None, cache={})


def without(qrels: Qrels) -> Qrels:
    """The same judgments without the documents that have none of any kind."""
    known = np.any(qrels.labels > -3, axis=0)
    assert qrels.subtopics is not None
    known[qrels.subtopics.document] = True
    place = np.cumsum(known) - 1
    ids = [one for one, there in zip(qrels.documents.to_list(), known, strict=True) if there]
    count = np.bincount(qrels.topic_of[known], minlength=len(qrels.topics))
    subtopics = replace(qrels.subtopics, document=place[qrels.subtopics.document].astype(np.int32))
    return replace(
        qrels,
        offsets=np.concatenate([[0], np.cumsum(count)]),
        documents=Ids.of(ids),
        labels=qrels.labels[:, known],
        subtopics=subtopics,
        whole=None,
        cache={},
    )


def bits(evaluator: Evaluator, measures: Sequence[Measure]) -> dict[Measure, bytes]:
    return {measure: of.tobytes() for measure, of in evaluator.evaluate(measures).values.items()}


def stacked(qrels: Qrels, of: Sequence[Scored], profile: str) -> tuple[Joined, Content]:
    chosen = PROFILES[profile]
    return (
        Joined.stack([joined_of(run, qrels, profile=chosen) for run in of]),
        Content.stack([content_of(run, qrels, TEXTS, profile=chosen) for run in of]),
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
def test_every_measure_is_that_of_judgments_made_anew(
    qrels: Qrels,
    of: list[Scored],
    chosen: list[bool],
    first: str | None,
    second: str | None,
    profile: str,
) -> None:
    documents = len(qrels.documents)
    once = np.resize(np.array(chosen[:24]), documents)
    twice = np.resize(np.array(chosen[24:]), documents)
    joined, content = stacked(qrels, of, profile)
    whole = Evaluator(qrels, joined, content=content)
    whole.evaluate(possible(qrels)[::3])  # what is remembered of the whole must not matter
    kept = whole.keeping(once, first)
    _compare(kept, joined, content, of, profile)
    _compare(kept.keeping(twice, second), joined, content, of, profile)


def _compare(kept: Evaluator, joined: Joined, content: Content, of: Sequence[Scored], profile: str) -> None:
    anew = fresh(kept.qrels)
    if anew.only_by_subtopic:
        return  # judgments that were never of an aspect have no measures of one: see below
    measures = possible(anew)
    found = bits(kept, measures)
    assert found == bits(Evaluator(anew, joined, content=content), measures)
    smaller = without(kept.qrels)
    again, texts = stacked(smaller, of, profile)
    assert found == bits(Evaluator(smaller, again, content=texts), measures)


def test_two_masks_are_the_same_as_both_at_once() -> None:
    qrels = qrels_of({"1": {"a": 1, "b": 2, "c": 0}, "2": {"a": 1}})
    joined = joined_of({"1": ranked("b", "a", "c"), "2": ranked("a")}, qrels)
    measures = [parse("AP"), parse("nDCG"), parse("Bpref")]
    one: Mask = np.array([True, False, True, True])
    two: Mask = np.array([True, True, False, True])
    whole = Evaluator(qrels, joined)
    nested = whole.keeping(one).keeping(two).evaluate(measures).values
    both = whole.keeping(one & two).evaluate(measures).values
    assert {m: v.tolist() for m, v in nested.items()} == {m: v.tolist() for m, v in both.items()}


def test_a_part_without_labels_of_aspects_still_has_these_measures() -> None:
    """Where only judgments by subtopic are left, a measure of an aspect is 0: they were made for it too."""
    qrels = qrels_of({"1": {"a": 1}}, subtopics={"1": {"b": {"x": 1}}})
    joined = joined_of({"1": ranked("a", "b")}, qrels)
    kept = Evaluator(qrels, joined).keeping(np.array([False, True]))
    measures = [parse("AP"), parse("alpha_nDCG@20")]
    assert [of.tolist() for of in kept.evaluate(measures).values.values()] == [
        [0.0],
        [pytest.approx(0.63093)],
    ]


def test_a_collection_judged_by_subtopic_only_stays_one() -> None:
    qrels = diverse({"1": {"a": {"x": 1}, "b": {"x": 1}}})
    assert qrels.keeping(np.array([True, False])).only_by_subtopic


def test_a_long_row_of_nested_samples_is_each_of_them() -> None:
    chance = np.random.default_rng(4)
    names = [f"d{number:02}" for number in range(30)]
    qrels = qrels_of({f"{t}": {name: int(chance.integers(3)) for name in names} for t in range(3)})
    run = {f"{t}": {name: float(chance.random()) for name in names} for t in range(3)}
    place = chance.permutation(len(qrels.documents))
    samples = [place < size for size in range(84, 0, -7)]
    measures = [parse(text) for text in ("AP", "nDCG", "Bpref", "P@5")]
    whole = Evaluator(qrels, joined_of(run, qrels))
    for kept, evaluator in zip(samples, whole.nested_samples(samples), strict=True):
        anew = Evaluator(fresh(qrels.keeping(kept)), joined_of(run, qrels))
        assert bits(evaluator, measures) == bits(anew, measures)
