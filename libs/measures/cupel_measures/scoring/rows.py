"""The rows of a joined run under one aspect, and sums along them.

They are the input of measures.

Sums along ranks add values in the order of the array, as `numpy.bincount` does. So the bits of a sum do not
depend on the other rows of the array. (`numpy.sum` adds pairwise, so its bits depend on the shape.)
"""

import itertools
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model import Floats, Ints, Joined
from cupel_measures.model.profiles import Profile
from cupel_measures.scoring.pool import Mask, Pool

try:
    from cupel_measures.native import _rows as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]

extension: Any = compiled
"""The compiled extension, or None without one. Tests set it to None to test the Python code."""

Integers = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Hits:
    """Selected retrieved documents, sorted by row, then by rank.

    rank: int32[n], from 1. document: int32[n], index in `Qrels.documents`. starts: int64[rows + 1], the index
    of the first hit of each row, and the end of the last row.
    """

    rank: NDArray[np.int32]
    document: NDArray[np.int32]
    starts: Ints

    @classmethod
    def of(cls, joined: Joined) -> "Hits":
        """Return all hits of `joined`."""
        return cls(joined.rank, joined.document, joined.offsets)

    @classmethod
    def by_row(cls, row: Integers, rank: Integers, document: Integers, rows: int) -> "Hits":
        """Return hits of `rows` rows. row: integers[n], ascending, the row of each hit."""
        starts = np.searchsorted(row, np.arange(rows + 1))
        return cls(rank.astype(np.int32, copy=False), document.astype(np.int32, copy=False), starts)

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def row(self) -> Ints:
        """Return int64[n]: the row of each hit."""
        return np.repeat(np.arange(self.rows), self.number)

    def within(self, cutoff: int | Ints | None) -> "Hits":
        """Return the hits at ranks up to `cutoff`.

        cutoff: an int, int64[rows], or None for all ranks.
        """
        if cutoff is None:
            return self
        limit = cutoff if isinstance(cutoff, int) else cutoff[self.row]
        return self.only(self.rank <= limit)

    def only(self, mask: Mask) -> "Hits":
        """Return the hits in `mask`, bool[n]."""
        selected = np.flatnonzero(mask)
        # `take` is faster than indexing
        rank, document = self.rank.take(selected), self.document.take(selected)
        return Hits(rank, document, np.searchsorted(selected, self.starts))

    def of_documents(self, mask: Mask) -> "Hits":
        """Return the hits whose document is in `mask`, bool[D]."""
        if extension is None:
            return self.only(mask.take(self.document))
        columns = map(np.ascontiguousarray, (mask, self.rank, self.document, self.starts))
        rank, document, starts = extension.only(*columns)
        return Hits(
            np.frombuffer(rank, np.int32), np.frombuffer(document, np.int32), np.frombuffer(starts, np.int64)
        )

    def above(self, those: Mask, others: Mask) -> Ints:
        """Return, for each hit in `those`, the number of hits in `others` above it.

        int64[k]. Only hits of the same row are counted.

        those, others: bool[D], sets of documents.
        """
        if extension is not None:
            masks = map(np.ascontiguousarray, (those, others, self.document, self.starts))
            return np.frombuffer(extension.above(*masks), np.int64)
        total = np.concatenate([[0], np.cumsum(others[self.document])])
        selected = np.flatnonzero(those[self.document])
        above: Ints = total[selected] - total[self.starts[self.row[selected]]]
        return above

    @property
    def condensed(self) -> "Hits":
        """Return the same hits, ranked as if no other documents were retrieved."""
        return Hits(self.count.astype(np.int32), self.document, self.starts)

    @cached_property
    def count(self) -> Ints:
        """Return int64[n]: the position of each hit among the hits of its row, from 1."""
        return np.arange(1, len(self.rank) + 1) - np.repeat(self.starts[:-1], self.number)

    @cached_property
    def precision(self) -> Floats:
        """Return the position of each hit among the hits of its row, divided by its rank.

        float64[n].
        """
        if extension is None:
            return self.count / self.rank
        columns = map(np.ascontiguousarray, (self.rank, self.starts))
        return np.frombuffer(extension.precisions(*columns), np.float64)

    @cached_property
    def number(self) -> Ints:
        """Return int64[rows]: the number of hits of each row."""
        return np.diff(self.starts)

    def sum(self, values: Floats) -> Floats:
        """Return the sum of `values` along each row, float64[rows].

        values: float64[n]. They are added in order.
        """
        if extension is None:
            added = np.bincount(self.row, weights=values, minlength=self.rows)
            return np.asarray(added, dtype=np.float64)
        columns = np.ascontiguousarray(values, np.float64), np.ascontiguousarray(self.starts)
        return np.frombuffer(extension.sums(*columns), np.float64)

    def places(self) -> Iterator[Ints]:
        """Return index arrays of the hits by their position in the row.

        The first array has the first hits of all rows, the second the second hits of all rows, and so on.
        """
        by_place = np.argsort(self.count, kind="stable")
        ends = np.cumsum(np.bincount(self.count, minlength=2))
        return (by_place[begin:end] for begin, end in itertools.pairwise(ends))

    def running(self, values: Floats) -> Floats:
        """Return float64[n]: the cumulative sum of `values`, float64[n], along each row."""
        sums = values.copy()
        for places in itertools.islice(self.places(), 1, None):
            sums[places] += sums[places - 1]
        return sums

    def maximum(self, values: Floats, *, above: Ints | int = 0) -> Floats:
        """Return the greatest of `values` per row, float64[rows].

        values: float64[n]. above: the number of hits at the start of a row that are ignored.

        The value is 0 for a row with at most `above` hits.
        """
        starts, ends = self.starts[:-1] + above, self.starts[1:]
        filled = starts < ends
        bounds = np.stack([starts[filled], ends[filled]], axis=1).reshape(-1)
        greatest = np.zeros(self.rows)
        greatest[filled] = np.maximum.reduceat(np.append(values, 0.0), bounds)[::2] if len(bounds) else 0.0
        return greatest


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """The rows of a joined run with the judgments of `pool`.

    retrieved: int64[rows], number of retrieved documents. hits: the retrieved documents of the pool.
    unrestricted: the same rows with the judgments of which `pool` is a restriction, or None. A document that
    is relevant in `pool` is also relevant in the unrestricted pool. So only the relevant hits of the
    unrestricted rows are searched for relevant documents.
    """

    pool: Pool
    profile: Profile
    retrieved: Ints
    hits: Hits
    unrestricted: "Rows | None" = None
    memory: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, joined: Joined, pool: Pool) -> "Rows":
        return cls(pool=pool, profile=joined.profile, retrieved=joined.retrieved, hits=Hits.of(joined))

    def under(self, pool: Pool) -> "Rows":
        """Return the same rows with other judgments of the same documents."""
        unrestricted = self if pool.unrestricted is self.pool else None
        return Rows(
            pool=pool,
            profile=self.profile,
            retrieved=self.retrieved,
            hits=self.hits,
            unrestricted=unrestricted,
        )

    @property
    def number(self) -> int:
        return len(self.retrieved)

    @cached_property
    def topic(self) -> Ints:
        return np.arange(self.number) % self.pool.topics

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the result of `make`, computed at the first call with `key` and cached."""
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]

    def relevant(self, rel: int | None, cutoff: int | None = None) -> Hits:
        """Return the relevant hits at ranks up to `cutoff` (None: all)."""
        return self._reaching(self.pool.threshold(rel), cutoff)

    def _reaching(self, label: int, cutoff: int | None) -> Hits:
        """Return the hits with this label index or a higher one, up to rank `cutoff`.

        cutoff: None for all ranks.
        """

        def make() -> Hits:
            if self.unrestricted is None and cutoff is not None:
                return self._reaching(label, None).within(cutoff)
            among = self.unrestricted._reaching(label, cutoff) if self.unrestricted else self.hits
            return among.of_documents(self.pool.reaching(label))

        hits: Hits = self.once(("reaching", label, cutoff), make)
        return hits

    def nonrelevant(self, rel: int | None, negatives: str) -> Hits:
        """Return the judged non-relevant hits, as in `Pool.nonrelevant`."""
        key = ("nonrelevant", self.pool.threshold(rel), negatives)
        among = self.unrestricted.nonrelevant(rel, negatives) if self.unrestricted else self.hits
        mask = self.pool.nonrelevant(rel, negatives)
        hits: Hits = self.once(key, lambda: among.of_documents(mask))
        return hits

    def judged(self) -> Hits:
        """Return the judged hits."""
        among = self.unrestricted.judged() if self.unrestricted else self.hits
        hits: Hits = self.once("judged", lambda: among.of_documents(self.pool.judged))
        return hits

    def recall_base(self, rel: int | None) -> Ints:
        """Return int64[rows]: the number of relevant documents of each row's topic."""
        return self.pool.recall_base(rel)[self.topic]

    def gains(self, table: Floats, cutoff: int | None = None) -> tuple[Hits, Floats]:
        """Return the hits with a positive gain at ranks up to `cutoff`, and their gains.

        cutoff: None for all ranks.

        table: float64[labels], the gain of each label.
        """

        def make() -> tuple[Hits, Floats]:
            positive = self._positive(table, cutoff)
            return positive, self.pool.gains(table).take(positive.document)

        hits_and_gains: tuple[Hits, Floats] = self.once(("gains", table.tobytes(), cutoff), make)
        return hits_and_gains

    def _positive(self, table: Floats, cutoff: int | None) -> Hits:
        label = int(np.argmax(table > 0))
        if label > 0 and (table[label:] > 0).all():  # the usual case: the relevant hits have gains
            return self._reaching(label, cutoff)
        if self.unrestricted is None and cutoff is not None:
            return self.gains(table)[0].within(cutoff)
        among = self.unrestricted.gains(table, cutoff)[0] if self.unrestricted else self.hits
        return among.of_documents(self.pool.gains(table) > 0)

    @cached_property
    def condensed(self) -> "Rows":
        """Return the same rows without the unjudged documents (option -J of trec_eval)."""
        judged = self.judged()
        return Rows(pool=self.pool, profile=self.profile, retrieved=judged.number, hits=judged.condensed)


def divided(numerator: Floats | Ints, denominator: Floats | Ints | float) -> Floats:
    """Return numerator / denominator, or 0 if the denominator is 0."""
    bottom = np.broadcast_to(np.asarray(denominator, dtype=np.float64), np.shape(numerator))
    return np.divide(numerator, bottom, out=np.zeros(len(numerator)), where=bottom != 0)


def earlier(rows: Ints, kinds: NDArray[np.integer]) -> Ints:
    """Return the number of earlier entries of the same row and kind, int64[n].

    `rows` must ascend.
    """
    order = np.argsort(kinds, kind="stable")  # numpy sorts integers of 8 and 16 bits in linear time
    row = rows.astype(np.int32)[order]
    first = np.ones(len(order), dtype=bool)
    np.not_equal(row[1:], row[:-1], out=first[1:])
    first[np.cumsum(np.bincount(kinds))[:-1]] = True
    starts = np.flatnonzero(first)
    place = np.arange(len(order), dtype=np.int32)
    seen = np.empty(len(order), dtype=np.int64)
    seen[order] = place - np.repeat(place[starts], np.diff(starts, append=len(order)))
    return seen
