"""Qrels: all judgments of a collection, by aspect and by subtopic."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model.arrays import Ids, Ints
from cupel_measures.model.aspects import Aspect, LabelSet

# States of a (document, aspect) pair that has no label index. Label indices are at least 0.
NEGATIVE = -1
"""A negative grade: judged with the lowest label. Bpref and infAP treat it as pooled but not judged."""
UNJUDGED = -2
"""In the pool of this aspect, with a label that means "not judged"."""
ABSENT = -3
"""Not in the pool of this aspect."""


@dataclass(frozen=True, eq=False)
class Subtopics:
    """Judgments by subtopic.

    document[i] has judgment[i] for subtopic names[subtopic[i]].

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

    topics: T ids in byte order, of the topics with any judgment. Score vectors and aggregates cover these
    topics. unjudged_topics: ids of the collection's other topics, in byte order; they are shown, but
    never scored (see `judged_only`). offsets: int64[T + 1]; the pool of topic t is documents
    offsets[t]:offsets[t + 1]. documents: D ids, ascending by bytes within a topic. labels: int32[A, D], by
    aspect and document, a label index, or NEGATIVE, UNJUDGED or ABSENT. label_sets: declared sets of label
    tuples, by name.
    """

    aspects: tuple[Aspect, ...]
    topics: tuple[str, ...]
    offsets: Ints
    documents: Ids
    labels: NDArray[np.int32]
    label_sets: Mapping[str, LabelSet] = field(default_factory=dict)
    subtopics: Subtopics | None = None
    unjudged_topics: tuple[str, ...] = ()
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Cache of derived tables, such as lookup tables and ideal gains.

    The modules that compute the tables choose the keys.
    """
    unrestricted: "Qrels | None" = field(default=None, repr=False)
    """The qrels from which `restricted_to` created these; None for qrels that are not restricted."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cache": {}}  # a process that unpickles the qrels computes the tables again

    @classmethod
    def empty(
        cls, aspects: tuple[Aspect, ...], label_sets: Mapping[str, LabelSet], *, subtopics: bool = True
    ) -> "Qrels":
        """Return qrels without topics.

        subtopics: whether the collection has judgments by subtopic.
        """
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

    def restricted_to(
        self, kept: NDArray[np.bool_], aspect: str | None = None, *, pooled: bool = False
    ) -> "Qrels":
        """Return these qrels without the judgments of documents that are not in `kept`.

        kept: bool[D].

        `documents` does not change, so joined runs stay valid. With `aspect`, only the labels of this aspect
        are removed. Without it, all labels and all judgments by subtopic of these documents are removed.

        pooled: whether these documents stay in the pool as UNJUDGED, as in a random sample of the judgments.
        Otherwise they become ABSENT, as if they had never been in the pool.
        """
        where = slice(None) if aspect is None else self.aspect_index(aspect)
        labels = self.labels.copy()
        removed = np.minimum(self.labels[where], UNJUDGED) if pooled else ABSENT
        labels[where, ...] = np.where(kept, self.labels[where], removed)
        subtopics = self.subtopics
        if subtopics is not None and aspect is None:
            subtopics = subtopics.only(kept[subtopics.document])
        return replace(self, labels=labels, subtopics=subtopics, cache={}, unrestricted=self)

    def judged_only(self) -> "Qrels":
        """Return these qrels with topics that have no judgment moved to `unjudged_topics`.

        The pools of these topics, in which every label means "not judged", are removed. Readers of qrels call
        this method, so no other code decides which topics count in a mean.
        """
        counts = np.bincount(self.topic_of[self.is_judged], minlength=len(self.topics)) > 0
        if counts.all():
            return self
        kept = counts[self.topic_of]
        place = np.cumsum(kept, dtype=np.int32) - 1
        subtopics = self.subtopics
        if subtopics is not None:
            subtopics = replace(subtopics, document=place[subtopics.document])
        unjudged = compress(self.topics, ~counts)
        return replace(
            self,
            topics=tuple(compress(self.topics, counts)),
            unjudged_topics=tuple(sorted([*self.unjudged_topics, *unjudged])),
            offsets=np.append(0, np.cumsum(np.diff(self.offsets)[counts])).astype(np.int64),
            documents=self.documents.only(kept),
            labels=self.labels[:, kept],
            subtopics=subtopics,
            cache={},
        )

    @property
    def listed_topics(self) -> tuple[str, ...]:
        """Return all topics of the collection in byte order, judged or not."""
        return tuple(sorted([*self.topics, *self.unjudged_topics])) if self.unjudged_topics else self.topics

    @cached_property
    def pool_digest(self) -> int:
        """Return a digest of the topics and of the documents in their pools.

        Restricted qrels have the digest of the unrestricted ones. See `Joined.pool`.
        """
        if self.unrestricted is not None:
            return self.unrestricted.pool_digest
        digest = crc32("\n".join(self.topics).encode())
        for part in (self.offsets.tobytes(), self.documents.starts.tobytes(), self.documents.blob):
            digest = crc32(part, digest)
        return digest

    @cached_property
    def is_judged(self) -> NDArray[np.bool_]:
        """Return which pooled documents have a judgment: bool[D].

        A judgment by subtopic or for any aspect counts.
        """
        judged: NDArray[np.bool_] = np.asarray((self.labels >= NEGATIVE).any(axis=0))
        if self.subtopics is not None:
            judged[self.subtopics.document] = True
        return judged

    def aspect_index(self, name: str) -> int:
        """Return the index of the aspect `name`. Raise KeyError if there is none."""
        for index, aspect in enumerate(self.aspects):
            if aspect.name == name:
                return index
        raise KeyError(name)

    @cached_property
    def only_by_subtopic(self) -> bool:
        """Return whether all judgments of the unrestricted qrels are by subtopic."""
        if self.unrestricted is not None:
            return self.unrestricted.only_by_subtopic
        return self.subtopics is not None and bool(self.labels.size) and bool((self.labels == ABSENT).all())

    @cached_property
    def topic_of(self) -> Ints:
        """Return int64[D]: the index of the topic of each pooled document."""
        return np.repeat(np.arange(len(self.topics)), np.diff(self.offsets))
