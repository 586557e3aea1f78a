"""The classes of label tuples of a collection, as TOMA orders and weighs them.

The reference for TOMA is Maistro et al., CIKM 2021.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from cupel_measures.families.label_classes import deviations, distance_of
from cupel_measures.families.multiaspect import Classes, class_table
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import NEGATIVE, Aspect, Joined, Label, Qrels
from cupel_measures.scoring.pool import Mask
from cupel_measures.scoring.view import AspectView

MOST_TUPLES = 1000
"""Largest number of possible label tuples that are listed; above it, only those of documents are listed."""


@dataclass(frozen=True, kw_only=True)
class ListedClass:
    """The label tuples with the same distance from the best tuple.

    number: rank of the class, 1 for the best one. distance: in the units of the embedding. labels: the
    tuples, each with one label per aspect. documents: number of judged documents with these labels.
    """

    number: int
    distance: float
    weight: int
    labels: tuple[tuple[Label, ...], ...]
    documents: int


@dataclass(frozen=True, kw_only=True)
class ClassList:
    """The classes of one measure, best first.

    aspects: the aspects, in the order of the labels of a tuple. classes: those with a listed tuple. total:
    number of all classes. all_tuples: whether all possible tuples are listed; otherwise only those of judged
    documents are.
    """

    measure: Measure
    aspects: tuple[str, ...]
    classes: tuple[ListedClass, ...]
    total: int
    all_tuples: bool


def list_classes(qrels: Qrels, measure: Measure) -> ClassList:
    """Return the classes of a measure of label classes, such as TOMA(of=nDCG).

    If there are more than MOST_TUPLES possible tuples, only those of judged documents are listed. Raise
    MeasureError if the measure has no label classes, and if the qrels do not support it.
    """
    if measure.declaration.combination != "classes":
        raise MeasureError(f"{measure} has no label classes; use TOMA, such as TOMA(of=nDCG)")
    arguments = measure.bound(qrels.aspects).arguments
    view = AspectView(qrels=qrels, joined=Joined.empty(len(qrels.topics)))
    classes = class_table(view, **arguments)
    aspects = aspects_of(qrels, classes)
    documents = Counter(np.array(classes.distance_of)[classes.which[judged_documents(classes)]].tolist())
    tuples = tuples_by_distance(qrels, classes, arguments)
    listed = [
        ListedClass(
            number=number,
            distance=distance_in_units(tuples[distance][0], aspects, arguments),
            weight=weight,
            labels=tuple(label_names(labels, aspects) for labels in sorted(tuples[distance], reverse=True)),
            documents=documents[distance],
        )
        for number, (distance, weight) in enumerate(zip(classes.distances, classes.weights, strict=True), 1)
        if distance in tuples
    ]
    return ClassList(
        measure=measure,
        aspects=classes.names,
        classes=tuple(listed),
        total=len(classes.distances),
        all_tuples=arguments["label_set"] != "cartesian" or _can_list_all(aspects),
    )


def tuples_by_distance(
    qrels: Qrels, classes: Classes, arguments: Mapping[str, Any]
) -> dict[int, list[tuple[int, ...]]]:
    """Return the possible tuples of label indices by distance.

    Distances are in the units of `Classes.distances`.

    Only the tuples of judged documents are returned if there are more than MOST_TUPLES possible ones, and for
    `label_set=observed`.
    """
    name, aspects = arguments["label_set"], aspects_of(qrels, classes)
    judged = np.unique(classes.which[judged_documents(classes)]).tolist()
    possible: Iterable[tuple[int, ...]] = (classes.tuples[place] for place in judged)
    if name == "cartesian" and _can_list_all(aspects):
        possible = product(*(range(len(aspect.labels)) for aspect in aspects))
    elif name in qrels.label_sets:
        declared = qrels.label_sets[name]
        order = [declared.aspects.index(aspect) for aspect in classes.names]
        possible = (tuple(label_tuple[place] for place in order) for label_tuple in declared.tuples)
    table = deviations(aspects, dict(arguments["embedding"] or ()), arguments["distance"])
    by_distance: dict[int, list[tuple[int, ...]]] = {}
    for label_tuple in possible:
        by_distance.setdefault(distance_of(label_tuple, table, arguments["distance"]), []).append(label_tuple)
    return by_distance


def _can_list_all(aspects: Sequence[Aspect]) -> bool:
    return math.prod(len(aspect.labels) for aspect in aspects) <= MOST_TUPLES


def aspects_of(qrels: Qrels, classes: Classes) -> list[Aspect]:
    """Return the aspects of the classes, in the order of the labels of a tuple."""
    return [qrels.aspects[qrels.aspect_index(name)] for name in classes.names]


def judged_documents(classes: Classes) -> Mask:
    """Return which documents are judged for at least one of the aspects, bool[D]."""
    return np.asarray((classes.labels >= NEGATIVE).any(axis=0))


def label_names(labels: tuple[int, ...], aspects: Sequence[Aspect]) -> tuple[Label, ...]:
    """Return the labels of a tuple of label indices."""
    return tuple(aspect.labels[label] for aspect, label in zip(aspects, labels, strict=True))


def distance_in_units(
    labels: tuple[int, ...], aspects: Sequence[Aspect], arguments: Mapping[str, Any]
) -> float:
    """Return the distance of a label tuple from the best tuple.

    The distance is in the units of the embedding.
    """
    given = dict(arguments["embedding"] or ())
    places = [given.get(aspect.name, aspect.embedding) for aspect in aspects]
    away = [float(of[-1]) - float(of[label]) for of, label in zip(places, labels, strict=True)]
    return {"euclidean": math.hypot(*away), "manhattan": math.fsum(away), "chebyshev": max(away)}[
        arguments["distance"]
    ]
