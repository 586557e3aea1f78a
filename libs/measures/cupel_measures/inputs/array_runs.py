"""Runs that are arrays of document ids and scores, with one row per topic."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.findings import Finding, Findings, Refused
from cupel_measures.inputs.id_hashes import (
    Cells,
    code_points,
    has_white_space,
    hashes_of,
    judged_cells,
    repeated_cells,
)
from cupel_measures.inputs.table_runs import TableRun, pools_of
from cupel_measures.inputs.topic_tables import BLANK, COMMENT, ID_TWICE, NOT_AN_ID, Table, blank_ids
from cupel_measures.model import Ints, Joined, Qrels, Run
from cupel_measures.model.profiles import Profile
from cupel_measures.reading.joins import DEEPEST
from cupel_measures.reading.lines.rank_checks import DUPLICATE
from cupel_measures.reading.lines.run_lines import EMPTY, SCORE
from cupel_measures.reading.lines.topic_checks import EXTRA, check_topics


def array_run(topics: Sequence[Any], ids: Any, scores: Any, *, name: str = "run") -> "ArrayRun":
    """Return a run from arrays, such as the result of a search in a vector index.

    topics: n ids. ids: document ids, of shape (n, k): integers, strings or objects. scores: numbers, of the
    same shape. The columns can have any order. A negative integer or an empty string in `ids` means that
    there is no document; its score is ignored. name: shown in findings.

    Raise ValueError if the shapes differ. Invalid ids and scores are reported when the run is scored.
    """
    cells, values = np.asarray(ids), np.asarray(scores)
    if cells.ndim != 2 or values.shape != cells.shape or len(topics) != len(cells):
        shapes = f"ids {cells.shape}, scores {values.shape}, topics {len(topics)}"
        raise ValueError(f"expected ids and scores of shape (topics, k), got {shapes}")
    if values.dtype.kind not in "iuf":
        raise TypeError(f"{name}: scores are of type {values.dtype}; expected numbers")
    return ArrayRun(name=name, topics=tuple(np.asarray(topics, dtype=object)), ids=cells, scores=values)


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrayRun:
    """A run as arrays of ids and scores with a row per topic, from `array_run`."""

    name: str
    topics: tuple[Any, ...]
    ids: Cells
    scores: NDArray[Any]

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Return bool[n, k]: whether there is a document."""
        if self.ids.dtype.kind in "iu":
            return np.asarray(self.ids >= 0)
        if self.ids.dtype.kind in "US":
            return np.asarray(code_points(self.ids)[..., 0] != 0)
        return np.array([id_ != "" for id_ in self.ids.ravel().tolist()], bool).reshape(self.ids.shape)

    @cached_property
    def names(self) -> list[str]:
        """Return the topic ids as strings."""
        return list(map(str, self.topics))

    @cached_property
    def findings(self) -> Findings:
        """Return the errors.

        These are invalid or repeated ids, scores that are no numbers, and a run without documents.
        """
        findings = Findings()
        self._check_topics(findings)
        self._check_ids(findings)
        wrong = ~np.isfinite(self.scores) & self.present if self.scores.dtype.kind == "f" else None
        for row, column in [] if wrong is None else np.argwhere(wrong).tolist():
            message = f"the score of document {self._id(row, column)!r} of topic {self.names[row]!r} is "
            message += f"{self.scores[row, column]}, not a finite number"
            findings.add(Finding(code=SCORE, message=message, file=self.name, topic=self.names[row]))
        if not self.present.any():
            findings.add(Finding(code=EMPTY, message="the run has no documents", file=self.name))
        return findings

    def _check_topics(self, findings: Findings) -> None:
        are_distinct = {*map(type, self.topics)} == {str} and len({*self.names}) == len(self.names)
        if are_distinct and not blank_ids(self.names) and not any(name[0] == "#" for name in self.names):
            return
        seen = set[str]()
        for given, name in zip(self.topics, self.names, strict=True):
            code, problem = "", ""
            if isinstance(given, bool) or not isinstance(given, str | int | np.integer):
                code, problem = NOT_AN_ID, f"is a {type(given).__name__}"
            elif blank_ids([name]):
                code, problem = BLANK, "is empty or contains white space"
            elif name.startswith("#"):
                code, problem = COMMENT, "begins with #"
            elif name in seen:
                code, problem = ID_TWICE, "is given twice"
            if code:
                message = f"the topic id {given!r} {problem}"
                findings.add(Finding(code=code, message=message, file=self.name, topic=name[:80]))
            seen.add(name)

    def _check_ids(self, findings: Findings) -> None:
        if self.ids.dtype.kind not in "iuUSO":
            message = f"document ids are of type {self.ids.dtype}"
            findings.add(Finding(code=NOT_AN_ID, message=message, file=self.name))
            return
        if self.ids.dtype.kind == "O":
            self._check_objects(findings)
        if not findings.refused and has_white_space(self.ids):
            for row, topic in enumerate(self.names):
                for id_ in blank_ids(self._row(row)):
                    message = f"the document id {id_!r} of topic {topic!r} contains white space"
                    findings.add(Finding(code=BLANK, message=message, file=self.name, sample=id_[:80]))
        if findings.refused:
            return
        for row, column in repeated_cells(self.ids, self.present, self._hashes):
            id_, topic = self._id(row, column), self.names[row]
            message = f"document {id_!r} is ranked twice for topic {topic!r}"
            findings.add(Finding(code=DUPLICATE, message=message, file=self.name, topic=topic, sample=id_))

    def _check_objects(self, findings: Findings) -> None:
        kinds = set(map(type, self.ids.ravel().tolist()))
        if any(kind is bool or not issubclass(kind, str | int | np.integer) for kind in kinds):
            wrong = ", ".join(sorted(kind.__name__ for kind in kinds))
            message = f"document ids are of the types {wrong}; expected strings or whole numbers"
            findings.add(Finding(code=NOT_AN_ID, message=message, file=self.name))

    @cached_property
    def _hashes(self) -> NDArray[np.uint64]:
        return hashes_of(self.ids)

    def _id(self, row: int, column: int) -> str:
        id_ = self.ids[row, column]
        return id_.decode(errors="replace") if isinstance(id_, bytes) else str(id_)

    def _row(self, row: int) -> list[str]:
        """Return the ids of a topic."""
        return [self._id(row, column) for column in np.flatnonzero(self.present[row]).tolist()]

    def table(self) -> Table:
        """Return the run as a dictionary from topic to document to score."""
        if self.findings.refused:
            raise Refused(self.findings)
        rows = (self.scores[row][self.present[row]].tolist() for row in range(len(self.ids)))
        return {
            topic: dict(zip(self._row(row), scores, strict=True))
            for row, (topic, scores) in enumerate(zip(self.names, rows, strict=True))
        }

    def read(self, depth: int | None = None) -> Run:
        """Return the whole run."""
        return TableRun(self.name, self.table()).read(depth)

    def join(self, qrels: Qrels, *, profile: Profile, depth: int | None = None) -> Joined:
        """Join the arrays with `qrels`; only the ranks of judged documents are computed."""
        if self.findings.refused:
            raise Refused(self.findings)
        filled = [name for name, count in zip(self.names, self._counts, strict=True) if count]
        listed = check_topics(filled, qrels.listed_topics, file=self.name)
        if listed.refused:
            raise Refused(listed)
        number = {topic: place for place, topic in enumerate(qrels.topics)}
        rows = np.array([number.get(name, -1) for name in self.names], np.int64)
        depth = DEEPEST if depth is None else min(depth, DEEPEST)
        joined = _Hits.of(self, qrels, rows).joined(self, profile, depth)
        return replace(joined, unknown_topics=listed.totals.get(EXTRA, 0), pool=qrels.pool_digest)

    @cached_property
    def _counts(self) -> Ints:
        counts: Ints = np.count_nonzero(self.present, axis=1)
        return counts


@dataclass(frozen=True, eq=False, kw_only=True)
class _Hits:
    """The judged documents of a run.

    row, column: positions in the arrays. topic, document: indices in the qrels. topics: number of topics in
    the qrels. rows: by row of the arrays, the index of the topic in the qrels, or -1 if they lack it.
    """

    row: Ints
    column: Ints
    topic: Ints
    document: Ints
    topics: int
    rows: Ints

    @classmethod
    def of(cls, run: ArrayRun, qrels: Qrels, rows: Ints) -> "_Hits":
        pools, ids = pools_of(qrels), run.ids
        found = list[tuple[int, int, int]]()
        places = judged_cells(ids, run._hashes, [pools.get(name, {}) for name in run.names])
        for row, column in places:
            known = pools[run.names[row]].get(run._id(row, column))
            if known is not None and run.present[row, column]:
                found.append((row, column, known))
        at, columns, document = np.array(found, np.int64).reshape(-1, 3).T
        return cls(
            row=at, column=columns, topic=rows[at], document=document, topics=len(qrels.topics), rows=rows
        )

    def joined(self, run: ArrayRun, profile: Profile, depth: int) -> Joined:
        """Return the joined rows of the hits down to a depth."""
        rank, first, last = self._ranks(run, profile)
        order = np.lexsort((rank, self.topic))
        order = order[rank[order] <= depth]
        retrieved = np.zeros(self.topics, np.int64)
        known = self.rows >= 0
        retrieved[self.rows[known]] = np.minimum(run._counts[known], depth)
        offsets = np.zeros(self.topics + 1, np.int64)
        np.cumsum(np.bincount(self.topic[order], minlength=self.topics), out=offsets[1:])
        columns = (self.document, rank, first, np.minimum(last, depth))
        hits = [column[order].astype(np.int32) for column in columns]
        return Joined(
            retrieved=retrieved,
            offsets=offsets,
            document=hits[0],
            rank=hits[1],
            first=hits[2],
            last=hits[3],
            profile=profile,
        )

    def _ranks(self, run: ArrayRun, profile: Profile) -> tuple[Ints, Ints, Ints]:
        """Return rank, and the first and last rank with the same score, of each hit."""
        scores = _comparable(run, profile)
        if len(scores) and bool((scores[:, 1:] <= scores[:, :-1]).all()):
            before = scores[self.row, np.maximum(self.column - 1, 0)]
            after = scores[self.row, np.minimum(self.column + 1, scores.shape[1] - 1)]
            own = scores[self.row, self.column]
            alone = ((before != own) | (self.column == 0)) & (
                (after != own) | (self.column == scores.shape[1] - 1)
            )
        else:
            alone = np.zeros(len(self.row), bool)
        first, last = self.column + 1, self.column + 1
        self._count(scores, np.flatnonzero(~alone), first, last)
        rank = first.copy()
        self._order_ties(run, scores, np.flatnonzero(first < last).tolist(), rank)
        return rank, first, last

    def _count(self, scores: NDArray[Any], hits: Ints, first: Ints, last: Ints) -> None:
        """Set the first and last rank of some hits, by sorting their topics."""
        bounds = np.flatnonzero(np.diff(self.row[hits], prepend=-1, append=-1))
        for begin, end in pairwise(bounds.tolist()):
            group = hits[begin:end]
            row = int(self.row[group[0]])
            own, ordered = scores[row, self.column[group]], np.sort(scores[row])
            first[group] = len(ordered) - np.searchsorted(ordered, own, side="right") + 1
            last[group] = len(ordered) - np.searchsorted(ordered, own, side="left")

    def _order_ties(self, run: ArrayRun, scores: NDArray[Any], tied: list[int], rank: Ints) -> None:
        """Add to the rank of tied hits the number of documents before them in the group.

        Ids descend in a tie group.
        """
        groups: dict[tuple[int, float], dict[str, int]] = {}
        for hit in tied:
            row, column = int(self.row[hit]), int(self.column[hit])
            values = scores[row]
            group = row, float(values[column])
            if group not in groups:
                members = np.flatnonzero((values == values[column]) & run.present[row]).tolist()
                ids = sorted((run._id(row, member) for member in members), reverse=True)
                groups[group] = {id_: place for place, id_ in enumerate(ids)}
            rank[hit] += groups[group][run._id(row, column)]


def _comparable(run: ArrayRun, profile: Profile) -> NDArray[Any]:
    """Return scores in the precision in which `profile` compares them.

    A cell without a document has -inf.
    """
    with np.errstate(over="ignore", under="ignore"):
        scores = run.scores if run.scores.dtype.kind == "f" else run.scores.astype(np.float64)
        scores = scores.astype(np.float32) if profile.single_precision else scores
    return scores if run.present.all() else np.where(run.present, scores, -np.inf)
