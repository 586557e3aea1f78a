"""Audit kind `topic_selection`: topics that a text-based measure needs.

It follows Hui (PIKM 2014, section 5.4).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypedDict

import numpy as np

from cupel_audits.analysis import content_measures
from cupel_audits.analysis.content_measures import CLASSIC, MeasureText
from cupel_audits.analysis.lmd_selection import select_topics, taus_along
from cupel_audits.analysis.run_orders import (
    MONTE_CARLO,
    STRONG,
    STRONG_LABEL,
    RepeatSummary,
    summarise_repeats,
)
from cupel_audits.declarations import Audit, audit, setting, whole_number
from cupel_audits.report import AuditReport, Heading, Plot, TableSchema
from cupel_audits.subject import AuditSubject, SubjectSummary, scores_by_topic

Count = Annotated[int, whole_number(description="a whole number of topics")]
Repeats = Annotated[int, whole_number(0)]
SELECTED, RANDOM, HELD_OUT = "selected", "at random", "other runs"


class TopicsTrial(TypedDict):
    """One order of topics; JSON-serialisable.

    topics: indices of the topics in order. taus: tau with the reference after each topic; None where it is
    undefined. held_out: the same for a half of the runs that the selection did not use; empty if no such
    selection was made.
    """

    topics: list[int]
    taus: list[float | None]
    held_out: list[float | None]


@dataclass(frozen=True, kw_only=True)
class SelectionPoint:
    """The tau between the order of runs on selected topics and the reference order.

    The first order is by scores on the first topics of a selection.
    """

    way: Annotated[
        str,
        Heading(
            "topics",
            "selected with all runs; as many random topics; or selected with half of the runs, and tau over "
            "the other half",
        ),
    ]
    number: Annotated[int, Heading("number of topics")]
    tau: RepeatSummary


@dataclass(frozen=True, kw_only=True)
class SelectedTopicRow:
    """A topic of the selection."""

    place: Annotated[int, Heading("position")]
    topic: Annotated[str, Heading("topic")]
    tau: Annotated[float | None, Heading("tau", "with this topic and those before it")]


POINTS = TableSchema.of("points", "Agreement with the reference by number of topics", SelectionPoint)
TOPICS = TableSchema.of("topics", "Selected topics", SelectedTopicRow)
TAU = (
    "tau-b between the runs' mean scores by the measure over these topics and their mean scores by the "
    "reference over all topics"
)
READING = (
    "The selection uses the scores of the reference on all topics, so it is retrospective: it shows how few "
    "topics could be enough, not which topics to choose before judging.",
    "Selected topics fit the runs that they were selected with. The tau of the other runs shows how well the "
    "same method works on runs that it has not seen: the topics are selected with a random half of the runs, "
    "and tau is computed over the other half.",
)


@audit(
    "topic_selection",
    title="Topic selection",
    answers="With how few topics does a text-based measure order the runs like a classic measure?",
    source="Hui, PIKM 2014, section 5.4",
)
class TopicSelection(Audit):
    """Selects topics one by one, and ranks the runs by a text-based measure on them.

    The measure is computed on the selected topics alone. Each step adds the topic that maximises tau-b
    between the mean scores of the runs by `measure` over the selected topics and their mean scores by the
    classic measure `reference` over all topics, both under all judgments. Topics with the same tau are added
    in the order of their ids.

    Trial 0 is the selection. Each further trial draws a random order of the topics as a baseline. It also
    selects topics with a random half of the runs, and reports tau over the other half, if there are at least
    six runs.
    """

    needs_texts: ClassVar[bool] = True

    measure: MeasureText = setting("LMD", "text-based measure")
    reference: MeasureText = setting(CLASSIC, "classic measure that the text-based measure is compared with")
    number: Count = setting(20, "largest number of topics to select")
    repeats: Repeats = setting(30, "number of random orders of topics, and of random halves of the runs")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        yield from content_measures.problems(subject, self.reference, self.measure)

    def trials(self, subject: AuditSubject) -> int:
        return 1 + self.repeats

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[TopicsTrial]:
        measures = content_measures.bound(subject, [self.measure, self.reference])
        scores = scores_by_topic(subject.evaluator.evaluate(measures), measures)
        novel, reference = (scores[str(measure)] for measure in measures)
        topics, number = subject.about.topics, min(self.number, len(subject.about.topics))
        places = {topic: place for place, topic in enumerate(topics)}
        for trial in trials:
            rng = self.generator(seed, trial)
            held_out: list[float | None] = []
            if trial == 0:
                selected = select_topics(topics, novel, reference, number)
                order, taus = [places[topic] for topic in selected.topics], list(selected.taus)
            else:
                order = rng.permutation(len(topics))[:number].tolist()
                taus = taus_along(order, novel, reference)
                if (runs := len(subject.about.runs)) >= FEWEST_RUNS:
                    first, second = np.split(rng.permutation(runs), [runs // 2])
                    half = select_topics(topics, novel[:, first], reference[:, first], number)
                    chosen = [places[topic] for topic in half.topics]
                    held_out = taus_along(chosen, novel[:, second], reference[:, second])
            yield {"topics": order, "taus": taus, "held_out": held_out}

    def report(self, about: SubjectSummary, results: Mapping[int, TopicsTrial]) -> AuditReport:
        points = list(_points(results))
        selection = results.get(0)
        rows = [] if selection is None else list(_topic_rows(about, selection))
        return AuditReport(
            verdict=tuple(_verdict(self.measure, self.reference, len(about.topics), points)),
            numbers=_numbers(points),
            tables=(POINTS.table(points), TOPICS.table(rows)),
            plots=(_plot(self.reference, points),),
            actions=tuple(_advice(points)),
            reading=READING,
            undefined=tuple(_undefined(points)),
        )


FEWEST_RUNS = 6
"""With fewer runs, a half of them has too few pairs for tau."""


def _points(results: Mapping[int, TopicsTrial]) -> Iterator[SelectionPoint]:
    """Yield a point for each number of topics in each way of choosing them.

    The selection comes first, then the random orders, then selections tested on the other half of the runs.
    """
    ways = (
        (SELECTED, [trial["taus"] for number, trial in results.items() if number == 0]),
        (RANDOM, [trial["taus"] for number, trial in results.items() if number]),
        (HELD_OUT, [trial["held_out"] for trial in results.values() if trial["held_out"]]),
    )
    for way, curves in ways:
        for place, taus in enumerate(zip(*curves, strict=True)):
            yield SelectionPoint(way=way, number=place + 1, tau=summarise_repeats(taus))


def _topic_rows(about: SubjectSummary, selection: TopicsTrial) -> Iterator[SelectedTopicRow]:
    for place, (topic, tau) in enumerate(zip(selection["topics"], selection["taus"], strict=True), 1):
        yield SelectedTopicRow(place=place, topic=about.topics[topic], tau=tau)


def _best(points: Sequence[SelectionPoint], way: str) -> SelectionPoint | None:
    """Return the point with the highest tau, or None if no point has a tau.

    If several points have the highest tau, the first one is returned.
    """
    defined = [point for point in points if point.way == way and point.tau.mean is not None]
    return max(defined, key=lambda point: point.tau.mean or 0.0, default=None)


def _strong(points: Sequence[SelectionPoint], way: str) -> int | None:
    """Return the smallest number of topics with a mean tau of at least STRONG."""
    numbers = (p.number for p in points if p.way == way and p.tau.mean is not None and p.tau.mean >= STRONG)
    return next(numbers, None)


def _undefined(points: Sequence[SelectionPoint]) -> Iterator[str]:
    if _strong(points, SELECTED) is None:
        yield f"topics@{STRONG}: tau of the selection does not reach {STRONG}, or it is not finished"
    for point in points:
        if point.tau.mean is None:
            reason = "all runs have the same score by one of the measures"
            yield f"tau with {point.number} topics, {point.way}: {reason}"


def _numbers(points: Sequence[SelectionPoint]) -> dict[str, float | int | None]:
    numbers: dict[str, float | int | None] = {f"topics@{STRONG}": _strong(points, SELECTED)}
    for way, name in ((SELECTED, "tau"), (RANDOM, "tau_random"), (HELD_OUT, "tau_other_runs")):
        numbers |= {f"{name}@{point.number}": point.tau.mean for point in points if point.way == way}
    return numbers


def _verdict(measure: str, reference: str, topics: int, points: Sequence[SelectionPoint]) -> Iterator[str]:
    best = _best(points, SELECTED)
    if best is None or best.tau.mean is None:
        yield f"{measure}: tau with {reference} is undefined for every selection of topics."
        return
    yield (
        f"{measure}: with {best.number} of {topics} topics, selected with the scores of {reference}, tau "
        f"with the order of {reference} over all topics is {best.tau.mean:.2f}, the highest in the selection."
    )
    others = {point.way: point.tau.mean for point in points if point.number == best.number}
    if (random := others.get(RANDOM)) is not None:
        yield f"With as many random topics, the mean tau is {random:.2f}."
    if (held_out := others.get(HELD_OUT)) is not None:
        yield f"If half of the runs select the topics, the mean tau of the other half is {held_out:.2f}."


def _plot(reference: str, points: Sequence[SelectionPoint]) -> Plot:
    return Plot.curve(
        POINTS,
        "tau",
        title=_title(reference, points),
        caption=f"{TAU}. Other runs: half of the runs select the topics, and tau is over the other half. "
        f"Bands: 95 per cent intervals. {MONTE_CARLO}.",
        x="number",
        y="mean",
        series="way",
        low="low",
        high="high",
        reference=STRONG,
        reference_label=STRONG_LABEL,
    )


def _title(reference: str, points: Sequence[SelectionPoint]) -> str:
    if (number := _strong(points, SELECTED)) is not None:
        return f"Tau with {reference} first reaches {STRONG} with {_selected_topics(number)}"
    best = _best(points, SELECTED)
    if best is None:
        return "No tau of a selection is defined"
    return f"Tau with {reference} reaches at most {best.tau.mean:.2f}, with {_selected_topics(best.number)}"


def _selected_topics(number: int) -> str:
    return f"{_count_topics(number)} selected for these runs"


def _count_topics(number: int) -> str:
    return "1 topic" if number == 1 else f"{number} topics"


def _advice(points: Sequence[SelectionPoint]) -> Iterator[str]:
    """Yield what to do with the selection."""
    number = _strong(points, HELD_OUT)
    if number is not None:
        yield (
            f"With {_count_topics(number)}, the mean tau of the runs that did not select them first reaches "
            f"{STRONG}."
        )
    yield "Choose topics by the scores of earlier runs only, because a selection needs scores on all topics."
