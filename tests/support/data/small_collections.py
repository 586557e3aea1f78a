"""Small collections and joined runs for tests, built in the simplest way.

Runs are joined with qrels by a second implementation of the document order, so tests compare the library
with it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from cupel_measures.catalogue.parser import parse
from cupel_measures.model import (
    ABSENT,
    NEGATIVE,
    Aspect,
    Content,
    Ids,
    Joined,
    LabelSet,
    Qrels,
    Ranking,
    Subtopics,
    Texts,
)
from cupel_measures.model.profiles import DEFAULT, Profile
from cupel_measures.scoring.evaluator import evaluate

Judgments = Mapping[str, Mapping[str, int]]
"""topic -> document -> label index on the aspect's scale; a negative one is a negative grade."""
BySubtopic = Mapping[str, Mapping[str, Mapping[str, int]]]
"""topic -> document -> subtopic -> judgment."""
Scored = Mapping[str, Mapping[str, float]]
"""topic -> document -> score."""


def scale(highest: int, name: str = "relevance") -> Aspect:
    return Aspect(name=name, labels=range(highest + 1))


def qrels_of(
    judgments: Mapping[Aspect, Judgments] | Judgments,
    label_sets: Mapping[str, LabelSet] | None = None,
    subtopics: BySubtopic | None = None,
) -> Qrels:
    """Return qrels from judgments.

    judgments: aspect -> judgments, or the judgments of a single aspect with labels from 0 to the highest
    grade.
    """
    if not any(isinstance(key, Aspect) for key in judgments):
        grades = [grade for documents in judgments.values() for grade in documents.values()]  # type: ignore[union-attr]
        judgments = {scale(max([1, *grades])): judgments}  # type: ignore[dict-item, assignment]
    everything = [*judgments.values(), subtopics or {}]
    topics = sorted({topic for judged in everything for topic in judged})
    pools = [sorted({d for judged in everything for d in judged.get(topic, {})}) for topic in topics]  # type: ignore[attr-defined]
    labels = [
        [
            max(NEGATIVE, of_aspect.get(topic, {}).get(document, ABSENT - 1))
            if document in of_aspect.get(topic, {})
            else ABSENT
            for topic, pool in zip(topics, pools, strict=True)
            for document in pool
        ]
        for of_aspect in judgments.values()
    ]
    return Qrels(
        aspects=tuple(judgments),  # type: ignore[arg-type]
        topics=tuple(topics),
        offsets=np.cumsum([0, *map(len, pools)], dtype=np.int64),
        documents=Ids.of([document.encode() for pool in pools for document in pool]),
        labels=np.array(labels, dtype=np.int32).reshape(len(judgments), -1),
        label_sets=label_sets or {},
        subtopics=None if subtopics is None else _subtopics_of(subtopics, topics, pools),
    )


def _subtopics_of(judged: BySubtopic, topics: list[str], pools: list[list[str]]) -> Subtopics:
    names = sorted(
        {name for documents in judged.values() for by_name in documents.values() for name in by_name}
    )
    pooled = [(topic, document) for topic, pool in zip(topics, pools, strict=True) for document in pool]
    rows = [
        (place, names.index(name), judgment)
        for place, (topic, document) in enumerate(pooled)
        for name, judgment in sorted(judged.get(topic, {}).get(document, {}).items())
    ]
    return Subtopics(tuple(names), *np.array(rows, dtype=np.int32).reshape(-1, 3).T.copy())


def diverse(judged: BySubtopic) -> Qrels:
    """Return qrels with judgments by subtopic only."""
    return qrels_of({scale(1): {}}, subtopics=judged)


def texts_of(words_by_document: Mapping[str, str]) -> Texts:
    """Return texts from words by document, separated by spaces."""
    counts = [Counter(text.split()) for text in words_by_document.values()]
    vocabulary = sorted({word for of in counts for word in of})
    entries = [[(vocabulary.index(word), of[word]) for word in sorted(of)] for of in counts]
    columns = np.array([entry for of in entries for entry in of], dtype=np.int32).reshape(-1, 2).T
    term, count = columns.copy()
    return Texts(
        documents=Ids.of([document.encode() for document in words_by_document]),
        vocabulary=Ids.of([word.encode() for word in vocabulary]),
        offsets=np.cumsum([0, *map(len, entries)], dtype=np.int64),
        term=term,
        count=count,
    )


def content_of(
    run: Scored, qrels: Qrels, texts: Texts, *, profile: Profile = DEFAULT, depth: int | None = None
) -> Content:
    """Return the texts of `run`, document by document."""
    places = {document: place for place, document in enumerate(texts.documents.to_list())}
    rows = [
        [places.get(document, -1) for document in _order(run.get(topic, {}), profile)[1][:depth]]
        for topic in qrels.topics
    ]
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Content(texts, offsets, np.array([place for row in rows for place in row], dtype=np.int64))


def ranked(*documents: str) -> dict[str, float]:
    """Return scores that rank `documents` in this order."""
    return {document: -float(place) for place, document in enumerate(documents)}


def joined_of(run: Scored, qrels: Qrels, *, profile: Profile = DEFAULT, depth: int | None = None) -> Joined:
    """Return the rows of `run`, document by document."""
    rows = [
        _row(run.get(topic, {}), qrels, place, profile, depth) for place, topic in enumerate(qrels.topics)
    ]
    hits = [hit for _, row in rows for hit in row]
    columns = np.array(hits, dtype=np.int32).reshape(-1, 4).T
    return Joined(
        retrieved=np.array([retrieved for retrieved, _ in rows], dtype=np.int64),
        offsets=np.cumsum([0, *(len(row) for _, row in rows)], dtype=np.int64),
        document=columns[0],
        rank=columns[1],
        first=columns[2],
        last=columns[3],
        profile=profile,
    )


def _order(scores: Mapping[str, float], profile: Profile) -> tuple[dict[bytes, float], list[bytes]]:
    """Return the scores in the precision of the profile, and the ranked documents."""
    precise = {
        document.encode(): float(np.float32(score)) if profile.single_precision else score
        for document, score in scores.items()
    }
    return precise, sorted(precise, key=lambda document: (precise[document], document), reverse=True)


def _row(
    scores: Mapping[str, float], qrels: Qrels, topic: int, profile: Profile, depth: int | None
) -> tuple[int, list[tuple[int, int, int, int]]]:
    precise, order = _order(scores, profile)
    order = order[:depth]
    ordered = [precise[document] for document in order]
    begin, end = qrels.offsets[topic], qrels.offsets[topic + 1]
    pool = {qrels.documents.bytes_at(i): int(i) for i in range(begin, end)}
    return len(order), [
        (
            pool[document],
            rank,
            ordered.index(precise[document]) + 1,
            len(order) - ordered[::-1].index(precise[document]),
        )
        for rank, document in enumerate(order, 1)
        if document in pool
    ]


def scores_of(
    texts: Sequence[str] | str,
    run: Scored,
    qrels: Qrels,
    *,
    profile: Profile = DEFAULT,
    document_texts: Texts | None = None,
) -> dict[str, list[float]]:
    """Return the scores per topic of measures, in the topic order of the qrels.

    document_texts: the texts of the documents.
    """
    measures = [parse(text) for text in ([texts] if isinstance(texts, str) else texts)]
    content = None if document_texts is None else content_of(run, qrels, document_texts, profile=profile)
    scores = evaluate(qrels, joined_of(run, qrels, profile=profile), measures, content=content)
    return {measure.text: values.tolist() for measure, values in scores.values.items()}


def score_of(
    text: str, run: Scored, qrels: Qrels, *, profile: Profile = DEFAULT, document_texts: Texts | None = None
) -> float:
    """Return the value of one measure on a collection of one topic."""
    [[value]] = scores_of(text, run, qrels, profile=profile, document_texts=document_texts).values()
    return value


def ranking_of(run: Scored) -> Ranking:
    """Return `run` with all its documents, in the order of a stored ranking."""
    topics = sorted(run)
    ordered = [sorted(run[topic], key=lambda d, of=run[topic]: (of[d], d), reverse=True) for topic in topics]  # type: ignore[misc]
    return Ranking(
        tuple(topics),
        np.cumsum([0, *map(len, ordered)], dtype=np.int64),
        Ids.of([document.encode() for documents in ordered for document in documents]),
        np.array([run[t][d] for t, documents in zip(topics, ordered, strict=True) for d in documents], float),
    )
