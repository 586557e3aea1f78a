"""Rankings, runs as read, and runs joined with qrels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.findings import Finding, Findings
from cupel_measures.model.arrays import Floats, Ids, Ints
from cupel_measures.model.profiles import DEFAULT, Profile


@dataclass(frozen=True, eq=False)
class Ranking:
    """All documents of a run, ordered by topic, score and id.

    Topics are in the order of their bytes; score and id are descending.

    topics: T ids. offsets: int64[T + 1] into documents (n ids) and scores (float64[n]).
    """

    topics: tuple[str, ...]
    offsets: Ints
    documents: Ids
    scores: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """A run as read, without a cut.

    metadata: the ir_metadata block of the run. reordered: topics whose rank column contradicts the order by
    score.
    """

    tag: str
    ranking: Ranking
    findings: Findings
    metadata: Mapping[str, Any] | None = None
    reordered: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Joined:
    """One or several runs joined with qrels.

    There is one row per run and topic of the qrels: first all topics of the first run, then all topics of the
    second run, and so on. A row contains the hits: the retrieved documents that are in the pool of the topic,
    by ascending rank. Other documents matter only because they change the ranks of the hits.

    retrieved: int64[rows], number of documents that the run retrieves for the topic, after any depth cut.
    offsets: int64[rows + 1] into the hits. document: int32[hits], index into `Qrels.documents`.
    rank: int32[hits], from 1. first, last: int32[hits], ranks of the first and last document with the same
    score as the hit (its tie group, including itself). profile: the rules of the join.
    unknown_topics: number of topics of the runs that the qrels lack; they are ignored. pool:
    `Qrels.pool_digest` of the qrels, or None if the rows were not made by joining a run. notes: warnings
    about how the run was read.
    """

    retrieved: Ints
    offsets: Ints
    document: NDArray[np.int32]
    rank: NDArray[np.int32]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    profile: Profile = DEFAULT
    unknown_topics: int = 0
    notes: tuple[Finding, ...] = ()
    pool: int | None = None

    @property
    def has_documents(self) -> NDArray[np.bool_]:
        """Return bool[rows]: whether the run has documents for the topic of the row."""
        return self.retrieved > 0

    @classmethod
    def empty(cls, topics: int) -> "Joined":
        """Return a joined run without documents."""
        nothing = np.zeros(0, dtype=np.int32)
        return cls(
            retrieved=np.zeros(topics, dtype=np.int64),
            offsets=np.zeros(topics + 1, dtype=np.int64),
            document=nothing,
            rank=nothing,
            first=nothing,
            last=nothing,
        )

    def part(self, begin: int, end: int) -> "Joined":
        """Return rows `begin` to `end - 1`. `unknown_topics` of the result is 0."""
        hits = slice(self.offsets[begin], self.offsets[end])
        return Joined(
            retrieved=self.retrieved[begin:end],
            offsets=self.offsets[begin : end + 1] - self.offsets[begin],
            document=self.document[hits],
            rank=self.rank[hits],
            first=self.first[hits],
            last=self.last[hits],
            profile=self.profile,
            pool=self.pool,
        )

    @classmethod
    def stack(cls, parts: Sequence["Joined"]) -> "Joined":
        """Concatenate the rows of several runs.

        Raise ValueError if their profiles differ, or if they were joined with different qrels.
        """
        if len({part.profile.name for part in parts}) != 1:
            raise ValueError("joined runs have different profiles; join them with one profile")
        if len({part.pool for part in parts}) != 1:
            raise ValueError("the runs were joined with different qrels; join them with the same qrels")
        ends = np.concatenate([[0], np.cumsum([part.offsets[-1] for part in parts])])
        offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
        return cls(
            retrieved=np.concatenate([part.retrieved for part in parts]),
            offsets=np.concatenate([*offsets, ends[-1:]]).astype(np.int64),
            document=np.concatenate([part.document for part in parts]),
            rank=np.concatenate([part.rank for part in parts]),
            first=np.concatenate([part.first for part in parts]),
            last=np.concatenate([part.last for part in parts]),
            profile=parts[0].profile,
            pool=parts[0].pool,
            unknown_topics=sum(part.unknown_topics for part in parts),
            notes=tuple(note for part in parts for note in part.notes),
        )
