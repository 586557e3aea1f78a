"""Qrels from judgments in dictionaries, with the grades as labels."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from cupel_measures.model import NEGATIVE, Aspect, Ids, Qrels, Subtopics

Row = tuple[str, str, str, int]
"""Topic, document, subtopic and judgment."""


def qrels_of(judged: Mapping[str, Mapping[str, int]], level: int, by_subtopic: Iterable[Row] = ()) -> Qrels:
    """Return judgments of one aspect.

    The labels are the grades that occur, 0 and the level.

    judged: grade by topic and document, for all documents of `by_subtopic`. level: smallest grade of relevant
    documents. Unlike files, ids can contain any characters.
    """
    topics = sorted(judged)
    pools = [sorted(judged[topic]) for topic in topics]
    grades = np.array(
        [judged[topic][document] for topic, pool in zip(topics, pools, strict=True) for document in pool],
        dtype=np.int64,
    )
    labels = sorted({0, level, *(grade for grade in grades.tolist() if grade > 0)})
    places = np.where(grades < 0, NEGATIVE, np.searchsorted(labels, grades)).astype(np.int32)
    return Qrels(
        aspects=(Aspect(name="relevance", labels=labels, threshold=labels.index(level)),),
        topics=tuple(topics),
        offsets=np.cumsum([0, *map(len, pools)], dtype=np.int64),
        documents=Ids.of([document.encode() for pool in pools for document in pool]),
        labels=places[np.newaxis],
        subtopics=_subtopics(by_subtopic, topics, pools),
    )


def _subtopics(
    rows: Iterable[Row], topics: Sequence[str], pools: Sequence[Sequence[str]]
) -> Subtopics | None:
    judgments = {(topic, document, subtopic): judgment for topic, document, subtopic, judgment in rows}
    if not judgments:
        return None
    pooled = [(topic, document) for topic, pool in zip(topics, pools, strict=True) for document in pool]
    index = {key: place for place, key in enumerate(pooled)}
    names = sorted({subtopic for _, _, subtopic in judgments})
    columns = sorted(
        (index[topic, document], names.index(subtopic), judgment)
        for (topic, document, subtopic), judgment in judgments.items()
    )
    return Subtopics(tuple(names), *np.array(columns, dtype=np.int32).T.copy())
