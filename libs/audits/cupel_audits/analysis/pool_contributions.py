"""What groups of runs bring to the judged pool. Joined rows say it all: a run is read fast for this."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cupel_audits.analysis.pools import NOWHERE, relevant
from cupel_audits.subject import AuditSubject
from cupel_measures.model import Floats, Ints
from cupel_measures.scoring.pool import Mask

EDGE = 0.1
"""A fall of the judged share from one rank to the next that is taken for the end of the pool."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """Who brings each pooled document, D of them.

    first, second: int32[D], the best rank that a group's runs give it, and the best of another group; NOWHERE
    where there is none. who: int64[D], the group of the first. judged, relevant: bool[D].
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    who: Ints
    judged: Mask
    relevant: Mask

    @classmethod
    def of(cls, subject: AuditSubject, groups: Sequence[int]) -> "Contributions":
        """groups: the group of each run, from 0."""
        first, second = np.full((2, len(subject.qrels.documents)), NOWHERE, dtype=np.int32)
        who = np.full(len(first), -1)
        for group in sorted(set(groups)):
            ranks = _best(subject, [run for run, of in enumerate(groups) if of == group])
            who[ranks < first] = group
            np.minimum(second, np.maximum(first, ranks), out=second)
            np.minimum(first, ranks, out=first)
        return cls(first, second, who, subject.judged, relevant(subject))

    def owner(self, depth: int) -> Ints:
        """int64[D]: the one group that brings the document to the pool of this depth; -1: none or several."""
        return np.where((self.first <= depth) & (self.second > depth), self.who, -1)


def _best(subject: AuditSubject, runs: Sequence[int]) -> NDArray[np.int32]:
    """int32[D]: the best rank that one of `runs` gives each document, or NOWHERE."""
    best = np.full(len(subject.qrels.documents), NOWHERE, dtype=np.int32)
    for run in runs:
        hits = _hits(subject, run)
        documents = subject.joined.document[hits]
        best[documents] = np.minimum(best[documents], subject.joined.rank[hits])
    return best


def _hits(subject: AuditSubject, run: int) -> slice:
    """Those of all rows of a run."""
    topics = len(subject.qrels.topics)
    begin, end = subject.joined.offsets[[run * topics, (run + 1) * topics]].tolist()
    return slice(begin, end)


def deepest(subject: AuditSubject) -> int:
    """The last rank at which some run has a document, at least 1."""
    return max(1, int(subject.joined.retrieved.max(initial=0)))


def pool_depth(subject: AuditSubject, most: int) -> int:
    """How deep the pool seems to be: the rank below which the judged share of all runs' documents falls most.

    A pool that was made to some depth shows such an edge. Where no fall is as large as EDGE: down to where
    half of the documents are judged. At least 1, at most `most`.
    """
    joined, most = subject.joined, min(most, deepest(subject))
    known = joined.rank[subject.judged[joined.document]]
    judged = np.bincount(known[known <= most], minlength=most + 1)[1:]
    lengths = np.bincount(np.minimum(joined.retrieved, most), minlength=most + 1)
    there = np.cumsum(lengths[::-1])[::-1][1:]
    shares = judged / np.maximum(there, 1)
    falls = shares[:-1] - shares[1:]
    if falls.max(initial=0) >= EDGE:
        return int(np.argmax(falls)) + 1
    return max(1, int(np.count_nonzero(np.minimum.accumulate(shares) >= 0.5)))


def unjudged(subject: AuditSubject, run: int, judged: Mask, depth: int) -> Floats:
    """float64[T]: the share of documents not in `judged`, bool[D], among a run's first `depth`.

    Divides by what was retrieved, as Judged@k does; nan where that is nothing.
    """
    topics, hits = len(subject.qrels.topics), _hits(subject, run)
    there = np.minimum(subject.joined.retrieved[run * topics : (run + 1) * topics], depth)
    counted = judged[subject.joined.document[hits]] & (subject.joined.rank[hits] <= depth)
    number = np.diff(subject.joined.offsets[run * topics : (run + 1) * topics + 1])
    seen = np.bincount(np.repeat(np.arange(topics), number)[counted], minlength=topics)
    with np.errstate(invalid="ignore"):
        return np.asarray((there - seen) / there, dtype=np.float64)
