"""The unjudged documents of a run, and qrels that give them the highest labels."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from cupel_measures.explaining.assumed_labels import MergedPools, fill_subtopics
from cupel_measures.explaining.explained_run import ExplainedRun
from cupel_measures.model import Floats, Ints, Qrels, Ranking
from cupel_measures.model.profiles import Profile
from cupel_measures.reading.joins import comparable_scores
from cupel_measures.scoring.pool import Mask
from cupel_measures.scoring.rows import Hits, divided

SUBTOPICS = "subtopics"
"""Key of judgments by subtopic where other keys are names of aspects."""


def unjudged(subject: ExplainedRun, names: Iterable[str], cutoff: int | None) -> dict[str, Floats]:
    """Return the share of unjudged documents down to `cutoff`, float64[T].

    The shares are by aspect or SUBTOPICS.
    """
    seen, retrieved = Hits.of(subject.joined).within(cutoff), subject.joined.retrieved
    depth = retrieved if cutoff is None else np.minimum(retrieved, cutoff)
    return {name: divided(depth - seen.of_documents(_judged(subject, name)).number, depth) for name in names}


def _judged(subject: ExplainedRun, name: str) -> Mask:
    """Return which documents are judged for the aspect `name`, bool[D].

    If the name is SUBTOPICS, they are judged by subtopic.
    """
    if name == SUBTOPICS:
        return subject.view.by_subtopic.pool.judged
    return subject.view.pool(name).judged


def with_highest_labels(subject: ExplainedRun, cutoff: int | None) -> Qrels:
    """Return the qrels with every document of the run down to `cutoff` judged.

    A document gets the highest label of each aspect that it is not judged for. A document without judgments
    by subtopic becomes relevant to all subtopics of its topic. A topic without judgments by subtopic gets
    none.
    """
    topic, document = _documents_outside_pools(subject, cutoff)
    merged = MergedPools.of(subject.qrels, topic, document)
    seen = Hits.of(subject.joined).within(cutoff).document
    labels = subject.qrels.labels.copy()
    for index, aspect in enumerate(subject.qrels.aspects):
        open_ = seen[~_judged(subject, aspect.name)[seen]]
        labels[index, open_] = len(aspect.labels) - 1
    best = np.array([[len(aspect.labels) - 1] for aspect in subject.qrels.aspects], dtype=np.int32)
    labels = np.hstack([labels, np.repeat(best, len(document), axis=1)])[:, merged.order]
    subtopics = subject.qrels.subtopics
    if subtopics is not None:
        open_ = seen[~_judged(subject, SUBTOPICS)[seen]]
        new = np.arange(len(merged.order) - len(document), len(merged.order), dtype=np.int32)
        subtopics = fill_subtopics(subtopics, np.concatenate([open_, new]), merged)
    return replace(
        subject.qrels,
        offsets=merged.offsets,
        documents=merged.documents,
        labels=labels,
        subtopics=subtopics,
        cache={},
    )


def _documents_outside_pools(subject: ExplainedRun, cutoff: int | None) -> tuple[Ints, list[bytes]]:
    """Return the run's documents down to `cutoff` that are in no pool.

    The results are topic indices and ids.
    """
    ranking, joined = subject.ranking, subject.joined
    number = {name: row for row, name in enumerate(subject.qrels.topics)}
    rows = np.array([number.get(name, -1) for name in ranking.topics], dtype=np.int64)
    limit = joined.retrieved if cutoff is None else np.minimum(joined.retrieved, cutoff)
    count = np.where(rows >= 0, limit[rows], 0) if len(limit) else np.zeros(len(rows), dtype=np.int64)
    row = np.repeat(rows, count)
    rank = np.arange(1, len(row) + 1) - np.repeat(np.cumsum(count) - count, count)
    hits = Hits.of(joined)
    width = int(joined.retrieved.max(initial=0)) + 1
    new = ~np.isin(row * width + rank, hits.row * width + hits.rank)
    at = profile_order(ranking, subject.profile)[np.repeat(ranking.offsets[:-1], count) + rank - 1]
    return row[new], [ranking.documents.bytes_at(i) for i in at[new].tolist()]


def profile_order(ranking: Ranking, profile: Profile) -> Ints:
    """Return the order of a ranking's documents by the rules of the profile.

    The order is topic by topic, int64[n].
    """
    order, scores = np.arange(len(ranking.scores)), comparable_scores(ranking.scores, profile)
    opens = np.ones(len(scores) + 1, dtype=bool)
    opens[1:-1] = scores[1:] != scores[:-1]
    opens[ranking.offsets] = True
    bounds = np.flatnonzero(opens)
    for group in np.flatnonzero(np.diff(bounds) > 1).tolist() if profile.single_precision else ():
        begin, end = bounds[group : group + 2].tolist()
        order[begin:end] = sorted(range(begin, end), key=ranking.documents.bytes_at, reverse=True)
    return order
