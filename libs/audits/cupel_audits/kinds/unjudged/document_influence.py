"""The influence of single unjudged documents on the order of runs."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cupel_audits.analysis.judgment_effects import score_after_judgment
from cupel_audits.subject import DECIMALS, AuditSubject
from cupel_measures.grammar.measure import Measure
from cupel_measures.model import Floats, Ints


class LeadChange(NamedTuple):
    """Two adjacent runs, and the lead of the upper run before and after a judgment.

    The runs are given by their indices.
    """

    upper: int
    lower: int
    lead: float
    left: float


class MeasureInfluence(NamedTuple):
    """The influence of a document on the order of runs by one measure.

    It is serialised to JSON as a list. influence: the sum over all pairs of adjacent runs of the share of the
    upper run's lead that the judgment removes. reversed: number of pairs of runs whose order the judgment
    reverses. pair: the adjacent runs with the largest share, None if all shares are 0.
    """

    influence: float
    reversed: int
    pair: LeadChange | None


NO_INFLUENCE = MeasureInfluence(0.0, 0, None)


@dataclass(frozen=True)
class DocumentInfluence:
    """The influence of one document by each measure.

    Measures that cannot be computed after the judgment of the document are left out.
    """

    measures: dict[str, MeasureInfluence]

    @property
    def mean(self) -> float:
        """Return the mean influence over the measures; 0 if there are no measures."""
        values = [by_measure.influence for by_measure in self.measures.values()]
        return math.fsum(values) / len(values) if values else 0.0

    @property
    def reverses_pairs(self) -> bool:
        """Return whether the judgment reverses some pair of runs by some measure."""
        return any(by_measure.reversed for by_measure in self.measures.values())


def list_influences(subject: AuditSubject, topic: int, documents: Ints) -> list[DocumentInfluence]:
    """Return the influence of each of `documents`.

    `documents` are indices of unjudged documents of this topic in `Tops`.
    """
    influences = [DocumentInfluence({}) for _ in documents]
    scores = score_after_judgment(subject, topic, documents, subject.measures)
    for measure in subject.measures:
        if (new := scores[str(measure)]) is None:
            continue
        means, old = subject.means[str(measure)], subject.scores[str(measure)][topic]
        order = _RunOrder.of(means)
        shifted = shift_scores(measure, means, old, new, len(subject.about.topics))
        for document, after in zip(influences, shifted, strict=True):
            document.measures[str(measure)] = order.measure_influence(after)
    return influences


def shift_scores(measure: Measure, means: Floats, old: Floats, new: Floats, topics: int) -> Floats:
    """Return the scores of runs after their values on one topic change.

    float64[n, runs]. The values change from `old` to `new`. means: float64[runs], the scores over all topics
    before the change. old: float64[runs]. new: float64[n, runs]. topics: the number of topics.
    """
    aggregate = measure.declaration.aggregate
    if aggregate == "geometric mean":
        steps = [[math.log(b) - math.log(a) for a, b in zip(old, row, strict=True)] for row in new]
        factors = [[math.exp(step / topics) for step in row] for row in steps]
        shifted = means * np.array(factors).reshape(new.shape)
    else:
        shifted = means + (new - old if aggregate == "sum" else (new - old) / topics)
    return np.asarray(np.round(shifted, DECIMALS), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _RunOrder:
    """Runs sorted by score.

    scores: float64[runs]. upper, lower: int64[runs - 1], the two runs of each adjacent pair. lead:
    float64[runs - 1].
    """

    scores: Floats
    upper: Ints
    lower: Ints
    lead: Floats

    @classmethod
    def of(cls, scores: Floats) -> "_RunOrder":
        order = np.argsort(-scores, kind="stable")
        upper, lower = order[:-1], order[1:]
        return cls(scores, upper, lower, scores[upper] - scores[lower])

    def measure_influence(self, after: Floats) -> MeasureInfluence:
        """Return the influence of a judgment that changes the scores to `after`.

        `after` is float64[runs].
        """
        left = after[self.upper] - after[self.lower]
        removed = np.where(self.lead > 0, self.lead - left, np.abs(left))
        shares = np.divide(removed, self.lead, out=(removed > 0).astype(np.float64), where=self.lead > 0)
        shares = np.clip(np.round(shares, DECIMALS), 0, 1)
        if not shares.max(initial=0) > 0:
            return NO_INFLUENCE
        at = int(np.argmax(shares))
        pair = LeadChange(int(self.upper[at]), int(self.lower[at]), float(self.lead[at]), float(left[at]))
        return MeasureInfluence(math.fsum(shares.tolist()), self._count_reversed(after), pair)

    def _count_reversed(self, after: Floats) -> int:
        """Return the number of pairs of runs in opposite order by `scores` and by `after`."""
        before = np.sign(self.scores[:, None] - self.scores)
        return int(np.count_nonzero(before * np.sign(after[:, None] - after) < 0)) // 2
