"""Pools of the first documents of all runs, and the rank of each document in each run."""

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
"""Rank of a document in runs that do not have it."""
_DEPTH = whole_number(description="a depth: a whole number")
Depth = Annotated[int, _DEPTH]
Depths = Annotated[tuple[int, ...], Numbers("rising depths from 1, such as [10,20,50,100]", _DEPTH)]


@dataclass(frozen=True, eq=False)
class Pools:
    """The first documents of all runs (`Tops`, U documents), and their ranks.

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
        """Return the pools of all runs of a subject."""
        tops = tops_of(subject)
        best = np.full((len(tops.ranked), len(tops.topic)), NOWHERE, dtype=np.int32)
        for run, ranked in enumerate(tops.ranked):
            topic, place = np.nonzero(ranked >= 0)
            best[run, ranked[topic, place]] = place + 1
        judged, is_relevant = in_tops(tops, subject.judged), in_tops(tops, relevant(subject))
        return cls(tops, best, judged, is_relevant, len(subject.qrels.documents))

    def pooled(self, depth: int) -> Mask:
        """Return bool[U], the documents of the pool of this depth, judged or not."""
        return np.asarray(self.highest <= depth)

    @cached_property
    def highest(self) -> NDArray[np.int32]:
        """int32[U], the best rank of each document in any run."""
        return np.asarray(self.best.min(axis=0, initial=NOWHERE))

    def mask(self, some: Mask) -> Mask:
        """Return bool[D], the documents of `some`, bool[U], that are in the qrels."""
        mask = np.zeros(self.documents, dtype=bool)
        mask[self.tops.pooled[some & (self.tops.pooled >= 0)]] = True
        return mask

    def by_topic(self, some: Mask) -> Ints:
        """Return int64[T], the number of documents of each topic in `some`, bool[U]."""
        return np.bincount(self.tops.topic[some], minlength=self.tops.ranked.shape[1])


def tops_of(subject: AuditSubject) -> Tops:
    """The first documents of the runs; ValueError where they were not gathered, as `Audit.top` asks."""
    if subject.tops is None:
        raise ValueError("this audit looks at the first documents of runs: gather them as `Audit.top` says")
    return subject.tops


def relevant(subject: AuditSubject) -> Mask:
    """Return bool[D], documents relevant to some subtopic; without subtopics, for the first aspect."""
    return graded(subject)[1] if subject.qrels.subtopics is None else relevant_by_subtopic(subject)


def in_tops(tops: Tops, mask: Mask) -> Mask:
    """Return bool[U], the documents of `tops` that are in `mask`, bool[D]."""
    known = tops.pooled >= 0
    in_mask = np.zeros(len(tops.topic), dtype=bool)
    in_mask[known] = mask[tops.pooled[known]]
    return in_mask


def at_ranks(ranked: NDArray[np.int32], mask: Mask) -> NDArray[np.bool_]:
    """Return bool[runs, T, depth], whether the document at each rank is in `mask`, bool[U]."""
    in_mask: NDArray[np.bool_] = np.append(mask, False)[ranked]  # -1 (no document) selects the appended False
    return in_mask


def held(tops: Tops) -> int:
    """Return the deepest rank at which some run has a document, at least 1."""
    return max(1, int((tops.ranked >= 0).any(axis=(0, 1)).sum()))


def unjudged(ranked: NDArray[np.int32], judged: Mask, depth: int) -> Floats:
    """Return float64[runs, T], the share of unjudged documents among the first `depth` of each run.

    ranked: as in `Tops`, of some runs. judged: bool[U]. The share is of the retrieved documents, as in
    Judged@k, and nan if there are none.
    """
    retrieved = (ranked[:, :, :depth] >= 0).sum(axis=2)
    n_judged = at_ranks(ranked[:, :, :depth], judged).sum(axis=2)
    with np.errstate(invalid="ignore"):
        return np.asarray((retrieved - n_judged) / retrieved, dtype=np.float64)


def mean_of(values: Floats) -> float | None:
    """Return the mean of the values that are not nan; None without any."""
    defined = [value for value in values.tolist() if not math.isnan(value)]
    return math.fsum(defined) / len(defined) if defined else None
