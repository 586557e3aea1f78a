"""Qrels: all judgments of a collection, by aspect and by subtopic."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model.arrays import Ids, Ints
from cupel_measures.model.aspects import Aspect, LabelSet

# States of a (document, aspect) pair without a label of the scale. A label index is at least 0.
NEGATIVE = -1
"""A negative grade: judged with the lowest label. Bpref and infAP treat it as pooled but not judged."""
UNJUDGED = -2
"""In the pool of this aspect, with a label that means "not judged"."""
ABSENT = -3
"""Not in the pool of this aspect."""


@dataclass(frozen=True, eq=False)
class Subtopics:
    """Judgments by subtopic: document[i] has judgment[i] for subtopic names[subtopic[i]].

    names: distinct ids, in byte order; the same id in two topics denotes two subtopics. document (index into
    `Qrels.documents`), subtopic, judgment: int32[n], sorted by document, then subtopic.
    """

    names: tuple[str, ...]
    document: NDArray[np.int32]
    subtopic: NDArray[np.int32]
    judgment: NDArray[np.int32]

    def only(self, mask: NDArray[np.bool_]) -> "Subtopics":
        """Return the rows selected by `mask`, bool[n]."""
        return replace(
            self, document=self.document[mask], subtopic=self.subtopic[mask], judgment=self.judgment[mask]
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Qrels:
    """All judgments of a collection, of all aspects.

    topics: T ids in byte order. offsets: int64[T + 1]; the pool of topic t is documents
    offsets[t]:offsets[t + 1]. documents: D ids, ascending by bytes within a topic. labels: int32[A, D], a
    label index of the aspect's scale, or NEGATIVE, UNJUDGED or ABSENT. label_sets: declared sets by name.
    """

    aspects: tuple[Aspect, ...]
    topics: tuple[str, ...]
    offsets: Ints
    documents: Ids
    labels: NDArray[np.int32]
    label_sets: Mapping[str, LabelSet] = field(default_factory=dict)
    subtopics: Subtopics | None = None
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Derived tables, such as lookup tables and ideal gains, keyed by the module that computes them."""
    unrestricted: "Qrels | None" = field(default=None, repr=False)
    """The qrels of which these are the restriction, if any."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cache": {}}  # another process computes its own tables

    @classmethod
    def empty(
        cls, aspects: tuple[Aspect, ...], label_sets: Mapping[str, LabelSet], *, subtopics: bool = True
    ) -> "Qrels":
        """Return qrels without topics; with `subtopics`, they can hold judgments by subtopic."""
        none = np.zeros((len(aspects), 0), dtype=np.int32)
        by_subtopic = Subtopics((), *np.zeros((3, 0), dtype=np.int32)) if subtopics else None
        return cls(
            aspects=aspects,
            topics=(),
            offsets=np.zeros(1, dtype=np.int64),
            documents=Ids.of([]),
            labels=none,
            label_sets=label_sets,
            subtopics=by_subtopic,
        )

    def restricted_to(self, kept: NDArray[np.bool_], aspect: str | None = None) -> "Qrels":
        """Return these qrels without the judgments of documents that are not in `kept`, bool[D].

        All documents keep their places in `documents`, so joined runs stay valid. With `aspect`, only labels
        of this aspect are removed. Without it, all labels and all judgments by subtopic are removed.
        """
        where = slice(None) if aspect is None else self.aspect_index(aspect)
        labels = self.labels.copy()
        labels[where, ...] = np.where(kept, self.labels[where], ABSENT)
        subtopics = self.subtopics
        if subtopics is not None and aspect is None:
            subtopics = subtopics.only(kept[subtopics.document])
        return replace(self, labels=labels, subtopics=subtopics, cache={}, unrestricted=self)

    def aspect_index(self, name: str) -> int:
        """Return the index of the aspect `name`. Raise KeyError if there is none."""
        for index, aspect in enumerate(self.aspects):
            if aspect.name == name:
                return index
        raise KeyError(name)

    @cached_property
    def only_by_subtopic(self) -> bool:
        """Return whether all judgments are by subtopic, before any restriction of these qrels."""
        if self.unrestricted is not None:
            return self.unrestricted.only_by_subtopic
        return self.subtopics is not None and bool(self.labels.size) and bool((self.labels == ABSENT).all())

    @cached_property
    def topic_of(self) -> Ints:
        """Return int64[D]: the index of the topic of each pooled document."""
        return np.repeat(np.arange(len(self.topics)), np.diff(self.offsets))
