"""Rankings, runs as read, and runs joined with qrels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model.arrays import Floats, Ids, Ints
from cupel_measures.model.findings import Findings
from cupel_measures.model.profiles import DEFAULT, Profile


@dataclass(frozen=True, eq=False)
class Ranking:
    """Every document of a run, in order: by topic (bytes), then score descending, then id descending.

    topics: T ids. offsets: int64[T + 1] into documents (n ids) and scores (float64[n]).
    """

    topics: tuple[str, ...]
    offsets: Ints
    documents: Ids
    scores: Floats


@dataclass(frozen=True, eq=False)
class Run:
    """A run as read: its tag, its ranking before any cut, its ir_metadata block and what was found.

    reordered: the topics that the rank column would order otherwise.
    """

    tag: str
    ranking: Ranking
    findings: Findings
    metadata: Mapping[str, Any] | None = None
    reordered: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Joined:
    """A run seen through qrels: a row per topic of the qrels (in their order, one run after another).

    A row keeps only the retrieved documents that the topic's pool knows, by ascending rank; an
    unjudged document matters only through the ranks of the others.

    retrieved: int64[rows], how many documents the run has for the topic (after any depth cut).
    offsets: int64[rows + 1] into the hits. document: int32[hits], index into `Qrels.documents`.
    rank: int32[hits], from 1. first, last: int32[hits], ranks of the first and last document with
    the same score as the hit (its tie group), itself included. profile: the rules it was joined by.
    strangers: how many topics of the run the qrels don't have; they are ignored.
    """

    retrieved: Ints
    offsets: Ints
    document: NDArray[np.int32]
    rank: NDArray[np.int32]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    profile: Profile = DEFAULT
    strangers: int = 0

    @classmethod
    def empty(cls, topics: int) -> "Joined":
        """A run without documents."""
        nothing = np.zeros(0, dtype=np.int32)
        rows = np.zeros(topics, dtype=np.int64), np.zeros(topics + 1, dtype=np.int64)
        return cls(*rows, nothing, nothing, nothing, nothing)

    def part(self, begin: int, end: int) -> "Joined":
        """Rows begin..end - 1; topics of the run that the qrels don't have are not counted."""
        hits = slice(self.offsets[begin], self.offsets[end])
        return Joined(
            self.retrieved[begin:end],
            self.offsets[begin : end + 1] - self.offsets[begin],
            self.document[hits],
            self.rank[hits],
            self.first[hits],
            self.last[hits],
            self.profile,
        )

    @classmethod
    def stack(cls, parts: Sequence["Joined"]) -> "Joined":
        """The rows of several runs, one after another. ValueError where their profiles differ."""
        if len({part.profile.name for part in parts}) != 1:
            raise ValueError("only runs that were joined by one profile can be stacked")
        ends = np.concatenate([[0], np.cumsum([part.offsets[-1] for part in parts])])
        offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
        return cls(
            np.concatenate([part.retrieved for part in parts]),
            np.concatenate([*offsets, ends[-1:]]).astype(np.int64),
            np.concatenate([part.document for part in parts]),
            np.concatenate([part.rank for part in parts]),
            np.concatenate([part.first for part in parts]),
            np.concatenate([part.last for part in parts]),
            parts[0].profile,
            sum(part.strangers for part in parts),
        )
