"""Splitting of a block of lines into fields, in numpy.

The result is the start and end of each of the six fields.

Almost all lines of runs have six fields and single separators. A block of such lines needs one search for
white space. Other blocks are split by a slower method, which does not loop over lines either.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model import Ints

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]

PADDING = b"\0" * 8
TAB, NEWLINE, SPACE, HASH = b"\t\n #"
TOPIC, SECOND, DOCUMENT, RANK, SCORE, TAG = range(6)
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class Text:
    """Bytes and 8-byte words.

    `words[i]` is the little-endian number of the eight bytes from i.
    """

    data: bytes
    words: Words

    @classmethod
    def of(cls, text: bytes | memoryview) -> "Text":
        """Copy `text` and pad it, so that a word can start at every byte."""
        data = b"".join((text, PADDING))
        return cls(data, np.ndarray((len(data) - 7,), "<u8", data, 0, (1,)))

    def __len__(self) -> int:
        return len(self.data) - len(PADDING)


@dataclass(frozen=True, eq=False, kw_only=True)
class Columns:
    """Lines of a block with at least six fields.

    Further words belong to the sixth field, the tag.

    starts, ends: six int64[n] each, byte offsets in the block. line: int64[n], line index in the block.
    short: indices of lines with one to five fields. comments: indices of lines that start with `#`.
    breaks: int64[lines], byte offset of the newline of each line.
    """

    starts: Sequence[Ints]
    ends: Sequence[Ints]
    line: Ints
    short: Ints
    comments: Ints
    breaks: Ints

    def __len__(self) -> int:
        return len(self.line)

    def rows(self, chosen: Ints | slice) -> "Columns":
        """Return the columns of the chosen rows only."""
        starts, ends = [s[chosen] for s in self.starts], [e[chosen] for e in self.ends]
        return Columns(
            starts=starts,
            ends=ends,
            line=self.line[chosen],
            short=self.short,
            comments=self.comments,
            breaks=self.breaks,
        )


def columns_of(text: Text) -> Columns:
    """Split `text`, which consists of complete lines without NUL bytes."""
    data = np.frombuffer(text.data, np.uint8, len(text))
    return regular_columns(text, 6) or _general(data)


def regular_columns(text: Text, width: int) -> Columns | None:
    """Return the columns of regular lines, or None if a line is irregular.

    A line is regular if it is `width` fields with single separators between them.

    `text` consists of complete lines of any bytes.
    """
    data = np.frombuffer(text.data, np.uint8, len(text))
    white = np.flatnonzero(data <= SPACE)
    if not white.size or white.size % width:
        return None
    kinds = data[white].reshape(-1, width)
    inner = kinds[:, :-1]
    if (kinds[:, -1] != NEWLINE).any() or not (
        (inner == SPACE).all() or ((inner == SPACE) | (inner == TAB)).all()
    ):
        return None
    ends = np.ascontiguousarray(white.reshape(-1, width).T)
    starts = np.empty_like(ends)
    np.add(ends[:-1], 1, out=starts[1:])
    starts[0, 0] = 0
    np.add(ends[-1, :-1], 1, out=starts[0, 1:])
    if (starts == ends).any() or (data[starts[0]] == HASH).any():
        return None
    none = np.zeros(0, np.int64)
    return Columns(
        starts=list(starts),
        ends=list(ends),
        line=np.arange(ends.shape[1]),
        short=none,
        comments=none,
        breaks=ends[-1],
    )


def _general(data: Bytes) -> Columns:
    white = ((data - np.uint8(TAB)) < 5) | (data == SPACE)
    padded = np.concatenate([[True], white])
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    starts, ends = edges[0::2], edges[1::2]
    breaks = np.flatnonzero(data == NEWLINE)
    first = np.zeros(len(breaks) + 1, np.int64)
    first[1:] = np.searchsorted(starts, breaks)
    count = np.diff(first)
    begins = np.concatenate([[0], breaks[:-1] + 1]) if breaks.size else breaks
    comment = data[begins] == HASH
    good = np.flatnonzero((count >= 6) & ~comment)
    at = first[good]
    short = np.flatnonzero((count > 0) & (count < 6) & ~comment)
    return Columns(
        starts=[starts[at + field] for field in range(6)],
        ends=[*(ends[at + field] for field in range(5)), ends[at + count[good] - 1]],
        line=good,
        short=short,
        comments=np.flatnonzero(comment),
        breaks=breaks,
    )


MASKS: Words = np.array([(1 << (8 * n)) - 1 for n in range(9)], dtype=np.uint64)
"""MASKS[n] keeps the first n bytes of a word."""


def word(text: Text, start: Ints, length: Ints, index: int) -> Words:
    """Return word `index` of each field, with zero bytes after the end of the field."""
    if length.min(initial=8 * index + 8) >= 8 * index + 8:  # ids usually have the same length
        return text.words[start + 8 * index if index else start]
    left = np.minimum(np.maximum(length - 8 * index, 0), 8)
    at = np.minimum(start + 8 * index, len(text)) if index else start
    words: Words = text.words[at] & MASKS[left]
    return words


def changes(text: Text, start: Ints, length: Ints) -> Ints:
    """Return the rows whose field differs from the previous row, and row 0: int64[k]."""
    if not start.size:
        return np.zeros(0, np.int64)
    differs = np.empty(start.size, bool)
    differs[0] = True
    np.not_equal(length[1:], length[:-1], out=differs[1:])
    for index in range(-(-int(length.max()) // 8)):
        alike = np.flatnonzero(~differs & (length > 8 * index)) if index else slice(None)
        words = word(text, start[alike], length[alike], index)
        if index == 0:
            differs[1:] |= words[1:] != words[:-1]
        else:
            before = alike - 1  # type: ignore[operator]
            differs[alike] |= words != word(text, start[before], length[before], index)
    return np.flatnonzero(differs)


def ids_at(text: Text, start: Ints, length: Ints) -> list[bytes]:
    """Return the fields as byte strings; meant for few rows."""
    data = text.data
    return [data[a : a + n] for a, n in zip(start.tolist(), length.tolist(), strict=True)]
