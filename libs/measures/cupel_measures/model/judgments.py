"""Qrels: all judgments of a collection, by aspect and by subtopic."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model.arrays import Ids, Ints
from cupel_measures.model.aspects import Aspect, LabelSet

# States of a (document, aspect) pair that carry no label of the scale. A label index is >= 0.
NEGATIVE = (
    -1
)  # a negative grade: lowest label, judged (spec 1.2) - yet "pooled, not judged" to Bpref and infAP
UNJUDGED = -2  # in the pool of this aspect with a label that says "not judged"
ABSENT = -3  # not in the pool of this aspect


@dataclass(frozen=True, eq=False)
class Subtopics:
    """Judgments by subtopic: row i says that document[i] got judgment[i] for subtopic names[subtopic[i]].

    names: different ids, in byte order; the same id in two topics is two subtopics. document (index into
    `Qrels.documents`), subtopic, judgment: int32[n], sorted by document, then subtopic.
    """

    names: tuple[str, ...]
    document: NDArray[np.int32]
    subtopic: NDArray[np.int32]
    judgment: NDArray[np.int32]

    def only(self, mask: NDArray[np.bool_]) -> "Subtopics":
        """The rows in `mask`, bool[n]."""
        return replace(
            self, document=self.document[mask], subtopic=self.subtopic[mask], judgment=self.judgment[mask]
        )


@dataclass(frozen=True, eq=False)
class Qrels:
    """All judgments of a collection, of all aspects.

    topics: T ids in byte order. offsets: int64[T + 1]; topic t's pool is documents
    offsets[t]:offsets[t + 1]. documents: D ids, ascending by bytes within a topic. labels:
    int32[A, D], the label index on its aspect's scale, or NEGATIVE, UNJUDGED, ABSENT. label_sets: those
    the collection declares, by name.
    """

    aspects: tuple[Aspect, ...]
    topics: tuple[str, ...]
    offsets: Ints
    documents: Ids
    labels: NDArray[np.int32]
    label_sets: Mapping[str, LabelSet] = field(default_factory=dict)
    subtopics: Subtopics | None = None
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Derived tables (lookup tables of readers, ideal gains of measures), keyed by who made them."""
    whole: "Qrels | None" = field(default=None, repr=False)
    """Those of which these are a part, by `keeping`."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cache": {}}  # another process makes its own tables

    @classmethod
    def empty(
        cls, aspects: tuple[Aspect, ...], label_sets: Mapping[str, LabelSet], *, subtopics: bool = True
    ) -> "Qrels":
        """Qrels without topics, which may get judgments by subtopic unless `subtopics` is false."""
        none = np.zeros((len(aspects), 0), dtype=np.int32)
        by_subtopic = Subtopics((), *np.zeros((3, 0), dtype=np.int32)) if subtopics else None
        return cls(aspects, (), np.zeros(1, dtype=np.int64), Ids.of([]), none, label_sets, by_subtopic)

    def keeping(self, kept: NDArray[np.bool_], aspect: str | None = None) -> "Qrels":
        """These qrels without the judgments of other documents than `kept`, bool[D].

        A document without judgments keeps its place in `documents`: what was joined stays joined. With
        `aspect` only its labels are taken away; without, all labels and judgments by subtopic.
        """
        where = slice(None) if aspect is None else self.aspect_index(aspect)
        labels = self.labels.copy()
        labels[where, ...] = np.where(kept, self.labels[where], ABSENT)
        subtopics = self.subtopics
        if subtopics is not None and aspect is None:
            subtopics = subtopics.only(kept[subtopics.document])
        return replace(self, labels=labels, subtopics=subtopics, cache={}, whole=self)

    def aspect_index(self, name: str) -> int:
        """Index of the aspect called `name`; KeyError if there is none."""
        for index, aspect in enumerate(self.aspects):
            if aspect.name == name:
                return index
        raise KeyError(name)

    @cached_property
    def only_by_subtopic(self) -> bool:
        """Whether there are judgments by subtopic, and of no aspect any; a part is as the whole."""
        if self.whole is not None:
            return self.whole.only_by_subtopic
        return self.subtopics is not None and bool(self.labels.size) and bool((self.labels == ABSENT).all())

    @cached_property
    def topic_of(self) -> Ints:
        """int64[D]: the index of each pooled document's topic."""
        return np.repeat(np.arange(len(self.topics)), np.diff(self.offsets))
