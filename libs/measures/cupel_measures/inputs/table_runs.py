"""Runs that are tables of scores in memory: topic, document and score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cupel_measures.findings import Finding, Findings, Refused
from cupel_measures.inputs.topic_tables import Table, check_table
from cupel_measures.model import Floats, Ints, Joined, Qrels, Run
from cupel_measures.model.profiles import Profile
from cupel_measures.reading.joins import DEEPEST
from cupel_measures.reading.lines.run_lines import EMPTY, SCORE
from cupel_measures.reading.lines.topic_checks import EXTRA, check_topics
from cupel_measures.reading.run_files import read_run
from cupel_measures.scoring.pool import Mask

Places = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TableRun:
    """A run as a table of scores.

    name: shown in findings, and the tag of the run. table: all ids are strings.
    """

    name: str
    table: Table

    @cached_property
    def findings(self) -> Findings:
        """Return the errors: no documents, invalid ids, and scores that are no numbers."""
        findings = check_table(self.table, "score", self.name, SCORE)
        if not any(self.table.values()):
            findings.add(Finding(code=EMPTY, message="the run has no documents", file=self.name))
        return findings

    def read(self, depth: int | None = None) -> Run:
        """Return the whole run."""
        if self.findings.refused:
            raise Refused(self.findings)
        lines = (
            f"{topic} Q0 {document} {rank} {float(scores[document])!r} {self.name}\n"
            for topic, scores in self.table.items()
            for rank, document in enumerate(sorted(scores, key=scores.__getitem__, reverse=True), 1)
        )
        run = read_run("".join(lines).encode(), name=self.name, depth=depth)
        listed = [replace(finding, line=None, column=None) for finding in run.findings.listed]
        return replace(run, findings=Findings(listed, run.findings.totals))

    def join(self, qrels: Qrels, *, profile: Profile, depth: int | None = None) -> Joined:
        """Join the table with `qrels`, without writing it as text."""
        if self.findings.refused:
            raise Refused(self.findings)
        listed = check_topics([*self.table], qrels.listed_topics, file=self.name)
        if listed.refused:
            raise Refused(listed)
        depth = DEEPEST if depth is None else min(depth, DEEPEST)
        rows = [self._row(topic, pool, profile, depth) for topic, pool in pools_of(qrels).items()]
        columns = [np.concatenate(column) for column in zip(*(row for _, row in rows), strict=True)]
        retrieved = np.array([count for count, _ in rows], dtype=np.int64)
        return Joined(
            retrieved=np.minimum(retrieved, depth),
            offsets=np.concatenate([[0], np.cumsum([len(row[0]) for _, row in rows])]).astype(np.int64),
            document=columns[0],
            rank=columns[1],
            first=columns[2],
            last=columns[3],
            profile=profile,
            unknown_topics=listed.totals.get(EXTRA, 0),
            pool=qrels.pool_digest,
        )

    def _row(
        self, topic: str, pool: Mapping[str, int], profile: Profile, depth: int
    ) -> tuple[int, list[Places]]:
        """Return the number of documents of a topic, and the columns of its hits.

        The columns are those of `Joined`.
        """
        scores = self.table.get(topic, {})
        hits = list(pool.keys() & scores.keys())
        if not hits:
            return len(scores), [np.zeros(0, np.int32)] * 4
        kind: type = np.float32 if profile.single_precision else np.float64
        with np.errstate(over="ignore", under="ignore"):
            values: Floats = np.fromiter(scores.values(), np.float64, len(scores)).astype(kind)
            found: Floats = np.array([scores[hit] for hit in hits], dtype=np.float64).astype(kind)
        ordered = np.sort(values)
        first = len(scores) - np.searchsorted(ordered, found, side="right") + 1
        last = len(scores) - np.searchsorted(ordered, found, side="left")
        rank = first + _places_in_ties(hits, found, first < last, [*scores], values)
        document = np.array([pool[hit] for hit in hits])
        order = np.argsort(rank)
        order = order[: np.count_nonzero(rank <= depth)]
        columns = (document, rank, first, np.minimum(last, depth))
        return len(scores), [column[order].astype(np.int32) for column in columns]


def _places_in_ties(
    hits: Sequence[str], found: Floats, tied: Mask, ids: Sequence[str], values: Floats
) -> Ints:
    """Return how many documents with an equal score come before each hit.

    Their ids are greater.

    found: the scores of the hits. tied: whether another document has the score. values: of all documents.
    """
    places = np.zeros(len(hits), np.int64)
    for score in np.unique(found[tied]):
        # The order of code points is that of the bytes in UTF-8.
        group = sorted((ids[i] for i in np.flatnonzero(values == score).tolist()), reverse=True)
        place_of = {document: place for place, document in enumerate(group)}
        for hit in np.flatnonzero(found == score).tolist():
            places[hit] = place_of[hits[hit]]
    return places


def pools_of(qrels: Qrels) -> Mapping[str, Mapping[str, int]]:
    """Return the index of each document by topic and id, computed once per qrels."""
    if "inputs.pools" not in qrels.cache:
        ids = [id_.decode() for id_ in qrels.documents.to_list()]
        qrels.cache["inputs.pools"] = {
            topic: dict(zip(ids[begin:end], range(begin, end), strict=True))
            for topic, (begin, end) in zip(qrels.topics, pairwise(qrels.offsets.tolist()), strict=True)
        }
    pools: Mapping[str, Mapping[str, int]] = qrels.cache["inputs.pools"]
    return pools
