"""Measures that combine aspects: by scores (CAM, MM, WHAM) or by labels (TOMA).

In the formulas, s_a is the score of the measure `of` under aspect a alone, and p_a is the weight of a.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.families import label_classes
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.parameters import (
    AspectNames,
    AspectWeights,
    Either,
    GainTableParameter,
    Inner,
    Number,
    Numbers,
    Whole,
    Word,
)
from cupel_measures.grammar.registry import ScaleType, measure
from cupel_measures.grammar.scale_types import scale_type_in
from cupel_measures.grammar.syntax import ArgumentPairs, MeasureError
from cupel_measures.model import NEGATIVE, Aspect, Exact, Floats, LabelSet
from cupel_measures.scoring.pool import Pool
from cupel_measures.scoring.view import AspectView

InnerMeasure = Annotated[Any, Inner()]
InnerByAspect = Annotated[
    Any,
    Inner(
        "a measure of one aspect that is averaged over topics, such as nDCG@10, or one per aspect, "
        "such as {relevance:nDCG,credibility:SetF}",
        by_aspect=True,
    ),
]
Distance = Annotated[str, Word("euclidean, manhattan or chebyshev", tuple(label_classes.DISTANCES))]
ClassWeights = Annotated[
    str | tuple[int, ...],
    Either(
        "step1, top_half, positive, or a non-increasing list of integer weights, best class first",
        (
            Word("", tuple(label_classes.WEIGHTINGS)),
            Numbers("", Whole("", 0), rising=False),
        ),
    ),
]
LabelSetName = Annotated[str, Word("cartesian, observed, or the name of a label set of the collection")]
Embedding = Annotated[
    tuple[Any, ...],
    GainTableParameter(
        "a non-decreasing embedding by aspect, such as {correctness:[0,1.5,3]}",
        value=Numbers("", Number("")),
    ),
]


@measure(source="Maistro et al., CIKM 2021, eq. 5", combines=True, rises=True, combination="mean")
def CAM(
    view: AspectView,
    *,
    of: InnerByAspect,
    aspects: AspectNames | None = None,
    weights: AspectWeights | None = None,
) -> Floats:
    """Convex aggregation: the weighted arithmetic mean of `of` over the aspects.

    It is the mean of the scores of `of` under each aspect.

        CAM = sum over aspects a of p_a s_a

    p_a = 1/n for n aspects unless `weights` sets other weights. `of` can name a measure per aspect, as in
    `CAM(of={relevance:nDCG,credibility:SetF})`. Each measure uses the gains and the threshold of its aspect.

    Caveat: a high score under one aspect compensates a low one under another, even if no document is good
    under both. `TOMA` combines the labels of each document instead.

    Example: relevance: nr < mr < fr < hr (threshold fr), correctness: nc < pc < c (threshold c); d1=(mr,c)
    d2=(hr,pc) d3=(hr,nc); run d1 d2 d3: nDCG 0.814567 = (1 + 3/log2(3) + 3/2) / (3 + 3/log2(3) + 1/2),
    nDCG(aspect=correctness) 1 = 1, CAM(of=nDCG) 0.907284 = (0.8145671 + 1) / 2,
    CAM(of=nDCG,weights={correctness:0.3,relevance:0.7}) 0.870197 = 0.7 * 0.814567 + 0.3 * 1.
    """
    parts = weighted(view, aspects, weights)
    terms = np.stack([share * view.score(inner(of, aspect), aspect) for aspect, share in parts if share > 0])
    total: Floats = np.cumsum(terms, axis=0)[-1]
    return within(of, total)


@measure(
    source="Palotti et al., CIKM 2018; Maistro et al., CIKM 2021, eq. 6",
    combines=True,
    rises=True,
    combination="harmonic mean",
)
def MM(
    view: AspectView,
    *,
    of: InnerByAspect,
    aspects: AspectNames | None = None,
    weights: AspectWeights | None = None,
) -> Floats:
    """Multidimensional measure: the weighted harmonic mean of `of` over the aspects.

    It is the mean of the scores of `of` under each aspect.

        MM = (sum of p_a) / (sum of p_a / s_a), 0 if any s_a is 0

    p_a = 1/n for n aspects unless `weights` sets other weights. Aspects with weight 0 are ignored. `of` can
    name a measure per aspect.

    Table 3 of Maistro et al. prints half of this value throughout; MM follows equation 6 (READINGS.md,
    reading 1).

    Caveat: if the score under one aspect is 0, the value is 0, however high the other scores are.

    Example: relevance: nr < mr < fr < hr (threshold fr), correctness: nc < pc < c (threshold c); d1=(mr,c)
    d2=(hr,pc) d3=(hr,nc); run d1 d2 d3: MM(of=nDCG) 0.897809 = 2 / (1/0.814567 + 1/1); run d1 d3: AP 0.25 =
    1/2 / 2, AP(aspect=correctness) 1 = 1/1, MM(of=AP) 0.4 = 1 / (0.5/0.25 + 0.5/1); run d1: MM(of=AP) 0 = 0.
    """
    parts = [(aspect, share) for aspect, share in weighted(view, aspects, weights) if share > 0]
    scores = np.stack([view.score(inner(of, aspect), aspect) for aspect, _ in parts])
    return within(of, harmonic(scores, [share for _, share in parts]))


@measure(source="Lioma et al., ICTIR 2017, eq. 13", combines=True, rises=True, combination="harmonic mean")
def WHAM(
    view: AspectView,
    *,
    of: InnerByAspect,
    aspects: AspectNames | None = None,
    weights: AspectWeights | None = None,
) -> Floats:
    """Weighted harmonic mean aggregation of the scores of `of` under each aspect.

        WHAM = 1 / (sum of p_a / s_a), 0 if any s_a is 0

    p_a = 1/n for n aspects unless `weights` sets other weights. A score of 0 makes the value 0 even if its
    weight is 0; MM ignores such a score. `of` can name a measure per aspect.

    The value over topics is the mean of the values per topic. Table 3 of the paper instead combines the mean
    scores under each aspect (READINGS.md, reading 21). The library function `wham_of_means` computes this. No
    parameter selects it, because the result is not a mean over topics. For CAM, both ways give the same
    value.

    Example: relevance: nr < mr < fr < hr (threshold fr), correctness: nc < pc < c (threshold c); d1=(mr,c)
    d2=(hr,pc) d3=(hr,nc); run d1 d3: WHAM(of=AP) 0.4 = 1 / (0.5/0.25 + 0.5/1),
    WHAM(of=AP,weights={correctness:0.8,relevance:0.2}) 0.625 = 1 / (0.2/0.25 + 0.8/1); run d1:
    WHAM(of=AP,weights={correctness:1,relevance:0}) 0 = 0, MM(of=AP,weights={correctness:1,relevance:0}) 1 = 1
    / (1/1).
    """
    parts = weighted(view, aspects, weights)
    scores = np.stack([view.score(inner(of, aspect), aspect) for aspect, _ in parts])
    mean = harmonic(scores, [share for _, share in parts])
    mean[(scores <= 0).any(axis=0)] = 0.0
    return within(of, mean)


def wham_of_means(means: Sequence[float], weights: Sequence[float]) -> float:
    """Return WHAM of one mean score per aspect (READINGS.md, reading 21).

    The weights sum to 1. The value is 0 if any mean is 0.
    """
    [value] = harmonic(np.array(means, dtype=np.float64)[:, None], weights)
    return float(value)


def harmonic(scores: Floats, shares: Sequence[float]) -> Floats:
    """Return the weighted harmonic mean of float64[aspects, rows].

    The result is float64[rows], and 0 if any score is 0.
    """
    parts = np.array(shares, dtype=np.float64)
    inverse = np.divide(parts[:, None], scores, out=np.zeros_like(scores), where=scores > 0)
    below = np.cumsum(inverse, axis=0)[-1]
    positive = (scores > 0).all(axis=0)
    mean: Floats = np.divide(np.cumsum(parts)[-1], below, out=np.zeros_like(below), where=positive)
    return mean


def inner(of: Any, aspect: str) -> Measure:
    """Return the measure that `of` names for `aspect`."""
    measure: Measure = dict(of)[aspect] if isinstance(of, ArgumentPairs) else of
    return measure


def within(of: Any, values: Floats) -> Floats:
    """Return `values`, limited to the upper bound of `of`.

    Rounding can exceed the bound by one ulp.
    """
    measures = [measure for _, measure in of] if isinstance(of, ArgumentPairs) else [of]
    greatest: float = max(measure.declaration.bounds[1] for measure in measures)
    return np.minimum(values, greatest)


def weighted(
    view: AspectView,
    aspects: AspectNames | None,
    weights: AspectWeights | None,
    default: float | None = None,
) -> list[tuple[str, float]]:
    """Return aspects with their weights, in the order of `aspects`.

    Without `weights`, each aspect has the weight `default`, or 1/n for n aspects.
    """
    given = dict(weights or ())
    names = aspects or tuple(given) or tuple(aspect.name for aspect in view.qrels.aspects)
    equal = 1.0 / len(names) if default is None else default
    return [(name, float(given[name]) if given else equal) for name in names]


def _scale(aspects: Sequence[Aspect], given: Mapping[str, Any]) -> ScaleType:
    """The scale type of `of` with the weights of the classes as gains.

    If that type depends on the weights, and `label_set` is not cartesian, the type is neither, because the
    judgments then determine the weights.
    """
    of: Measure = given["of"]
    if of.declaration.scale != "depends":
        return of.declaration.scale
    if given["label_set"] != "cartesian":
        return "neither"
    distance, chosen = given["distance"], [aspect for aspect in aspects if aspect.name in given["aspects"]]
    table = label_classes.deviations(chosen, dict(given["embedding"] or ()), distance)
    number = len(label_classes.all_distances(table, distance))
    weights = label_classes.weights(number, given["weighting"] or _usual_weighting(of))
    return scale_type_in(of, _combined(given["aspects"], weights))


def exact_toma(view: AspectView, *, of: Measure, **given: Any) -> Sequence[Exact]:
    return view.exact_in(of, weighed(view, of, **given))


@measure(
    source="Maistro et al., CIKM 2021, section 3",
    combines=True,
    scale=_scale,
    exact=exact_toma,
    by_scale=True,
    rises=True,
    combination="classes",
)
def TOMA(
    view: AspectView,
    *,
    of: InnerMeasure,
    distance: Distance = "euclidean",
    weighting: ClassWeights | None = None,
    label_set: LabelSetName = "cartesian",
    embedding: Embedding | None = None,
    aspects: AspectNames | None = None,
) -> Floats:
    """Total order multi-aspect measure: `of` on grades by distance to the best labels.

    The grades are those of the documents.

        TOMA = of(W(labels of document 1), ..., W(labels of document n))

    Label tuples at equal distance from the tuple of all best labels form a class. Each class has a weight W,
    and `of` (any measure of one aspect) uses the weights as grades. Distances are between the positions of
    labels in the `embedding`, which are 0, 1, 2, ... unless the aspect or the parameter sets others.
    `distance` is `euclidean`, `manhattan` or `chebyshev`, and is computed exactly (READINGS.md, reading 4).

    `weighting` sets the weight of class c, from 1 for the best class to m for the worst. `step1` is m - c
    (default for graded measures). `top_half` is 1 if c <= ceil(m/2), else 0 (default for binary measures).
    `positive` is 1 if c < m, else 0. A list of integers sets other weights. The example in the paper uses
    `top_half`, and its experiments `positive` (READINGS.md, reading 3).

    `label_set` selects a set of label tuples, which determines the classes (READINGS.md, reading 2).
    `cartesian` selects all possible tuples, and `observed` the tuples in the judgments. Any other name
    selects a set of tuples that the collection file declares; Table 3 of the paper requires such a set. A
    judged tuple outside the declared set is an error, and so are fewer than two classes. An unjudged document
    has weight 0, even if `weighting` is a list with a larger weight for the worst class.

    Caveat: by default an aspect with more labels has larger distances and so more influence. An `embedding`
    can give all aspects the same influence.

    In the example, Manhattan distances 0 to 3 make four classes with weights 3, 2, 1, 0. Squared Euclidean
    distances 0, 1, 2, 4, 5 make five classes with weights 4 to 0.

    Example: relevance: 0..2, correctness: 0..1; a=(2,0) b=(1,1) c=(0,1); run c a: TOMA(of=nDCG) 0.536418 = (1
    + 3/log2(3)) / (3 + 3/log2(3) + 1/2), TOMA(of=nDCG,distance=manhattan) 0.601261 = (1 + 2/log2(3)) / (2 +
    2/log2(3) + 1/2), TOMA(of=AP) 0.25 = 1/2 / 2, TOMA(of=AP,weighting=positive) 0.666667 = (1/1 + 2/2) / 3.
    """
    pool = weighed(
        view,
        of,
        distance=distance,
        weighting=weighting,
        label_set=label_set,
        embedding=embedding,
        aspects=aspects,
    )
    return view.score_in(of, pool)


def weighed(view: AspectView, of: Measure, **given: Any) -> Pool:
    """Return the pool that `of` scores in TOMA with these parameters."""
    given = {**given, "weighting": given["weighting"] or _usual_weighting(of)}
    key = f"TOMA{sorted(given.items())!r} {view.joined.profile.negatives_judged}"
    return view.derived(key, lambda seen: _graded_pool(seen, class_table(seen, of, **given)))


def _usual_weighting(of: Measure) -> str:
    return "step1" if of.declaration.graded else "top_half"


def _combined(names: Sequence[str], weights: Iterable[int]) -> Aspect:
    """Return the scale of the class weights. A document without labels has weight 0."""
    return Aspect(name="+".join(names), labels=tuple(sorted({0, *weights})))


@dataclass(frozen=True, eq=False, kw_only=True)
class Classes:
    """Classes of label tuples, best first, and the classes of the pooled documents.

    names: the aspects. distances: exact distance of each class from the best labels, in the units of
    `label_classes.deviations`. weights: weight of each class. tuples: the distinct tuples of label indices of
    the documents; a missing label has the lowest index. distance_of: distance of each tuple. which: intp[D],
    the tuple of each document. labels: int32[A, D], the label index of each document under each aspect.
    """

    names: tuple[str, ...]
    distances: Sequence[int]
    weights: Sequence[int]
    tuples: Sequence[tuple[int, ...]]
    distance_of: Sequence[int]
    which: NDArray[np.intp]
    labels: NDArray[np.int32]


def class_table(
    view: AspectView,
    of: Measure,
    *,
    distance: str,
    weighting: str | tuple[int, ...] | None,
    label_set: str,
    embedding: tuple[Any, ...] | None,
    aspects: tuple[str, ...] | None,
) -> Classes:
    """Return the classes of TOMA with these parameters."""
    qrels = view.qrels
    names = aspects or tuple(aspect.name for aspect in qrels.aspects)
    indices = [qrels.aspect_index(name) for name in names]
    labels = qrels.labels[indices]
    table = label_classes.deviations([qrels.aspects[i] for i in indices], dict(embedding or ()), distance)
    judged = (labels >= NEGATIVE).any(axis=0)
    tuples, which = label_classes.distinct(np.maximum(labels, 0))
    places = [label_classes.distance_of(labels_of_tuple, table, distance) for labels_of_tuple in tuples]
    seen = set(which[judged].tolist())
    if label_set == "cartesian":
        known = label_classes.all_distances(table, distance)
    elif label_set == "observed":
        # without judgments every score is 0, for any two classes
        known = sorted({places[i] for i in seen}) or [0, 1]
    else:
        declared = _label_set(view, label_set)
        known = label_classes.declared_distances(declared, names, table, distance, {tuples[i] for i in seen})
    weights = label_classes.weights(len(known), weighting or _usual_weighting(of))
    return Classes(
        names=names,
        distances=known,
        weights=weights,
        tuples=tuples,
        distance_of=places,
        which=which,
        labels=labels,
    )


def _graded_pool(view: AspectView, classes: Classes) -> Pool:
    """Return a pool in which each document is labelled with the weight of its class."""
    weights = dict(zip(classes.distances, classes.weights, strict=True))
    combined = _combined(classes.names, classes.weights)
    index = {grade: i for i, grade in enumerate(combined.labels)}
    grade_of_tuple = np.array([index[weights.get(place, 0)] for place in classes.distance_of], dtype=np.int32)
    return _pool(view, combined, grade_of_tuple[classes.which], classes.labels)


def _label_set(view: AspectView, name: str) -> LabelSet:
    try:
        return view.qrels.label_sets[name]
    except KeyError:
        known = ["cartesian", "observed", *view.qrels.label_sets]
        raise MeasureError(f"unknown label set {name!r}; use one of {', '.join(known)}") from None


def _pool(view: AspectView, aspect: Aspect, grades: NDArray[np.int32], labels: NDArray[np.int32]) -> Pool:
    """Return the pool of a combined scale.

    A document without any label keeps the most informative state of its aspects (negative, unjudged or
    absent). It counts as judged if it has a judgment for each of the aspects.
    """
    negatives_judged = view.joined.profile.negatives_judged
    labelled = (labels >= 0).any(axis=0) | ((labels >= NEGATIVE).any(axis=0) & (grades > 0))
    return Pool(
        aspect=aspect,
        labels=np.where(labelled, grades, labels.max(axis=0)),
        judged=np.all(labels >= (NEGATIVE if negatives_judged else 0), axis=0),
        negatives_judged=negatives_judged,
        topic_of=view.qrels.topic_of,
        topics=len(view.qrels.topics),
    )
