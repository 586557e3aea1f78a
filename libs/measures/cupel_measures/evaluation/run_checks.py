"""Checks of a joined run for mistakes that make its scores worthless.

The mistakes are equal scores, topics of another collection, and documents without judgments.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cupel_measures.catalogue.parser import Measure
from cupel_measures.model import Ints, Joined, Qrels
from cupel_measures.scoring.pool import Mask, are_judged

TOP = 10
"""Number of first ranks whose judged documents are counted."""
MOST = 0.5
"""Share of the topics above which topics with only one score make a run a tied run."""
FEW_TOPICS = 0.5
"""Share of the topics below which a run and the qrels share few topics."""
HARDLY = 0.2
"""Share of the judged documents that could be in the first ranks below which hardly any are there."""


@dataclass(frozen=True, kw_only=True)
class RunChecks:
    """Facts about a joined run.

    topics: number of its topics. shared: number of those that the qrels judge. judged_topics: number of
    topics of the qrels. retrieving: number of topics with at least two documents, of which one is in the
    qrels. tied: number of these topics in which all documents have the same score. crossed: number of topics,
    by cutoff, in which documents with the same score, at least one of them judged, are on both sides of the
    cutoff. top, judged, possible: number of documents in the first TOP ranks of the shared topics, of judged
    documents among them, and of judged documents that could be there.
    """

    topics: int
    shared: int
    judged_topics: int
    retrieving: int
    tied: int
    crossed: Mapping[int, int]
    top: int
    judged: int
    possible: int

    @property
    def is_tied(self) -> bool:
        """Return whether most topics have only one score."""
        return self.tied > MOST * self.retrieving

    @property
    def shares_few_topics(self) -> bool:
        return self.shared < FEW_TOPICS * min(self.topics, self.judged_topics)

    @property
    def has_hardly_any_judged(self) -> bool:
        return self.judged < HARDLY * self.possible

    @property
    def judged_share(self) -> float:
        """Return the share of judged documents in the first ranks."""
        return self.judged / self.top if self.top else 0.0

    @property
    def most_crossed(self) -> int:
        """Return the largest number of topics with equal scores on both sides of a cutoff."""
        return max(self.crossed.values(), default=0)


def check_joined(joined: Joined, qrels: Qrels, measures: Sequence[Measure]) -> RunChecks:
    """Return facts about a run that is joined with `qrels`."""
    topic = np.repeat(np.arange(len(joined.retrieved)), np.diff(joined.offsets))
    judged, pool = _judged(qrels, negatives_judged=joined.profile.negatives_judged)
    top = np.minimum(joined.retrieved, TOP)
    cutoffs = sorted({cutoff for measure in measures for cutoff in cutoffs_of(measure)})
    is_judged = judged[joined.document]
    tied = np.flatnonzero((joined.last > joined.first) & is_judged)
    first, last, topic_of_tied = joined.first[tied], joined.last[tied], topic[tied]
    several = joined.retrieved[topic] > 1
    spans = (joined.first == 1) & (joined.last == joined.retrieved[topic])
    return RunChecks(
        topics=int(np.count_nonzero(joined.retrieved)) + joined.unknown_topics,
        shared=int(np.count_nonzero(joined.retrieved)),
        judged_topics=len(qrels.topics),
        retrieving=len(np.unique(topic[several])),
        tied=len(np.unique(topic[several & spans])),
        crossed={
            cutoff: len(np.unique(topic_of_tied[(first <= cutoff) & (cutoff < last)])) for cutoff in cutoffs
        },
        top=int(top.sum()),
        judged=int(np.count_nonzero(is_judged & (joined.rank <= TOP))),
        possible=int(np.minimum(top, pool).sum()),
    )


def _judged(qrels: Qrels, *, negatives_judged: bool) -> tuple[Mask, Ints]:
    """Return the judged documents, and their number by topic.

    A judgment of any aspect or subtopic counts. They are computed once per qrels.
    """
    key = f"evaluation.judged.{negatives_judged}"
    if key not in qrels.cache:
        judged = np.zeros(len(qrels.documents), bool)
        for aspect, labels in zip(qrels.aspects, qrels.labels, strict=True):
            judged |= are_judged(aspect, labels, negatives_judged=negatives_judged)
        if qrels.subtopics is not None:
            judged[qrels.subtopics.document] = True
        qrels.cache[key] = judged, np.bincount(qrels.topic_of[judged], minlength=len(qrels.topics))
    pair: tuple[Mask, Ints] = qrels.cache[key]
    return pair


def cutoffs_of(measure: Measure) -> Iterator[int]:
    """Yield the rank cutoffs of a measure and of its inner measures."""
    cutoff = measure.arguments.get("cutoff")
    if cutoff is not None:
        yield cutoff
    for inner in measure.within:
        yield from cutoffs_of(inner)


def warnings_of(checks: Mapping[str, RunChecks], measures: Sequence[Measure]) -> Iterator[str]:
    """Yield a sentence for each kind of mistake. checks: by name of the run."""
    if tied := _select(checks, lambda run: run.is_tied):
        worst = max(tied, key=lambda name: tied[name].tied)
        number = f"{tied[worst].tied} of {tied[worst].judged_topics} topics"
        yield (
            f"{_runs(tied, 'has', 'have')} equal scores for all documents of a topic "
            f"({_most(tied, worst)}{number}), so that document ids decide their order."
        )
    if crossed := _select(checks, lambda run: bool(run.most_crossed) and not run.is_tied):
        worst = max(crossed, key=lambda name: crossed[name].most_crossed)
        number = f"{crossed[worst].most_crossed} of {crossed[worst].judged_topics} topics"
        texts = ", ".join(_crossed_measures(crossed[worst], measures))
        yield (
            f"{_runs(crossed, 'has', 'have')} equal scores on both sides of the cutoff of {texts} "
            f"({_most(crossed, worst)}{number}), so that document ids decide which of them count."
        )
    if few := _select(checks, lambda run: run.shares_few_topics):
        worst = min(few, key=lambda name: few[name].shared / few[name].topics)
        number = f"{few[worst].shared} of its {few[worst].topics} topics"
        yield (
            f"{_runs(few, 'shares', 'share')} few topics with the qrels ({_least(few, worst)}{number}); "
            "check that the topic ids are those of the qrels."
        )
    if unjudged := _select(checks, lambda run: run.has_hardly_any_judged):
        worst = min(unjudged, key=lambda name: unjudged[name].judged_share)
        number = f"{unjudged[worst].judged} of {unjudged[worst].top}"
        yield (
            f"{_runs(unjudged, 'has', 'have')} hardly any judged documents at ranks 1 to {TOP} "
            f"({_least(unjudged, worst)}{number}); check that the document ids are those of the qrels, and "
            f"report Judged@{TOP}."
        )


def _select(checks: Mapping[str, RunChecks], applies: Callable[[RunChecks], bool]) -> dict[str, RunChecks]:
    return {name: run for name, run in checks.items() if applies(run)}


def _crossed_measures(run: RunChecks, measures: Sequence[Measure]) -> list[str]:
    """Return the measures with a cutoff that equal scores cross in the most topics."""
    crossed = {cutoff for cutoff, topics in run.crossed.items() if topics == run.most_crossed}
    return [str(measure) for measure in measures if not crossed.isdisjoint(cutoffs_of(measure))]


def _runs(found: Mapping[str, RunChecks], verb: str, plural: str) -> str:
    return f"{next(iter(found))} {verb}" if len(found) == 1 else f"{len(found)} runs {plural}"


def _most(found: Mapping[str, RunChecks], worst: str) -> str:
    return "" if len(found) == 1 else f"most: {worst}, "


def _least(found: Mapping[str, RunChecks], worst: str) -> str:
    return "" if len(found) == 1 else f"least: {worst}, "
