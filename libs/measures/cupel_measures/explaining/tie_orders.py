"""The orders that documents with equal scores could have.

Documents that no pool knows can't be told apart by any measure, so an order is where the pooled ones of each
tie group stand among its places.
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
"""TieOrders that are looked at: all of a topic where there are no more, else so many seeded shuffles."""

BLOCK = 1 << 20
"""Documents of the orders that are made at a time."""

Keys = Sequence[NDArray[Any]]
"""What documents are worth: a number per pooled document, or several, by all of which one must be as good."""


@dataclass(frozen=True, eq=False)
class TieOrders:
    """The orders of a run, a row per topic. whole: before any cut. depth: where each order is cut."""

    whole: Joined
    depth: int | None

    @cached_property
    def hits(self) -> Hits:
        return Hits.of(self.whole)

    @cached_property
    def tied(self) -> NDArray[np.int64]:
        """Indices of the hits that could stand at another rank, some of them above the cut."""
        reached = self.whole.first <= (self.depth or self.whole.first)
        return np.flatnonzero((self.whole.last > self.whole.first) & reached)

    @cached_property
    def group(self) -> Ints:
        """int64[tied]: a number for each tie group, ascending."""
        width = int(self.whole.retrieved.max(initial=0)) + 1
        return self.hits.row[self.tied] * width + self.whole.first[self.tied]

    @cached_property
    def topics(self) -> Mask:
        """bool[T]: topics with more than one order."""
        return self._with(self.tied)

    @cached_property
    def split(self) -> Mask:
        """bool[T]: topics where the cut goes through a tie group: another order brings other documents."""
        last = self.whole.last[self.tied]
        return self._with(self.tied[last > (self.depth or DEEPEST)])

    def tied_above(self, cutoff: int | None) -> Mask:
        """bool[T]: topics with more than one order of the documents down to `cutoff`."""
        return self._with(self._above(self.tied, cutoff))

    def _above(self, hits: Ints, cutoff: int | None) -> Ints:
        """Those of `hits` whose tie group begins above the cutoff."""
        return hits[self.whole.first[hits] <= (cutoff or DEEPEST)]

    def _with(self, hits: Ints) -> Mask:
        return np.bincount(self.hits.row[hits], minlength=self.hits.rows) > 0

    def comparable(self, keys: Keys, cutoff: int | None) -> Mask:
        """bool[T]: topics where of two tied documents one is always as good as the other by all keys.

        Tie groups that begin below the cutoff don't count.
        """
        best_first, documents = self._best_first(keys)
        together = self.group[best_first][1:] == self.group[best_first][:-1]
        falls = [key[documents][1:] <= key[documents][:-1] for key in keys]
        against = together & ~np.logical_and.reduce(falls)
        return ~self._with(self._above(self.tied[best_first][1:][against], cutoff))

    def extreme(self, keys: Keys, *, best: bool) -> Joined:
        """The run with tied documents in decreasing (or increasing) worth, and strangers worth least."""
        best_first, _ = self._best_first(keys)
        hits = self.tied[best_first]
        _, start = np.unique(self.group, return_index=True)
        place = np.arange(len(hits)) - np.repeat(start, np.diff([*start, len(hits)]))
        rank = self.whole.rank.copy()
        rank[hits] = self.whole.first[hits] + place if best else self.whole.last[hits] - place
        return self._cut(_reranked(self.whole, self.hits.row, rank))

    def _best_first(self, keys: Keys) -> tuple[Ints, NDArray[np.int32]]:
        """The order of tied hits by group, then decreasing keys; and their documents in it."""
        documents = self.whole.document[self.tied]
        order = np.lexsort((*(-key[documents] for key in reversed(keys)), self.group))
        return order, documents[order]

    @cached_property
    def few(self) -> frozenset[int]:
        """Topics that have so few orders that all of them are looked at."""
        topics = np.flatnonzero(self.topics).tolist()
        return frozenset(topic for topic in topics if self._has_few(topic))

    def _has_few(self, topic: int) -> bool:
        orders = 1
        for first, last, members in self._groups(topic):
            orders *= math.perm(last - first + 1, min(members, SHUFFLES))  # the least is enough here
            if orders > SHUFFLES:
                return False
        return True

    def _groups(self, topic: int) -> list[tuple[int, int, int]]:
        """First and last rank of each tie group of a topic, and how many pooled documents it has."""
        begin, end = np.searchsorted(self.hits.row[self.tied], [topic, topic + 1])
        tied = self.tied[begin:end]
        pairs = zip(self.whole.first[tied].tolist(), self.whole.last[tied].tolist(), strict=True)
        return [(first, last, len(list(members))) for (first, last), members in groupby(pairs)]

    def drawn(self, topics: Sequence[int], seed: int) -> Iterator[tuple[Joined, Mapping[int, int]]]:
        """TieOrders of `topics` in stacks: rows of all topics, an order after another.

        With each stack: how many of its orders each topic has; its rows after these are empty, as are those
        of other topics. A topic's orders depend on the seed and its own place among the topics alone.
        """
        size = int(self._retrieved[list(topics)].sum())
        number = min(max(1, BLOCK // max(size, self.hits.rows)), SHUFFLES)
        ranks = {topic: self._ranks(topic, seed, number) for topic in topics}
        for _ in range(-(-SHUFFLES // number)):
            made = {topic: found for topic, of in ranks.items() if (found := next(of, None)) is not None}
            if not made:
                return
            yield self._stack(made), {topic: len(found) for topic, found in made.items()}

    @cached_property
    def _retrieved(self) -> Ints:
        return np.minimum(self.whole.retrieved, self.depth or DEEPEST)

    def _ranks(self, topic: int, seed: int, number: int) -> Iterator[NDArray[np.int32]]:
        """int32[up to number, hits]: a rank for each hit of a topic in one order after another."""
        begin, end = self.whole.offsets[topic : topic + 2]
        groups = self._groups(topic)
        tied = self.tied[slice(*np.searchsorted(self.tied, [begin, end]))] - begin
        shuffles = islice(_shuffles(groups, [seed, topic]), SHUFFLES)
        ways: Iterator[Any] = _all_orders(groups) if topic in self.few else shuffles
        while chosen := list(islice(ways, number)):
            ranks = np.repeat(self.whole.rank[None, begin:end], len(chosen), axis=0)
            ranks[:, tied] = chosen
            yield ranks

    def _stack(self, made: Mapping[int, NDArray[np.int32]]) -> Joined:
        """The orders of each topic as rows of all topics, an order after another, cut."""
        topics, number = self.hits.rows, max(map(len, made.values()))
        lengths, retrieved = np.zeros((2, number, topics), dtype=np.int64)
        for topic, ranks in made.items():
            lengths[: len(ranks), topic] = ranks.shape[1]
            retrieved[: len(ranks), topic] = self.whole.retrieved[topic]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        document, rank = np.zeros((2, offsets[-1]), dtype=np.int32)
        for topic, ranks in made.items():
            order = np.argsort(ranks, axis=1)
            starts = offsets[np.arange(len(ranks)) * topics + topic]
            at = starts[:, None] + np.arange(ranks.shape[1])
            document[at] = self.whole.document[self.whole.offsets[topic] + order]
            rank[at] = np.take_along_axis(ranks, order, axis=1)
        return self._cut(Joined(retrieved.ravel(), offsets, document, rank, rank, rank, self.whole.profile))

    def _cut(self, joined: Joined) -> Joined:
        if self.depth is None:
            return joined
        kept = Hits.of(joined).within(self.depth)
        offsets = np.concatenate([[0], np.cumsum(kept.number)])
        retrieved = np.minimum(joined.retrieved, self.depth)
        return Joined(retrieved, offsets, kept.document, kept.rank, kept.rank, kept.rank, self.whole.profile)


DEEPEST = np.iinfo(np.int32).max
Group = tuple[int, int, int]


def _reranked(joined: Joined, row: Ints, rank: NDArray[np.int32]) -> Joined:
    """The run with other ranks, each document in an order without ties."""
    order = np.lexsort((rank, row))
    return replace(
        joined, document=joined.document[order], rank=rank[order], first=rank[order], last=rank[order]
    )


def _all_orders(groups: Sequence[Group]) -> Iterator[list[int]]:
    """Every choice of ranks for the pooled documents of all groups."""
    ways = (permutations(range(first, last + 1), members) for first, last, members in groups)
    return (list(chain.from_iterable(one)) for one in product(*ways))


def _shuffles(groups: Sequence[Group], seed: Sequence[int]) -> Iterator[NDArray[np.int32]]:
    """Random choices of ranks for the pooled documents of all groups, one after another."""
    draw = np.random.default_rng(seed)
    number = max(1, BLOCK // sum(last - first + 1 for first, last, _ in groups))
    while True:
        yield from np.hstack([_places(group, number, draw) for group in groups])


def _places(group: Group, number: int, draw: np.random.Generator) -> NDArray[np.int32]:
    """int32[number, members]: random ranks, by the first steps of as many Fisher-Yates shuffles at once."""
    first, last, members = group
    places = np.repeat(np.arange(first, last + 1, dtype=np.int32)[None, :], number, axis=0)
    every = np.arange(number)
    for place in range(members):
        other = place + (draw.random(number) * (last - first + 1 - place)).astype(np.int64)
        places[every, place], places[every, other] = places[every, other], places[every, place]
    return places[:, :members]
