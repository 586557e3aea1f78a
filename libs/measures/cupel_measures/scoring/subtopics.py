"""Judgments by subtopic, joined runs with them, and greedy ideal rankings.

Only subtopics with a relevant document count. A *slot* is the number of such a subtopic. The same subtopic id
in two topics denotes two subtopics, so it has two slots. Slots ascend by topic, then by subtopic id.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Floats, Ints, Joined, Qrels, Subtopics
from cupel_measures.scoring import discounts
from cupel_measures.scoring.pool import Mask
from cupel_measures.scoring.rows import Hits, earlier

DECIMALS = 12
"""Number of decimals to which gains are rounded before they are compared in a greedy choice."""


@dataclass(frozen=True, eq=False)
class Relevance:
    """Pairs of a document and a subtopic to which it is relevant at some level.

    Pairs are sorted by document, then by slot. starts: int64[D + 1]; the pairs of document d are
    starts[d]:starts[d + 1]. slot: int64[n]. size: int64[S], number of documents relevant to each slot. topic:
    int64[S], the topic of each slot.
    """

    starts: Ints
    slot: Ints
    size: Ints
    topic: Ints

    @cached_property
    def place(self) -> NDArray[np.unsignedinteger]:
        """Return the index of each slot within its topic.

        unsigned[S], in the smallest possible type.
        """
        place = np.arange(len(self.topic)) - np.searchsorted(self.topic, self.topic)
        return place.astype(np.min_scalar_type(place.max(initial=0)))

    @classmethod
    def of(cls, subtopics: Subtopics, level: int, topic_of: Ints) -> "Relevance":
        relevant = subtopics.judgment >= level
        document, names = subtopics.document[relevant], max(len(subtopics.names), 1)
        key = topic_of[document] * names + subtopics.subtopic[relevant]
        keys, slot, size = np.unique(key, return_inverse=True, return_counts=True)
        starts = np.concatenate([[0], np.cumsum(np.bincount(document, minlength=len(topic_of)))])
        return cls(starts, slot.reshape(-1), size, keys // names)

    def pairs_of(self, documents: NDArray[np.int32]) -> tuple[Ints, Ints]:
        """Return the index in `documents` and the slot of each pair.

        The pairs are in the order of `documents`.
        """
        begin = self.starts[documents]
        number = self.starts[documents + 1] - begin
        place = np.repeat(np.arange(len(documents)), number)
        within = np.arange(len(place)) - np.repeat(np.cumsum(number) - number, number)
        return place, self.slot[begin[place] + within]


@dataclass(frozen=True, eq=False, kw_only=True)
class SubtopicPool:
    """Judgments by subtopic of every pooled document.

    judged: bool[D], documents with a judgment for any subtopic. topic_of: int64[D]. topics: T.
    """

    subtopics: Subtopics
    judged: Mask
    topic_of: Ints
    topics: int
    memory: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, qrels: Qrels, *, negatives_judged: bool) -> "SubtopicPool":
        """Return the pool of `qrels`, created once.

        Raises MeasureError without judgments by subtopic.
        """
        key = ("subtopics", negatives_judged)
        if qrels.subtopics is None:
            raise MeasureError(
                "it needs judgments by subtopic, and this collection has none; "
                "add a qrels file with layout: subtopics"
            )
        if key not in qrels.cache:
            judged = np.zeros(len(qrels.documents), dtype=bool)
            counts = qrels.subtopics.judgment >= 0 if not negatives_judged else slice(None)
            judged[qrels.subtopics.document[counts]] = True
            qrels.cache[key] = cls(
                subtopics=qrels.subtopics, judged=judged, topic_of=qrels.topic_of, topics=len(qrels.topics)
            )
        pool: SubtopicPool = qrels.cache[key]
        return pool

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the result of `make`, computed at the first call with `key` and cached."""
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]

    def relevance(self, rel: int | None) -> Relevance:
        """Return the pairs whose judgment is at least `rel`.

        rel: None means 1. Negative judgments never count.
        """
        level = 1 if rel is None else max(rel, 0)
        make = lambda: Relevance.of(self.subtopics, level, self.topic_of)  # noqa: E731
        relevance: Relevance = self.once(("relevance", level), make)
        return relevance

    def number(self, rel: int | None) -> Ints:
        """Return int64[T]: the number of subtopics with a relevant document, by topic."""
        return np.bincount(self.relevance(rel).topic, minlength=self.topics)

    def ideal(self, rel: int | None, alpha: float, depth: int | None) -> "SubtopicRows":
        """Return the greedy ideal ranking of each topic, down to at least `depth`.

        There is one row per topic.
        """
        # Round the depth up to a power of two, so that few rankings are computed.
        depth = None if depth is None else max(32, 1 << (depth - 1).bit_length())
        make = lambda: SubtopicRows(self, greedy(self, rel, alpha, depth))  # noqa: E731
        ideal: SubtopicRows = self.once(("ideal", rel, alpha, depth), make)
        return ideal


@dataclass(frozen=True, eq=False)
class SubtopicRows:
    """The rows of a joined run with the judgments of `pool`.

    hits: the retrieved documents of the pool.
    """

    pool: SubtopicPool
    hits: Hits
    memory: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def topic(self) -> Ints:
        """Return int64[rows]: the index of each row's topic."""
        return np.arange(self.hits.rows) % self.pool.topics

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the result of `make`, computed at the first call with `key` and cached."""
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]

    def number(self, rel: int | None) -> Ints:
        """Return m, the number of subtopics of the topic that have a relevant document.

        int64[rows].
        """
        return self.pool.number(rel)[self.topic]

    @cached_property
    def condensed(self) -> "SubtopicRows":
        """Return the same rows without the documents that are not judged for any subtopic."""
        return SubtopicRows(self.pool, self.hits.of_documents(self.pool.judged).condensed)

    def pairs(self, rel: int | None) -> "SubtopicPairs":
        """Return the relevant (document, subtopic) pairs along each row."""
        pairs: SubtopicPairs = self.once(
            ("pairs", rel), lambda: SubtopicPairs.of(self.hits, self.pool.relevance(rel))
        )
        return pairs

    def novelty(self, rel: int | None, alpha: float) -> tuple[Hits, Floats]:
        """Return the relevant hits and their novelty gains NG, float64.

        The measures of novelty define NG.
        """
        key = ("novelty", rel, alpha)
        novelty: tuple[Hits, Floats] = self.once(key, lambda: self._novelty(self.pairs(rel), alpha))
        return novelty

    def _novelty(self, pairs: "SubtopicPairs", alpha: float) -> tuple[Hits, Floats]:
        terms = discounts.power(1.0 - alpha, pairs.seen + 1)
        gains = np.bincount(pairs.place, weights=terms, minlength=len(pairs.documents.row))
        return pairs.documents, np.asarray(gains, dtype=np.float64)

    @classmethod
    def of(cls, joined: Joined, pool: SubtopicPool) -> "SubtopicRows":
        return cls(pool, Hits.of(joined))


@dataclass(frozen=True, eq=False, kw_only=True)
class SubtopicPairs:
    """Relevant (document, subtopic) pairs along rows, sorted by row, rank and slot.

    documents: the hits with at least one pair. place: int64[n], the index of each pair's hit in `documents`.
    hits: the hit of each pair. seen: int64[n], C(r-1), the number of hits above it in its row that are
    relevant to the same subtopic. size: int64[n], the number of documents of the topic that are relevant to
    the same subtopic.
    """

    documents: Hits
    place: Ints
    hits: Hits
    seen: Ints
    size: Ints

    @classmethod
    def of(cls, hits: Hits, relevance: Relevance) -> "SubtopicPairs":
        documents = hits.of_documents(np.diff(relevance.starts) > 0)
        place, slot = relevance.pairs_of(documents.document)
        columns = documents.row[place], documents.rank[place], documents.document[place]
        pair_hits = Hits.by_row(*columns, hits.rows)
        return cls(
            documents=documents,
            place=place,
            hits=pair_hits,
            seen=earlier(pair_hits.row, relevance.place[slot]),
            size=relevance.size[slot],
        )


def greedy(pool: SubtopicPool, rel: int | None, alpha: float, depth: int | None) -> Hits:
    """Return each topic's greedy ideal ranking down to `depth`, one row per topic.

    1. At every rank, take the remaining document with the largest novelty gain. Gains that are equal when
       rounded to 12 decimals are tied; then take the largest document id.
    2. Documents that are relevant to the same subtopics have the same gain at every rank. They form a kind.
       Only the largest remaining id of each kind is compared.
    3. A judged document that is relevant to no subtopic has gain 0 at every rank. It is left out.

    All topics are processed together, rank by rank.
    """
    kinds = _Kinds.of(pool.relevance(rel), pool.topic_of)
    chosen: list[NDArray[np.int64]] = []
    covered = np.zeros(len(kinds.relevance.size), dtype=np.int64)
    taken = kinds.queue_starts[:-1].copy()
    while len(kinds.topic) and (depth is None or len(chosen) < depth):
        best = kinds.best(discounts.power(1.0 - alpha, covered + 1), taken)
        documents = best[best >= 0]
        if not len(documents):
            break
        taken[kinds.of_document[documents]] += 1
        covered[kinds.relevance.pairs_of(documents.astype(np.int32))[1]] += 1
        chosen.append(best)
    by_rank = np.array(chosen, dtype=np.int64).reshape(len(chosen), len(kinds.topics))
    return _hits(by_rank, kinds.topics, pool.topics)


def _hits(chosen: Ints, topics: Ints, rows: int) -> Hits:
    """Return the documents of `chosen` as hits by row.

    chosen: int64[depth, topics]; -1 means no document.
    """
    place, rank = np.nonzero(chosen.T >= 0)
    return Hits.by_row(topics[place] if len(place) else place, rank + 1, chosen[rank, place], rows)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Kinds:
    """Kinds: sets of documents that are relevant to the same subtopics.

    There are K kinds, by topic.

    topic: int64[K], the topic of each kind. topics: the distinct topics. firsts: the first kind of each
    distinct topic. kind, slot: int64[n], pairs of a kind and a subtopic to which it is relevant. queue: the
    documents of each kind, largest id first; those of kind i are queue_starts[i]:queue_starts[i + 1].
    of_document: int64[D], the kind of each document, -1 for none.
    """

    relevance: Relevance
    topic: Ints
    topics: Ints
    firsts: Ints
    kind: Ints
    slot: Ints
    queue: Ints
    queue_starts: Ints
    of_document: Ints

    @classmethod
    def of(cls, relevance: Relevance, topic_of: Ints) -> "_Kinds":
        documents = np.flatnonzero(np.diff(relevance.starts))
        known: dict[bytes, int] = {}  # each slot belongs to one topic, so kinds ascend by topic
        begin, end = relevance.starts[documents].tolist(), relevance.starts[documents + 1].tolist()
        which = np.array(
            [
                known.setdefault(relevance.slot[a:b].tobytes(), len(known))
                for a, b in zip(begin, end, strict=True)
            ],
            dtype=np.int64,
        )
        of_document = np.full(len(topic_of), -1, dtype=np.int64)
        of_document[documents] = which
        queue = documents[np.lexsort((-documents, which))]
        queue_starts = np.concatenate([[0], np.cumsum(np.bincount(which, minlength=len(known)))])
        topic = topic_of[queue[queue_starts[:-1]]]
        topics, firsts = np.unique(topic, return_index=True)
        kind, slot = relevance.pairs_of(queue[queue_starts[:-1]].astype(np.int32))
        return cls(
            relevance=relevance,
            topic=topic,
            topics=topics,
            firsts=firsts,
            kind=kind,
            slot=slot,
            queue=queue,
            queue_starts=queue_starts,
            of_document=of_document,
        )

    def best(self, weights: Floats, taken: Ints) -> Ints:
        """Return, for each topic, the document with the largest gain.

        int64[topics]; -1 if all documents are taken.

        weights: float64[S], the gain that one more document gets for being relevant to the slot. taken:
        int64[K], the index in `queue` of the next document of each kind.
        """
        gains = np.bincount(self.kind, weights=weights[self.slot], minlength=len(self.topic))
        left = taken < self.queue_starts[1:]
        gains = np.where(left, np.round(gains, DECIMALS), -1.0)
        heads = np.where(left, self.queue[np.minimum(taken, len(self.queue) - 1)], -1)
        largest = np.repeat(np.maximum.reduceat(gains, self.firsts), np.diff([*self.firsts, len(gains)]))
        tied: Ints = np.maximum.reduceat(np.where(gains == largest, heads, -1), self.firsts)
        return tied
