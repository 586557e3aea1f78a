"""The best scores that a topic can have after one more document is judged.

The topic is copied once for each candidate document, and the copy has a judgment of that document. All runs
are scored on all copies at once, by any measure.
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
"""Approximate number of hits that are built at once, to bound the memory."""


def score_after_judgment(
    subject: AuditSubject, topic: int, documents: Ints, measures: Sequence[Measure]
) -> dict[str, Floats | None]:
    """Return float64[n, runs] by the text of each measure: the score on `topic` after one more judgment.

    documents: int64[n], unjudged documents of `AuditSubject.tops`; each is judged alone. It gets the highest
    label of every aspect, and is relevant to every subtopic that the topic has judgments for. Only the ranks
    in `tops` count: a run that has the document further down is scored as if it did not retrieve it. The
    value is None for a measure that uses texts, or whose declared label set excludes such a judgment.
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
    """Return the approximate number of hits of a copy."""
    rows = np.arange(topic, len(subject.joined.retrieved), len(subject.qrels.topics))
    known = np.diff(subject.joined.offsets)[rows].sum()
    return int(known) + tops_of(subject).ranked[:, topic].size


def _values(copies: Evaluator, measure: Measure, runs: int) -> Floats | None:
    """Return the scores, float64[copies, runs], without the last topic (see `_Pool.qrels`)."""
    if measure.declaration.texts:
        return None
    try:
        scores = copies.evaluate([measure]).values[measure]
    except MeasureError:
        return None
    return scores.reshape(runs, -1)[:, :-1].T


@dataclass(frozen=True, eq=False, kw_only=True)
class _Pool:
    """The documents of each copy of the topic: those of its qrels and the candidates, sorted by id.

    ids: n document ids. judged: int64[copies], the index in `ids` of the document that is judged in each
    copy. low, high: the range of the topic's documents in the qrels. strangers: int64, the candidates that
    are not in the qrels, as ascending indices into the documents of `tops`. place: int64[n], the index in
    `ids` of each of the topic's documents, and then of each stranger.
    """

    subject: AuditSubject
    topic: int
    ids: list[bytes]
    place: Ints
    low: int
    high: int
    strangers: Ints
    judged: Ints

    @classmethod
    def of(cls, subject: AuditSubject, topic: int, documents: Ints) -> "_Pool":
        tops, qrels = tops_of(subject), subject.qrels
        low, high = qrels.offsets[topic : topic + 2].tolist()
        pooled = tops.pooled[documents].astype(np.int64)
        strangers = np.sort(documents[pooled < 0])
        ids = [qrels.documents.bytes_at(document) for document in range(low, high)]
        ids += [tops.documents.bytes_at(document) for document in strangers.tolist()]
        order = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)
        place = np.empty(len(ids), dtype=np.int64)
        place[order] = np.arange(len(ids))
        where = pooled - low
        where[pooled < 0] = high - low + np.searchsorted(strangers, documents[pooled < 0])
        return cls(
            subject=subject,
            topic=topic,
            ids=[ids[i] for i in order],
            place=place,
            low=low,
            high=high,
            strangers=strangers,
            judged=place[where],
        )

    def qrels(self) -> Qrels:
        """Return qrels with a topic for each copy, and a last topic with all combinations of labels.

        Because of the last topic, measures that depend on the observed labels see those of the whole
        collection.
        """
        qrels, copies, n = self.subject.qrels, len(self.judged), len(self.ids)
        elsewhere = np.unique(qrels.labels, axis=1)
        labels = np.full((len(qrels.aspects), n), ABSENT, dtype=np.int32)
        labels[:, self.place[: self.high - self.low]] = qrels.labels[:, self.low : self.high]
        labels = np.tile(labels, copies)
        if not qrels.only_by_subtopic:
            best = [[len(aspect.labels) - 1] for aspect in qrels.aspects]
            labels[:, np.arange(copies) * n + self.judged] = best
        others = [b"%06d" % number for number in range(elsewhere.shape[1])]
        return Qrels(
            aspects=qrels.aspects,
            topics=(*(f"{copy:06}" for copy in range(copies)), "~"),
            offsets=np.append(np.arange(copies + 1) * n, copies * n + len(others)),
            documents=Ids.of([*self.ids * copies, *others]),
            labels=np.hstack([labels, elsewhere]),
            label_sets=qrels.label_sets,
            subtopics=qrels.subtopics and self._subtopics(qrels.subtopics),
        )

    def _subtopics(self, given: Subtopics) -> Subtopics:
        copies, n = len(self.judged), len(self.ids)
        of_topic = given.only((given.document >= self.low) & (given.document < self.high))
        known = np.unique(of_topic.subtopic)
        starts = np.arange(copies) * n
        document = self.place[of_topic.document - self.low]
        documents = np.concatenate(
            [(starts[:, None] + document).reshape(-1), np.repeat(starts + self.judged, len(known))]
        )
        subtopic = np.concatenate([np.tile(of_topic.subtopic, copies), np.tile(known, copies)])
        best = np.full(copies * len(known), max(1, int(given.judgment.max(initial=1))))
        judgment = np.concatenate([np.tile(of_topic.judgment, copies), best])
        order = np.lexsort((subtopic, documents))
        columns = (column[order].astype(np.int32) for column in (documents, subtopic, judgment))
        return Subtopics(given.names, *columns)

    def joined(self) -> Joined:
        """Return each run on each copy, without documents on the last topic; no measure depends on ties."""
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
        """Return the documents of a run, as indices into `ids` in order of rank, and their ranks."""
        joined, first = self.subject.joined, tops_of(self.subject).ranked[run, self.topic]
        among = np.flatnonzero(np.isin(first, self.strangers))
        which = np.searchsorted(self.strangers, first[among])
        document = np.concatenate(
            [self.place[joined.document[row] - self.low], self.place[self.high - self.low + which]]
        )
        rank = np.concatenate([joined.rank[row].astype(np.int64), among + 1])
        order = np.argsort(rank)
        return document[order], rank[order]
