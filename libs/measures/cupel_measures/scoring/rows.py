"""What a measure sees: the rows of a joined run under one aspect, and sums along them.

Sums along ranks add one value after another in the order of the array, as `numpy.bincount` does: the same
bits in any batch, shape or order of runs. (`numpy.sum` adds pairwise and does not.)
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
"""The compiled part of this, or None where there is none; tests set it to None to try the other one."""

Integers = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Hits:
    """Some retrieved documents, by row, then rank. rank: int32[n], from 1; document: int32[n], in the pool.

    starts: int64[rows + 1], where each row begins, and where the last one ends.
    """

    rank: NDArray[np.int32]
    document: NDArray[np.int32]
    starts: Ints

    @classmethod
    def of(cls, joined: Joined) -> "Hits":
        """All hits of `joined`."""
        return cls(joined.rank, joined.document, joined.offsets)

    @classmethod
    def by_row(cls, row: Integers, rank: Integers, document: Integers, rows: int) -> "Hits":
        """Of so many rows; `row`, integers[n], the row of each, ascends."""
        starts = np.searchsorted(row, np.arange(rows + 1))
        return cls(rank.astype(np.int32, copy=False), document.astype(np.int32, copy=False), starts)

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def row(self) -> Ints:
        """int64[n]: the row of each."""
        return np.repeat(np.arange(self.rows), self.number)

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
        return Hits(self.rank.take(here), self.document.take(here), np.searchsorted(here, self.starts))

    def of_documents(self, mask: Mask) -> "Hits":
        """Those whose document is in `mask`, bool[D]."""
        if extension is None:
            return self.only(mask.take(self.document))
        columns = map(np.ascontiguousarray, (mask, self.rank, self.document, self.starts))
        rank, document, starts = extension.only(*columns)
        return Hits(
            np.frombuffer(rank, np.int32), np.frombuffer(document, np.int32), np.frombuffer(starts, np.int64)
        )

    def above(self, those: Mask, others: Mask) -> Ints:
        """int64[k]: how many of `others`, bool[D], stand above each hit of `those`, bool[D], in its row."""
        if extension is not None:
            masks = map(np.ascontiguousarray, (those, others, self.document, self.starts))
            return np.frombuffer(extension.above(*masks), np.int64)
        total = np.concatenate([[0], np.cumsum(others[self.document])])
        here = np.flatnonzero(those[self.document])
        found: Ints = total[here] - total[self.starts[self.row[here]]]
        return found

    @property
    def condensed(self) -> "Hits":
        """The same, ranked among themselves."""
        return Hits(self.count.astype(np.int32), self.document, self.starts)

    @cached_property
    def count(self) -> Ints:
        """int64[n]: place of each hit among the hits of its row, from 1."""
        return np.arange(1, len(self.rank) + 1) - np.repeat(self.starts[:-1], self.number)

    @cached_property
    def precision(self) -> Floats:
        """float64[n]: the place of each hit among the hits of its row, divided by its rank."""
        if extension is None:
            return self.count / self.rank
        columns = map(np.ascontiguousarray, (self.rank, self.starts))
        return np.frombuffer(extension.precisions(*columns), np.float64)

    @cached_property
    def number(self) -> Ints:
        """int64[rows]: hits of each row."""
        return np.diff(self.starts)

    def sum(self, values: Floats) -> Floats:
        """float64[rows]: sum of `values`, float64[n], along each row, one after another."""
        if extension is None:
            added = np.bincount(self.row, weights=values, minlength=self.rows)
            return np.asarray(added, dtype=np.float64)
        columns = np.ascontiguousarray(values, np.float64), np.ascontiguousarray(self.starts)
        return np.frombuffer(extension.sums(*columns), np.float64)

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
        starts, ends = self.starts[:-1] + above, self.starts[1:]
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

    def relevant(self, rel: int | None, cutoff: int | None = None) -> Hits:
        """The relevant documents among the hits, at ranks up to `cutoff`, if any."""
        return self._reaching(self.pool.threshold(rel), cutoff)

    def _reaching(self, label: int, cutoff: int | None) -> Hits:
        """The hits of this label or a higher one, at ranks up to `cutoff`, if any."""

        def make() -> Hits:
            if self.whole is None and cutoff is not None:
                return self._reaching(label, None).within(cutoff)
            among = self.whole._reaching(label, cutoff) if self.whole else self.hits
            return among.of_documents(self.pool.reaching(label))

        found: Hits = self.once(("reaching", label, cutoff), make)
        return found

    def nonrelevant(self, rel: int | None, negatives: str) -> Hits:
        """The judged non-relevant documents among the hits, as in `Pool.nonrelevant`."""
        key = ("nonrelevant", self.pool.threshold(rel), negatives)
        among = self.whole.nonrelevant(rel, negatives) if self.whole else self.hits
        mask = self.pool.nonrelevant(rel, negatives)
        found: Hits = self.once(key, lambda: among.of_documents(mask))
        return found

    def judged(self) -> Hits:
        """The judged documents among the hits."""
        among = self.whole.judged() if self.whole else self.hits
        found: Hits = self.once("judged", lambda: among.of_documents(self.pool.judged))
        return found

    def recall_base(self, rel: int | None) -> Ints:
        """int64[rows]: relevant documents of each row's topic."""
        return self.pool.recall_base(rel)[self.topic]

    def gains(self, table: Floats, cutoff: int | None = None) -> tuple[Hits, Floats]:
        """The hits of positive gain, at ranks up to `cutoff`, if any, and their gains, float64.

        `table` has a gain per label.
        """

        def make() -> tuple[Hits, Floats]:
            positive = self._positive(table, cutoff)
            return positive, self.pool.gains(table).take(positive.document)

        found: tuple[Hits, Floats] = self.once(("gains", table.tobytes(), cutoff), make)
        return found

    def _positive(self, table: Floats, cutoff: int | None) -> Hits:
        label = int(np.argmax(table > 0))
        if label > 0 and (table[label:] > 0).all():  # the usual case, whose hits are the relevant ones
            return self._reaching(label, cutoff)
        if self.whole is None and cutoff is not None:
            return self.gains(table)[0].within(cutoff)
        among = self.whole.gains(table, cutoff)[0] if self.whole else self.hits
        return among.of_documents(self.pool.gains(table) > 0)

    @cached_property
    def condensed(self) -> "Rows":
        """The same rows after removing every document that is not judged (trec_eval's -J)."""
        judged = self.judged()
        return Rows(self.pool, self.profile, judged.number, judged.condensed)


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
