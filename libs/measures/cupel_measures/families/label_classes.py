"""Classes of label tuples by their exact distance to the best tuple (TOMA).

Source: Maistro et al., CIKM 2021, sections 3.2 and 3.3, equations 2 to 4. Embeddings are converted to
integers over a common denominator, so equal distances are equal integers. Euclidean distances stay squared.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.grammar.parameters import exact
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, LabelSet

Deviations = tuple[tuple[int, ...], ...]
"""Per aspect and label index: the contribution of the label to the distance, as an integer."""

# by name of the distance: the contribution of one aspect, and the combination of contributions
DISTANCES: dict[str, tuple[Callable[[int], int], Callable[[int, int], int]]] = {
    "euclidean": (lambda deviation: deviation * deviation, lambda total, more: total + more),
    "manhattan": (lambda deviation: deviation, lambda total, more: total + more),
    "chebyshev": (lambda deviation: deviation, max),
}


COMBINED = {"euclidean": np.add, "manhattan": np.add, "chebyshev": np.maximum}
"""The combinations in DISTANCES, as functions of arrays."""


def deviations(
    aspects: Sequence[Aspect], embedding: Mapping[str, Sequence[Any]], distance: str
) -> Deviations:
    """Return the contribution of each label to the distance.

    embedding: replaces the embeddings of the aspects that it names. Raises MeasureError if an
    embedding does not have one number per label.
    """
    contribution, _ = DISTANCES[distance]
    placed = [_exactly(embedding.get(aspect.name, aspect.embedding)) for aspect in aspects]
    for aspect, places in zip(aspects, placed, strict=True):
        if len(places) != len(aspect.labels):
            raise MeasureError(
                f"the embedding of aspect {aspect.name!r} has {len(places)} numbers, "
                f"but the aspect has {len(aspect.labels)} labels"
            )
    unit = math.lcm(*(place.denominator for places in placed for place in places))
    return tuple(tuple(contribution(int((places[-1] - g) * unit)) for g in places) for places in placed)


def _exactly(places: Sequence[Any]) -> Sequence[int | Fraction]:
    """Return exact numbers.

    Integers are not converted, because a scale may have a million of them.
    """
    return places if all(type(g) is int for g in places) else [exact(g) for g in places]


def distance_of(labels: Sequence[int], table: Deviations, distance: str) -> int:
    """Return the distance of one tuple of label indices."""
    _, combine = DISTANCES[distance]
    total = 0
    for label, deviation in zip(labels, table, strict=True):
        total = combine(total, deviation[label])
    return total


def all_distances(table: Deviations, distance: str) -> list[int]:
    """Return the distances of all label tuples, ascending.

    The tuples are not enumerated.

    Aspects are added one by one. Raises MeasureError if adding one needs more than MAX_SUMS sums.
    """
    combine = COMBINED[distance]
    fits_int64 = sum(max(deviation) for deviation in table) < 2**62
    totals = np.zeros(1, dtype=np.int64 if fits_int64 else object)
    for deviation in table:
        steps = np.unique(np.array(deviation, dtype=totals.dtype))
        if len(totals) * len(steps) > MAX_SUMS:
            raise MeasureError(
                "these scales have too many label tuples to compute all distances; "
                "use label_set=observed, which contains only the tuples of judged documents"
            )
        totals = np.unique(combine.outer(totals, steps))
    return [int(total) for total in totals]


def distinct(labels: NDArray[np.int32]) -> tuple[list[tuple[int, ...]], NDArray[np.intp]]:
    """Return the distinct columns of labels, and the column of each document.

    The labels are int32[A, D], all at least 0. The second result is intp[D].

    Each column is encoded as one integer whose digits are its labels, because integers sort faster.
    """
    sizes = [int(indices.max(initial=0)) + 1 for indices in labels]
    if math.prod(sizes) > MAX_TUPLES:
        tuples, inverse = np.unique(labels, axis=1, return_inverse=True)
        return [tuple(column) for column in tuples.T.tolist()], inverse.reshape(-1)
    number = np.zeros(labels.shape[1], dtype=np.int64)
    for size, indices in zip(sizes, labels, strict=True):
        number = number * size + indices
    if math.prod(sizes) > len(number):
        distinct_numbers, which = np.unique(number, return_inverse=True)
    else:
        occurs = np.bincount(number, minlength=math.prod(sizes)) > 0
        distinct_numbers, which = np.flatnonzero(occurs), (np.cumsum(occurs) - 1).take(number)
    digits = np.unravel_index(distinct_numbers, sizes)
    return [tuple(column) for column in np.transpose(digits).tolist()], which


def declared_distances(
    label_set: LabelSet, names: Sequence[str], table: Deviations, distance: str, seen: set[tuple[int, ...]]
) -> list[int]:
    """Return the distances of a declared set of label tuples, ascending.

    Raises MeasureError if the set is for other aspects, or if a judged tuple is outside the set.
    """
    if sorted(label_set.aspects) != sorted(names):
        raise MeasureError(f"the label set is for aspects {list(label_set.aspects)}, not for {list(names)}")
    order = [label_set.aspects.index(name) for name in names]
    possible = {tuple(labels[place] for place in order) for labels in label_set.tuples}
    if outside := sorted(seen - possible):
        raise MeasureError(
            f"the declared label set does not contain {len(outside)} tuples of judged documents, "
            f"such as {outside[0]} (label indices of {', '.join(names)})"
        )
    return sorted({distance_of(labels, table, distance) for labels in possible})


MAX_SUMS = 2_000_000
MAX_TUPLES = 2**62


WEIGHTINGS: dict[str, Callable[[int], list[int]]] = {
    "step1": lambda m: [m - c for c in range(1, m + 1)],
    "top_half": lambda m: [int(c <= (m + 1) // 2) for c in range(1, m + 1)],
    "positive": lambda m: [int(c < m) for c in range(1, m + 1)],
}


def weights(classes: int, weighting: str | Sequence[int]) -> list[int]:
    """Return the weight of each class, best first (Maistro et al., equation 4).

    Raises MeasureError for fewer than two classes, and if a list does not have one weight per class.
    """
    if classes < 2:
        raise MeasureError(
            "all label tuples are at the same distance from the best one, so they form a single class; "
            "at least two classes are needed"
        )
    if isinstance(weighting, str):
        return WEIGHTINGS[weighting](classes)
    if len(weighting) != classes:
        raise MeasureError(f"the weighting has {len(weighting)} weights for {classes} classes")
    return list(weighting)
