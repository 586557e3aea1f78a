"""What a measure sees: the rows of a joined run under one aspect, and sums along them.

Sums along ranks use `numpy.bincount`, which adds one value after another in the order of the
array: the same bits in any batch, shape or order of runs. (`numpy.sum` adds pairwise and does not.)
"""

import itertools
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model import Floats, Ints, Joined
from cupel_measures.pool import Mask, Pool
from cupel_measures.profiles import Profile


@dataclass(frozen=True, eq=False)
class Hits:
    """Some retrieved documents, by row, then rank. row: int64[n]. rank: int32[n], from 1.

    document: int32[n], index into the pool. rows: how many rows there are.
    """

    row: Ints
    rank: NDArray[np.int32]
    document: NDArray[np.int32]
    rows: int

    @classmethod
    def of(cls, joined: Joined) -> "Hits":
        """All hits of `joined`."""
        rows = len(joined.retrieved)
        return cls(np.repeat(np.arange(rows), np.diff(joined.offsets)), joined.rank, joined.document, rows)

    def within(self, cutoff: int | Ints | None) -> "Hits":
        """Those at ranks up to `cutoff`: one for all, or int64[rows]; None keeps all."""
        if cutoff is None:
            return self
        limit = cutoff if isinstance(cutoff, int) else cutoff[self.row]
        return self.only(self.rank <= limit)

    def only(self, mask: Mask) -> "Hits":
        """Those in `mask`, bool[n]."""
        here = np.flatnonzero(mask)
        # `take` does what an index in brackets does, sooner
        return Hits(self.row.take(here), self.rank.take(here), self.document.take(here), self.rows)

    @property
    def condensed(self) -> "Hits":
        """The same, ranked among themselves."""
        return Hits(self.row, self.count.astype(np.int32), self.document, self.rows)

    @cached_property
    def count(self) -> Ints:
        """int64[n]: place of each hit among the hits of its row, from 1."""
        starts = np.cumsum(self.number) - self.number
        return np.arange(1, len(self.row) + 1) - np.repeat(starts, self.number)

    @cached_property
    def precision(self) -> Floats:
        """float64[n]: the place of each hit among the hits of its row, divided by its rank."""
        small = np.arange(1, len(self.row) + 1, dtype=np.int32)  # numbers of 32 bits are divided sooner
        small -= np.repeat((np.cumsum(self.number) - self.number).astype(np.int32), self.number)
        return small / self.rank

    @cached_property
    def number(self) -> Ints:
        """int64[rows]: hits of each row."""
        return np.diff(np.searchsorted(self.row, np.arange(self.rows + 1)))

    def sum(self, values: Floats) -> Floats:
        """float64[rows]: sum of `values`, float64[n], along each row, one after another."""
        return np.asarray(np.bincount(self.row, weights=values, minlength=self.rows), dtype=np.float64)

    def places(self) -> Iterator[Ints]:
        """Indices of the first hit of every row, of the second one, and so on."""
        by_place = np.argsort(self.count, kind="stable")
        ends = np.cumsum(np.bincount(self.count, minlength=2))
        return (by_place[begin:end] for begin, end in itertools.pairwise(ends))

    def running(self, values: Floats) -> Floats:
        """float64[n]: sum of `values`, float64[n], from a row's first hit up to each, one after another."""
        sums = values.copy()
        for here in itertools.islice(self.places(), 1, None):
            sums[here] += sums[here - 1]
        return sums

    def maximum(self, values: Floats, *, above: Ints | int = 0) -> Floats:
        """float64[rows]: greatest of `values`, float64[n], in each row, but for its first `above` hits.

        0 for a row without more hits than that.
        """
        ends = np.cumsum(self.number)
        starts = ends - self.number + above
        filled = starts < ends
        bounds = np.stack([starts[filled], ends[filled]], axis=1).reshape(-1)
        greatest = np.zeros(self.rows)
        greatest[filled] = np.maximum.reduceat(np.append(values, 0.0), bounds)[::2] if len(bounds) else 0.0
        return greatest


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of `joined` under the judgments of `pool`.

    retrieved: int64[rows], documents retrieved. hits: the retrieved documents of the pool.
    topic: int64[rows], index of each row's topic. whole: the same rows under judgments of which `pool` is a
    part, if any: what is relevant here is relevant there, so that it is looked for among fewer hits.
    """

    pool: Pool
    profile: Profile
    retrieved: Ints
    hits: Hits
    whole: "Rows | None" = None
    memory: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, joined: Joined, pool: Pool) -> "Rows":
        return cls(pool, joined.profile, joined.retrieved, Hits.of(joined))

    def under(self, pool: Pool) -> "Rows":
        """The same rows under other judgments of the same documents."""
        return Rows(pool, self.profile, self.retrieved, self.hits, self if pool.whole is self.pool else None)

    @property
    def number(self) -> int:
        return len(self.retrieved)

    @cached_property
    def topic(self) -> Ints:
        return np.arange(self.number) % self.pool.topics

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What `make` gives, computed at the first call with `key`."""
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]

    def relevant(self, rel: int | None) -> Hits:
        """The relevant documents among the hits."""
        key = ("relevant", self.pool.threshold(rel))
        among = self.whole.relevant(rel) if self.whole else self.hits
        found: Hits = self.once(key, lambda: among.only(self.pool.relevant(rel).take(among.document)))
        return found

    def nonrelevant(self, rel: int | None, negatives: str) -> Hits:
        """The judged non-relevant documents among the hits, as in `Pool.nonrelevant`."""
        key = ("nonrelevant", self.pool.threshold(rel), negatives)
        among = self.whole.nonrelevant(rel, negatives) if self.whole else self.hits
        mask = self.pool.nonrelevant(rel, negatives)
        found: Hits = self.once(key, lambda: among.only(mask.take(among.document)))
        return found

    def judged(self) -> Hits:
        """The judged documents among the hits."""
        among = self.whole.judged() if self.whole else self.hits
        found: Hits = self.once("judged", lambda: among.only(self.pool.judged.take(among.document)))
        return found

    def recall_base(self, rel: int | None) -> Ints:
        """int64[rows]: relevant documents of each row's topic."""
        return self.pool.recall_base(rel)[self.topic]

    def gains(self, table: Floats) -> tuple[Hits, Floats]:
        """The hits of positive gain and their gains, float64; `table` has a gain per label."""
        key = ("gains", table.tobytes())
        among = self.whole.gains(table)[0] if self.whole else self.hits
        found: tuple[Hits, Floats] = self.once(key, lambda: _positive(among, self.pool.gains(table)))
        return found

    @cached_property
    def condensed(self) -> "Rows":
        """The same rows after removing every document that is not judged (trec_eval's -J)."""
        judged = self.judged()
        return Rows(self.pool, self.profile, judged.number, judged.condensed)


def _positive(hits: Hits, gains: Floats) -> tuple[Hits, Floats]:
    of_hits = gains.take(hits.document)
    positive = of_hits > 0
    return hits.only(positive), of_hits.compress(positive)


def divided(numerator: Floats | Ints, denominator: Floats | Ints | float) -> Floats:
    """numerator / denominator, and 0 where the denominator is 0 (spec 1.2)."""
    bottom = np.broadcast_to(np.asarray(denominator, dtype=np.float64), np.shape(numerator))
    return np.divide(numerator, bottom, out=np.zeros(len(numerator)), where=bottom != 0)


def earlier(rows: Ints, kinds: NDArray[np.integer]) -> Ints:
    """int64[n]: how many earlier entries of the same row are of the same kind; `rows` ascend."""
    order = np.argsort(kinds, kind="stable")  # numbers of 8 and 16 bits are sorted in linear time
    row = rows.astype(np.int32)[order]
    first = np.ones(len(order), dtype=bool)
    np.not_equal(row[1:], row[:-1], out=first[1:])
    first[np.cumsum(np.bincount(kinds))[:-1]] = True
    starts = np.flatnonzero(first)
    place = np.arange(len(order), dtype=np.int32)
    seen = np.empty(len(order), dtype=np.int64)
    seen[order] = place - np.repeat(place[starts], np.diff(starts, append=len(order)))
    return seen
