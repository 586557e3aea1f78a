"""The full vector of labels by rank, for the few measures that need what stands at every rank.

Rows are made block by block, one after another in flat arrays: memory is bounded by the block, and a
long row pads no other.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model import Ints, Joined, Qrels

BLOCK = 1 << 20
"""Documents of a block; a row with more is a block of its own."""


@dataclass(frozen=True, eq=False)
class Block:
    """Rows begin..end - 1 of `joined`, every document of them, by row, then rank.

    starts: int64[rows + 1], where each row begins among the n documents of the block.
    """

    qrels: Qrels
    joined: Joined
    begin: int
    end: int
    starts: Ints
    memory: dict[tuple[str, str], Ints] = field(default_factory=dict, repr=False)

    @cached_property
    def row(self) -> Ints:
        """int64[n]: the row of each document, counted from `begin`."""
        return np.repeat(np.arange(self.end - self.begin), np.diff(self.starts))

    @cached_property
    def rank(self) -> Ints:
        """int64[n]: from 1 in each row."""
        return np.arange(1, self.starts[-1] + 1) - self.starts[self.row]

    def labels(self, aspect: str) -> NDArray[np.int32]:
        """int32[n]: label index at every rank; the lowest for what is not judged (spec 1.2)."""
        of_pool = self.qrels.labels[self.qrels.aspect_index(aspect)]
        first, last = self.joined.offsets[self.begin], self.joined.offsets[self.end]
        hits = np.diff(self.joined.offsets[self.begin : self.end + 1])
        place = np.repeat(self.starts[:-1], hits) + self.joined.rank[first:last] - 1
        labels = np.zeros(self.starts[-1], dtype=np.int32)
        labels[place] = np.maximum(of_pool[self.joined.document[first:last]], 0)
        return labels

    def positions(self, aspect: str, ties: str) -> Ints:
        """int64[n]: where each document stands when its row is sorted by decreasing label.

        Documents of equal label keep their order (`stable`), turn it round (`reverse`), or all have
        the best position among them (`min`).
        """
        if (aspect, ties) not in self.memory:
            self.memory[aspect, ties] = self._positions(-self.labels(aspect), ties)
        return self.memory[aspect, ties]

    def _positions(self, badness: NDArray[np.int32], ties: str) -> Ints:
        key = self.row * (1 - badness.min(initial=0)) + badness  # by row, then best first, in one sort
        if ties == "reverse":
            order = len(key) - 1 - np.argsort(key[::-1], kind="stable")
        else:
            order = np.argsort(key, kind="stable")
        position = self.rank  # sorting leaves every row where it is
        if ties == "min":
            first = np.diff(key[order], prepend=key.min(initial=0) - 1) > 0
            leader = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
            position = position[leader]
        placed = np.empty_like(position)
        placed[order] = position
        return placed


def blocks(qrels: Qrels, joined: Joined) -> Iterator[Block]:
    """All rows, in blocks of up to BLOCK documents. Nothing is made before it is asked for."""
    ends = np.concatenate([[0], np.cumsum(joined.retrieved)])
    begin = 0
    while begin < len(joined.retrieved):
        end = max(begin + 1, int(np.searchsorted(ends, ends[begin] + BLOCK, side="right")) - 1)
        yield Block(qrels, joined, begin, end, ends[begin : end + 1] - ends[begin])
        begin = end
