"""Qrels in which unjudged documents have assumed labels."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model import ABSENT, Ids, Ints, Qrels, Subtopics
from cupel_measures.model.profiles import Profile
from cupel_measures.scoring.pool import Mask, Pool
from cupel_measures.scoring.subtopics import SubtopicPool

TopicDocument = tuple[int, bytes]
"""The index of a topic in `Qrels.topics`, and the id of a document."""


def index_in_pool(qrels: Qrels, document: TopicDocument) -> int | None:
    """Return the index of a document in `Qrels.documents`, or None if no pool has it."""
    topic, id_ = document
    begin, end = int(qrels.offsets[topic]), int(qrels.offsets[topic + 1])
    place = bisect_left(range(begin, end), id_, key=qrels.documents.bytes_at) + begin
    return place if place < end and qrels.documents.bytes_at(place) == id_ else None


def are_judged(qrels: Qrels, aspect: str | None, profile: Profile) -> Mask:
    """Return which pooled documents are judged for an aspect: bool[D].

    If the aspect is None, they are judged by subtopic.
    """
    negatives = profile.negatives_judged
    if aspect is None:
        return SubtopicPool.of(qrels, negatives_judged=negatives).judged
    return Pool.of(qrels, aspect, negatives_judged=negatives).judged


def assume_labels(
    qrels: Qrels, documents: Sequence[TopicDocument], profile: Profile, *, highest: bool
) -> Qrels:
    """Return the qrels with judgments of distinct `documents` for every aspect.

    A document gets the highest or the lowest label of each aspect that it is not judged for. If it is not
    judged by subtopic, it becomes relevant to all subtopics of its topic, or to none. A topic without
    judgments by subtopic gets none.
    """
    places = [index_in_pool(qrels, document) for document in documents]
    new = [document for document, place in zip(documents, places, strict=True) if place is None]
    pooled = np.array([place for place in places if place is not None], dtype=np.int64)
    merged = MergedPools.of(qrels, np.array([topic for topic, _ in new], np.int64), [id_ for _, id_ in new])
    added = np.arange(len(qrels.documents), len(merged.order))
    labels = np.hstack([qrels.labels, np.full((len(qrels.aspects), len(new)), ABSENT, dtype=np.int32)])
    for index, aspect in enumerate(qrels.aspects):
        unjudged = pooled[~are_judged(qrels, aspect.name, profile)[pooled]]
        labels[index, np.concatenate([unjudged, added])] = len(aspect.labels) - 1 if highest else 0
    subtopics = qrels.subtopics
    if subtopics is not None:
        unjudged = pooled[~are_judged(qrels, None, profile)[pooled]]
        chosen = np.concatenate([unjudged, added]).astype(np.int32)
        subtopics = fill_subtopics(subtopics, chosen, merged, highest=highest)
    return replace(
        qrels,
        offsets=merged.offsets,
        documents=merged.documents,
        labels=labels[:, merged.order],
        subtopics=subtopics,
        cache={},
    )


class MergedPools:
    """Pooled and new documents together, sorted by topic and id.

    order: int64[n], indices into the pooled documents followed by the new ones. place: inverse of `order`.
    topic: int64[n], the topic of each document before ordering.
    """

    def __init__(self, ids: list[bytes], topic: Ints, topics: int) -> None:
        by_id = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)
        self.order: Ints = by_id[np.argsort(topic[by_id], kind="stable")]
        self.place = np.empty(len(ids), dtype=np.int64)
        self.place[self.order] = np.arange(len(ids))
        self.topic = topic
        self.documents = Ids.of([ids[i] for i in self.order.tolist()])
        self.offsets = np.concatenate([[0], np.cumsum(np.bincount(topic, minlength=topics))])

    @classmethod
    def of(cls, qrels: Qrels, topic: Ints, document: list[bytes]) -> "MergedPools":
        ids = [*qrels.documents.to_list(), *document]
        return cls(ids, np.concatenate([qrels.topic_of, topic]), len(qrels.topics))


def fill_subtopics(
    subtopics: Subtopics, documents: NDArray[np.int32], merged: MergedPools, *, highest: bool = True
) -> Subtopics:
    """Return the judgments with `documents` judged for all subtopics of their topics.

    documents: indices before ordering by `merged`. highest: whether they are relevant.
    """
    names = max(len(subtopics.names), 1)
    known = np.unique(merged.topic[subtopics.document] * names + subtopics.subtopic)
    first, last = (np.searchsorted(known, (merged.topic[documents] + after) * names) for after in (0, 1))
    number = last - first
    which = np.arange(number.sum()) + np.repeat(first - (np.cumsum(number) - number), number)
    kept = ~np.isin(subtopics.document, documents)
    document = merged.place[np.concatenate([subtopics.document[kept], np.repeat(documents, number)])]
    subtopic = np.concatenate([subtopics.subtopic[kept], known[which] % names])
    level = max(1, int(subtopics.judgment.max(initial=1))) if highest else 0
    level_of_new = np.full(len(which), level)
    judgment = np.concatenate([subtopics.judgment[kept], level_of_new])
    order = np.lexsort((subtopic, document))
    columns = (column[order].astype(np.int32) for column in (document, subtopic, judgment))
    return Subtopics(subtopics.names, *columns)
