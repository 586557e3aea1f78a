"""Second stage of the diagnosing run reader: from rows to a ranking.

It also finds duplicates and gives warnings about ranks.
"""

import os
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cupel_measures.findings import Finding, Findings, declare
from cupel_measures.model import Floats, Ids, Ints, Ranking
from cupel_measures.reading.joins import topic_blocks
from cupel_measures.reading.lines.document_order import (
    Documents,
    by_score,
    concatenate_ranges,
    duplicates,
    hashes,
    ids_descending,
)
from cupel_measures.reading.lines.run_lines import RunRows, shown
from cupel_measures.reading.lines.text_columns import Text, ids_at

DOCUMENTS = 1 << 16
TOP = 10
"""Cutoff at which ties are reported, besides the depth of the track."""

DUPLICATE = declare(
    "run-duplicate",
    "error",
    "a document is ranked twice for a topic",
    "keep only one of the lines",
)
DEPTH = declare(
    "run-depth",
    "warning",
    "topics have more documents than the depth of the track",
    "no action needed; rankings are cut at the depth",
)
CONTRADICT = declare(
    "run-ranks-contradict",
    "warning",
    "a document has a better rank than one with a higher score",
    "no action needed if the scores are right; documents are ordered by score and ranks are ignored",
)
EQUAL = declare(
    "run-ranks-equal",
    "warning",
    "all ranks of a topic are equal",
    "no action needed; documents are ordered by score and ranks are ignored",
)
ZERO = declare(
    "run-ranks-zero",
    "warning",
    "ranks start at 0",
    "no action needed; ranks are ignored",
)
UPSIDE_DOWN = declare(
    "run-upside-down",
    "warning",
    "scores rise with the rank, so the run may be upside down",
    "check that a higher score means a better document; if the scores are distances, negate them",
)
TIES = declare(
    "run-ties",
    "warning",
    "documents of a topic share a score",
    "write distinct scores with enough digits; ties are ordered by document id, descending",
)


@dataclass
class _Tally:
    """Number of topics with a warning, and the line and topic of the first one."""

    topics: int = 0
    line: int = 0
    topic: str = ""

    def add(self, names: list[str], lines: Ints, affected: NDArray[np.bool_]) -> None:
        """Count the `affected` topics."""
        which = np.flatnonzero(affected)
        if not which.size:
            return
        first = which[np.argmin(lines[which])]
        if not self.topics or lines[first] < self.line:
            self.line, self.topic = int(lines[first]), names[first]
        self.topics += len(which)


@dataclass(kw_only=True)
class _RankChecker:
    """Orders a run, one block of complete topics at a time, and counts its warnings."""

    depth: int | None
    file: str | None
    findings: Findings
    tallies: dict[str, _Tally] = field(default_factory=dict)
    reordered: list[str] = field(default_factory=list)
    tied: int = 0
    crossing: dict[int, int] = field(default_factory=dict)
    ids: list[bytes] = field(default_factory=list)
    lengths: list[Ints] = field(default_factory=list)
    scores: list[Floats] = field(default_factory=list)

    def add_block(self, names: list[str], documents: Documents, rank: Floats, line: Ints) -> None:
        """Order the documents of each topic by score, and count their warnings.

        The documents are given in the order of the file.
        """
        heads = documents.offsets[:-1]
        first = line[heads]  # first line of each topic
        order = _in_order(documents)
        if order is not None:
            documents, rank = documents.rows(order), rank[order]
            self.ids.append(concatenated_pieces(documents.text.data, documents.start, documents.length))
        else:
            self.ids.append(documents.text.data[: len(documents.text)])
        self.lengths.append(documents.length)
        self.scores.append(documents.score)
        self._check_depths(names, first, documents)
        self._check_ranks(names, first, documents, rank)
        self._check_ties(names, first, documents)

    def _count(self, code: str, names: list[str], lines: Ints, affected: NDArray[np.bool_]) -> None:
        self.tallies.setdefault(code, _Tally()).add(names, lines, affected)

    def _check_depths(self, names: list[str], lines: Ints, documents: Documents) -> None:
        if self.depth is not None:
            self._count(DEPTH, names, lines, np.diff(documents.offsets) > self.depth)

    def _check_ranks(self, names: list[str], lines: Ints, documents: Documents, rank: Floats) -> None:
        """Compare ranks with the order by score. documents, rank: sorted by score."""
        heads, count = documents.offsets[:-1], np.diff(documents.offsets)
        lowest, highest = np.minimum.reduceat(rank, heads), np.maximum.reduceat(rank, heads)
        equal = (count > 1) & (lowest == highest)
        self._count(EQUAL, names, lines, equal)
        self._count(ZERO, names, lines, (lowest == 0) & ~equal)
        falls = np.flatnonzero((rank[1:] < rank[:-1]) & ~documents.opens[1:])
        contradict, upside_down = np.zeros(len(names), bool), np.zeros(len(names), bool)
        for topic in np.unique(documents.topic[falls]).tolist():
            self.reordered.append(names[topic])
            part = slice(int(documents.offsets[topic]), int(documents.offsets[topic + 1]))
            contradict[topic], upside_down[topic] = _compare_ranks(rank[part], documents.score[part])
        self._count(UPSIDE_DOWN, names, lines, upside_down)
        self._count(CONTRADICT, names, lines, contradict & ~upside_down)

    def _check_ties(self, names: list[str], lines: Ints, documents: Documents) -> None:
        bounds = documents.tie_bounds()
        size = np.diff(bounds)
        tied = size > 1
        if not tied.any():
            return
        self.tied += int(size[tied].sum())
        affected = np.zeros(len(names), bool)
        affected[documents.topic[bounds[:-1][tied]]] = True
        self._count(TIES, names, lines, affected)
        begins = np.zeros(len(documents) + 1, bool)
        begins[bounds] = True
        for cut in {TOP, self.depth or TOP}:
            deep = documents.offsets[:-1][np.diff(documents.offsets) > cut]
            self.crossing[cut] = self.crossing.get(cut, 0) + int((~begins[deep + cut]).sum())

    def ranking(self, names: list[str], offsets: Ints) -> Ranking:
        """Return the ranking of all blocks."""
        lengths = np.concatenate(self.lengths) if self.lengths else np.zeros(0, np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        scores = np.concatenate(self.scores) if self.scores else np.zeros(0)
        return Ranking(tuple(names), offsets, Ids(b"".join(self.ids), starts), scores)

    def report(self) -> None:
        """Add a finding for each kind of warning."""
        for code, tally in self.tallies.items():
            if tally.topics:
                message = self._tie_message() if code == TIES else _message(code, tally, self.depth)
                finding = Finding(
                    code=code,
                    message=message,
                    file=self.file,
                    line=tally.line,
                    topic=tally.topic,
                    sample=tally.topic,
                )
                self.findings.add(finding, self.tied if code == TIES else tally.topics)

    def _tie_message(self) -> str:
        places = [f"across rank {cut} in {_topics(n)}" for cut, n in sorted(self.crossing.items()) if n]
        if places:
            where = f"ties extend {' and '.join(places)}"
        else:
            where = f"no tie extends across rank {' or '.join(map(str, sorted(self.crossing)))}"
        topics = _topics(self.tallies[TIES].topics)
        return f"{self.tied:,} lines in {topics} share a score with another line; {where}"


def rank_rows(rows: RunRows, depth: int | None, file: str | None) -> tuple[Ranking | None, tuple[str, ...]]:
    """Return the ranking of `rows`, and the topics whose ranks contradict it.

    The ranking is None if there are errors. Add duplicates and warnings to the findings of `rows`. Check the
    order only in blocks in which every score and rank is a number.
    """
    names, offsets, order = _by_topic(rows)
    starts = np.concatenate([[0], np.cumsum(rows.length, dtype=np.int64)])
    seed, checker = (
        int.from_bytes(os.urandom(8), "little"),
        _RankChecker(depth=depth, file=file, findings=rows.findings),
    )
    for a, b in topic_blocks(offsets, DOCUMENTS):
        low, high = int(offsets[a]), int(offsets[b])
        chosen = np.arange(low, high) if order is None else order[low:high]
        documents = _documents(rows, starts, chosen, offsets[a : b + 1] - low)
        hashed = hashes(documents.text, documents.start, documents.length, seed)
        for row, earlier in duplicates(documents, hashed):
            if not rows.findings.room(DUPLICATE):
                rows.findings.count(DUPLICATE)
                continue
            topic = names[a + int(documents.topic[row])]
            rows.findings.add(_duplicate(rows, documents, (row, earlier), chosen, topic, file))
        if rows.good[chosen].all():
            checker.add_block(names[a:b], documents, rows.rank[chosen], rows.line[chosen])
    checker.report()
    if rows.findings.refused:
        return None, ()
    return checker.ranking(names, offsets), tuple(checker.reordered)


def _by_topic(rows: RunRows) -> tuple[list[str], Ints, Ints | None]:
    """Return the topics, the offsets of their rows, and the permutation of the rows.

    Topics are in byte order. The permutation groups the rows by topic.

    The permutation is None if the rows are grouped already.
    """
    codes = sorted(range(len(rows.names)), key=rows.names.__getitem__)
    place = np.empty(len(codes), np.int32)
    place[codes] = np.arange(len(codes), dtype=np.int32)
    topic = place[rows.topic]
    in_place = bool((topic[1:] >= topic[:-1]).all())
    order = None if in_place else np.argsort(topic, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(topic, minlength=len(codes)))]).astype(np.int64)
    return [rows.names[code].decode() for code in codes], offsets, order


def _documents(rows: RunRows, starts: Ints, chosen: Ints, offsets: Ints) -> Documents:
    """Return the chosen rows, in file order within a topic, with a copy of their ids."""
    length = rows.length[chosen].astype(np.int64)
    if int(chosen[-1]) - int(chosen[0]) == len(chosen) - 1 and (np.diff(chosen) == 1).all():
        text = Text.of(rows.ids[int(starts[chosen[0]]) : int(starts[chosen[-1] + 1])])
    else:
        text = Text.of(concatenated_pieces(rows.ids, starts[chosen], length))
    start = np.cumsum(length) - length
    return Documents(text=text, start=start, length=length, score=rows.score[chosen], offsets=offsets)


def concatenated_pieces(data: bytes, start: Ints, length: Ints) -> bytes:
    """Return the pieces data[start[i]:start[i] + length[i]], concatenated."""
    return np.frombuffer(data, np.uint8)[concatenate_ranges(start, length)].tobytes()


def _in_order(documents: Documents) -> Ints | None:
    """Return the order by score, ties by id descending.

    None means that the documents are already in this order.
    """
    order = by_score(documents) if documents.has_rising_scores() else None
    sorted_ = documents if order is None else documents.rows(order)
    bounds = sorted_.tie_bounds()
    size = np.diff(bounds)
    groups = np.flatnonzero(size > 1)
    if groups.size:
        order = np.arange(len(documents)) if order is None else order
        members = concatenate_ranges(bounds[groups], size[groups])
        order[members] = order[ids_descending(sorted_, members, np.repeat(groups, size[groups]))]
    return order


def _compare_ranks(rank: Floats, score: Floats) -> tuple[bool, bool]:
    """Compare the ranks of one topic with its scores, which are in descending order.

    Return whether a document has a better rank than one with a higher score, and whether the topic is upside
    down: in rank order, scores never fall and some rise.
    """
    group = np.flatnonzero(np.concatenate([[True], score[1:] < score[:-1]]))
    highest = np.maximum.accumulate(rank)
    above = np.repeat(
        np.concatenate([[-np.inf], highest[group[1:] - 1]]), np.diff(np.append(group, len(rank)))
    )
    contradict = bool((rank < above).any())
    by_rank = score[np.argsort(rank, kind="stable")]
    return contradict, bool((by_rank[1:] >= by_rank[:-1]).all() and by_rank[-1] > by_rank[0])


def _duplicate(
    rows: RunRows, documents: Documents, pair: tuple[int, int], chosen: Ints, topic: str, file: str | None
) -> Finding:
    row, earlier = pair
    only = slice(row, row + 1)
    sample = shown(ids_at(documents.text, documents.start[only], documents.length[only])[0])
    line, column = int(rows.line[chosen[row]]), int(rows.column[chosen[row]])
    message = (
        f"{sample!r} is ranked twice for topic {topic!r}: first on line {int(rows.line[chosen[earlier]])}"
    )
    return Finding(
        code=DUPLICATE, message=message, file=file, line=line, column=column, topic=topic, sample=sample
    )


def _topics(count: int) -> str:
    return f"{count:,} topic{'s' * (count != 1)}"


def _message(code: str, tally: _Tally, depth: int | None) -> str:
    where = f"in {_topics(tally.topics)}, first in {tally.topic!r}"
    return {
        DEPTH: f"more than {depth} documents {where}; only the first {depth} count",
        CONTRADICT: f"ranks contradict scores {where}; documents are ordered by score",
        EQUAL: f"all ranks are equal {where}; documents are ordered by score",
        ZERO: f"ranks start at 0 {where}",
        UPSIDE_DOWN: f"scores rise with the rank {where}: the run may be upside down",
    }[code]
