"""Agreement of two judgings of the same pairs of topic and document, aspect by aspect (spec 12)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cupel_measures.model import NEGATIVE, Floats, Ints, Qrels


@dataclass(frozen=True)
class Agreement:
    """pairs: judged in both. same: share of them with the same label. kappa: Cohen's, with linear weights.
    alpha: Krippendorff's, ordinal. Each is None where `undefined` says why.
    """

    aspect: str
    pairs: int
    same: float | None
    kappa: float | None
    alpha: float | None
    undefined: str | None = None


def agreement(first: Qrels, second: Qrels) -> tuple[Agreement, ...]:
    """How far two qrels agree on each aspect that both have, over the pairs judged in both.

    Both declare the same labels for it. ValueError where they don't.
    """
    shared = [one for one in first.aspects if any(one.name == other.name for other in second.aspects)]
    found = []
    for aspect in shared:
        other = second.aspects[second.aspect_index(aspect.name)]
        if list(other.labels) != list(aspect.labels):
            raise ValueError(f"aspect {aspect.name!r} has other labels in the two qrels")
        mine, theirs = _both(first, second, aspect.name)
        found.append(agreement_of(mine, theirs, len(aspect.labels), name=aspect.name))
    return tuple(found)


def agreement_of(
    first: Sequence[int] | Ints, second: Sequence[int] | Ints, labels: int, *, name: str = ""
) -> Agreement:
    """Agreement of two lists of label indices, 0..labels - 1, of the same pairs; ValueError for others."""
    mine, theirs = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    if mine.shape != theirs.shape:
        raise ValueError(f"{len(mine)} labels in the first, {len(theirs)} in the second")
    given = np.concatenate([mine, theirs])
    if ((given < 0) | (given >= labels)).any():
        raise ValueError(f"label indices go from 0 to {labels - 1}, not from {given.min()} to {given.max()}")
    table = np.zeros((labels, labels))
    np.add.at(table, (mine, theirs), 1.0)
    return agreement_in(table, name=name)


def agreement_in(table: Floats, *, name: str = "") -> Agreement:
    """Agreement of two judgings, from float64[labels, labels]: pairs by label of the first and the second."""
    labels = len(table)
    pairs = int(table.sum())
    if not pairs:
        return Agreement(name, 0, None, None, None, "no pair is judged in both")
    same = float(np.trace(table)) / pairs
    if np.count_nonzero(table.sum(axis=0) + table.sum(axis=1)) < 2:
        return Agreement(name, pairs, same, None, None, "one label alone was given")
    steps = np.arange(labels)
    linear = np.abs(steps[:, None] - steps).astype(np.float64)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / pairs
    return Agreement(name, pairs, same, _beyond_chance(table, expected, linear), _krippendorff(table))


def _krippendorff(table: Floats) -> float:
    """Ordinal alpha of two complete judgings (Krippendorff 2011): distances count the labels in between."""
    coincidences = table + table.T
    given = coincidences.sum(axis=0)
    below = np.concatenate([[0.0], np.cumsum(given)])
    middle = below[:-1] + given / 2
    distance = (middle[:, None] - middle[None, :]) ** 2
    expected = (np.outer(given, given) - np.diag(given)) / (given.sum() - 1)
    return _beyond_chance(coincidences, expected, distance)


def _beyond_chance(found: Floats, expected: Floats, distance: Floats) -> float:
    return 1.0 - float((found * distance).sum()) / float((expected * distance).sum())


def _both(first: Qrels, second: Qrels, aspect: str) -> tuple[Ints, Ints]:
    """Label indices of the pairs that both judge."""
    mine, theirs = judged(first, aspect), judged(second, aspect)
    shared = sorted(mine.keys() & theirs.keys())
    return np.array([mine[one] for one in shared]), np.array([theirs[one] for one in shared])


def judged(qrels: Qrels, aspect: str) -> dict[tuple[str, bytes], int]:
    """Label index by topic and document, a negative grade being the lowest label."""
    labels = qrels.labels[qrels.aspect_index(aspect)]
    documents, topics = qrels.documents.to_list(), qrels.topic_of.tolist()
    return {
        (qrels.topics[topics[place]], documents[place]): max(int(labels[place]), 0)
        for place in np.flatnonzero(labels >= NEGATIVE).tolist()
    }
