"""Judgments by subtopic over all pools, the rows of a joined run under them, and greedy ideal rankings.

A subtopic counts where a document of its topic is relevant to it. The same id in two topics is two
subtopics: each gets a *slot* of its own, and slots ascend by topic, then id.
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
"""Gains that are equal when rounded to so many decimals are tied in a greedy choice (spec 1.2.7)."""


@dataclass(frozen=True, eq=False)
class Relevance:
    """Which document is relevant to which subtopic, at one level: `n` pairs, by document, then slot.

    starts: int64[D + 1]; the pairs of document d are starts[d]:starts[d + 1]. slot: int64[n].
    size: int64[S], documents relevant to each slot. topic: int64[S], the topic of each slot.
    """

    starts: Ints
    slot: Ints
    size: Ints
    topic: Ints

    @cached_property
    def place(self) -> NDArray[np.unsignedinteger]:
        """[S]: where each slot stands among those of its topic, in the smallest type that holds it."""
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
        """For each pair of `documents`, in their order: its place among them, and its slot."""
        begin = self.starts[documents]
        number = self.starts[documents + 1] - begin
        place = np.repeat(np.arange(len(documents)), number)
        within = np.arange(len(place)) - np.repeat(np.cumsum(number) - number, number)
        return place, self.slot[begin[place] + within]


@dataclass(frozen=True, eq=False)
class SubtopicPool:
    """Subtopic judgments of every pooled document.

    judged: bool[D], documents with a judgment for some subtopic. topic_of: int64[D]. topics: T.
    """

    subtopics: Subtopics
    judged: Mask
    topic_of: Ints
    topics: int
    memory: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, qrels: Qrels, *, negatives_judged: bool) -> "SubtopicPool":
        """The pool of `qrels`, made once; MeasureError where there are no judgments by subtopic."""
        key = ("subtopics", negatives_judged)
        if qrels.subtopics is None:
            raise MeasureError(
                "it needs judgments by subtopic, and this collection has none; "
                "a qrels file gives them as layout: subtopics"
            )
        if key not in qrels.cache:
            judged = np.zeros(len(qrels.documents), dtype=bool)
            counts = qrels.subtopics.judgment >= 0 if not negatives_judged else slice(None)
            judged[qrels.subtopics.document[counts]] = True
            qrels.cache[key] = cls(qrels.subtopics, judged, qrels.topic_of, len(qrels.topics))
        found: SubtopicPool = qrels.cache[key]
        return found

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What `make` gives, computed at the first call with `key` and kept with the pool."""
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]

    def relevance(self, rel: int | None) -> Relevance:
        """The pairs whose judgment is at least `rel` (None: 1); a negative one never is."""
        level = 1 if rel is None else max(rel, 0)
        make = lambda: Relevance.of(self.subtopics, level, self.topic_of)  # noqa: E731
        found: Relevance = self.once(("relevance", level), make)
        return found

    def number(self, rel: int | None) -> Ints:
        """int64[T]: subtopics of each topic with a relevant document."""
        return np.bincount(self.relevance(rel).topic, minlength=self.topics)

    def ideal(self, rel: int | None, alpha: float, depth: int | None) -> "SubtopicRows":
        """A row per topic: the greedy ideal ranking of its judged documents, to at least `depth`."""
        depth = None if depth is None else max(32, 1 << (depth - 1).bit_length())  # few are ever made
        make = lambda: SubtopicRows(self, greedy(self, rel, alpha, depth))  # noqa: E731
        found: SubtopicRows = self.once(("ideal", rel, alpha, depth), make)
        return found


@dataclass(frozen=True, eq=False)
class SubtopicRows:
    """The rows of a joined run under the judgments of `pool`. hits: the retrieved documents of the pool."""

    pool: SubtopicPool
    hits: Hits
    memory: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def topic(self) -> Ints:
        """int64[rows]: index of each row's topic."""
        return np.arange(self.hits.rows) % self.pool.topics

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What `make` gives, computed at the first call with `key`."""
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]

    def number(self, rel: int | None) -> Ints:
        """int64[rows]: m, the subtopics of each row's topic that have a relevant document."""
        return self.pool.number(rel)[self.topic]

    @cached_property
    def condensed(self) -> "SubtopicRows":
        """The same rows after removing every document that is not judged for any subtopic."""
        return SubtopicRows(self.pool, self.hits.of_documents(self.pool.judged).condensed)

    def pairs(self, rel: int | None) -> "SubtopicPairs":
        """The (document, subtopic) pairs that are relevant, along each row."""
        found: SubtopicPairs = self.once(
            ("pairs", rel), lambda: SubtopicPairs.of(self.hits, self.pool.relevance(rel))
        )
        return found

    def novelty(self, rel: int | None, alpha: float) -> tuple[Hits, Floats]:
        """The relevant documents and the novelty gain of each: float64, NG of spec 7.1."""
        key = ("novelty", rel, alpha)
        found: tuple[Hits, Floats] = self.once(key, lambda: self._novelty(self.pairs(rel), alpha))
        return found

    def _novelty(self, pairs: "SubtopicPairs", alpha: float) -> tuple[Hits, Floats]:
        terms = discounts.power(1.0 - alpha, pairs.seen + 1)
        gains = np.bincount(pairs.place, weights=terms, minlength=len(pairs.documents.row))
        return pairs.documents, np.asarray(gains, dtype=np.float64)

    @classmethod
    def of(cls, joined: Joined, pool: SubtopicPool) -> "SubtopicRows":
        return cls(pool, Hits.of(joined))


@dataclass(frozen=True, eq=False)
class SubtopicPairs:
    """Relevant (document, subtopic) pairs along rows, by row, then rank, then slot.

    documents: those with a pair. place: int64[n], where the document of each pair stands among them.
    hits: the document of each pair. seen: int64[n], how many documents above it in its row are relevant to
    the same subtopic, C(r-1). size: int64[n], how many documents of the topic are, in all.
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
        own = documents.row[place], documents.rank[place], documents.document[place]
        mine = Hits.by_row(*own, hits.rows)
        return cls(documents, place, mine, earlier(mine.row, relevance.place[slot]), relevance.size[slot])


def greedy(pool: SubtopicPool, rel: int | None, alpha: float, depth: int | None) -> Hits:
    """Each topic's greedy ideal ranking down to `depth`, a row per topic (spec 7.1).

    1. At every rank, of all documents not yet taken, take the one of the largest novelty gain; gains that
       are equal when rounded to 12 decimals are tied, and the largest document id is taken.
    2. Documents that are relevant to the same subtopics have the same gain at every rank, so they form a
       kind, and only the largest id of a kind that is not yet taken competes.
    3. A judged document without a relevant subtopic adds nothing wherever it stands: it is left out.

    All topics go down the ranks together.
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
    """The documents of int64[depth, topics] as hits by row; -1 is none."""
    place, rank = np.nonzero(chosen.T >= 0)
    return Hits.by_row(topics[place] if len(place) else place, rank + 1, chosen[rank, place], rows)


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Documents by the subtopics they are relevant to: K kinds, by topic.

    topic: int64[K]; topics: the different ones, with their first kinds in `firsts`. kind, slot: int64[n],
    the subtopics of each kind. queue: the documents of each kind, from the largest id; those of kind i are
    queue_starts[i]:queue_starts[i + 1]. of_document: int64[D], -1 for a document without a kind.
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
        known: dict[bytes, int] = {}  # slots are of one topic each: so are kinds, and they ascend by topic
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
        return cls(relevance, topic, topics, firsts, kind, slot, queue, queue_starts, of_document)

    def best(self, weights: Floats, taken: Ints) -> Ints:
        """int64[topics]: the document that each topic takes next, -1 where all are taken.

        weights: float64[S], what one more document on a slot gains. taken: int64[K], where each kind's queue
        has come to.
        """
        gains = np.bincount(self.kind, weights=weights[self.slot], minlength=len(self.topic))
        left = taken < self.queue_starts[1:]
        gains = np.where(left, np.round(gains, DECIMALS), -1.0)
        heads = np.where(left, self.queue[np.minimum(taken, len(self.queue) - 1)], -1)
        largest = np.repeat(np.maximum.reduceat(gains, self.firsts), np.diff([*self.firsts, len(gains)]))
        tied: Ints = np.maximum.reduceat(np.where(gains == largest, heads, -1), self.firsts)
        return tied
