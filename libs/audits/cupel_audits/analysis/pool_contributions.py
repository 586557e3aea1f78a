"""Contributions of groups of runs to the judged pool.

They are computed from the runs joined with the qrels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cupel_audits.analysis.pools import NOWHERE, relevant
from cupel_audits.subject import AuditSubject
from cupel_measures.model import Floats, Ints
from cupel_measures.scoring.pool import Mask

EDGE = 0.1
"""Smallest drop of the judged share between two ranks that is interpreted as the end of the pool."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Contributions:
    """The best ranks of each document in the qrels, and the group that ranks it best.

    The qrels have D documents. The group is that of the run that ranks the document best.

    first: int32[D], the best rank of the document in any run. holder: int64[D], the group of the run with
    this rank, or -1 if no run retrieves the document. second: int32[D], the best rank in the runs of all
    other groups. `first` is NOWHERE if no run retrieves the document, and `second` if no run of another group
    does. judged, relevant: bool[D].
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    holder: Ints
    judged: Mask
    relevant: Mask

    @classmethod
    def of(cls, subject: AuditSubject, groups: Sequence[int]) -> "Contributions":
        """Compute the contributions. groups: the group of each run, numbered from 0."""
        first, second = np.full((2, len(subject.qrels.documents)), NOWHERE, dtype=np.int32)
        holder = np.full(len(first), -1)
        for group in sorted(set(groups)):
            ranks = _best(subject, [run for run, its_group in enumerate(groups) if its_group == group])
            holder[ranks < first] = group
            np.minimum(second, np.maximum(first, ranks), out=second)
            np.minimum(first, ranks, out=first)
        return cls(
            first=first, second=second, holder=holder, judged=subject.judged, relevant=relevant(subject)
        )

    def owner(self, depth: int) -> Ints:
        """Return the group that alone contributes each document to this depth, or -1.

        The groups are int64[D].
        """
        return np.where((self.first <= depth) & (self.second > depth), self.holder, -1)

    def unexplained(self, depth: int) -> int:
        """Return the number of judged documents that no run has among its first `depth`."""
        return int(np.count_nonzero(self.judged & (self.first > depth)))


def _best(subject: AuditSubject, runs: Sequence[int]) -> NDArray[np.int32]:
    """Return int32[D], the best rank of each document in these runs, or NOWHERE."""
    best = np.full(len(subject.qrels.documents), NOWHERE, dtype=np.int32)
    for run in runs:
        hits = _hits(subject, run)
        documents = subject.joined.document[hits]
        best[documents] = np.minimum(best[documents], subject.joined.rank[hits])
    return best


def _hits(subject: AuditSubject, run: int) -> slice:
    """Return the range of a run in the rows of `subject.joined`."""
    topics = len(subject.qrels.topics)
    begin, end = subject.joined.offsets[[run * topics, (run + 1) * topics]].tolist()
    return slice(begin, end)


def deepest(subject: AuditSubject) -> int:
    """Return the number of documents in the longest ranking of any run, at least 1."""
    return max(1, int(subject.joined.retrieved.max(initial=0)))


def pool_depth(subject: AuditSubject, most: int) -> int:
    """Estimate the depth of the pool.

    It is the rank after which the judged share of documents drops most.

    A pool of a fixed depth shows such a drop. If no drop is as large as EDGE, return the last rank down to
    which at least half of the documents are judged. The depth is at least 1 and at most `most`.
    """
    joined, most = subject.joined, min(most, deepest(subject))
    known = joined.rank[subject.judged[joined.document]]
    judged = np.bincount(known[known <= most], minlength=most + 1)[1:]
    lengths = np.bincount(np.minimum(joined.retrieved, most), minlength=most + 1)
    retrieved = np.cumsum(lengths[::-1])[::-1][1:]
    shares = judged / np.maximum(retrieved, 1)
    drops = shares[:-1] - shares[1:]
    if drops.max(initial=0) >= EDGE:
        return int(np.argmax(drops)) + 1
    return max(1, int(np.count_nonzero(np.minimum.accumulate(shares) >= 0.5)))


def unjudged(subject: AuditSubject, run: int, judged: Mask, depth: int) -> Floats:
    """Return the share of a run's first `depth` documents that is not in `judged`.

    The share is float64[T], `judged` is bool[D].

    The divisor is the number of documents retrieved down to `depth`, as for Judged@k. The share is nan on
    topics for which the run retrieves nothing.
    """
    topics, hits = len(subject.qrels.topics), _hits(subject, run)
    retrieved = np.minimum(subject.joined.retrieved[run * topics : (run + 1) * topics], depth)
    counted = judged[subject.joined.document[hits]] & (subject.joined.rank[hits] <= depth)
    number = np.diff(subject.joined.offsets[run * topics : (run + 1) * topics + 1])
    seen = np.bincount(np.repeat(np.arange(topics), number)[counted], minlength=topics)
    with np.errstate(invalid="ignore"):
        return np.asarray((retrieved - seen) / retrieved, dtype=np.float64)
