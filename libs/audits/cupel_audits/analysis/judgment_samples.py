"""Samples of judgments: which documents keep theirs."""

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
"""How many documents of degree 0, and of each other degree, a stratified sample keeps at least (spec 4.6)."""


@dataclass(frozen=True, eq=False)
class Judged:
    """The judged documents of a subject, by topic.

    document: int64[n], index into the pool, ascending. topic: int64[n]. degree: int64[n], the grade that
    samples are stratified by, from 0. relevant: bool[n]. documents: D, of the whole pool; topics: T.
    """

    document: Ints
    topic: Ints
    degree: Ints
    relevant: Mask
    documents: int
    topics: int

    @classmethod
    def of(cls, subject: AuditSubject, aspect: str | None) -> "Judged":
        """Those with a label of `aspect`, by it; or those with any judgment, by the first aspect.

        Negative grades are of degree 0. In a collection that is judged by subtopic only, degree 1 is
        relevant to some subtopic.
        """
        degrees, relevant = graded(subject, aspect)
        of_aspect = aspect is not None and subject.qrels.labels[subject.qrels.aspect_index(aspect)] >= -1
        document = np.flatnonzero(subject.judged if aspect is None else of_aspect)
        topic = subject.qrels.topic_of[document]
        sizes = len(subject.qrels.documents), len(subject.qrels.topics)
        return cls(document, topic, degrees[document], relevant[document], *sizes)

    @cached_property
    def strata(self) -> "JudgmentGroups":
        """Of the documents of each topic and degree."""
        return JudgmentGroups(self.topic * self.degrees + self.degree)

    @property
    def degrees(self) -> int:
        """Degrees are below this."""
        return int(self.degree.max(initial=0)) + 1

    def mask(self, kept: NDArray[np.bool_]) -> Mask:
        """bool[D]: the documents of `kept`, bool[n]."""
        mask = np.zeros(self.documents, dtype=bool)
        mask[self.document] = kept
        return mask


def graded(subject: AuditSubject, aspect: str | None = None) -> tuple[Ints, Mask]:
    """int64[D], the degree of every pooled document, and bool[D], whether it counts as relevant.

    By `aspect` (default: the first), or by subtopic where there are no other judgments.
    """
    qrels = subject.qrels
    if qrels.only_by_subtopic:
        relevant = relevant_by_subtopic(subject)
        return relevant.astype(np.int64), relevant
    index = 0 if aspect is None else qrels.aspect_index(aspect)
    labels = qrels.labels[index].astype(np.int64)
    return np.maximum(labels, 0), labels >= max(qrels.aspects[index].threshold, 0)


def relevant_by_subtopic(subject: AuditSubject) -> Mask:
    """bool[D]: the documents that are relevant to some subtopic."""
    relevant = np.zeros(len(subject.qrels.documents), dtype=bool)
    subtopics = subject.qrels.subtopics
    if subtopics is not None:
        relevant[subtopics.document[subtopics.judgment > 0]] = True
    return relevant


def stratified(chance: np.random.Generator, judged: Judged, percents: Sequence[float]) -> Iterator[Mask]:
    """bool[D] for each of `percents`, in their order: nested samples, stratified by degree (spec 4.6).

    Of the n documents of each topic and degree the first max(f, floor(P n / 100)) of one random order, at
    most n; f is 10 for degree 0 and 1 for others.
    """
    strata = judged.strata
    place = strata.shuffled(chance)
    floor = np.where(np.arange(len(strata.sizes)) % judged.degrees > 0, FLOORS[1], FLOORS[0])
    for percent in percents:
        end = np.maximum(floor, shares(percent, strata.sizes))
        yield judged.mask(place < end.take(strata.group))


def uniform(
    chance: np.random.Generator, judged: Judged, percents: Sequence[float], *, nested: bool = False
) -> Iterator[Mask]:
    """bool[D] for each of `percents`: max(1, floor(P n / 100)) of a topic's n documents (spec 4.6).

    A topic that has a relevant document is drawn again while the sample has none. Draws at different
    percentages are independent unless `nested`: then the smallest one has to have a relevant document.
    """
    if not nested:
        for percent in percents:
            yield from _uniform(chance, judged, [percent])
        return
    yield from _uniform(chance, judged, percents)


def _uniform(chance: np.random.Generator, judged: Judged, percents: Sequence[float]) -> Iterator[Mask]:
    place, size = shuffled(chance, judged.topic)
    least = np.maximum(1, shares(min(percents), size))
    has = np.bincount(judged.topic[judged.relevant], minlength=judged.topics) > 0
    while (again := has & ~_hit(judged, place < least)).any():
        here = np.flatnonzero(again[judged.topic])
        place[here] = shuffled(chance, judged.topic[here])[0]
    for percent in percents:
        yield judged.mask(place < np.maximum(1, shares(percent, size)))


def _hit(judged: Judged, kept: Mask) -> Mask:
    """bool[T]: whether a relevant document of the topic is kept."""
    return np.bincount(judged.topic[kept & judged.relevant], minlength=judged.topics) > 0


@dataclass(frozen=True, eq=False)
class JudgmentGroups:
    """Things in groups. group: int64[n], the number of each one's group."""

    group: Ints

    @cached_property
    def sizes(self) -> Ints:
        """int64[groups]"""
        return np.bincount(self.group, minlength=1)

    def shuffled(self, chance: np.random.Generator) -> Ints:
        """int64[n]: the place of each in a random order of its group, from 0."""
        order = _ascending(chance.random(len(self.group)))
        order = order.take(np.argsort(self._small.take(order), kind="stable"))
        place = np.empty(len(self.group), dtype=np.int64)
        place[order] = self._places
        return place

    @cached_property
    def _small(self) -> NDArray[np.unsignedinteger[Any]]:
        """The groups as numbers of as few bits as they need: those of 16 are sorted in linear time."""
        return self.group.astype(np.min_scalar_type(int(self.group.max(initial=0))))

    @cached_property
    def _places(self) -> Ints:
        """int64[n]: 0, 1, 2, ... of the first group, then of the second one, and so on."""
        return np.arange(len(self.group)) - np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)


def shuffled(chance: np.random.Generator, group: Ints) -> tuple[Ints, Ints]:
    """int64[n], int64[n]: the place of each in a random order of its group, from 0, and the group's size."""
    groups = JudgmentGroups(group)
    return groups.shuffled(chance), groups.sizes[group]


def _ascending(drawn: Floats) -> Ints:
    """int64[n]: the order of `drawn`; equal ones as they come, so that any machine has the same."""
    order = np.argsort(drawn)  # much faster than a stable one, and the same where all differ
    in_order = drawn[order]
    return order if (in_order[1:] > in_order[:-1]).all() else np.argsort(drawn, kind="stable")


def shares(percent: float, size: Ints) -> Ints:
    """floor(percent * size / 100), exactly: 70 per cent of 10 are 7 whatever floats say."""
    above, below = (exact(percent) / 100).as_integer_ratio()
    table = [number * above // below for number in range(int(size.max(initial=0)) + 1)]
    found: Ints = np.array(table, dtype=np.int64)[size]
    return found
