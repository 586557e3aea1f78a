"""Small collections and joined runs for tests, made the slow and obvious way.

The joining here is a second implementation of the order of documents, so it also serves as an oracle.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from cupel_measures.evaluating import evaluate
from cupel_measures.grammar import parse
from cupel_measures.model import ABSENT, NEGATIVE, Aspect, Ids, Joined, LabelSet, Qrels, Ranking, Subtopics
from cupel_measures.profiles import DEFAULT, Profile

Judgments = Mapping[str, Mapping[str, int]]
"""topic -> document -> label index on the aspect's scale; a negative one is a negative grade."""
BySubtopic = Mapping[str, Mapping[str, Mapping[str, int]]]
"""topic -> document -> subtopic -> judgment."""
Scored = Mapping[str, Mapping[str, float]]
"""topic -> document -> score."""


def scale(highest: int, name: str = "relevance") -> Aspect:
    return Aspect(name, range(highest + 1))


def qrels_of(
    judgments: Mapping[Aspect, Judgments] | Judgments,
    label_sets: Mapping[str, LabelSet] | None = None,
    subtopics: BySubtopic | None = None,
) -> Qrels:
    """Qrels of one aspect 0..highest, or of the aspects that are the keys, and of judgments by subtopic."""
    if not any(isinstance(key, Aspect) for key in judgments):
        grades = [grade for documents in judgments.values() for grade in documents.values()]  # type: ignore[union-attr]
        judgments = {scale(max([1, *grades])): judgments}  # type: ignore[dict-item]
    everything = [*judgments.values(), subtopics or {}]
    topics = sorted({topic for some in everything for topic in some})
    pools = [sorted({d for some in everything for d in some.get(topic, {})}) for topic in topics]  # type: ignore[attr-defined]
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
        tuple(judgments),  # type: ignore[arg-type]
        tuple(topics),
        np.cumsum([0, *map(len, pools)], dtype=np.int64),
        Ids.of([document.encode() for pool in pools for document in pool]),
        np.array(labels, dtype=np.int32).reshape(len(judgments), -1),
        label_sets or {},
        None if subtopics is None else _subtopics_of(subtopics, topics, pools),
    )


def _subtopics_of(judged: BySubtopic, topics: list[str], pools: list[list[str]]) -> Subtopics:
    names = sorted({name for of in judged.values() for by_name in of.values() for name in by_name})
    pooled = [(topic, document) for topic, pool in zip(topics, pools, strict=True) for document in pool]
    rows = [
        (place, names.index(name), judgment)
        for place, (topic, document) in enumerate(pooled)
        for name, judgment in sorted(judged.get(topic, {}).get(document, {}).items())
    ]
    return Subtopics(tuple(names), *np.array(rows, dtype=np.int32).reshape(-1, 3).T.copy())


def diverse(judged: BySubtopic) -> Qrels:
    """Qrels with judgments by subtopic alone."""
    return qrels_of({scale(1): {}}, subtopics=judged)


def ranked(*documents: str) -> dict[str, float]:
    """Scores that put `documents` in this order."""
    return {document: -float(place) for place, document in enumerate(documents)}


def joined_of(run: Scored, qrels: Qrels, *, profile: Profile = DEFAULT, depth: int | None = None) -> Joined:
    """The rows of `run`, a document at a time."""
    rows = [
        _row(run.get(topic, {}), qrels, place, profile, depth) for place, topic in enumerate(qrels.topics)
    ]
    hits = [hit for _, row in rows for hit in row]
    columns = np.array(hits, dtype=np.int32).reshape(-1, 4).T
    return Joined(
        np.array([retrieved for retrieved, _ in rows], dtype=np.int64),
        np.cumsum([0, *(len(row) for _, row in rows)], dtype=np.int64),
        *columns,
        profile,
    )


def _row(
    scores: Mapping[str, float], qrels: Qrels, topic: int, profile: Profile, depth: int | None
) -> tuple[int, list[tuple[int, int, int, int]]]:
    precise = {
        document.encode(): float(np.float32(score)) if profile.single_precision else score
        for document, score in scores.items()
    }
    order = sorted(precise, key=lambda document: (precise[document], document), reverse=True)[:depth]
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
    texts: Sequence[str] | str, run: Scored, qrels: Qrels, *, profile: Profile = DEFAULT
) -> dict[str, list[float]]:
    """Per-topic values of measures given by text, in the qrels' order of topics."""
    measures = [parse(text) for text in ([texts] if isinstance(texts, str) else texts)]
    scores = evaluate(qrels, joined_of(run, qrels, profile=profile), measures)
    return {measure.text: values.tolist() for measure, values in scores.values.items()}


def score_of(text: str, run: Scored, qrels: Qrels, *, profile: Profile = DEFAULT) -> float:
    """The value of one measure on a collection of one topic."""
    [[value]] = scores_of(text, run, qrels, profile=profile).values()
    return value


def ranking_of(run: Scored) -> Ranking:
    """`run` as every document of it, in the order of a stored ranking."""
    topics = sorted(run)
    ordered = [sorted(run[topic], key=lambda d, of=run[topic]: (of[d], d), reverse=True) for topic in topics]  # type: ignore[misc]
    return Ranking(
        tuple(topics),
        np.cumsum([0, *map(len, ordered)], dtype=np.int64),
        Ids.of([document.encode() for documents in ordered for document in documents]),
        np.array([run[t][d] for t, documents in zip(topics, ordered, strict=True) for d in documents], float),
    )
