"""The possible orders of documents with equal scores.

Documents outside the pool are interchangeable for every measure. So only the ranks of the pooled documents
distinguish two orders. A tie group is the set of documents of a topic with the same score.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby, islice, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model import Ints, Joined
from cupel_measures.scoring.pool import Mask
from cupel_measures.scoring.rows import Hits

SHUFFLES = 1000
"""Largest number of orders per topic that are enumerated. If there are more, this number is sampled."""

BLOCK = 1 << 20
"""Approximate number of documents in a block of orders, which bounds the memory."""

Keys = Sequence[NDArray[Any]]
"""Sort keys per pooled document. A document is at least as good as another one if all of its keys are."""


@dataclass(frozen=True, eq=False)
class TieOrders:
    """The orders of a run.

    uncut: the run without a cut, one row per topic. depth: rank at which orders are cut.
    """

    uncut: Joined
    depth: int | None

    @cached_property
    def hits(self) -> Hits:
        return Hits.of(self.uncut)

    @cached_property
    def tied(self) -> NDArray[np.int64]:
        """Indices of tied hits, whose ranks depend on the order.

        The hits are in groups that begin at or above the cut.
        """
        reached = self.uncut.first <= (self.depth or self.uncut.first)
        return np.flatnonzero((self.uncut.last > self.uncut.first) & reached)

    @cached_property
    def group(self) -> Ints:
        """Number of the tie group of each tied hit, ascending, int64[tied]."""
        width = int(self.uncut.retrieved.max(initial=0)) + 1
        return self.hits.row[self.tied] * width + self.uncut.first[self.tied]

    @cached_property
    def topics(self) -> Mask:
        """Topics with more than one order, bool[T]."""
        return self._with(self.tied)

    @cached_property
    def split(self) -> Mask:
        """Topics where the cut splits a tie group, bool[T].

        The order decides which documents are above the cut.
        """
        last = self.uncut.last[self.tied]
        return self._with(self.tied[last > (self.depth or DEEPEST)])

    def tied_above(self, cutoff: int | None) -> Mask:
        """Return the topics with more than one order of the documents down to `cutoff`.

        The result is bool[T].
        """
        return self._with(self._above(self.tied, cutoff))

    def _above(self, hits: Ints, cutoff: int | None) -> Ints:
        """Return the elements of `hits` whose tie group begins at or above the cutoff."""
        return hits[self.uncut.first[hits] <= (cutoff or DEEPEST)]

    def _with(self, hits: Ints) -> Mask:
        return np.bincount(self.hits.row[hits], minlength=self.hits.rows) > 0

    def comparable(self, keys: Keys, cutoff: int | None) -> Mask:
        """Return whether all keys agree on the order of the tied documents of the topic.

        The result is bool[T].

        The keys agree if, of any two tied documents, one is at least as good as the other by every key. Tie
        groups that begin below the cutoff are ignored.
        """
        best_first, documents = self._best_first(keys)
        together = self.group[best_first][1:] == self.group[best_first][:-1]
        falls = [key[documents][1:] <= key[documents][:-1] for key in keys]
        against = together & ~np.logical_and.reduce(falls)
        return ~self._with(self._above(self.tied[best_first][1:][against], cutoff))

    def extreme(self, keys: Keys, *, best: bool) -> Joined:
        """Return the run with tied documents sorted by keys.

        The order is from best to worst or from worst to best.

        Documents outside the pool count as worse than all pooled ones.
        """
        best_first, _ = self._best_first(keys)
        hits = self.tied[best_first]
        _, start = np.unique(self.group, return_index=True)
        place = np.arange(len(hits)) - np.repeat(start, np.diff([*start, len(hits)]))
        rank = self.uncut.rank.copy()
        rank[hits] = self.uncut.first[hits] + place if best else self.uncut.last[hits] - place
        return self._cut(_reranked(self.uncut, self.hits.row, rank))

    def _best_first(self, keys: Keys) -> tuple[Ints, NDArray[np.int32]]:
        """Return the order of tied hits by group and decreasing keys, and their documents.

        The documents are in that order.
        """
        documents = self.uncut.document[self.tied]
        order = np.lexsort((*(-key[documents] for key in reversed(keys)), self.group))
        return order, documents[order]

    @cached_property
    def few(self) -> frozenset[int]:
        """Topics with so few orders that all of them are enumerated."""
        topics = np.flatnonzero(self.topics).tolist()
        return frozenset(topic for topic in topics if self._has_few(topic))

    def _has_few(self, topic: int) -> bool:
        orders = 1
        for first, last, members in self._groups(topic):
            orders *= math.perm(last - first + 1, min(members, SHUFFLES))  # a lower bound suffices
            if orders > SHUFFLES:
                return False
        return True

    def _groups(self, topic: int) -> list[tuple[int, int, int]]:
        """Return the tie groups of a topic.

        A group has a first rank, a last rank and a number of pooled documents.
        """
        begin, end = np.searchsorted(self.hits.row[self.tied], [topic, topic + 1])
        tied = self.tied[begin:end]
        pairs = zip(self.uncut.first[tied].tolist(), self.uncut.last[tied].tolist(), strict=True)
        return [(first, last, len(list(members))) for (first, last), members in groupby(pairs)]

    def sample_orders(self, topics: Sequence[int], seed: int) -> Iterator[tuple[Joined, Mapping[int, int]]]:
        """Yield blocks of possible orders of `topics`.

        Each block comes with the number of orders per topic in it.

        A block has one row per order and topic. The rows of the first order of all topics come first, then
        those of the second order, and so on. A row is empty if its topic has fewer orders in the block or is
        not in `topics`. The orders of a topic depend only on the seed and the index of the topic.
        """
        size = int(self._retrieved[list(topics)].sum())
        number = min(max(1, BLOCK // max(size, self.hits.rows)), SHUFFLES)
        ranks = {topic: self._ranks(topic, seed, number) for topic in topics}
        for _ in range(-(-SHUFFLES // number)):
            made = {topic: chosen for topic, of in ranks.items() if (chosen := next(of, None)) is not None}
            if not made:
                return
            yield self._stack(made), {topic: len(chosen) for topic, chosen in made.items()}

    @cached_property
    def _retrieved(self) -> Ints:
        return np.minimum(self.uncut.retrieved, self.depth or DEEPEST)

    def _ranks(self, topic: int, seed: int, number: int) -> Iterator[NDArray[np.int32]]:
        """Yield the ranks of the hits of a topic in several orders.

        A block is int32[up to number, hits].
        """
        begin, end = self.uncut.offsets[topic : topic + 2]
        groups = self._groups(topic)
        tied = self.tied[slice(*np.searchsorted(self.tied, [begin, end]))] - begin
        shuffles = islice(_shuffles(groups, [seed, topic]), SHUFFLES)
        ways: Iterator[Any] = _all_orders(groups) if topic in self.few else shuffles
        while chosen := list(islice(ways, number)):
            ranks = np.repeat(self.uncut.rank[None, begin:end], len(chosen), axis=0)
            ranks[:, tied] = chosen
            yield ranks

    def _stack(self, made: Mapping[int, NDArray[np.int32]]) -> Joined:
        """Return a block of `sample_orders`, cut at depth.

        made: by topic, the ranks of its hits in each order.
        """
        topics, number = self.hits.rows, max(map(len, made.values()))
        lengths, retrieved = np.zeros((2, number, topics), dtype=np.int64)
        for topic, ranks in made.items():
            lengths[: len(ranks), topic] = ranks.shape[1]
            retrieved[: len(ranks), topic] = self.uncut.retrieved[topic]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        document, rank = np.zeros((2, offsets[-1]), dtype=np.int32)
        for topic, ranks in made.items():
            order = np.argsort(ranks, axis=1)
            starts = offsets[np.arange(len(ranks)) * topics + topic]
            at = starts[:, None] + np.arange(ranks.shape[1])
            document[at] = self.uncut.document[self.uncut.offsets[topic] + order]
            rank[at] = np.take_along_axis(ranks, order, axis=1)
        return self._cut(
            Joined(
                retrieved=retrieved.ravel(),
                offsets=offsets,
                document=document,
                rank=rank,
                first=rank,
                last=rank,
                profile=self.uncut.profile,
            )
        )

    def _cut(self, joined: Joined) -> Joined:
        if self.depth is None:
            return joined
        kept = Hits.of(joined).within(self.depth)
        offsets = np.concatenate([[0], np.cumsum(kept.number)])
        retrieved = np.minimum(joined.retrieved, self.depth)
        return Joined(
            retrieved=retrieved,
            offsets=offsets,
            document=kept.document,
            rank=kept.rank,
            first=kept.rank,
            last=kept.rank,
            profile=self.uncut.profile,
        )


DEEPEST = np.iinfo(np.int32).max
Group = tuple[int, int, int]


def _reranked(joined: Joined, row: Ints, rank: NDArray[np.int32]) -> Joined:
    """Return the run with other ranks and without ties."""
    order = np.lexsort((rank, row))
    return replace(
        joined, document=joined.document[order], rank=rank[order], first=rank[order], last=rank[order]
    )


def _all_orders(groups: Sequence[Group]) -> Iterator[list[int]]:
    """Yield every assignment of ranks to the pooled documents of all groups."""
    ways = (permutations(range(first, last + 1), members) for first, last, members in groups)
    return (list(chain.from_iterable(ranks)) for ranks in product(*ways))


def _shuffles(groups: Sequence[Group], seed: Sequence[int]) -> Iterator[NDArray[np.int32]]:
    """Yield random assignments of ranks to the pooled documents of all groups."""
    rng = np.random.default_rng(seed)
    number = max(1, BLOCK // sum(last - first + 1 for first, last, _ in groups))
    while True:
        yield from np.hstack([_places(group, number, rng) for group in groups])


def _places(group: Group, number: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Return random ranks, int32[number, members].

    They come from the first steps of parallel Fisher-Yates shuffles.
    """
    first, last, members = group
    places = np.repeat(np.arange(first, last + 1, dtype=np.int32)[None, :], number, axis=0)
    every = np.arange(number)
    for place in range(members):
        other = place + (rng.random(number) * (last - first + 1 - place)).astype(np.int64)
        places[every, place], places[every, other] = places[every, other], places[every, place]
    return places[:, :members]
