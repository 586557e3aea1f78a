"""Pools of the first documents of all runs, and the ranks of these documents."""

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
"""The rank of a document that a ranking does not contain."""
_DEPTH = whole_number(description="a whole number of ranks")
Depth = Annotated[int, _DEPTH]
Depths = Annotated[tuple[int, ...], Numbers("increasing depths from 1, such as [10,20,50,100]", _DEPTH)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Pools:
    """The U first documents of all runs (see `Tops`), and their rank in each run.

    best: int32[runs, U], the rank of each document in each run, or NOWHERE. judged, relevant: bool[U].
    documents: D, the number of documents in the qrels.
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
        judged, useful = in_tops(tops, subject.judged), in_tops(tops, relevant(subject))
        return cls(
            tops=tops, best=best, judged=judged, relevant=useful, documents=len(subject.qrels.documents)
        )

    def pooled(self, depth: int) -> Mask:
        """Return bool[U], the documents in the pool of this depth, judged or not."""
        return np.asarray(self.highest <= depth)

    @cached_property
    def highest(self) -> NDArray[np.int32]:
        """Return int32[U], the best rank of each document in any run."""
        return np.asarray(self.best.min(axis=0, initial=NOWHERE))

    def mask(self, selected: Mask) -> Mask:
        """Return bool[D], the documents of the qrels that `selected`, bool[U], includes."""
        mask = np.zeros(self.documents, dtype=bool)
        mask[self.tops.pooled[selected & (self.tops.pooled >= 0)]] = True
        return mask

    def count_by_topic(self, selected: Mask) -> Ints:
        """Return the number of documents of each topic that `selected` includes.

        `selected` is bool[U], the numbers are int64[T].
        """
        return np.bincount(self.tops.topic[selected], minlength=self.tops.ranked.shape[1])


def tops_of(subject: AuditSubject) -> Tops:
    """Return the first documents of the runs.

    Raises ValueError if they were not collected.
    """
    if subject.tops is None:
        raise ValueError(
            "the audit needs the first documents of runs; collect them down to rank `Audit.ranking_depth`"
        )
    return subject.tops


def relevant(subject: AuditSubject) -> Mask:
    """Return bool[D], the documents that are relevant to some subtopic of their topic.

    If the qrels have no subtopics, return the documents that are relevant for the first aspect.
    """
    return graded(subject)[1] if subject.qrels.subtopics is None else relevant_by_subtopic(subject)


def in_tops(tops: Tops, mask: Mask) -> Mask:
    """Return bool[U], the documents of `tops` that are in `mask`, bool[D]."""
    known = tops.pooled >= 0
    selected = np.zeros(len(tops.topic), dtype=bool)
    selected[known] = mask[tops.pooled[known]]
    return selected


def at_ranks(ranked: NDArray[np.int32], mask: Mask) -> NDArray[np.bool_]:
    """Return whether the document at each rank is in `mask`.

    `mask` is bool[U], the result is bool[runs, T, depth].
    """
    selected: NDArray[np.bool_] = np.append(mask, False)[
        ranked
    ]  # index -1 (no document) selects the appended False
    return selected


def find_last_rank(tops: Tops) -> int:
    """Return the number of documents in the longest ranking of any run, at least 1."""
    return max(1, int((tops.ranked >= 0).any(axis=(0, 1)).sum()))


def unjudged(ranked: NDArray[np.int32], judged: Mask, depth: int) -> Floats:
    """Return the unjudged share of the first `depth` documents.

    The share is float64[runs, T], and nan if there are no documents.

    ranked: the ranked documents of any runs, as in `Tops`. judged: bool[U]. The divisor is the number of
    documents retrieved down to `depth`, as for Judged@k.
    """
    retrieved = (ranked[:, :, :depth] >= 0).sum(axis=2)
    seen = at_ranks(ranked[:, :, :depth], judged).sum(axis=2)
    with np.errstate(invalid="ignore"):
        return np.asarray((retrieved - seen) / retrieved, dtype=np.float64)


def mean_of(values: Floats) -> float | None:
    """Return the mean of the values that are not nan, or None if there are none."""
    defined = [value for value in values.tolist() if value == value]
    return math.fsum(defined) / len(defined) if defined else None
