"""Labels at every rank, for the few measures that need all of them.

A block stores several rows in flat arrays, one row after another. Only one block is in memory at a time, and
rows need no padding to the length of the longest one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model import Ints, Joined, Qrels

BLOCK = 1 << 20
"""Maximum number of documents in a block. A longer row is a block of its own."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Block:
    """All documents of the rows begin..end - 1 of `joined`.

    They are sorted by row, then by rank.

    starts: int64[rows + 1], the index of the first document of each row among the n documents of the block.
    """

    qrels: Qrels
    joined: Joined
    begin: int
    end: int
    starts: Ints
    memory: dict[tuple[str, str], Ints] = field(default_factory=dict, repr=False)

    @cached_property
    def row(self) -> Ints:
        """Return int64[n]: the row of each document, counted from `begin`."""
        return np.repeat(np.arange(self.end - self.begin), np.diff(self.starts))

    @cached_property
    def rank(self) -> Ints:
        """Return int64[n]: the rank of each document, from 1 in each row."""
        return np.arange(1, self.starts[-1] + 1) - self.starts[self.row]

    def labels(self, aspect: str) -> NDArray[np.int32]:
        """Return int32[n]: the label index of each document, 0 for unjudged documents."""
        pool_labels = self.qrels.labels[self.qrels.aspect_index(aspect)]
        first, last = self.joined.offsets[self.begin], self.joined.offsets[self.end]
        hits = np.diff(self.joined.offsets[self.begin : self.end + 1])
        place = np.repeat(self.starts[:-1], hits) + self.joined.rank[first:last] - 1
        labels = np.zeros(self.starts[-1], dtype=np.int32)
        labels[place] = np.maximum(pool_labels[self.joined.document[first:last]], 0)
        return labels

    def positions(self, aspect: str, ties: str) -> Ints:
        """Return the position of each document in its row, by decreasing label: int64[n].

        ties: documents with equal labels keep their order (`stable`), are reversed (`reverse`), or share the
        best of their positions (`min`).
        """
        if (aspect, ties) not in self.memory:
            self.memory[aspect, ties] = self._positions(-self.labels(aspect), ties)
        return self.memory[aspect, ties]

    def _positions(self, badness: NDArray[np.int32], ties: str) -> Ints:
        key = self.row * (1 - badness.min(initial=0)) + badness  # sorts by row, then by decreasing label
        if ties == "reverse":
            order = len(key) - 1 - np.argsort(key[::-1], kind="stable")
        else:
            order = np.argsort(key, kind="stable")
        position = self.rank  # the sort does not mix rows, so the ranks are the positions
        if ties == "min":
            first = np.diff(key[order], prepend=key.min(initial=0) - 1) > 0
            leader = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
            position = position[leader]
        placed = np.empty_like(position)
        placed[order] = position
        return placed


def blocks(qrels: Qrels, joined: Joined) -> Iterator[Block]:
    """Yield all rows in blocks of up to BLOCK documents.

    Each block is built only when it is requested.
    """
    ends = np.concatenate([[0], np.cumsum(joined.retrieved)])
    begin = 0
    while begin < len(joined.retrieved):
        end = max(begin + 1, int(np.searchsorted(ends, ends[begin] + BLOCK, side="right")) - 1)
        starts = ends[begin : end + 1] - ends[begin]
        yield Block(qrels=qrels, joined=joined, begin=begin, end=end, starts=starts)
        begin = end
