"""Tests of the laws of all declared measures; new measures are included automatically."""

import pickle
import random
from collections.abc import Callable
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cupel_measures.catalogue.parser import Measure, all_declarations, parse
from cupel_measures.grammar.registry import EMPTY, LAWS, NOTHING_RELEVANT, SWAP, Declaration
from cupel_measures.model import Aspect, Content, Joined, Qrels
from cupel_measures.model.profiles import PROFILES
from cupel_measures.scoring import evaluator
from cupel_measures.scoring.evaluator import evaluate
from support.data.random_collections import (
    ALL,
    ASPECTS,
    SAID,
    TEXTS,
    TOPICS,
    collections,
    documents,
    grades,
    is_exempt,
    labels,
    random_variant,
    rankings,
    runs,
    supported_measures,
    values,
)
from support.data.small_collections import (
    Scored,
    content_of,
    joined_of,
    qrels_of,
    ranked,
    scores_of,
    texts_of,
)


@given(collections(), runs(), st.sampled_from(sorted(PROFILES)))
@settings(max_examples=60, deadline=None)
def test_every_score_is_within_the_declared_bounds(qrels: Qrels, run: Scored, profile: str) -> None:
    for measure, per_topic in values(qrels, run, profile=profile).items():
        low, high = measure.bounds
        assert all(low <= value <= high for value in per_topic), (measure, per_topic)


@given(runs())
@settings(max_examples=30, deadline=None)
def test_topic_without_relevant_documents_scores_0(run: Scored) -> None:
    judged = {a: {t: {"d1": 0, "d2": 0} for t in TOPICS} for a in ASPECTS}
    qrels = qrels_of(judged, subtopics={t: {"d1": {"a": 0, "b": -1}, "d2": {"a": 0}} for t in TOPICS})
    for measure, per_topic in values(qrels, run).items():
        if not is_exempt(measure, NOTHING_RELEVANT):
            assert per_topic == [0, 0, 0], measure


@given(collections())
@settings(max_examples=30, deadline=None)
def test_empty_run_scores_0(qrels: Qrels) -> None:
    for measure, per_topic in values(qrels, {}).items():
        if not is_exempt(measure, EMPTY):
            assert per_topic == [0, 0, 0], measure


@given(collections(), st.lists(documents, unique=True, min_size=2, max_size=9), st.data())
@settings(max_examples=80, deadline=None)
def test_swap_towards_a_better_order_never_lowers_the_score(
    qrels: Qrels, order: list[str], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(order) - 2))
    pair = order[place : place + 2]
    better = {
        by_subtopic: _is_at_least_as_good(*(judgments(qrels, d) for d in pair))
        for by_subtopic, judgments in {False: _labels, True: _subtopics}.items()
    }
    assume(any(better.values()))
    swapped = [*order[:place], order[place + 1], order[place], *order[place + 2 :]]
    before, after = (values(qrels, {"1": ranked(*ranking)}) for ranking in (order, swapped))
    for measure in before:
        if better[measure.declaration.subtopics] and not is_exempt(measure, SWAP):
            assert after[measure][0] >= before[measure][0] - 1e-12, measure


def _is_at_least_as_good(above: list[int], below: list[int]) -> bool:
    """Return whether the document ranked lower (`below`) is at least as good by every aspect and subtopic."""
    return all(a <= b for a, b in zip(above, below, strict=True))


def _labels(qrels: Qrels, document: str) -> list[int]:
    places = _places(qrels, document)
    return qrels.labels[:, places[0]].tolist() if places else [-3, -3]


def _subtopics(qrels: Qrels, document: str) -> list[int]:
    """Return the judgments of a document of the first topic for each subtopic; -3 if there is none."""
    assert qrels.subtopics is not None
    places, judgments = _places(qrels, document), dict.fromkeys(qrels.subtopics.names, -3)
    columns = (qrels.subtopics.document, qrels.subtopics.subtopic, qrels.subtopics.judgment)
    for place, subtopic, judgment in zip(*(column.tolist() for column in columns), strict=True):
        if place in places:
            judgments[qrels.subtopics.names[subtopic]] = judgment
    return list(judgments.values())


def _places(qrels: Qrels, document: str) -> list[int]:
    return [i for i in range(qrels.offsets[0], qrels.offsets[1]) if qrels.documents[i] == document]


@given(collections(), st.lists(runs(), min_size=2, max_size=4), st.sampled_from([1, 7, evaluator.PART]))
@settings(max_examples=20, deadline=None)
def test_scores_do_not_depend_on_the_batch(qrels: Qrels, several: list[Scored], part: int) -> None:
    measures = supported_measures(qrels)
    joined = [joined_of(run, qrels) for run in several]
    content = [content_of(run, qrels, TEXTS) for run in several]
    with mock.patch.object(evaluator, "PART", part):  # a small part size splits the stack into several parts
        together = evaluate(qrels, Joined.stack(joined), measures, content=Content.stack(content))
    reversed_content = {"content": Content.stack(content[::-1])}
    backwards = evaluate(qrels, Joined.stack(joined[::-1]), measures[::-1], **reversed_content)
    for place, run in enumerate(joined):
        alone = evaluate(qrels, run, measures, content=content[place])
        for measure in measures:
            bits = alone.values[measure].tobytes()
            assert together.of_run(place).values[measure].tobytes() == bits
            assert backwards.of_run(len(joined) - 1 - place).values[measure].tobytes() == bits


@given(collections(), runs(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_measures_in_one_call_are_independent(qrels: Qrels, run: Scored, draw: random.Random) -> None:
    together = values(qrels, run)
    for measure in draw.sample(list(together), 12):
        fresh = replace(qrels, cache={})
        content = content_of(run, fresh, texts_of(SAID))
        alone = evaluate(fresh, joined_of(run, fresh), [measure], content=content).values[measure]
        assert alone.tolist() == together[measure]


@given(collections(), runs())
@settings(max_examples=30, deadline=None)
def test_renaming_documents_in_the_same_order_changes_no_score(qrels: Qrels, run: Scored) -> None:
    renamed = {topic: {f"x/{d}é": score for d, score in scores.items()} for topic, scores in run.items()}
    ids = [b"x/" + document + "é".encode() for document in qrels.documents.to_list()]
    other = replace(qrels, documents=type(qrels.documents).of(ids), cache={})
    texts = texts_of({f"x/{d}é": text for d, text in SAID.items()})
    assert values(qrels, run) == values(other, renamed, texts=texts)


@pytest.mark.parametrize("measure", ALL, ids=str)
def test_every_measure_round_trips_through_its_text(measure: Measure) -> None:
    assert parse(measure.text) == measure
    assert parse(measure.text).text == measure.text


@pytest.mark.parametrize("declaration", all_declarations(), ids=lambda declaration: declaration.name)
def test_every_measure_is_documented_and_exempt_from_known_laws_only(declaration: Declaration) -> None:
    assert len(declaration.summary.split()) > 4
    assert declaration.source
    assert set(declaration.exempt) <= set(LAWS)
    assert all(declaration.exempt.values())


COMBINED: dict[str, Callable[[int, int], int]] = {
    "euclidean": lambda a, b: a * a + b * b,
    "manhattan": lambda a, b: a + b,
    "chebyshev": max,
}


class TestTOMA:
    """Laws of total order multi-aspect measures."""

    @given(collections(), st.sampled_from(sorted(COMBINED)))
    @settings(max_examples=60, deadline=None)
    def test_toma_of_the_ranking_by_distance_is_1(self, qrels: Qrels, distance: str) -> None:
        text = "TOMA(of=nDCG)" if distance == "euclidean" else f"TOMA(of=nDCG,distance={distance})"
        distances = _distances(qrels, distance)
        [value, *_] = scores_of(text, {"1": ranked(*sorted(distances, key=distances.__getitem__))}, qrels)[
            text
        ]
        credited = any(place < COMBINED[distance](3, 2) for place in distances.values())
        assert value == (1.0 if credited else 0.0)

    @given(grades, rankings)
    @settings(max_examples=40, deadline=None)
    def test_toma_of_one_aspect_is_its_inner_measure(self, judged: dict[str, int], order: list[str]) -> None:
        qrels = qrels_of({ASPECTS[0]: {"1": judged}})
        texts = [f"TOMA(of=nDCG,distance={name})" for name in ("euclidean", "manhattan", "chebyshev")]
        scores = scores_of(["nDCG", *texts], {"1": ranked(*order)}, qrels)
        assert len({tuple(values) for values in scores.values()}) == 1

    @given(labels, labels, rankings)
    @settings(max_examples=40, deadline=None)
    def test_toma_of_binary_aspects_is_equal_for_euclidean_and_manhattan(
        self, first: dict[str, int], second: dict[str, int], order: list[str]
    ) -> None:
        binary = [{d: min(label, 1) for d, label in judged.items()} for judged in (first, second)]
        qrels = qrels_of(
            {
                Aspect(name=name, labels=range(2)): {"1": judged}
                for name, judged in zip("ab", binary, strict=True)
            }
        )
        texts = ["TOMA(of=nDCG)", "TOMA(of=nDCG,distance=manhattan)"]
        a, b = scores_of(texts, {"1": ranked(*order)}, qrels).values()
        assert a == b

    @given(collections(), runs())
    @settings(max_examples=40, deadline=None)
    def test_mm_is_between_the_smallest_score_and_cam(self, qrels: Qrels, run: Scored) -> None:
        parts = ["nDCG(aspect=relevance)", "nDCG(aspect=credibility)"]
        scores = scores_of([*parts, "MM(of=nDCG)", "CAM(of=nDCG)"], run, qrels)
        for x, y, mm, cam in zip(*scores.values(), strict=True):
            assert min(x, y) - 1e-12 <= mm <= cam + 1e-12
            assert cam <= max(x, y) + 1e-12


def _distances(qrels: Qrels, distance: str) -> dict[str, int]:
    """Return the distance of each document of the first topic to the best labels, (3, 2)."""
    labels = np.maximum(qrels.labels, 0).T.tolist()
    return {
        qrels.documents[place]: COMBINED[distance](3 - labels[place][0], 2 - labels[place][1])
        for place in range(qrels.offsets[1])
    }


class TestUnusedLabels:
    """Only measures declared as `by_scale` depend on unused labels of the scale."""

    @given(collections(), runs())
    @settings(max_examples=60, deadline=None)
    def test_unused_better_label_changes_no_other_measure(self, qrels: Qrels, run: Scored) -> None:
        measures = [
            measure
            for measure in supported_measures(qrels)
            if not (measure.by_scale or measure.declaration.texts)
        ]
        longer = replace(qrels, aspects=LONGER, cache={})
        before, after = (evaluate(q, joined_of(run, q), measures).values for q in (qrels, longer))
        for measure in measures:
            assert after[measure].tolist() == before[measure].tolist(), measure

    @pytest.mark.parametrize(
        "name", sorted({measure.declaration.name for measure in ALL if measure.by_scale})
    )
    def test_declared_measures_change_with_an_unused_label(self, name: str) -> None:
        judged = {aspect: {t: dict(zip("abc", (1, 2, 0), strict=True)) for t in TOPICS} for aspect in ASPECTS}
        qrels = qrels_of(judged)
        longer = replace(qrels, aspects=LONGER, cache={})
        measures = [
            measure
            for measure in ALL
            if measure.declaration.name == name and measure.by_scale and not fixed_to_labels(measure)
        ]
        run = {t: ranked(*order) for t, order in zip(TOPICS, ("abc", "cba", "acb"), strict=True)}
        before, after = (evaluate(q, joined_of(run, q), measures).values for q in (qrels, longer))
        changed = any(after[measure].tolist() != before[measure].tolist() for measure in measures)
        assert changed or name == "SBTO"  # only the largest possible value of SBTO changes


LONGER = (
    Aspect(name="relevance", labels=range(5)),
    Aspect(name="credibility", labels=("nc", "pc", "c", "cc")),
)
"""ASPECTS with one more label at the top of each scale."""


def fixed_to_labels(measure: Measure) -> bool:
    """Return whether the measure has a parameter with a number for each label of one scale."""
    return any(measure.arguments.get(name) is not None for name in ("embedding", "gains"))


@given(st.sampled_from(all_declarations()), st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_random_parameters_round_trip_through_the_text(declaration: Declaration, draw: random.Random) -> None:
    measure = random_variant(draw, declaration)
    parsed = parse(str(measure))
    assert parsed == measure
    assert str(parsed) == str(measure)
    assert parsed.arguments == measure.arguments
    assert pickle.loads(pickle.dumps(measure)).arguments == measure.arguments


@given(collections(), runs(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_two_variants_in_one_call_equal_two_calls(qrels: Qrels, run: Scored, draw: random.Random) -> None:
    """Evaluate two variants in one call, in both orders. The qrels have no cached results."""
    measures = supported_measures(qrels)
    for declaration in draw.sample(all_declarations(), 6):
        variants = [measure for measure in measures if measure.declaration is declaration]
        pair = draw.sample(variants, min(2, len(variants)))
        alone = [_uncached_values(qrels, run, [measure])[0] for measure in pair]
        assert _uncached_values(qrels, run, pair) == alone
        assert _uncached_values(qrels, run, pair[::-1]) == alone[::-1]


def _uncached_values(qrels: Qrels, run: Scored, measures: list[Measure]) -> list[list[float]]:
    """Return the values by measure, computed without cached results."""
    unused = replace(qrels, cache={})
    content = content_of(run, unused, TEXTS)
    scores = evaluate(unused, joined_of(run, unused), measures, content=content).values
    return [scores[measure].tolist() for measure in measures]
