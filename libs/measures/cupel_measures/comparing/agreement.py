"""Agreement of two sets of judgments, aspect by aspect.

Both sets judge the same topic-document pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cupel_measures.model import NEGATIVE, Floats, Ints, Qrels


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The agreement of two sets of judgments on one aspect.

    pairs: number of topic-document pairs that both sets judge. same: share of these pairs with the same
    label; None without pairs. kappa: Cohen's kappa with linear weights. alpha: Krippendorff's alpha for
    ordinal labels. undefined: the reason why kappa and alpha are None.
    """

    aspect: str
    pairs: int
    same: float | None
    kappa: float | None
    alpha: float | None
    undefined: str | None = None


def agreement(first: Qrels, second: Qrels) -> tuple[Agreement, ...]:
    """Return the agreement of two qrels on each aspect that both have.

    Raises ValueError if they declare different labels for an aspect.
    """
    agreements = []
    for aspect in first.aspects:
        if all(aspect.name != other.name for other in second.aspects):
            continue
        other = second.aspects[second.aspect_index(aspect.name)]
        if list(other.labels) != list(aspect.labels):
            raise ValueError(f"aspect {aspect.name!r} has different labels in the two qrels")
        first_labels, second_labels = _common_labels(first, second, aspect.name)
        agreements.append(label_agreement(first_labels, second_labels, len(aspect.labels), name=aspect.name))
    return tuple(agreements)


def label_agreement(
    first: Sequence[int] | Ints, second: Sequence[int] | Ints, labels: int, *, name: str = ""
) -> Agreement:
    """Return the agreement of two lists of labels for the same topic-document pairs.

    Labels are indices from 0 to labels - 1. Raises ValueError for other indices and for lists of different
    lengths.
    """
    x, y = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    if x.shape != y.shape:
        raise ValueError(f"the first list has {len(x)} labels, the second {len(y)}")
    both = np.concatenate([x, y])
    if ((both < 0) | (both >= labels)).any():
        raise ValueError(f"expected label indices from 0 to {labels - 1}, got {both.min()} to {both.max()}")
    table = np.zeros((labels, labels))
    np.add.at(table, (x, y), 1.0)
    return table_agreement(table, name=name)


def table_agreement(table: Floats, *, name: str = "") -> Agreement:
    """Compute the agreement from a contingency table, float64[labels, labels].

    A cell is the number of pairs with the row's label in the first set and the column's label in the second.
    """
    pairs = int(table.sum())
    if not pairs:
        return _without_coefficients(name, 0, None, "no topic-document pair is judged in both")
    same = float(np.trace(table)) / pairs
    if np.count_nonzero(table.sum(axis=0) + table.sum(axis=1)) < 2:
        return _without_coefficients(name, pairs, same, "all pairs have the same label")
    steps = np.arange(len(table))
    linear = np.abs(steps[:, None] - steps).astype(np.float64)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / pairs
    return Agreement(
        aspect=name,
        pairs=pairs,
        same=same,
        kappa=_chance_corrected(table, expected, linear),
        alpha=_krippendorff(table),
    )


def _without_coefficients(name: str, pairs: int, same: float | None, reason: str) -> Agreement:
    return Agreement(aspect=name, pairs=pairs, same=same, kappa=None, alpha=None, undefined=reason)


def _krippendorff(table: Floats) -> float:
    """Return the ordinal alpha of two complete sets of judgments (Krippendorff 2011).

    The distance between two labels is the square of a number of judgments, counted in both sets. Judgments
    with a label between the two count 1, judgments with one of the two count 1/2.
    """
    coincidences = table + table.T
    totals = coincidences.sum(axis=0)
    below = np.concatenate([[0.0], np.cumsum(totals)])
    middle = below[:-1] + totals / 2
    distance = (middle[:, None] - middle[None, :]) ** 2
    expected = (np.outer(totals, totals) - np.diag(totals)) / (totals.sum() - 1)
    return _chance_corrected(coincidences, expected, distance)


def _chance_corrected(observed: Floats, expected: Floats, distance: Floats) -> float:
    """Return 1 - observed disagreement / disagreement expected by chance."""
    return 1.0 - float((observed * distance).sum()) / float((expected * distance).sum())


def _common_labels(first: Qrels, second: Qrels, aspect: str) -> tuple[Ints, Ints]:
    """Return the label indices of the pairs that are judged in both qrels."""
    x, y = judged_labels(first, aspect), judged_labels(second, aspect)
    pairs = sorted(x.keys() & y.keys())
    return np.array([x[pair] for pair in pairs]), np.array([y[pair] for pair in pairs])


def judged_labels(qrels: Qrels, aspect: str) -> dict[tuple[str, bytes], int]:
    """Return the label index of each judged (topic, document).

    Negative grades become the lowest label.
    """
    labels = qrels.labels[qrels.aspect_index(aspect)]
    documents, topics = qrels.documents.to_list(), qrels.topic_of.tolist()
    return {
        (qrels.topics[topics[i]], documents[i]): max(int(labels[i]), 0)
        for i in np.flatnonzero(labels >= NEGATIVE).tolist()
    }
