"""Documents of complete topics as columns: hashes, duplicates and order.

The documents of a topic are ordered by score, descending, then by the bytes of the id, descending, as in
trec_eval.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model import Floats, Ints
from cupel_measures.reading.lines.text_columns import MASKS, Text, Words, ids_at, word

_MIX = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(32)
SORTED_AS_WORDS = 64
"""Longest ids, in bytes, that are sorted as columns of words; longer ones are sorted as byte strings."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Documents:
    """Documents of some topics, grouped by topic.

    start, length: int64[n], position of each id in `text`. score: float64[n], in the precision of comparison.
    offsets: int64[T + 1].
    """

    text: Text
    start: Ints
    length: Ints
    score: Floats
    offsets: Ints

    def __len__(self) -> int:
        return len(self.score)

    @cached_property
    def topic(self) -> Ints:
        """Return int64[n]: the index of the topic of each document."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def opens(self) -> NDArray[np.bool_]:
        """Return bool[n]: whether the document is the first of its topic."""
        opens = np.zeros(len(self), bool)
        opens[self.offsets[:-1][np.diff(self.offsets) > 0]] = True
        return opens

    def has_rising_scores(self) -> bool:
        """Return whether any score is greater than the previous score of the same topic."""
        return bool(((self.score[1:] > self.score[:-1]) & ~self.opens[1:]).any())

    def rows(self, order: Ints) -> "Documents":
        """Return the documents in the given order.

        The order must permute documents only within topics.
        """
        return Documents(
            text=self.text,
            start=self.start[order],
            length=self.length[order],
            score=self.score[order],
            offsets=self.offsets,
        )

    def tie_bounds(self) -> Ints:
        """Return where groups of equal scores start: int64[groups + 1].

        Documents must be in score order.
        """
        new = np.empty(len(self) + 1, bool)
        new[0] = new[-1] = True
        np.not_equal(self.score[1:], self.score[:-1], out=new[1:-1])
        new[:-1] |= self.opens
        return np.flatnonzero(new)


def by_score(documents: Documents) -> Ints:
    """Return the stable order by topic, then score, descending: int64[n]."""
    return np.lexsort((-documents.score, documents.topic))


def ids_descending(documents: Documents, rows: Ints, group: Ints) -> Ints:
    """Return `rows` ordered by `group`, then by id: int64[k].

    Ids are in descending order of their bytes.
    """
    start, length = documents.start[rows], documents.length[rows]
    longest = int(length.max(initial=0))
    if longest > SORTED_AS_WORDS:
        ids, groups = ids_at(documents.text, start, length), group.tolist()
        downward = sorted(range(len(ids)), key=ids.__getitem__, reverse=True)
        return rows[sorted(downward, key=groups.__getitem__)]
    # ids have no NUL byte, so zero padding sorts an id before every longer id that starts with it
    words = [~word(documents.text, start, length, k).byteswap() for k in range(-(-longest // 8))]
    order: Ints = np.lexsort((*reversed(words), group))
    return rows[order]


def concatenate_ranges(first: Ints, count: Ints) -> Ints:
    """Return the concatenation of ranges of consecutive integers.

    Range i is first[i], first[i] + 1, ..., first[i] + count[i] - 1.
    """
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Ints = np.arange(total) + np.repeat(first - (ends - count), count)
    return numbers


def hashes(text: Text, start: Ints, length: Ints, seed: int) -> Words:
    """Return a seeded hash of each id: uint64[n], never 0.

    Callers confirm matches by comparing bytes.
    """
    value: Words = length.astype(np.uint64) * _MIX + np.uint64(seed)
    rows: Ints | slice = slice(None)
    for index in range(-(-int(length.max(initial=0)) // 8)):
        if index and (length[rows] <= 8 * index).any():
            rows = np.flatnonzero(length > 8 * index)
        mixed = (value[rows] ^ word(text, start[rows], length[rows], index)) * _MIX
        value[rows] = mixed ^ (mixed >> _FOLD)
    value[value == 0] = 1
    return value


def duplicates(documents: Documents, hashed: Words) -> list[tuple[int, int]]:
    """Return (row, earlier row) for each repeated document of a topic, ordered by row."""
    key = hashed ^ (documents.topic.astype(np.uint64) + np.uint64(1)) * _MIX
    ordered = np.sort(key)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if not twice.size:
        return []
    rows = np.flatnonzero(np.isin(key, twice))
    ids = ids_at(documents.text, documents.start[rows], documents.length[rows])
    seen: dict[tuple[int, bytes], int] = {}
    pairs = []
    for row, topic, name in zip(rows.tolist(), documents.topic[rows].tolist(), ids, strict=True):
        earlier = seen.setdefault((topic, name), row)
        if earlier != row:
            pairs.append((row, earlier))
    return pairs


def same_ids(
    text: Text, start: Ints, length: Ints, other: Text, other_start: Ints, other_length: Ints
) -> NDArray[np.bool_]:
    """Return bool[n]: whether id i of `text` and id i of `other` have the same bytes."""
    same: NDArray[np.bool_] = length == other_length
    rows = np.flatnonzero(same)
    index = 0
    while (rows := rows[length[rows] > 8 * index]).size:
        at = start[rows] + 8 * index
        at_other = other_start[rows] + 8 * index
        mask = MASKS[np.minimum(length[rows] - 8 * index, 8)]
        same[rows] = ((text.words[at] ^ other.words[at_other]) & mask) == 0
        rows = rows[same[rows]]
        index += 1
    return same
