"""Unjudged documents among the first ten of a run and its baseline."""

from collections.abc import Sequence
from dataclasses import dataclass

from cupel_measures.evaluation.gates.gate_rules import TOP
from cupel_measures.explaining.assumed_labels import TopicDocument, are_judged, index_in_pool
from cupel_measures.explaining.unjudged_documents import profile_order
from cupel_measures.model import Qrels, Ranking
from cupel_measures.model.profiles import Profile
from cupel_measures.scoring.pool import Mask

TopDocuments = Sequence[Sequence[bytes]]
"""The ids of the first documents of each topic of the qrels."""


def top_documents(ranking: Ranking, qrels: Qrels, profile: Profile, depth: int | None) -> TopDocuments:
    """Return the first TOP documents of each topic, or fewer for a smaller depth."""
    order = profile_order(ranking, profile)
    row = {name: index for index, name in enumerate(ranking.topics)}
    count = TOP if depth is None else min(TOP, depth)
    tops: list[list[bytes]] = []
    for topic in qrels.topics:
        index = row.get(topic)
        if index is None:
            tops.append([])
            continue
        begin, end = int(ranking.offsets[index]), int(ranking.offsets[index + 1])
        places = order[begin : min(begin + count, end)].tolist()
        tops.append([ranking.documents.bytes_at(place) for place in places])
    return tops


@dataclass(frozen=True, kw_only=True)
class UnjudgedTop:
    """The unjudged documents that only one of two runs has among its first ten.

    documents: of this run. total: number of first documents of this run over all compared topics.
    """

    documents: tuple[TopicDocument, ...]
    total: int

    @property
    def share(self) -> float:
        return len(self.documents) / self.total if self.total else 0.0


def unjudged_tops(
    qrels: Qrels, tops: tuple[TopDocuments, TopDocuments], aspect: str | None, profile: Profile, topics: Mask
) -> tuple[UnjudgedTop, UnjudgedTop]:
    """Return the unjudged documents that only one of two runs has.

    Documents that both runs have among the first ten are judged or unjudged for both, so they do not count.

    aspect: a document counts as judged if it is judged for this aspect. If the aspect is None, it counts if
    it is judged by subtopic. topics: bool[T], the compared topics.
    """
    judged = are_judged(qrels, aspect, profile)
    found: tuple[list[TopicDocument], list[TopicDocument]] = ([], [])
    totals = [0, 0]
    for topic in topics.nonzero()[0].tolist():
        ids = [top[topic] for top in tops]
        for side in range(2):
            totals[side] += len(ids[side])
            for id_ in ids[side]:
                if id_ in ids[1 - side]:
                    continue
                place = index_in_pool(qrels, (topic, id_))
                if place is None or not judged[place]:
                    found[side].append((topic, id_))
    first, second = (
        UnjudgedTop(documents=tuple(documents), total=total)
        for documents, total in zip(found, totals, strict=True)
    )
    return first, second
