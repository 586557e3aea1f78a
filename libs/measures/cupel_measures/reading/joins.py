"""Fast joins of runs with qrels, from the text of a run or from a stored ranking.

Each function has a compiled implementation and one in numpy. Their results are equal to the last bit. The
compiled one is used if it was built. Both decline a text with any irregularity. In this case,
`run_files.join_run` uses the diagnosing reader, which is slower.
"""

import os
import sys
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model import Ids, Ints, Joined, Qrels, Ranking
from cupel_measures.model.profiles import DEFAULT, Profile
from cupel_measures.reading.compression import Limits
from cupel_measures.reading.lines import text_columns
from cupel_measures.reading.lines.decimal_columns import numbers, whole_numbers
from cupel_measures.reading.lines.document_order import (
    Documents,
    by_score,
    concatenate_ranges,
    duplicates,
    hashes,
    ids_descending,
    same_ids,
)
from cupel_measures.reading.lines.text_columns import BOM, Text, Words, changes, columns_of, ids_at

try:
    from cupel_measures.native import _reader as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]

extension: Any = compiled
"""The compiled reader, or None if it was not built. Tests set it to None to test the numpy reader."""

BUFFER = 256 << 10
"""Buffer of the compiled reader, in bytes; it grows to the size of the longest topic."""
BLOCK = 1536 << 10
"""Block of the numpy reader, in bytes; its columns fit into the second-level cache."""
MOST_IDLE = 1 << 20
"""Greatest number of bytes of comments and blank lines within an incomplete topic."""
DEEPEST = (1 << 31) - 1
"""Greatest rank. Ranks are stored as int32."""
DOCUMENTS = 1 << 15
"""Approximate number of documents of a stored ranking that are joined at a time."""


def join(ranking: Ranking, qrels: Qrels, *, profile: Profile = DEFAULT, depth: int | None = None) -> Joined:
    """Join `ranking` with `qrels`: one row per topic of the qrels.

    `join_run` gives equal results.

    depth: maximum number of documents per topic. Tie groups are cut at this rank, too.
    """
    depth = None if depth is None else min(depth, DEEPEST)
    listed = _listed(qrels)
    row = {name: number for number, name in enumerate(listed.topics)}
    rows = np.array([row.get(name, -1) for name in ranking.topics], dtype=np.int64)
    joined = (_join_numpy if extension is None else _join_compiled)(ranking, listed, rows, profile, depth)
    facts: dict[str, Any] = {"profile": profile, "pool": qrels.pool_digest}
    return replace(joined.part(0, len(qrels.topics)), unknown_topics=int((rows < 0).sum()), **facts)


def _join_compiled(ranking: Ranking, qrels: Qrels, rows: Ints, profile: Profile, depth: int | None) -> Joined:
    blob, starts = ranking.documents.blob, ranking.documents.starts
    index, cut = _index(qrels), -1 if depth is None else depth
    single = profile.single_precision
    offsets, scores = ranking.offsets, ranking.scores
    columns_ = (np.require(part, requirements=["C", "A"]) for part in (starts, rows, offsets, scores))
    return _joined(extension.join(index, blob, *columns_, single, cut))


def _listed(qrels: Qrels) -> Qrels:
    """Return `qrels` with its unjudged topics appended to `topics`.

    A join with the result does not count these topics as unknown.
    """
    names = qrels.unjudged_topics
    if not names:
        return qrels
    if "reading.listed" not in qrels.cache:
        offsets = np.append(qrels.offsets, np.repeat(qrels.offsets[-1:], len(names)))
        topics = qrels.topics + names
        qrels.cache["reading.listed"] = replace(
            qrels, topics=topics, unjudged_topics=(), offsets=offsets, cache={}
        )
    listed: Qrels = qrels.cache["reading.listed"]
    return listed


def join_text(
    stream: BinaryIO, qrels: Qrels, *, profile: Profile, depth: int | None, limits: Limits
) -> Joined | None:
    """Join the run in `stream` (plain bytes) with `qrels`.

    Return None if the run is irregular, that is, if it has an error, exceeds a limit, shares no topic with
    the qrels, or does not keep the lines of a topic together. Only in the last case can the run be valid.
    """
    depth = None if depth is None else min(depth, DEEPEST)
    read = _read_numpy if extension is None else _read_compiled
    joined = read(stream, _listed(qrels), profile, depth, limits)
    if joined is None:
        return None
    facts: dict[str, Any] = {"profile": profile, "pool": qrels.pool_digest}
    return replace(joined.part(0, len(qrels.topics)), unknown_topics=joined.unknown_topics, **facts)


# ------------------------------------------------------------------------------------------- compiled


def _index(qrels: Qrels) -> Any:
    """Return the lookup tables of the compiled reader, built once per qrels."""
    if "reading.index" not in qrels.cache:
        names, documents = Ids.of([name.encode() for name in qrels.topics]), qrels.documents
        parts = (documents.blob, documents.starts, names.blob, names.starts, qrels.offsets)
        qrels.cache["reading.index"] = extension.Index(*parts, os.urandom(16))
    return qrels.cache["reading.index"]


def _joined(parts: tuple[bytes, ...]) -> Joined:
    retrieved, offsets = (np.frombuffer(part, np.int64) for part in parts[:2])
    document, rank, first, last = (np.frombuffer(part, np.int32) for part in parts[2:])
    return Joined(retrieved=retrieved, offsets=offsets, document=document, rank=rank, first=first, last=last)


def _read_compiled(
    stream: BinaryIO, qrels: Qrels, profile: Profile, depth: int | None, limits: Limits
) -> Joined | None:
    bounds = (
        *(min(n, sys.maxsize) for n in (limits.line, limits.lines, limits.topics)),
        min(limits.depth, DEEPEST),
    )
    reader = extension.Reader(
        _index(qrels), profile.single_precision, -1 if depth is None else depth, *bounds
    )
    buffer = bytearray(BUFFER + extension.PADDING)
    room = BUFFER
    start = stream.read(len(BOM))
    kept = 0 if start == BOM else len(start)
    buffer[:kept] = start[:kept]
    while True:
        with memoryview(buffer) as view:
            got = stream.readinto(view[kept:room])  # type: ignore[attr-defined]
        kept = reader.feed(buffer, kept + got, not got)
        if kept < 0:
            return None
        if not got:
            return replace(_joined(reader.result()), unknown_topics=reader.unknown_topics())
        if 2 * kept > room:
            buffer.extend(bytes(room))
            room *= 2


# ---------------------------------------------------------------------------------------------- numpy


@dataclass(frozen=True, eq=False, kw_only=True)
class _PoolTable:
    """Lookup of (topic, document) by hash.

    It uses open addressing in a table for each topic.

    key: uint64[slots], the hash of the document, 0 in a free slot. document: int32[slots], index in the
    qrels. first: the first slot of each topic's table. mask: the size of each topic's table - 1.
    """

    seed: int
    text: Text
    start: Ints
    length: Ints
    key: Words
    document: NDArray[np.int32]
    first: Ints
    mask: Ints

    @classmethod
    def of(cls, qrels: Qrels) -> "_PoolTable":
        """Return the table of `qrels`, built once."""
        if "reading.table" not in qrels.cache:
            qrels.cache["reading.table"] = cls._build(qrels)
        table: _PoolTable = qrels.cache["reading.table"]
        return table

    @classmethod
    def _build(cls, qrels: Qrels) -> "_PoolTable":
        seed, text = int.from_bytes(os.urandom(8), "little"), Text.of(qrels.documents.blob)
        start, length = qrels.documents.starts[:-1], np.diff(qrels.documents.starts)
        size = 4 << np.ceil(np.log2(np.maximum(np.diff(qrels.offsets), 1))).astype(
            np.int64
        )  # at most a quarter full, so that probing ends soon
        first = np.concatenate([[0], np.cumsum(size)])
        key, document = np.zeros(first[-1], np.uint64), np.full(first[-1], -1, np.int32)
        table = cls(
            seed=seed,
            text=text,
            start=start,
            length=length,
            key=key,
            document=document,
            first=first[:-1],
            mask=size - 1,
        )
        hashed, topic = hashes(text, start, length, seed), qrels.topic_of
        left, at = np.arange(len(start)), table.slot(topic, hashed)
        while left.size:
            free = left[key[at[left]] == 0]
            document[at[free]] = free  # if several documents take one slot, the last one wins
            won = document[at[left]] == left
            key[at[left[won]]] = hashed[left[won]]
            left = left[~won]
            at[left] = table.next(topic[left], at[left])
        return table

    def slot(self, topic: Ints, hashed: Words) -> Ints:
        """Return the first slot to probe for a document of `topic`."""
        return self.first[topic] + (hashed.astype(np.int64) & self.mask[topic])

    def next(self, topic: Ints, at: Ints) -> Ints:
        return self.first[topic] + ((at - self.first[topic] + 1) & self.mask[topic])

    def find(self, documents: Documents, hashed: Words, topic: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """Return the elements of `rows` that are in the pool of their topic.

        Return also their indices in the qrels. The elements ascend. rows: indices of documents. topic:
        int64[n], the topic of each document.
        """
        topics, hashes = topic[rows], hashed[rows]
        left, first, mask, at = rows, self.first[topics], self.mask[topics], self.slot(topics, hashes)
        hit_rows, where = [], []
        while left.size:
            key = self.key[at]
            hit = key == hashes
            hit_rows.append(left[hit])
            where.append(at[hit])
            go = np.flatnonzero((key != 0) & ~hit)
            left, hashes, first, mask = left[go], hashes[go], first[go], mask[go]
            at = first + ((at[go] - first + 1) & mask)
        row = np.concatenate(hit_rows) if hit_rows else rows[:0]
        known = self.document[np.concatenate(where)].astype(np.int64) if where else rows[:0]
        order = np.argsort(row)
        return self._confirmed(documents, topic, row[order], known[order])

    def _confirmed(self, documents: Documents, topic: Ints, row: Ints, known: Ints) -> tuple[Ints, Ints]:
        """Return the pairs of a row and a document with the same id.

        If only the hashes of a pair are equal, search the pool for the id of the row.
        """
        run = documents.text, documents.start[row], documents.length[row]
        same = same_ids(*run, self.text, self.start[known], self.length[known])
        for i in np.flatnonzero(~same).tolist():
            name = ids_at(documents.text, documents.start[row[i : i + 1]], documents.length[row[i : i + 1]])[
                0
            ]
            known[i] = self._search(int(topic[row[i]]), name)
        good = known >= 0
        return row[good], known[good]

    def _search(self, topic: int, name: bytes) -> int:
        chosen = np.sort(self.document[self.first[topic] : self.first[topic] + self.mask[topic] + 1])
        pool = chosen[chosen >= 0]
        ids = ids_at(self.text, self.start[pool], self.length[pool])
        at = bisect_left(ids, name)
        return int(pool[at]) if at < len(ids) and ids[at] == name else -1


class _Rows:
    """Rows of a joined run, collected from blocks of complete topics."""

    def __init__(self, qrels: Qrels, depth: int | None) -> None:
        self.table, self._depth = _PoolTable.of(qrels), depth
        self._retrieved = np.zeros(len(qrels.topics), np.int64)
        self._parts: list[tuple[Ints, ...]] = [(np.zeros(0, np.int64),) * 5]

    def add(self, documents: Documents, rows: Ints, hashed: Words) -> None:
        """Add the hits among `documents`.

        rows: int64[T], the row of each topic, or -1 if the qrels lack it.
        """
        count, known = np.diff(documents.offsets), rows >= 0
        depth = np.iinfo(np.int64).max if self._depth is None else self._depth
        self._retrieved[rows[known]] = np.minimum(count[known], depth)
        row_of = np.repeat(rows, count)
        hits, document = self.table.find(documents, hashed, row_of, np.flatnonzero(row_of >= 0))
        place, first, last = _places(documents, hits)
        begin = documents.offsets[documents.topic[hits]]
        rank, first, last = place - begin + 1, first - begin + 1, np.minimum(last - begin, depth)
        parts: tuple[Ints, ...] = (row_of[hits], document, rank, first, last)
        if (place[1:] < place[:-1]).any():
            order = np.argsort(place)
            parts = tuple(part[order] for part in parts)
        if self._depth is not None:
            kept = parts[2] <= depth
            parts = tuple(part[kept] for part in parts)
        self._parts.append(parts)

    def joined(self) -> Joined:
        row, *hits = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        order = np.argsort(row, kind="stable")
        offsets = np.zeros(len(self._retrieved) + 1, np.int64)
        np.cumsum(np.bincount(row, minlength=len(self._retrieved)), out=offsets[1:])
        document, rank, first, last = (part[order].astype(np.int32) for part in hits)
        return Joined(
            retrieved=self._retrieved, offsets=offsets, document=document, rank=rank, first=first, last=last
        )


def _places(documents: Documents, rows: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the positions of `rows` in the order of documents, and their tie groups.

    `rows` is ascending. The tie groups are given by their bounds. Only tie groups that contain an element
    of `rows` are ordered by id.
    """
    place = rows
    if documents.has_rising_scores():
        order = by_score(documents)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        place, documents = place[rows], documents.rows(order)
    bounds = documents.tie_bounds()
    if len(bounds) > len(documents):
        return place, place, place + 1
    group = np.searchsorted(bounds, place, side="right") - 1
    first, last = bounds[group], bounds[group + 1]
    tied = np.flatnonzero(last - first > 1)
    groups = np.unique(group[tied])
    size = bounds[groups + 1] - bounds[groups]
    members = concatenate_ranges(bounds[groups], size)
    after = np.empty(len(documents), np.int64)
    after[ids_descending(documents, members, np.repeat(groups, size))] = members
    place = place.copy()
    place[tied] = after[place[tied]]
    return place, first, last


def _join_numpy(ranking: Ranking, qrels: Qrels, rows: Ints, profile: Profile, depth: int | None) -> Joined:
    collected = _Rows(qrels, depth)
    offsets, starts = ranking.offsets, ranking.documents.starts
    for a, b in topic_blocks(offsets, DOCUMENTS):
        low, high = int(offsets[a]), int(offsets[b])
        start, length = starts[low:high] - starts[low], np.diff(starts[low : high + 1])
        text = Text.of(ranking.documents.blob[starts[low] : starts[high]])
        score = comparable_scores(ranking.scores[low:high], profile)
        documents = Documents(
            text=text, start=start, length=length, score=score, offsets=offsets[a : b + 1] - low
        )
        collected.add(documents, rows[a:b], hashes(text, start, length, collected.table.seed))
    return collected.joined()


def order_of(ranking: Ranking, profile: Profile) -> Ints:
    """Return the order of the documents of `ranking` under `profile`: int64[n]."""
    order = np.arange(len(ranking.documents))
    if profile.single_precision:
        starts = ranking.documents.starts
        score = comparable_scores(ranking.scores, profile)
        text = Text.of(ranking.documents.blob)
        documents = Documents(
            text=text, start=starts[:-1], length=np.diff(starts), score=score, offsets=ranking.offsets
        )
        place, _, _ = _places(documents, order)
        order = np.argsort(place)
    return order


def topic_blocks(offsets: Ints, documents: int) -> Iterator[tuple[int, int]]:
    """Yield blocks of about `documents` documents.

    A block is (first topic, topic after the last).
    """
    a, topics = 0, len(offsets) - 1
    while a < topics:
        b = int(np.searchsorted(offsets, offsets[a] + documents, side="right")) - 1
        b = min(max(b, a + 1), topics)
        yield a, b
        a = b


def comparable_scores(scores: NDArray[np.float64], profile: Profile) -> NDArray[np.float64]:
    """Return the scores in the precision in which `profile` compares them."""
    if not profile.single_precision:
        return scores
    with np.errstate(over="ignore", under="ignore"):
        return scores.astype(np.float32).astype(np.float64)


def _read_numpy(
    stream: BinaryIO, qrels: Qrels, profile: Profile, depth: int | None, limits: Limits
) -> Joined | None:
    collected = _Rows(qrels, depth)
    row = {name.encode(): number for number, name in enumerate(qrels.topics)}
    seen: set[bytes] = set()
    start = stream.read(len(BOM))
    kept, lines, size = b"" if start == BOM else start, 0, BLOCK
    while True:
        chunk = stream.read(size)
        block = _Block.read(kept + chunk, profile, limits, last=not chunk)
        if block is None:
            return None
        names, documents, kept = block.names, block.documents, block.kept
        lines += block.lines
        hashed = hashes(documents.text, documents.start, documents.length, collected.table.seed)
        if lines > limits.lines or not seen.isdisjoint(names) or duplicates(documents, hashed):
            return None
        seen.update(names)
        if len(set(names)) < len(names) or len(seen) > limits.topics:
            return None
        collected.add(documents, np.array([row.get(name, -1) for name in names], np.int64), hashed)
        if not chunk:
            if seen.isdisjoint(row):
                return None
            return replace(collected.joined(), unknown_topics=len(seen - row.keys()))
        size = max(BLOCK, len(kept))  # one topic fills the block, so read a larger one


@dataclass(frozen=True, eq=False)
class _Block:
    """Complete topics of a block of text.

    kept: the text after these topics. lines: number of their lines.
    """

    names: list[bytes]
    documents: Documents
    kept: bytes
    lines: int

    @classmethod
    def read(cls, data: bytes, profile: Profile, limits: Limits, *, last: bool) -> "_Block | None":
        """Return the complete topics of `data`; None if anything is irregular."""
        if last and data and not data.endswith(b"\n"):
            data += b"\n"
        cut = data.rfind(b"\n") + 1
        text = Text.of(memoryview(data)[:cut])
        if len(data) - cut > limits.line or b"\0" in data or not _is_text(text.data):
            return None
        returns = data.count(b"\r", 0, cut)
        if returns and returns != data.count(b"\r\n", 0, cut):
            return None
        fields = columns_of(text)
        widths = np.diff(fields.breaks, prepend=-1) - 1
        if fields.short.size or widths.max(initial=0) > limits.line:
            return None
        name, end = fields.starts[text_columns.TOPIC], fields.ends[text_columns.TOPIC]
        heads = changes(text, name, end - name)
        lines, kept = len(fields.breaks), data[cut:]
        if not last:
            count, heads = (int(heads[-1]), heads[:-1]) if heads.size else (0, heads)
            if count < len(fields):  # the last topic may continue, so its text waits for the next block
                lines = int(fields.line[count])
                kept = data[int(fields.breaks[lines - 1]) + 1 if lines else 0 :]
                if len(kept) - (len(data) - cut) - int((widths[fields.line[count:]] + 1).sum()) > MOST_IDLE:
                    return None
            fields = fields.rows(slice(0, count))
        offsets = np.append(heads, len(fields))
        if np.diff(offsets).max(initial=0) > limits.depth:
            return None
        names = ids_at(text, name[heads], (end - name)[heads])
        documents = _documents(text, fields, offsets, profile)
        return None if documents is None else cls(names, documents, kept, lines)


def _is_text(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _documents(text: Text, fields: text_columns.Columns, offsets: Ints, profile: Profile) -> Documents | None:
    """Return the documents of the lines.

    Return None if a score is not finite or a rank is not a number.
    """
    starts, ends = fields.starts, fields.ends
    score, wrong = numbers(text, starts[text_columns.SCORE], ends[text_columns.SCORE])
    ranks = starts[text_columns.RANK], ends[text_columns.RANK]
    odd = whole_numbers(text, *ranks)
    if (
        wrong.size
        or not np.isfinite(score).all()
        or (odd.size and numbers(text, ranks[0][odd], ranks[1][odd])[1].size)
    ):
        return None
    start = starts[text_columns.DOCUMENT]
    return Documents(
        text=text,
        start=start,
        length=ends[text_columns.DOCUMENT] - start,
        score=comparable_scores(score, profile),
        offsets=offsets,
    )
