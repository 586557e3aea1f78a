"""Selection of the documents to label, by topic (Hui, PIKM 2014, section 5.2)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cupel_audits.analysis import content_measures
from cupel_audits.analysis.judgment_samples import shuffled
from cupel_audits.analysis.lmd_selection import DEEPEST, SelectedDocuments, select_documents
from cupel_audits.analysis.pools import tops_of
from cupel_audits.subject import AuditSubject, Tops
from cupel_measures.model import Ints, Texts
from cupel_measures.scoring.pool import Mask

Subtopics = Mapping[str, set[int]]
"""Document id -> the subtopics to which it is relevant, for the relevant documents of a topic."""


class TopicLabels(NamedTuple):
    """The number of labels that the selection needs for one topic.

    The value is serialised to JSON as a list.

    topic: index of the topic. labelled: number of labelled documents. pool: number of documents in the pool
    of depth 20. depth: depth of the pool where labelling ended. subtopics: number of subtopics of the topic
    with a relevant document. missed: number of these subtopics without a relevant labelled document.
    """

    topic: int
    labelled: int
    pool: int
    depth: int
    subtopics: int
    missed: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Labelling:
    """The order in which the selection labels the U documents of `Tops`.

    order: int64[U], the position of each document in the labelling order of its topic, from 0; U if it is not
    labelled. pool: bool[U], the documents in the pools of depth 20 of topics with subtopics. tops: the U
    documents. documents: D, the number of documents in the qrels. topics: one entry for each topic that has a
    relevant document.
    """

    order: Ints
    pool: Mask
    tops: Tops
    documents: int
    topics: tuple[TopicLabels, ...]

    @classmethod
    def of(cls, subject: AuditSubject, depth: int, batch: int) -> "Labelling":
        """Return the selection for `subject`, computed once and cached with its texts."""
        cache, key = content_measures.content_of(subject).cache, ("labelling", depth, batch)
        if key not in cache:
            cache[key] = cls._select(subject, depth, batch)
        labelling: Labelling = cache[key]
        return labelling

    @classmethod
    def _select(cls, subject: AuditSubject, depth: int, batch: int) -> "Labelling":
        tops, texts = tops_of(subject), content_measures.content_of(subject).texts
        size = len(tops.topic)
        order, pool = np.full(size, size, dtype=np.int64), np.zeros(size, dtype=bool)
        topics = []
        for topic, relevant in enumerate(_relevant_documents(subject)):
            if relevant:
                selected, places = _select_documents(tops, topic, texts, relevant, depth, batch)
                order[places] = range(len(places))
                ranked = tops.ranked[:, topic, :DEEPEST]
                pool[np.unique(ranked[ranked >= 0])] = True
                topics.append(_describe_labels(topic, selected, relevant))
        documents = len(subject.qrels.documents)
        return cls(order=order, pool=pool, tops=tops, documents=documents, topics=tuple(topics))

    def draw_order(self, rng: np.random.Generator) -> Ints:
        """Return an `order` of random documents, as many by topic as the selection has.

        The documents of a topic are drawn from its pool.
        """
        size, topic = len(self.order), self.tops.topic.astype(np.int64)
        order = np.full(size, size, dtype=np.int64)
        order[self.pool] = shuffled(rng, topic[self.pool])[0]
        labelled = np.zeros(self.tops.ranked.shape[1], dtype=np.int64)
        for labels in self.topics:
            labelled[labels.topic] = labels.labelled
        return np.where(order < labelled[topic], order, size)

    def labelled_masks(self, order: Ints, batch: int) -> Iterator[Mask]:
        """Yield bool[D], the labelled documents, after each batch of every topic."""
        pooled = self.tops.pooled
        for limit in self._limits(batch):
            mask = np.zeros(self.documents, dtype=bool)
            mask[pooled[(order < limit) & (pooled >= 0)]] = True
            yield mask

    def label_counts(self, batch: int) -> list[int]:
        """Return the number of labelled documents over all topics after each batch."""
        return [sum(min(limit, labels.labelled) for labels in self.topics) for limit in self._limits(batch)]

    def _limits(self, batch: int) -> range:
        """Return the largest number of labels of a topic after each batch."""
        largest = max((labels.labelled for labels in self.topics), default=0)
        return range(batch, largest + batch, batch)


def _select_documents(
    tops: Tops, topic: int, texts: Texts, relevant: Subtopics, depth: int, batch: int
) -> tuple[SelectedDocuments, list[int]]:
    """Select documents of a topic.

    Return the selection, and the indices of its documents in `tops`.
    """
    begin, end = np.searchsorted(tops.topic, [topic, topic + 1]).tolist()
    places = {tops.documents[place]: place for place in range(begin, end)}
    documents = list(places)
    ranked = tops.ranked[:, topic, :DEEPEST].tolist()
    rankings = [[documents[place - begin] for place in row if place >= 0] for row in ranked]
    labels = {document: {str(subtopic) for subtopic in of} for document, of in relevant.items()}

    def label(document: str) -> set[str]:
        return labels.get(document, set())

    subtopics = set().union(*labels.values())
    selected = select_documents(rankings, texts, label, subtopics, depth=depth, batch=batch)
    return selected, [places[document] for document in selected.documents]


def _describe_labels(topic: int, selected: SelectedDocuments, relevant: Subtopics) -> TopicLabels:
    return TopicLabels(
        topic=topic,
        labelled=len(selected.documents),
        pool=selected.pool,
        depth=selected.depth,
        subtopics=len(set().union(*relevant.values())),
        missed=len(selected.missed),
    )


def _relevant_documents(subject: AuditSubject) -> list[dict[str, set[int]]]:
    """Return the relevant documents of each topic.

    Each has the subtopics to which it is relevant.
    """
    relevant_by_topic: list[dict[str, set[int]]] = [{} for _ in subject.qrels.topics]
    subtopics = subject.qrels.subtopics
    if subtopics is not None:
        columns = (subtopics.document, subtopics.subtopic, subtopics.judgment)
        for document, subtopic, judgment in zip(*(column.tolist() for column in columns), strict=True):
            if judgment > 0:
                relevant = relevant_by_topic[int(subject.qrels.topic_of[document])]
                relevant.setdefault(subject.qrels.documents[document], set()).add(subtopic)
    return relevant_by_topic
