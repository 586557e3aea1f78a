"""Which documents of the runs are worth a label, topic by topic (Hui, PIKM 2014, section 5.2; spec 7.5)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cupel_audits.analysis import content_measures
from cupel_audits.analysis.judgment_samples import shuffled
from cupel_audits.analysis.lmd_selection import DEEPEST, SelectedDocuments, select_documents
from cupel_audits.analysis.pools import tops_of
from cupel_audits.subject import AuditSubject
from cupel_measures.model import Ints, Texts
from cupel_measures.scoring.pool import Mask


@dataclass(frozen=True, eq=False)
class Labelling:
    """Which documents of the tops (U of them) are labelled, and when.

    order: int64[U], the place of each in the order of its topic's labels, from 0; U where it has none. pool:
    bool[U], the pool of depth 20 of topics that have subtopics. topic, pooled: as in `Tops`. documents: D.
    topics: for each that has subtopics its index, labels, documents of its pool, depth of the pool where
    labelling ended, subtopics, and those without a relevant labelled document.
    """

    order: Ints
    pool: Mask
    topic: Ints
    pooled: Ints
    documents: int
    topics: list[list[int]]

    @classmethod
    def of(cls, subject: AuditSubject, depth: int, batch: int) -> "Labelling":
        """Made once: trials at random label as many."""
        cache, key = content_measures.content_of(subject).cache, ("labelling", depth, batch)
        if key not in cache:
            cache[key] = cls._of(subject, depth, batch)
        found: Labelling = cache[key]
        return found

    @classmethod
    def _of(cls, subject: AuditSubject, depth: int, batch: int) -> "Labelling":
        tops, said = tops_of(subject), _relevant(subject)
        number = len(tops.topic)
        order, pool = np.full(number, number, dtype=np.int64), np.zeros(number, dtype=bool)
        topics = []
        starts = np.searchsorted(tops.topic, range(len(subject.qrels.topics) + 1)).tolist()
        for topic, (begin, end) in enumerate(pairwise(starts)):
            if not said[topic]:
                continue
            ranked = tops.ranked[:, topic, :DEEPEST]
            ids = {place: tops.documents[place] for place in range(begin, end)}
            lists = [[ids[place] for place in row if place >= 0] for row in ranked.tolist()]
            found = _select(lists, content_measures.content_of(subject).texts, said[topic], depth, batch)
            places = {document: place for place, document in ids.items()}
            order[[places[one] for one in found.documents]] = range(len(found.documents))
            pool[np.unique(ranked[ranked >= 0])] = True
            subtopics = len(set().union(*said[topic].values()))
            topics.append(
                [topic, len(found.documents), found.pool, found.depth, subtopics, len(found.missed)]
            )
        sizes = tops.topic.astype(np.int64), tops.pooled.astype(np.int64), len(subject.qrels.documents)
        return cls(order, pool, *sizes, topics)

    def drawn(self, chance: np.random.Generator) -> Ints:
        """`order` of as many documents of each topic's pool, at random."""
        place = np.full(len(self.order), len(self.order), dtype=np.int64)
        place[self.pool] = shuffled(chance, self.topic[self.pool])[0]
        number = {one[0]: one[1] for one in self.topics}
        labels = np.array([number.get(topic, 0) for topic in self.topic.tolist()], dtype=np.int64)
        return np.where(place < labels, place, len(self.order))

    def grown(self, order: Ints, batch: int) -> Iterator[Mask]:
        """bool[D]: the documents with labels after each batch of every topic."""
        for number in self._numbers(batch):
            kept = np.zeros(self.documents, dtype=bool)
            kept[self.pooled[(order < number) & (self.pooled >= 0)]] = True
            yield kept

    def sizes(self, batch: int) -> list[int]:
        """How many documents have labels then."""
        return [sum(min(number, one[1]) for one in self.topics) for number in self._numbers(batch)]

    def _numbers(self, batch: int) -> range:
        most = max((one[1] for one in self.topics), default=0)
        return range(batch, most + batch, batch)


def _relevant(subject: AuditSubject) -> list[dict[str, set[int]]]:
    """For each topic the subtopics that its relevant documents are relevant to, by document."""
    found: list[dict[str, set[int]]] = [{} for _ in subject.qrels.topics]
    said = subject.qrels.subtopics
    if said is not None:
        columns = (one.tolist() for one in (said.document, said.subtopic, said.judgment))
        for document, subtopic, judgment in zip(*columns, strict=True):
            if judgment > 0:
                topic = int(subject.qrels.topic_of[document])
                found[topic].setdefault(subject.qrels.documents[document], set()).add(subtopic)
    return found


def _select(
    rankings: Sequence[Sequence[str]], texts: Texts, said: Mapping[str, set[int]], depth: int, batch: int
) -> SelectedDocuments:
    labels = {document: {str(one) for one in of} for document, of in said.items()}

    def label(document: str) -> set[str]:
        return labels.get(document, set())

    return select_documents(rankings, texts, label, set().union(*labels.values()), depth=depth, batch=batch)
