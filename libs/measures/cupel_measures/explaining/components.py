"""The components of a combining measure.

They are scores by aspect, or documents by label class.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cupel_measures.explaining import class_lists
from cupel_measures.explaining.explained_run import ExplainedRun, Series, as_data, cutoff_of
from cupel_measures.families.multiaspect import class_table, inner, weighted
from cupel_measures.families.understandability import component
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.registry import Combination
from cupel_measures.model import Floats, Ints, Label
from cupel_measures.scoring.rows import Hits, divided

BANDS = (5, 10, 20, 50, 100, 200, 500, 1000)
"""Last ranks of the bands in which documents are counted; a final band contains all deeper ranks."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Component:
    """One aspect of a mean of scores.

    measure: the inner measure of the aspect. weight: the weight of the aspect divided by the sum of weights.
    value: the scores of the inner measure. part: for a mean, weight * score, so the parts add up to the mean.
    For a harmonic mean, the share of the aspect in the sum of weight / score. An aspect with a larger share
    lowers the mean more; the share is 1 if only this aspect has score 0.
    """

    aspect: str
    measure: Measure
    weight: float
    value: Series
    part: Series


@dataclass(frozen=True, eq=False)
class Components:
    """The components of a mean of scores by aspect, in the order of the aspects."""

    combination: Combination
    components: tuple[Component, ...]

    def as_data(self) -> dict[str, Any]:
        part = "contribution" if self.combination == "mean" else "limits"
        aspects = [
            {
                "aspect": component.aspect,
                "measure": str(component.measure),
                "weight": component.weight,
                **as_data({"value": component.value, part: component.part}),
            }
            for component in self.components
        ]
        return {"combination": self.combination, "aspects": aspects}


@dataclass(frozen=True, eq=False)
class LabelClass:
    """The label tuples with the same distance from the best tuple.

    labels: the tuples, each with one label per aspect. documents: int64[T, bands], number of retrieved
    documents with one of these tuples, for each band of ranks.
    """

    distance: float
    weight: int
    labels: tuple[tuple[Label, ...], ...]
    documents: Ints


@dataclass(frozen=True, eq=False)
class ClassBreakdown:
    """The label classes, best first, and the ranks of their documents.

    bands: the first and last rank of each band of ranks, down to the cutoff. unjudged: int64[T, bands],
    number of documents that are not judged for any of the aspects and belong to no class.
    """

    aspects: tuple[str, ...]
    bands: tuple[tuple[int, int], ...]
    classes: tuple[LabelClass, ...]
    unjudged: Ints

    def as_data(self) -> dict[str, Any]:
        return {
            "combination": "classes",
            "aspects": list(self.aspects),
            "ranks": [list(band) for band in self.bands],
            "classes": [
                {
                    "distance": label_class.distance,
                    "weight": label_class.weight,
                    "labels": [list(labels) for labels in label_class.labels],
                    **_counts(label_class.documents),
                }
                for label_class in self.classes
            ],
            "unjudged": _counts(self.unjudged),
        }


def _counts(documents: Ints) -> dict[str, Any]:
    return {"documents": documents.sum(axis=0).tolist(), "by_topic": documents.tolist()}


def explain_components(
    subject: ExplainedRun, measures: Sequence[Measure]
) -> list[Components | ClassBreakdown | None]:
    return [_parts(subject, measure) for measure in measures]


def _parts(subject: ExplainedRun, measure: Measure) -> Components | ClassBreakdown | None:
    combination = measure.declaration.combination
    if combination is None:
        return None
    bound = measure.bound(subject.qrels.aspects)
    if combination == "classes":
        return _by_class(subject, bound)
    return _components(subject, bound, subject.values(measure))


def _components(subject: ExplainedRun, measure: Measure, values: Floats) -> Components:
    arguments, combination = measure.arguments, measure.declaration.combination
    assert combination is not None
    of, graded = arguments["of"], arguments.get("graded") or ()
    parts = weighted(subject.view, arguments["aspects"], arguments["weights"], 1.0)
    total = math.fsum(weight for _, weight in parts)
    scores = np.stack([component(subject.view, of, name, graded=name in graded) for name, _ in parts])
    weights = np.array([[weight / total] for _, weight in parts])
    shares = weights * scores if combination == "mean" else _limits(scores, weights, values)
    components = [
        Component(
            aspect=name,
            measure=inner(of, name),
            weight=float(weights[place, 0]),
            value=Series.of(inner(of, name), scores[place]),
            part=Series.of(measure, shares[place]),
        )
        for place, (name, _) in enumerate(parts)
    ]
    return Components(combination, tuple(components))


def _limits(scores: Floats, weights: Floats, values: Floats) -> Floats:
    """Return the share of each part in the sum of weight / score, float64[parts, T].

    If the sum is infinite, the aspects with score 0 and a positive weight get equal shares, and all other
    aspects get none. In WHAM, a score of 0 with weight 0 also makes the value 0. If only such scores are 0,
    their aspects get equal shares.
    """
    zero = (scores <= 0) & (weights > 0)
    zero = np.where((values <= 0) & ~zero.any(axis=0), scores <= 0, zero)
    inverse = np.divide(weights, scores, out=np.zeros_like(scores), where=scores > 0)
    burden = np.where(zero.any(axis=0), zero, inverse)
    total = np.cumsum(burden, axis=0)[-1]
    return np.stack([divided(part, total) for part in burden])


def _by_class(subject: ExplainedRun, measure: Measure) -> ClassBreakdown:
    arguments = measure.arguments
    classes = class_table(subject.view, **arguments)
    aspects = class_lists.aspects_of(subject.qrels, classes)
    cutoff, hits = cutoff_of(measure), Hits.of(subject.joined)
    bands = _bands(cutoff, int(subject.joined.retrieved.max(initial=1)))
    hits = hits.within(cutoff)
    hits = hits.of_documents(class_lists.judged_documents(classes))
    distances = np.array(classes.distance_of)[classes.which[hits.document]]
    rows = []
    tuples = class_lists.tuples_by_distance(subject.qrels, classes, arguments)
    for distance, weight in zip(classes.distances, classes.weights, strict=True):
        if of_class := sorted(tuples.get(distance, ()), reverse=True):
            labels = tuple(class_lists.label_names(indices, aspects) for indices in of_class)
            documents = _counted(hits.only(np.asarray(distances == distance)), bands)
            distance_shown = class_lists.distance_in_units(of_class[0], aspects, arguments)
            rows.append(LabelClass(distance_shown, weight, labels, documents))
    retrieved = np.stack(
        [np.clip(subject.joined.retrieved - first + 1, 0, last - first + 1) for first, last in bands], axis=1
    )
    return ClassBreakdown(classes.names, bands, tuple(rows), retrieved - _counted(hits, bands))


def _bands(cutoff: int | None, deepest: int) -> tuple[tuple[int, int], ...]:
    """Return the first and last rank of each band, down to the cutoff.

    The bands go down to `deepest` if that is less than the cutoff.
    """
    last = max(1, deepest if cutoff is None else min(cutoff, deepest))
    ends = [*(end for end in BANDS if end < last), last]
    return tuple(zip([1, *(end + 1 for end in ends[:-1])], ends, strict=True))


def _counted(hits: Hits, bands: Sequence[tuple[int, int]]) -> Ints:
    """Return the number of hits in each band, int64[T, bands]."""
    band = np.searchsorted([last for _, last in bands], hits.rank)
    flat = np.bincount(hits.row * len(bands) + band, minlength=hits.rows * len(bands))
    return flat.reshape(hits.rows, len(bands))
