"""Random samples of the judged documents of a subject."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_audits.subject import AuditSubject
from cupel_measures.grammar.parameters import exact
from cupel_measures.model import Floats, Ints
from cupel_measures.scoring.pool import Mask

FLOORS = (10, 1)
"""Minimum numbers of documents in a stratified sample: for grade 0, and for each higher grade.

Ferrante, Ferro, Pontarollo, TKDE 2019, section 5.4.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Judged:
    """The n judged documents of a subject, sorted by topic.

    document: int64[n], ascending indices into the documents of the qrels. topic: int64[n]. grade: int64[n],
    the grade by which samples are stratified, from 0. relevant: bool[n]. documents: D, the number of
    documents in the qrels. topics: T, the number of topics.
    """

    document: Ints
    topic: Ints
    grade: Ints
    relevant: Mask
    documents: int
    topics: int

    @classmethod
    def of(cls, subject: AuditSubject, aspect: str | None) -> "Judged":
        """Return the documents judged by `aspect`, with their grades by this aspect.

        If `aspect` is None, return all judged documents, with their grades by the first aspect. A negative or
        missing grade becomes 0. In a collection with judgments by subtopic only, documents that are relevant
        to some subtopic have grade 1.
        """
        grades, relevant = graded(subject, aspect)
        of_aspect = aspect is not None and subject.qrels.labels[subject.qrels.aspect_index(aspect)] >= -1
        document = np.flatnonzero(subject.judged if aspect is None else of_aspect)
        topic = subject.qrels.topic_of[document]
        return cls(
            document=document,
            topic=topic,
            grade=grades[document],
            relevant=relevant[document],
            documents=len(subject.qrels.documents),
            topics=len(subject.qrels.topics),
        )

    @cached_property
    def strata(self) -> "JudgmentGroups":
        """Return the judged documents grouped by topic and grade."""
        return JudgmentGroups(self.topic * self.n_grades + self.grade)

    @property
    def n_grades(self) -> int:
        """Return the number of grades from 0 to the highest grade that occurs."""
        return int(self.grade.max(initial=0)) + 1

    def mask(self, kept: NDArray[np.bool_]) -> Mask:
        """Return bool[D], the documents of the qrels that `kept`, bool[n], selects."""
        mask = np.zeros(self.documents, dtype=bool)
        mask[self.document] = kept
        return mask


def graded(subject: AuditSubject, aspect: str | None = None) -> tuple[Ints, Mask]:
    """Return the grade and the relevance of each document in the qrels.

    The grades are int64[D], the relevance is bool[D].

    Both come from the judgments by `aspect` (default: the first). A negative or missing grade becomes 0. In a
    collection with judgments by subtopic only, documents that are relevant to some subtopic are relevant and
    have grade 1.
    """
    qrels = subject.qrels
    if qrels.only_by_subtopic:
        relevant = relevant_by_subtopic(subject)
        return relevant.astype(np.int64), relevant
    index = 0 if aspect is None else qrels.aspect_index(aspect)
    labels = qrels.labels[index].astype(np.int64)
    return np.maximum(labels, 0), labels >= max(qrels.aspects[index].threshold, 0)


def relevant_by_subtopic(subject: AuditSubject) -> Mask:
    """Return bool[D], the documents that are relevant to some subtopic."""
    relevant = np.zeros(len(subject.qrels.documents), dtype=bool)
    subtopics = subject.qrels.subtopics
    if subtopics is not None:
        relevant[subtopics.document[subtopics.judgment > 0]] = True
    return relevant


def stratified(rng: np.random.Generator, judged: Judged, percents: Sequence[float]) -> Iterator[Mask]:
    """Yield a stratified sample for each percentage P; the samples are nested.

    A sample is bool[D].

    The documents of each topic and grade are a stratum and are shuffled once. Of the n documents of a
    stratum, a sample keeps the first max(f, floor(P n / 100)), at most n. The minimum f is 10 for grade 0 and
    1 for higher grades (Ferrante, Ferro, Pontarollo, TKDE 2019, section 5.4).
    """
    strata = judged.strata
    position = strata.shuffled(rng)
    floor = np.where(np.arange(len(strata.sizes)) % judged.n_grades > 0, FLOORS[1], FLOORS[0])
    for percent in percents:
        end = np.maximum(floor, shares(percent, strata.sizes))
        yield judged.mask(position < end.take(strata.group))


def uniform(
    rng: np.random.Generator, judged: Judged, percents: Sequence[float], *, nested: bool = False
) -> Iterator[Mask]:
    """Yield a uniform sample, bool[D], for each percentage P.

    A sample keeps max(1, floor(P n / 100)) of the n judged documents of each topic. If a topic has relevant
    documents, its sample is redrawn until it contains one of them. Samples of different percentages are
    independent by default. With `nested`, each sample contains the smaller ones, and the smallest one must
    contain a relevant document (Ferrante, Ferro, Pontarollo, TKDE 2019, section 5.4).
    """
    if not nested:
        for percent in percents:
            yield from _uniform(rng, judged, [percent])
        return
    yield from _uniform(rng, judged, percents)


def _uniform(rng: np.random.Generator, judged: Judged, percents: Sequence[float]) -> Iterator[Mask]:
    position, size = shuffled(rng, judged.topic)
    least = np.maximum(1, shares(min(percents), size))
    has = np.bincount(judged.topic[judged.relevant], minlength=judged.topics) > 0
    while (again := has & ~_keeps_relevant(judged, position < least)).any():
        drawn = np.flatnonzero(again[judged.topic])
        position[drawn] = shuffled(rng, judged.topic[drawn])[0]
    for percent in percents:
        yield judged.mask(position < np.maximum(1, shares(percent, size)))


def _keeps_relevant(judged: Judged, kept: Mask) -> Mask:
    """Return whether `kept` contains a relevant document of each topic.

    `kept` is bool[n], the result is bool[T].
    """
    return np.bincount(judged.topic[kept & judged.relevant], minlength=judged.topics) > 0


@dataclass(frozen=True, eq=False)
class JudgmentGroups:
    """A division of judged documents into groups.

    group: int64[n], the group of each document.
    """

    group: Ints

    @cached_property
    def sizes(self) -> Ints:
        """Return int64[groups], the number of documents in each group."""
        return np.bincount(self.group, minlength=1)

    def shuffled(self, rng: np.random.Generator) -> Ints:
        """Shuffle each group; return the position of each document in its group.

        The positions are int64[n], counted from 0.
        """
        order = _ascending(rng.random(len(self.group)))
        order = order.take(np.argsort(self._small.take(order), kind="stable"))
        position = np.empty(len(self.group), dtype=np.int64)
        position[order] = self._positions
        return position

    @cached_property
    def _small(self) -> NDArray[np.unsignedinteger[Any]]:
        """Return the groups in the smallest integer type.

        The reason is that numpy sorts 16 bits in linear time.
        """
        return self.group.astype(np.min_scalar_type(int(self.group.max(initial=0))))

    @cached_property
    def _positions(self) -> Ints:
        """Return 0, 1, 2, ... for the first group, again from 0 for the second, and so on.

        The result is int64[n].
        """
        return np.arange(len(self.group)) - np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)


def shuffled(rng: np.random.Generator, group: Ints) -> tuple[Ints, Ints]:
    """Shuffle each group; return each document's position and the size of its group.

    Both are int64[n].
    """
    groups = JudgmentGroups(group)
    return groups.shuffled(rng), groups.sizes[group]


def _ascending(drawn: Floats) -> Ints:
    """Return the indices that sort `drawn` stably.

    The indices are int64[n], and the same on every machine.
    """
    order = np.argsort(drawn)  # much faster than a stable sort, and equal to it unless there are ties
    in_order = drawn[order]
    return order if (in_order[1:] > in_order[:-1]).all() else np.argsort(drawn, kind="stable")


def shares(percent: float, size: Ints) -> Ints:
    """Return floor(percent * size / 100) in exact arithmetic.

    So 70 per cent of 10 is 7.
    """
    above, below = (exact(percent) / 100).as_integer_ratio()
    table = [number * above // below for number in range(int(size.max(initial=0)) + 1)]
    counts: Ints = np.array(table, dtype=np.int64)[size]
    return counts
