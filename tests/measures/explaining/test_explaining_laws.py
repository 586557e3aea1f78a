"""Tests of explained ties and judgments of every measure against enumeration."""

import random
from collections.abc import Iterator
from itertools import chain, groupby, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.explaining import tie_orders
from cupel_measures.explaining.explanations import explain
from cupel_measures.model import Aspect, Joined, Qrels
from cupel_measures.scoring.evaluator import evaluate
from support.data.random_collections import (
    ALL,
    ASPECTS,
    TOPICS,
    collections,
    documents,
    grades,
    labels,
    supported_measures,
)
from support.data.small_collections import joined_of, qrels_of, ranked, ranking_of


def every_order(scores: dict[str, float]) -> Iterator[list[str]]:
    """Yield the documents of a topic in every order that their scores allow."""
    by_score = sorted(scores, key=lambda document: -scores[document])
    groups = [list(of) for _, of in groupby(by_score, key=scores.__getitem__)]
    return (list(chain.from_iterable(ranks)) for ranks in product(*map(permutations, groups)))


tied_runs = st.dictionaries(documents, st.sampled_from([1.0, 1.0, 1.0, 2.0, 3.0]), max_size=5)


class TestExplanations:
    """Ties and judgments of every measure agree with enumeration."""

    @pytest.mark.parametrize("tried", [2, 1000])
    @given(qrels=collections(), scores=tied_runs, depth=st.sampled_from([None, None, 2, 4]))
    @settings(max_examples=25, deadline=None)
    def test_least_expected_and_greatest_values_equal_enumeration(
        self, tried: int, qrels: Qrels, scores: dict[str, float], depth: int | None
    ) -> None:
        """If only two orders are tried, exact values can only come from a law or a closed form."""
        measures = [measure for measure in supported_measures(qrels) if not measure.declaration.texts]
        every = [joined_of({"1": ranked(*order)}, qrels, depth=depth) for order in every_order(scores)]
        values = evaluate(qrels, Joined.stack(every), measures).values
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tie_orders, "SHUFFLES", tried)
            ranking = ranking_of({"1": scores})
            explanations = explain(qrels, ranking, measures, depth=depth, about=["ties"])
        for measure in measures:
            ties, of_first = explanations[measure].parts["ties"], values[measure][:: len(TOPICS)]
            low, expected, high = (
                getattr(ties, name).by_topic[0] for name in ("least", "expected", "greatest")
            )
            if ties.range_by == "exact":
                assert [low, high] == pytest.approx([of_first.min(), of_first.max()], abs=1e-12), measure
            if ties.expected_by != "sampled":
                assert expected == pytest.approx(of_first.mean(), rel=1e-9), measure
            assert low <= ties.value.by_topic[0] <= high
            if ties.range_by == "bounds":
                assert low <= of_first.min() + 1e-12
                assert of_first.max() <= high + 1e-12
            if ties.range_by == "sampled":
                assert of_first.min() <= low + 1e-12
                assert high <= of_first.max() + 1e-12
            assert low - 1e-12 <= expected <= high + 1e-12
            if tried == 1000:
                assert (ties.range_by, ties.standard_error) == ("exact", None)

    @given(
        judged=st.tuples(grades, labels),
        order=st.lists(documents, unique=True, max_size=4),
        draw=st.randoms(),
    )
    @settings(max_examples=40, deadline=None)
    def test_bounds_hold_for_all_labels_of_unjudged_documents(
        self, judged: tuple[dict[str, int], dict[str, int]], order: list[str], draw: random.Random
    ) -> None:
        """Give each unjudged document down to the cutoff a random label or none, and check the bounds."""
        known = {aspect: {"1": of} for aspect, of in zip(ASPECTS, judged, strict=True)}
        qrels, run = qrels_of(known), {"1": ranked(*order)}
        measures = [
            measure for measure in ALL if not measure.declaration.subtopics and "observed" not in measure.text
        ]
        measures = [measure for measure in measures if not measure.declaration.texts]
        explanations = explain(qrels, ranking_of(run), measures, about=["judgments"])
        bounded = [
            measure for measure in measures if explanations[measure].parts["judgments"].least is not None
        ]
        names = {measure.declaration.name for measure in bounded}
        assert names >= {"P", "RR", "RBP", "gRBP", "DCG", "ERR", "Success", "gP", "RBTO"}
        for cutoff in {explanations[measure].parts["judgments"].cutoff for measure in bounded}:
            of_cutoff = [
                measure for measure in bounded if explanations[measure].parts["judgments"].cutoff == cutoff
            ]
            for _ in range(6):
                labelled = {a: _complete_judgments(a, of, order[:cutoff], draw) for a, of in known.items()}
                completed = qrels_of(labelled)
                found = evaluate(completed, joined_of(run, completed), of_cutoff).values
                for measure in of_cutoff:
                    part = explanations[measure].parts["judgments"]
                    low, high = part.least.by_topic[0], part.greatest.by_topic[0]
                    assert low - 1e-12 <= found[measure][0] <= high + 1e-12, measure


def _complete_judgments(
    aspect: Aspect, known: dict[str, dict[str, int]], order: list[str], draw: random.Random
) -> dict[str, dict[str, int]]:
    """Return the judgments of topic 1, with a random label or none for unjudged documents in `order`."""
    of = known["1"]
    chosen = {d: draw.randint(-1, len(aspect.labels) - 1) for d in order if d not in of}
    return {"1": {**of, **{document: label for document, label in chosen.items() if label >= 0}}}
