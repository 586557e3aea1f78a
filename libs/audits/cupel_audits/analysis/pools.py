"""Pools as runs make them: which document stands how high in which run."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from cupel_audits.analysis.judgment_samples import graded, relevant_by_subtopic
from cupel_audits.declarations import whole_number
from cupel_audits.subject import AuditSubject, Tops
from cupel_measures.grammar.parameters import Numbers
from cupel_measures.model import Floats, Ints
from cupel_measures.scoring.pool import Mask

NOWHERE = 2**31 - 1
"""The rank of a document in rankings that do not have it."""
_DEPTH = whole_number(description="a depth: a whole number")
Depth = Annotated[int, _DEPTH]
Depths = Annotated[tuple[int, ...], Numbers("rising depths from 1, such as [10,20,50,100]", _DEPTH)]


@dataclass(frozen=True, eq=False)
class Pools:
    """The first documents of all runs (`Tops`, U of them), and how high they stand.

    best: int32[runs, U], the rank that a run gives the document, or NOWHERE. judged, relevant: bool[U];
    relevant is as in `relevant`. documents: D, of the qrels.
    """

    tops: Tops
    best: NDArray[np.int32]
    judged: Mask
    relevant: Mask
    documents: int

    @classmethod
    def of(cls, subject: AuditSubject) -> "Pools":
        """Those of all runs."""
        tops = tops_of(subject)
        best = np.full((len(tops.ranked), len(tops.topic)), NOWHERE, dtype=np.int32)
        for run, ranked in enumerate(tops.ranked):
            topic, place = np.nonzero(ranked >= 0)
            best[run, ranked[topic, place]] = place + 1
        judged, useful = in_tops(tops, subject.judged), in_tops(tops, relevant(subject))
        return cls(tops, best, judged, useful, len(subject.qrels.documents))

    def pooled(self, depth: int) -> Mask:
        """bool[U]: the pool of this depth, judged or not."""
        return np.asarray(self.highest <= depth)

    @cached_property
    def highest(self) -> NDArray[np.int32]:
        """int32[U]: the best rank that any run gives the document."""
        return np.asarray(self.best.min(axis=0, initial=NOWHERE))

    def mask(self, some: Mask) -> Mask:
        """bool[D]: those of `some`, bool[U], that the qrels know."""
        mask = np.zeros(self.documents, dtype=bool)
        mask[self.tops.pooled[some & (self.tops.pooled >= 0)]] = True
        return mask

    def by_topic(self, some: Mask) -> Ints:
        """int64[T]: how many of each topic are in `some`, bool[U]."""
        return np.bincount(self.tops.topic[some], minlength=self.tops.ranked.shape[1])


def tops_of(subject: AuditSubject) -> Tops:
    """The first documents of the runs; ValueError where they were not gathered, as `Audit.top` asks."""
    if subject.tops is None:
        raise ValueError("this audit looks at the first documents of runs: gather them as `Audit.top` says")
    return subject.tops


def relevant(subject: AuditSubject) -> Mask:
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
