"""Classes of label tuples by their distance to the best one, exactly (spec 3.1-3.3).

Embeddings become whole numbers over a common denominator, so equal distances are equal integers:
squares are summed for the Euclidean distance, and no root is taken.
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
"""Per aspect and label index: how far the label lies from the best one, in units of its own distance."""

# per distance: what one aspect contributes, and how contributions combine
DISTANCES: dict[str, tuple[Callable[[int], int], Callable[[int, int], int]]] = {
    "euclidean": (lambda deviation: deviation * deviation, lambda total, more: total + more),
    "manhattan": (lambda deviation: deviation, lambda total, more: total + more),
    "chebyshev": (lambda deviation: deviation, max),
}


COMBINED = {"euclidean": np.add, "manhattan": np.add, "chebyshev": np.maximum}
"""The same combinations, of all totals with all contributions at once."""


def deviations(
    aspects: Sequence[Aspect], embedding: Mapping[str, Sequence[Any]], distance: str
) -> Deviations:
    """Deviation of every label of `aspects`; `embedding` overrules their own.

    Raises MeasureError where an embedding has not one number per label.
    """
    contribution, _ = DISTANCES[distance]
    placed = [_exactly(embedding.get(aspect.name, aspect.embedding)) for aspect in aspects]
    for aspect, places in zip(aspects, placed, strict=True):
        if len(places) != len(aspect.labels):
            raise MeasureError(
                f"the embedding of aspect {aspect.name!r} has {len(places)} numbers; "
                f"its scale has {len(aspect.labels)} labels"
            )
    unit = math.lcm(*(place.denominator for places in placed for place in places))
    return tuple(tuple(contribution(int((places[-1] - g) * unit)) for g in places) for places in placed)


def _exactly(places: Sequence[Any]) -> Sequence[int | Fraction]:
    """The numbers as typed; whole ones, of which a scale may have a million, stay as they are."""
    return places if all(type(g) is int for g in places) else [exact(g) for g in places]


def distance_of(labels: Sequence[int], table: Deviations, distance: str) -> int:
    """The distance of one tuple of label indices."""
    _, combine = DISTANCES[distance]
    total = 0
    for label, of_label in zip(labels, table, strict=True):
        total = combine(total, of_label[label])
    return total


def all_distances(table: Deviations, distance: str) -> list[int]:
    """Distances that occur among all label tuples, ascending, without listing the tuples.

    Raises MeasureError beyond MOST_SUMS sums for one more aspect.
    """
    combine = COMBINED[distance]
    exact_in_words = sum(max(of_label) for of_label in table) < 2**62
    totals = np.zeros(1, dtype=np.int64 if exact_in_words else object)
    for of_label in table:
        steps = np.unique(np.array(of_label, dtype=totals.dtype))
        if len(totals) * len(steps) > MOST_SUMS:
            raise MeasureError(
                "these scales have too many label tuples to tell their distances apart; "
                "label_set=observed looks at those that were judged"
            )
        totals = np.unique(combine.outer(totals, steps))
    return [int(total) for total in totals]


def distinct(labels: NDArray[np.int32]) -> tuple[list[tuple[int, ...]], NDArray[np.intp]]:
    """The different columns of int32[A, D], all at least 0, and intp[D] that says which each document has.

    A column is looked for as one number, whose digits are its labels: numbers are sorted sooner.
    """
    sizes = [int(of_aspect.max(initial=0)) + 1 for of_aspect in labels]
    if math.prod(sizes) > MOST_NUMBERS:
        tuples, inverse = np.unique(labels, axis=1, return_inverse=True)
        return [tuple(column) for column in tuples.T.tolist()], inverse.reshape(-1)
    number = np.zeros(labels.shape[1], dtype=np.int64)
    for size, of_aspect in zip(sizes, labels, strict=True):
        number = number * size + of_aspect
    if math.prod(sizes) > len(number):
        different, which = np.unique(number, return_inverse=True)
    else:
        there = np.bincount(number, minlength=math.prod(sizes)) > 0
        different, which = np.flatnonzero(there), (np.cumsum(there) - 1).take(number)
    digits = np.unravel_index(different, sizes)
    return [tuple(column) for column in np.transpose(digits).tolist()], which


def declared_distances(
    label_set: LabelSet, names: Sequence[str], table: Deviations, distance: str, seen: set[tuple[int, ...]]
) -> list[int]:
    """Distances of a declared label set, ascending.

    Raises MeasureError where it is for other aspects, or where a judged tuple is not in it.
    """
    if sorted(label_set.aspects) != sorted(names):
        raise MeasureError(f"the label set is for aspects {list(label_set.aspects)}, not for {list(names)}")
    order = [label_set.aspects.index(name) for name in names]
    possible = {tuple(one[place] for place in order) for one in label_set.tuples}
    if outside := sorted(seen - possible):
        raise MeasureError(
            f"{len(outside)} judged label tuples are outside the declared label set, "
            f"such as {outside[0]} (label indices of {', '.join(names)})"
        )
    return sorted({distance_of(one, table, distance) for one in possible})


MOST_SUMS = 2_000_000
MOST_NUMBERS = 2**62


WEIGHTINGS: dict[str, Callable[[int], list[int]]] = {
    "step1": lambda m: [m - c for c in range(1, m + 1)],
    "top_half": lambda m: [int(c <= (m + 1) // 2) for c in range(1, m + 1)],
    "positive": lambda m: [int(c < m) for c in range(1, m + 1)],
}


def weights(classes: int, weighting: str | Sequence[int]) -> list[int]:
    """Weight of each of `classes` classes, best first (spec 3.3).

    Raises MeasureError with fewer than two classes, or where a list has another length.
    """
    if classes < 2:
        raise MeasureError("all labels are at the same distance: at least two classes are needed")
    if isinstance(weighting, str):
        return WEIGHTINGS[weighting](classes)
    if len(weighting) != classes:
        raise MeasureError(f"the weighting has {len(weighting)} weights; there are {classes} classes")
    return list(weighting)
