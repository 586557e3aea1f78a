"""Aspects with their ordered labels, and sets of label tuples."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from cupel_measures.model.arrays import Floats

Label = int | str


@dataclass(frozen=True, kw_only=True)
class Aspect:
    """A judged property of documents, such as relevance, with its scale of labels.

    labels: the labels from worst to best. lowest: further labels, each of which is read as the worst label.
    unjudged: labels that mean "not judged". threshold: index of the worst label that counts as relevant.
    declared_gains, declared_embedding: one number per label, non-decreasing. inferred: whether the scale was
    inferred from a plain qrels file, as 0 to the highest grade in the file.
    """

    name: str
    labels: Sequence[Label]
    lowest: tuple[Label, ...] = ()
    unjudged: tuple[Label, ...] = ()
    threshold: int = 1
    declared_gains: tuple[float, ...] | None = None
    declared_embedding: tuple[float | Fraction, ...] | None = None
    inferred: bool = False

    @property
    def integer(self) -> bool:
        """Return whether all labels are integers.

        Gains and `rel` are then labels instead of label indices.
        """
        return isinstance(self.labels, range) or all(isinstance(label, int) for label in self.labels)

    @cached_property
    def gains(self) -> Floats:
        """Return the gain of each label.

        It is the declared gain. Without declared gains, it is the label if labels are integers (0 if
        negative), or else the index of the label.
        """
        if self.declared_gains is not None:
            return np.array(self.declared_gains, dtype=np.float64)
        if self.integer and self.ascending:
            return np.maximum(np.array(self.labels, dtype=np.float64), 0.0)
        return np.arange(len(self.labels), dtype=np.float64)

    @property
    def ascending(self) -> bool:
        """Return whether the integer labels ascend from worst to best.

        Those of `{range: [100, 0]}` descend.
        """
        return len(self.labels) < 2 or self.labels[0] < self.labels[-1]  # type: ignore[operator]

    def index_from(self, rel: int) -> int:
        """Return the index of the worst label that reaches `rel`.

        `rel` is a label where labels are integers, else a label index. The result is at least 0; it is at
        least the number of labels if no label reaches `rel`.
        """
        if not self.integer:
            return max(rel, 0)
        sign = 1 if self.ascending else -1
        reaching = (i for i, label in enumerate(self.labels) if int(label) * sign >= rel * sign)
        return next(reaching, len(self.labels))

    @cached_property
    def embedding(self) -> tuple[float | Fraction, ...]:
        """Return the coordinate of each label for distances.

        The default is 0, 1, 2, ... (TOMA, CIKM 2021, 3.1).
        """
        return self.declared_embedding or tuple(range(len(self.labels)))


@dataclass(frozen=True)
class LabelSet:
    """A set of possible label tuples (TOMA, CIKM 2021, 3.2).

    tuples: label indices in the order of `aspects`.
    """

    aspects: tuple[str, ...]
    tuples: frozenset[tuple[int, ...]]
