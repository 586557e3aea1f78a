"""Judgments of one aspect over all topics, with derived data that measures share.

A pool can also be derived: its labels are then the weights that TOMA gives to label tuples.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model import ABSENT, NEGATIVE, Aspect, Floats, Ints, Qrels
from cupel_measures.scoring import discounts

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class Pool:
    """Labels of every pooled document for one aspect.

    labels: int32[D], index on the aspect's scale, or NEGATIVE, UNJUDGED, ABSENT. judged: bool[D], the
    documents that judged-only variants keep. negatives_judged: whether a negative grade is a judgment and has
    the gain of the lowest label. topic_of: int64[D], topic index. topics: T. unrestricted: the pool
    of which this one is a restriction, or None.
    """

    aspect: Aspect
    labels: NDArray[np.int32]
    judged: Mask
    negatives_judged: bool
    topic_of: Ints
    topics: int
    memory: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    unrestricted: "Pool | None" = field(default=None, repr=False)

    @classmethod
    def of(cls, qrels: Qrels, aspect: str, *, negatives_judged: bool) -> "Pool":
        """Return the pool of one aspect of `qrels`, created once.

        Raise KeyError if there is no such aspect.
        """
        index = qrels.aspect_index(aspect)
        key = ("pool", aspect, negatives_judged)
        if key not in qrels.cache:
            scale, labels = qrels.aspects[index], qrels.labels[index]
            judged = are_judged(scale, labels, negatives_judged=negatives_judged)
            pool = cls(
                aspect=scale,
                labels=labels,
                judged=judged,
                negatives_judged=negatives_judged,
                topic_of=qrels.topic_of,
                topics=len(qrels.topics),
            )
            unrestricted = qrels.unrestricted and cls.of(
                qrels.unrestricted, aspect, negatives_judged=negatives_judged
            )
            qrels.cache[key] = pool.part_of(unrestricted) if unrestricted else pool
        cached: Pool = qrels.cache[key]
        return cached

    def part_of(self, other: "Pool") -> "Pool":
        """Return this pool, marked as a restriction of `other` if it is one.

        It is one if `other` has all labels of this pool.
        """
        same = self.aspect == other.aspect and self.negatives_judged == other.negatives_judged
        is_part = same and ((self.labels == other.labels) | (self.labels < NEGATIVE)).all()
        return replace(self, unrestricted=other) if is_part else self

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the result of `make`, computed at the first call with `key` and cached."""
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]

    def threshold(self, rel: int | None) -> int:
        """Return the lowest label index that counts as relevant.

        `rel` is a label if labels are integers, else an index. If it is None, use the threshold of the
        aspect.
        """
        if rel is None:
            return self.aspect.threshold
        threshold: int = self.once(("threshold", rel), lambda: self.aspect.index_from(rel))
        return threshold

    def relevant(self, rel: int | None) -> Mask:
        """Return bool[D]: the documents that count as relevant."""
        return self.reaching(self.threshold(rel))

    def reaching(self, label: int) -> Mask:
        """Return bool[D]: the documents with this label index or a higher one."""
        mask: Mask = self.once(("reaching", label), lambda: self.labels >= label)
        return mask

    def nonrelevant(self, rel: int | None, negatives: str) -> Mask:
        """Return bool[D]: the judged non-relevant documents. negatives: see `graded`."""
        threshold = self.threshold(rel)
        make = lambda: self.graded(negatives) & (self.labels < threshold)  # noqa: E731
        mask: Mask = self.once(("nonrelevant", threshold, negatives), make)
        return mask

    def graded(self, negatives: str) -> Mask:
        """Return which documents are judged, bool[D].

        A negative grade is a judgment if `negatives` is "judged".
        """
        judged = negatives == "judged"
        make = lambda: are_judged(self.aspect, self.labels, negatives_judged=judged)  # noqa: E731
        mask: Mask = self.once(("graded", judged), make)
        return mask

    def count(self, mask: Mask) -> Ints:
        """Return int64[T]: the number of documents of each topic in `mask`."""
        return np.bincount(self.topic_of.compress(mask), minlength=self.topics)

    def recall_base(self, rel: int | None) -> Ints:
        """Return int64[T]: the number of relevant documents of each topic."""
        base: Ints = self.once(("R", self.threshold(rel)), lambda: self.count(self.relevant(rel)))
        return base

    def gains(self, table: Floats) -> Floats:
        """Return float64[D]: the gain of each document.

        The gain of an unjudged document is 0. A negative grade has the gain of the lowest label if it is a
        judgment, else 0.
        """
        gains: Floats = self.once(("gains", table.tobytes()), lambda: self._gains(table))
        return gains

    def _gains(self, table: Floats) -> Floats:
        gain = {NEGATIVE: table[0] if self.negatives_judged else 0.0}
        states = [gain.get(state, 0.0) for state in range(ABSENT, 0)]
        return np.concatenate([states, table]).take(self.labels - ABSENT)

    def ideal_dcg(self, table: Floats, cutoff: int | None) -> Floats:
        """Return the DCG of all judged documents by decreasing gain, cut at `cutoff`.

        float64[T].
        """
        key = ("ideal", table.tobytes(), cutoff)
        ideal: Floats = self.once(key, lambda: self._ideal_dcg(table, cutoff))
        return ideal

    def _ideal_dcg(self, table: Floats, cutoff: int | None) -> Floats:
        best_first = self.best_first(table)
        topic = self.topic_of[best_first]
        rank = np.arange(len(topic)) - np.searchsorted(topic, np.arange(self.topics))[topic] + 1
        seen = rank <= (cutoff or len(rank))
        terms = self.gains(table)[best_first[seen]] / discounts.log2(rank[seen])
        return np.asarray(np.bincount(topic[seen], weights=terms, minlength=self.topics), dtype=np.float64)

    def best_first(self, table: Floats) -> Ints:
        """Return the documents with a positive gain, int64[n], the best of a topic first.

        They are ordered by topic, then decreasing gain, then index.
        """
        best: Ints = self.once(("best first", table.tobytes()), lambda: self._best_first(table))
        return best

    def _best_first(self, table: Floats) -> Ints:
        gains = self.gains(table)
        if self.unrestricted:  # the documents of the unrestricted pool are sorted already
            among = self.unrestricted.best_first(table)
            return among[gains[among] > 0]
        positive = np.flatnonzero(gains > 0)
        return positive[np.lexsort((-gains[positive], self.topic_of[positive]))]


def are_judged(aspect: Aspect, labels: NDArray[np.int32], *, negatives_judged: bool) -> Mask:
    """Return bool[D]: the documents with a judgment.

    negatives_judged: whether a negative grade is a judgment. Negative numbers on the scale are negative
    grades, too.
    """
    if negatives_judged:
        return labels >= NEGATIVE
    nonnegative = [not isinstance(label, int) or label >= 0 for label in aspect.labels]
    return np.array([False] * -ABSENT + nonnegative)[labels - ABSENT]
