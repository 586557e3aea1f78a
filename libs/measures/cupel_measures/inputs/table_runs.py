"""Runs that are tables of scores in memory: topic, document and score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import isnan
from typing import Any

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

try:
    from cupel_measures.native import _tables as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]

extension: Any = compiled
"""The compiled reader of tables, or None if it was not built. Tests set it to None to test the other one."""


@dataclass(frozen=True, eq=False)
class TableRun:
    """A run as a table of scores.

    name: shown in findings, and the tag of the run. table: all ids are strings. notes: warnings about the
    source of the table.
    """

    name: str
    table: Table
    notes: Findings = field(default_factory=Findings)

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
        findings = Findings(listed, run.findings.totals)
        findings.extend(self.notes)
        return replace(run, findings=findings)

    def join(self, qrels: Qrels, *, profile: Profile, depth: int | None = None) -> Joined:
        """Join the table with `qrels`, without writing it as text."""
        if self.findings.refused:
            raise Refused(self.findings)
        listed = check_topics([*self.table], qrels.listed_topics, file=self.name)
        if listed.refused:
            raise Refused(listed)
        joined = join_table(self.table, qrels, profile=profile, depth=depth)
        unknown_topics = listed.totals.get(EXTRA, 0)
        return replace(joined, unknown_topics=unknown_topics, notes=tuple(self.notes))


def has_scores(scores: Mapping[str, float]) -> bool:
    """Return whether all ids are strings, and all scores floats or ints.

    False for NaN. False can also mean that the ids or scores are of a subclass.
    """
    if extension is not None:
        return bool(extension.has_scores(scores))
    if not {*map(type, scores)} <= {str} or not {*map(type, scores.values())} <= {float, int}:
        return False
    return not isnan(sum(scores.values())) or all(score == score for score in scores.values())


def join_table(table: Table, qrels: Qrels, *, profile: Profile, depth: int | None = None) -> Joined:
    """Join a table of scores with `qrels`: one row per topic of the qrels.

    Ids must be strings, and scores numbers other than NaN.
    """
    depth = DEEPEST if depth is None else min(depth, DEEPEST)
    single = profile.single_precision
    rows = [_hits(table.get(topic, {}), pool, single) for topic, pool in pools_of(qrels).items()]
    columns = np.concatenate([np.zeros((4, 0), np.int32), *rows], axis=1)
    row = np.repeat(np.arange(len(rows)), [hits.shape[1] for hits in rows])
    kept = columns[1] <= depth
    document, rank, first, last = columns[:, kept]
    retrieved = np.array([len(table.get(topic, {})) for topic in qrels.topics], dtype=np.int64)
    return Joined(
        retrieved=np.minimum(retrieved, depth),
        offsets=np.searchsorted(row[kept], np.arange(len(rows) + 1)),
        document=document,
        rank=rank,
        first=first,
        last=np.minimum(last, depth),
        profile=profile,
        pool=qrels.pool_digest,
    )


def _hits(scores: Mapping[str, float], pool: Mapping[str, int], single: bool) -> NDArray[np.int32]:
    """Return the documents of the pool that a topic retrieves: int32[4, hits].

    They are ordered by rank. The rows are index, rank, and first and last rank of the tie group. single:
    compare 32-bit floats.
    """
    if extension is not None and isinstance(scores, dict) and isinstance(pool, dict):
        columns = extension.hits(scores, pool, single)
        if columns is not None:
            return np.frombuffer(columns, np.int32).reshape(4, -1)
    return _ranked(scores, pool, np.float32 if single else np.float64)


def _ranked(scores: Mapping[str, float], pool: Mapping[str, int], kind: type) -> NDArray[np.int32]:
    hits = list(pool.keys() & scores.keys())
    with np.errstate(over="ignore", under="ignore"):
        values: Floats = np.fromiter(scores.values(), np.float64, len(scores)).astype(kind)
        found: Floats = np.fromiter((scores[hit] for hit in hits), np.float64, len(hits)).astype(kind)
    ordered = np.sort(values)
    first = len(scores) - np.searchsorted(ordered, found, side="right") + 1
    last = len(scores) - np.searchsorted(ordered, found, side="left")
    rank = first + _places_in_ties(hits, found, first < last, [*scores], values)
    document = [pool[hit] for hit in hits]
    return np.array([document, rank, first, last], dtype=np.int32)[:, np.argsort(rank)]


def _places_in_ties(
    hits: Sequence[str], found: Floats, tied: Mask, ids: Sequence[str], values: Floats
) -> Ints:
    """Return how many documents with an equal score come before each hit.

    Their ids are greater.

    found: the scores of the hits. tied: whether another document has the same score.
    values: the scores of all documents.
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
