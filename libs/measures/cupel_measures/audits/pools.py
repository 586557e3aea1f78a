"""Pools as runs make them: which document stands how high in which run, and who alone brought it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from cupel_measures.audits.sampling import graded, relevant_by_subtopic
from cupel_measures.audits.subject import Subject, Tops
from cupel_measures.model import Floats, Ints
from cupel_measures.parameters import Numbers, Whole
from cupel_measures.pool import Mask

NOWHERE = 2**31 - 1
"""The rank of a document in rankings that do not have it."""
_DEPTH = Whole("a depth: a whole number from 1")
Depth = Annotated[int, _DEPTH]
Depths = Annotated[tuple[int, ...], Numbers("rising depths from 1, such as [10,20,50,100]", _DEPTH)]
EDGE = 0.1
"""A fall of the judged share from one rank to the next that is taken for the end of the pool."""


@dataclass(frozen=True, eq=False)
class Pools:
    """The first documents of all runs (`Tops`, U of them), and what groups of runs brought them.

    best: int32[groups, U], the best rank that a run of the group gives the document, or NOWHERE. judged,
    relevant: bool[U]; relevant is as in `relevant`. documents: D, of the qrels.
    """

    tops: Tops
    best: NDArray[np.int32]
    judged: Mask
    relevant: Mask
    documents: int

    @classmethod
    def of(cls, subject: Subject, groups: Sequence[int] | None = None) -> "Pools":
        """groups: the group of each run, from 0 (a team, say); by default each run is its own."""
        tops = tops_of(subject)
        of_run = range(len(tops.ranked)) if groups is None else groups
        best = np.full((max(of_run, default=-1) + 1, len(tops.topic)), NOWHERE, dtype=np.int32)
        for run, group in enumerate(of_run):
            topic, place = np.nonzero(tops.ranked[run] >= 0)
            seen = tops.ranked[run][topic, place]
            best[group, seen] = np.minimum(best[group, seen], place + 1)
        judged, useful = in_tops(tops, subject.judged), in_tops(tops, relevant(subject))
        return cls(tops, best, judged, useful, len(subject.qrels.documents))

    def pooled(self, depth: int) -> Mask:
        """bool[U]: the pool of this depth, judged or not."""
        return np.asarray(self.leaders[0] <= depth)

    def owner(self, depth: int) -> Ints:
        """int64[U]: the one group that brings the document to the pool of this depth; -1: none or several."""
        first, second, who = self.leaders
        return np.where((first <= depth) & (second > depth), who, -1)

    @cached_property
    def leaders(self) -> tuple[NDArray[np.int32], NDArray[np.int32], Ints]:
        """int32[U], int32[U], int64[U]: the best rank of all groups, the second best, whose the best is."""
        first, second = np.full((2, self.best.shape[1]), NOWHERE, dtype=np.int32)
        who = np.full(len(first), -1)
        for group, ranks in enumerate(self.best):
            who[ranks < first] = group
            np.minimum(second, np.maximum(first, ranks), out=second)
            np.minimum(first, ranks, out=first)
        return first, second, who

    def mask(self, some: Mask) -> Mask:
        """bool[D]: those of `some`, bool[U], that the qrels know."""
        mask = np.zeros(self.documents, dtype=bool)
        mask[self.tops.pooled[some & (self.tops.pooled >= 0)]] = True
        return mask

    def by_topic(self, some: Mask) -> Ints:
        """int64[T]: how many of each topic are in `some`, bool[U]."""
        return np.bincount(self.tops.topic[some], minlength=self.tops.ranked.shape[1])


def tops_of(subject: Subject) -> Tops:
    """The first documents of the runs; ValueError where they were not gathered, as `Audit.top` asks."""
    if subject.tops is None:
        raise ValueError("this audit looks at the first documents of runs: gather them as `Audit.top` says")
    return subject.tops


def relevant(subject: Subject) -> Mask:
    """bool[D]: relevant to some subtopic; without judgments by subtopic, for the first aspect."""
    return graded(subject)[1] if subject.qrels.subtopics is None else relevant_by_subtopic(subject)


def in_tops(tops: Tops, mask: Mask) -> Mask:
    """bool[U]: the documents of `tops` that are in `mask`, bool[D]."""
    known = tops.pooled >= 0
    found = np.zeros(len(tops.topic), dtype=bool)
    found[known] = mask[tops.pooled[known]]
    return found


def at_ranks(ranked: NDArray[np.int32], mask: Mask) -> NDArray[np.bool_]:
    """bool[runs, T, depth]: whether there is a document of `mask`, bool[U]."""
    found: NDArray[np.bool_] = np.append(mask, False)[ranked]  # -1, nothing, is the last
    return found


def held(tops: Tops) -> int:
    """The deepest rank at which some run has a document, at least 1."""
    return max(1, int((tops.ranked >= 0).any(axis=(0, 1)).sum()))


def pool_depth(subject: Subject) -> int:
    """How deep the pool seems to be: the rank below which the judged share of all runs' documents falls most.

    A pool that was made to some depth shows such an edge. Where no fall is as large as EDGE: down to where
    half of the documents are judged. At least 1, at most how far `tops` go.
    """
    tops = tops_of(subject)
    there = (tops.ranked >= 0).sum(axis=(0, 1))[: held(tops)]
    judged = at_ranks(tops.ranked, in_tops(tops, subject.judged)).sum(axis=(0, 1))[: held(tops)]
    shares = judged / np.maximum(there, 1)
    falls = shares[:-1] - shares[1:]
    if falls.max(initial=0) >= EDGE:
        return int(np.argmax(falls)) + 1
    return max(1, int(np.count_nonzero(np.minimum.accumulate(shares) >= 0.5)))


def unjudged(ranked: NDArray[np.int32], judged: Mask, depth: int) -> Floats:
    """float64[runs, T]: the share of unjudged documents among a run's first `depth`; nan where it has none.

    ranked: of some runs, as in `Tops`. judged: bool[U]. Divides by what was retrieved, as Judged@k does.
    """
    there = (ranked[:, :, :depth] >= 0).sum(axis=2)
    seen = at_ranks(ranked[:, :, :depth], judged).sum(axis=2)
    with np.errstate(invalid="ignore"):
        return np.asarray((there - seen) / there, dtype=np.float64)


def mean_of(values: Floats) -> float | None:
    """The mean of those that are numbers; None of none."""
    found = [value for value in values.tolist() if value == value]
    return math.fsum(found) / len(found) if found else None
