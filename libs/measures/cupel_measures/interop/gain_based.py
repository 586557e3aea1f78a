"""Experimental measures of trec_eval 9: binG, G, ndcg_rel and Rndcg.

They are not part of the grammar. Only the replacement of pytrec_eval computes them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import log2

import numpy as np

from cupel_measures.model import Floats, Joined, Qrels


@dataclass(frozen=True, kw_only=True)
class GradedRanking:
    """The retrieved documents of a topic that have a positive grade.

    hits: rank and grade, by rank. ideal: all positive grades of the topic, the highest first. retrieved:
    number of retrieved documents. level: smallest grade of relevant documents.
    """

    hits: Sequence[tuple[int, int]]
    ideal: Sequence[int]
    retrieved: int
    level: int

    @property
    def relevant(self) -> int:
        """Return the number of relevant documents of the topic."""
        return sum(grade >= self.level for grade in self.ideal)

    @cached_property
    def ideal_dcg(self) -> list[float]:
        """Return the DCG of the ideal ranking at each depth from 1."""
        return [*accumulate(grade / log2(rank + 1) for rank, grade in enumerate(self.ideal, 1))]

    def dcg(self) -> Iterator[tuple[int, float]]:
        """Yield the rank of each hit, and the DCG up to it."""
        total = 0.0
        for rank, grade in self.hits:
            total += grade / log2(rank + 1)
            yield rank, total


def rankings(joined: Joined, qrels: Qrels) -> list[GradedRanking]:
    """Return the ranking of each topic.

    The qrels have one aspect, whose labels are grades.
    """
    [aspect] = qrels.aspects
    grade_of = np.append(np.array(aspect.labels, dtype=np.int64), [0])
    grades = grade_of[np.maximum(qrels.labels[0], -1)]
    level = int(grade_of[aspect.threshold])
    found = []
    for topic, ((begin, end), (first, last)) in enumerate(
        zip(pairwise(joined.offsets.tolist()), pairwise(qrels.offsets.tolist()), strict=True)
    ):
        hits = zip(joined.rank[begin:end].tolist(), grades[joined.document[begin:end]].tolist(), strict=True)
        pool = sorted(grades[first:last].tolist(), reverse=True)
        found.append(
            GradedRanking(
                hits=[(rank, grade) for rank, grade in hits if grade > 0],
                ideal=[grade for grade in pool if grade > 0],
                retrieved=int(joined.retrieved[topic]),
                level=level,
            )
        )
    return found


def score(name: str, ranked: Sequence[GradedRanking]) -> Floats:
    """Return the value of each topic. name: a key of MEASURES."""
    return np.array([MEASURES[name](ranking) for ranking in ranked], dtype=np.float64)


def binary_gain(ranking: GradedRanking) -> float:
    """Return binG: the mean of 1 / log2(2 + others before) over relevant documents."""
    ranks = (rank for rank, grade in ranking.hits if grade >= ranking.level)
    total = sum(1.0 / log2(2 + rank - place) for place, rank in enumerate(ranks, 1))
    return total / ranking.relevant if total else 0.0


def normalised_gain(ranking: GradedRanking) -> float:
    """Return G, the discounted gain divided by the ideal gain.

    A gain is divided by log2(2 + ideal gain - gain so far). Each rank below
    the end of the ideal ranking adds 1 to the ideal gain in the discount.
    """
    ideal = [0, *accumulate(ranking.ideal)]
    total, so_far = 0.0, 0
    for rank, grade in ranking.hits:
        so_far += grade
        cost = ideal[min(rank, len(ranking.ideal))] + max(0, rank - len(ranking.ideal))
        total += grade / log2(2 + cost - so_far)
    return total / ideal[-1] if ideal[-1] else 0.0


def ndcg_at_relevant(ranking: GradedRanking) -> float:
    """Return ndcg_rel: nDCG at the rank of each document with a gain, averaged.

    A document that is not retrieved has the nDCG of the whole ranking.
    """
    if not ranking.hits:
        return 0.0
    total = dcg = 0.0
    for rank, dcg in ranking.dcg():
        total += dcg / ranking.ideal_dcg[min(rank, len(ranking.ideal)) - 1]
    total += (len(ranking.ideal) - len(ranking.hits)) * dcg / ranking.ideal_dcg[-1]
    return total / len(ranking.ideal)


def ndcg_at_levels(ranking: GradedRanking) -> float:
    """Return Rndcg: nDCG at each depth where the ideal gain changes, averaged.

    The length of the run is a further depth if it exceeds that of the ideal ranking by at least two.
    """
    if not ranking.relevant:
        return 0.0
    gains = [*ranking.ideal, 0]
    depths = [depth for depth, (above, below) in enumerate(pairwise(gains), 1) if above != below]
    if ranking.retrieved > len(gains):
        depths.append(ranking.retrieved)
    dcg = [*ranking.dcg()]
    total = 0.0
    for depth in depths:
        reached = [value for rank, value in dcg if rank <= depth]
        total += (reached[-1] if reached else 0.0) / ranking.ideal_dcg[min(depth, len(ranking.ideal)) - 1]
    return total / len(depths)


MEASURES: dict[str, Callable[[GradedRanking], float]] = {
    "binG": binary_gain,
    "G": normalised_gain,
    "ndcg_rel": ndcg_at_relevant,
    "Rndcg": ndcg_at_levels,
}
"""Function of each measure, by trec_eval's name."""
