"""Scores of the runs on one topic after one more document is judged.

The topic is copied once for each candidate document. Each copy has one more judgment, that of its candidate.
All runs are scored on all copies at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cupel_audits.analysis.pools import tops_of
from cupel_audits.subject import AuditSubject
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import ABSENT, Floats, Ids, Ints, Joined, Qrels, Subtopics
from cupel_measures.scoring.evaluator import Evaluator

AT_ONCE = 1 << 20
"""Approximate number of retrieved documents in a batch of copies, to bound the memory."""


def score_after_judgment(
    subject: AuditSubject, topic: int, documents: Ints, measures: Sequence[Measure]
) -> dict[str, Floats | None]:
    """Score all runs on `topic` after one more judgment, for each candidate document.

    Return float64[n, runs] by measure text. The value is None for a measure that uses texts, and for a
    measure with a declared set of label tuples that does not contain the new judgment.

    documents: int64[n], the candidates: unjudged documents of `AuditSubject.tops`. Each candidate is judged
    alone. It gets the highest label of every aspect, and is relevant to every subtopic that the topic has
    judgments for. A run that ranks the candidate below the ranks in `tops` is scored as if it did not
    retrieve it.
    """
    parts = max(1, -(-len(documents) * _hits(subject, topic) // AT_ONCE))
    scores: dict[str, list[Floats | None]] = {str(measure): [] for measure in measures}
    for batch in np.array_split(documents, parts):
        pool = _Pool.of(subject, topic, batch)
        copies = Evaluator(pool.qrels(), pool.joined())
        for measure in measures:
            scores[str(measure)].append(_values(copies, measure, len(subject.about.runs)))
    return {text: _concatenated(batches) for text, batches in scores.items()}


def _concatenated(parts: Sequence[Floats | None]) -> Floats | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None


def _hits(subject: AuditSubject, topic: int) -> int:
    """Return the approximate number of hits in one copy of the topic.

    Hits are documents that runs retrieve.
    """
    rows = np.arange(topic, len(subject.joined.retrieved), len(subject.qrels.topics))
    known = np.diff(subject.joined.offsets)[rows].sum()
    return int(known) + tops_of(subject).ranked[:, topic].size


def _values(copies: Evaluator, measure: Measure, runs: int) -> Floats | None:
    """Score the runs on the copies; return None if `measure` cannot be computed.

    The scores are float64[copies, runs].

    The last topic has no scores: see `_Pool.qrels`.
    """
    if measure.declaration.texts:
        return None
    try:
        scores = copies.evaluate([measure]).values[measure]
    except MeasureError:
        return None
    return scores.reshape(runs, -1)[:, :-1].T


@dataclass(frozen=True, eq=False, kw_only=True)
class _Pool:
    """The documents of a topic in every copy: those of its qrels, and all candidates.

    ids: the n document ids, sorted. judged: int64[copies], the index in `ids` of the candidate that each copy
    judges. low, high: the range of the topic's documents in the qrels. unlisted: int64, the candidates that
    the qrels do not contain, as ascending indices into the documents of `tops`. position: int64[n], the index
    in `ids` of each document of the topic in the qrels, and then of each document in `unlisted`.
    """

    subject: AuditSubject
    topic: int
    ids: list[bytes]
    position: Ints
    low: int
    high: int
    unlisted: Ints
    judged: Ints

    @classmethod
    def of(cls, subject: AuditSubject, topic: int, documents: Ints) -> "_Pool":
        tops, qrels = tops_of(subject), subject.qrels
        low, high = qrels.offsets[topic : topic + 2].tolist()
        pooled = tops.pooled[documents].astype(np.int64)
        unlisted = np.sort(documents[pooled < 0])
        ids = [qrels.documents.bytes_at(document) for document in range(low, high)]
        ids += [tops.documents.bytes_at(document) for document in unlisted.tolist()]
        order = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)
        position = np.empty(len(ids), dtype=np.int64)
        position[order] = np.arange(len(ids))
        where = pooled - low
        where[pooled < 0] = high - low + np.searchsorted(unlisted, documents[pooled < 0])
        return cls(
            subject=subject,
            topic=topic,
            ids=[ids[i] for i in order],
            position=position,
            low=low,
            high=high,
            unlisted=unlisted,
            judged=position[where],
        )

    def qrels(self) -> Qrels:
        """Return qrels with a topic for each copy, and one further, last topic.

        The last topic has all combinations of labels.

        Some measures depend on the labels that occur in the qrels. Because of the last topic, they find all
        labels of the collection.
        """
        qrels, copies, n = self.subject.qrels, len(self.judged), len(self.ids)
        combinations = np.unique(qrels.labels, axis=1)
        labels = np.full((len(qrels.aspects), n), ABSENT, dtype=np.int32)
        labels[:, self.position[: self.high - self.low]] = qrels.labels[:, self.low : self.high]
        labels = np.tile(labels, copies)
        if not qrels.only_by_subtopic:
            best = [[len(aspect.labels) - 1] for aspect in qrels.aspects]
            labels[:, np.arange(copies) * n + self.judged] = best
        others = [b"%06d" % number for number in range(combinations.shape[1])]
        return Qrels(
            aspects=qrels.aspects,
            topics=(*(f"{copy:06}" for copy in range(copies)), "~"),
            offsets=np.append(np.arange(copies + 1) * n, copies * n + len(others)),
            documents=Ids.of([*self.ids * copies, *others]),
            labels=np.hstack([labels, combinations]),
            label_sets=qrels.label_sets,
            subtopics=qrels.subtopics and self._subtopics(qrels.subtopics),
        )

    def _subtopics(self, given: Subtopics) -> Subtopics:
        copies, n = len(self.judged), len(self.ids)
        of_topic = given.only((given.document >= self.low) & (given.document < self.high))
        known = np.unique(of_topic.subtopic)
        starts = np.arange(copies) * n
        document = self.position[of_topic.document - self.low]
        documents = np.concatenate(
            [(starts[:, None] + document).reshape(-1), np.repeat(starts + self.judged, len(known))]
        )
        subtopic = np.concatenate([np.tile(of_topic.subtopic, copies), np.tile(known, copies)])
        best = np.full(copies * len(known), int(given.judgment.max(initial=1)))
        judgment = np.concatenate([np.tile(of_topic.judgment, copies), best])
        order = np.lexsort((subtopic, documents))
        columns = (column[order].astype(np.int32) for column in (documents, subtopic, judgment))
        return Subtopics(given.names, *columns)

    def joined(self) -> Joined:
        """Return the ranking of each run for each copy.

        The last topic gets an empty ranking.

        Every document gets its own rank as the first and the last rank of its tie, because no score depends
        on ties.
        """
        joined, copies, n = self.subject.joined, len(self.judged), len(self.ids)
        topics = len(self.subject.qrels.topics)
        retrieved, lengths, documents, ranks = [], [], [], []
        for run in range(len(self.subject.about.runs)):
            row = run * topics + self.topic
            document, rank = self._hits(run, slice(*joined.offsets[row : row + 2].tolist()))
            retrieved += [int(joined.retrieved[row])] * copies + [0]
            lengths += [len(document)] * copies + [0]
            documents.append((np.arange(copies)[:, None] * n + document).reshape(-1))
            ranks.append(np.tile(rank, copies))
        ranked = np.concatenate(ranks).astype(np.int32)
        return Joined(
            retrieved=np.array(retrieved, dtype=np.int64),
            offsets=np.cumsum([0, *lengths], dtype=np.int64),
            document=np.concatenate(documents).astype(np.int32),
            rank=ranked,
            first=ranked,
            last=ranked,
            profile=joined.profile,
        )

    def _hits(self, run: int, row: slice) -> tuple[Ints, Ints]:
        """Return the documents of a run, sorted by rank, and their ranks.

        The documents are indices into `ids`.
        """
        joined, first = self.subject.joined, tops_of(self.subject).ranked[run, self.topic]
        rank_indices = np.flatnonzero(np.isin(first, self.unlisted))
        candidates = np.searchsorted(self.unlisted, first[rank_indices])
        document = np.concatenate(
            [self.position[joined.document[row] - self.low], self.position[self.high - self.low + candidates]]
        )
        rank = np.concatenate([joined.rank[row].astype(np.int64), rank_indices + 1])
        order = np.argsort(rank)
        return document[order], rank[order]
