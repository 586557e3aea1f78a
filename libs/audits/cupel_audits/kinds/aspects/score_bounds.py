"""Upper bounds of CAM and MM.

A bound is the best score that any ranking of the judged documents reaches.

Source: Maistro, Lima, Simonsen, Lioma, CIKM 2021, section 4.2.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from statistics import median
from typing import Annotated, TypedDict, final

import numpy as np

from cupel_audits.analysis.named_extremes import name_ends
from cupel_audits.kinds.aspects.aspect_measures import without_default_aspects
from cupel_audits.report import AuditReport, Heading, MeasureCell, Plot, TableSchema
from cupel_audits.subject import DECIMALS, AuditSubject, SubjectSummary
from cupel_measures.grammar.measure import Measure
from cupel_measures.model import NEGATIVE, Ints, Joined, Qrels
from cupel_measures.model.profiles import Profile
from cupel_measures.scoring.evaluator import Evaluator

MOST_ASPECTS = 6
"""Largest number n of aspects for which all n! orders are tried."""
FULL, LOW = 1 - 1e-9, 0.9
READING = (
    "The bound of a topic is the best score of n! + 3 rankings of all its judged documents. The documents "
    "are sorted lexicographically by their labels, with the n aspects in each of the n! orders. They are "
    "also sorted by the sum of labels, by the sum of squared labels, and by the greatest label. Another "
    "ranking may score higher, but no higher than 1. A topic in which an aspect has no document above the "
    "lowest label cannot reach 1.",
)


class MeasureBounds(TypedDict):
    """The scores of the rankings by one measure.

    strategies: names of the rankings. topics: for each topic, the scores of the rankings, in order of
    `strategies`.
    """

    strategies: list[str]
    topics: list[list[float]]


@final
class BoundsResult(TypedDict):
    """The result of the first trial, on upper bounds; JSON-serialisable.

    measures: the bounds by measure text. beyond: measures that are left out because they have too many
    aspects. lacking: for each topic, the number of aspects that have no document above the lowest label.
    """

    measures: dict[str, MeasureBounds]
    beyond: list[str]
    lacking: list[int]


TopicCell = Annotated[str, Heading("topic")]


@dataclass(frozen=True, kw_only=True)
class BoundSummaryRow:
    """The bounds of one measure over all topics."""

    measure: MeasureCell
    topics: Annotated[int, Heading("topics")]
    full: Annotated[float, Heading("bound 1", "share of topics where a ranking scores 1")]
    low: Annotated[float, Heading("bound below 0.9", "share of topics where no ranking found scores 0.9")]
    low_whole: Annotated[
        float,
        Heading(
            "bound below 0.9 despite good documents",
            "share of topics where no ranking found scores 0.9, although every aspect has good documents",
        ),
    ]
    least: Annotated[float, Heading("lowest bound")]
    topic: Annotated[str, Heading("topic of the lowest bound")]


@dataclass(frozen=True, kw_only=True)
class TopicBoundRow:
    """The bound of one measure on one topic."""

    measure: MeasureCell
    place: Annotated[int, Heading("position", "position of the topic when topics are sorted by their bounds")]
    topic: TopicCell
    bound: Annotated[float, Heading("bound", "best score of the rankings")]
    strategy: Annotated[str, Heading("ranking", "the first ranking that reaches the bound")]
    lacking: Annotated[
        int, Heading("aspects without good documents", "aspects without a document above the lowest label")
    ]


@dataclass(frozen=True, kw_only=True)
class StrategyRow:
    """The score of one ranking on one topic."""

    measure: MeasureCell
    topic: TopicCell
    strategy: Annotated[str, Heading("ranking", "the sort key of the documents")]
    score: Annotated[float, Heading("score")]


SUMMARY = TableSchema.of("bounds", "Upper bounds", BoundSummaryRow)
TOPIC_BOUNDS = TableSchema.of("topic_bounds", "Upper bounds by topic", TopicBoundRow)
STRATEGIES = TableSchema.of("strategies", "Scores of the rankings", StrategyRow)


def compute_bounds(subject: AuditSubject, measures: Sequence[Measure]) -> BoundsResult:
    """Score the rankings by all measures that average scores over aspects.

    TOMA is left out because its bound is 1. Raise MeasureError if a measure cannot be computed.
    """
    averaging = [m for m in measures if m.declaration.combination in ("mean", "harmonic mean")]
    bounds: dict[str, MeasureBounds] = {}
    for aspects in dict.fromkeys(measure.arguments["aspects"] for measure in averaging):
        if len(aspects) <= MOST_ASPECTS:
            same = [measure for measure in averaging if measure.arguments["aspects"] == aspects]
            bounds |= _score_rankings(subject, aspects, same)
    return BoundsResult(
        measures=bounds,
        beyond=[
            str(without_default_aspects(measure, subject.about.aspects))
            for measure in averaging
            if len(measure.arguments["aspects"]) > MOST_ASPECTS
        ],
        lacking=count_aspects_without(subject.qrels),
    )


def _score_rankings(
    subject: AuditSubject, aspects: Sequence[str], measures: Sequence[Measure]
) -> dict[str, MeasureBounds]:
    """Return the bounds of measures that combine the same aspects, by measure text."""
    strategies: list[str] = []
    scores: dict[Measure, list[list[float]]] = {measure: [] for measure in measures}
    for name, joined in rank_judged_documents(subject.qrels, aspects, subject.joined.profile):
        strategies.append(name)
        for measure, values in Evaluator(subject.qrels, joined).evaluate(measures).values.items():
            scores[measure].append(values.tolist())
    return {
        str(without_default_aspects(measure, subject.about.aspects)): MeasureBounds(
            strategies=strategies, topics=[list(values) for values in zip(*by_strategy, strict=True)]
        )
        for measure, by_strategy in scores.items()
    }


def count_aspects_without(qrels: Qrels) -> list[int]:
    """Count the aspects of each topic that have no document above the lowest label."""
    above = np.zeros((len(qrels.aspects), len(qrels.topics)), dtype=np.int64)
    aspect, document = np.nonzero(qrels.labels > 0)
    np.add.at(above, (aspect, qrels.topic_of[document]), 1)
    without: list[int] = np.count_nonzero(above == 0, axis=0).tolist()
    return without


def rank_judged_documents(
    qrels: Qrels, aspects: Sequence[str], profile: Profile
) -> Iterator[tuple[str, Joined]]:
    """Yield the name and the rows of each ranking of all judged documents.

    There are n! + 3 rankings. Each has a row per topic.

    Documents are sorted by decreasing label index; a negative label counts as 0. Documents with equal label
    indices are sorted by increasing document id.
    """
    document = np.flatnonzero((qrels.labels >= NEGATIVE).any(axis=0))
    labels = np.maximum(qrels.labels[:, document].astype(np.int64), 0)
    labels = labels[[qrels.aspect_index(name) for name in aspects]]
    for order in permutations(range(len(aspects))):
        name = " > ".join(aspects[index] for index in order)
        yield name, _rank_by(qrels, document, labels[list(order)], profile)
    keys = {"sum": labels.sum(axis=0), "squares": (labels**2).sum(axis=0), "maximum": labels.max(axis=0)}
    for name, key in keys.items():
        yield name, _rank_by(qrels, document, key[None], profile)


def _rank_by(qrels: Qrels, document: Ints, keys: Ints, profile: Profile) -> Joined:
    """Sort the documents by decreasing keys.

    The keys are int64[k, documents]; the first key is the most important one.
    """
    topic = qrels.topic_of[document]
    order = np.lexsort((document, *(-keys[::-1]), topic))
    retrieved = np.bincount(topic, minlength=len(qrels.topics))
    offsets = np.concatenate([[0], np.cumsum(retrieved)])
    rank = (np.arange(len(document)) - offsets[topic] + 1).astype(np.int32)
    return Joined(
        retrieved=retrieved,
        offsets=offsets,
        document=document[order].astype(np.int32),
        rank=rank,
        first=rank,
        last=rank,
        profile=profile,
    )


def report(about: SubjectSummary, result: BoundsResult) -> AuditReport:
    """Return the report on the highest scores that rankings reach on each topic.

    It has the topics where a ranking reaches 1, and those where none reaches 0.9.
    """
    by_measure = [list(_topic_rows(about, result, measure)) for measure in result["measures"]]
    summary = [_summarise(rows) for rows in by_measure]
    numbers: dict[str, float | int | None] = {}
    for row in summary:
        numbers |= {f"bound_1({row.measure})": row.full, f"bound_below_0.9({row.measure})": row.low}
    return AuditReport(
        verdict=tuple(_sentences(summary)),
        numbers=numbers,
        tables=(
            SUMMARY.table(summary),
            TOPIC_BOUNDS.table(row for rows in by_measure for row in rows),
            STRATEGIES.table(_strategy_rows(about, result)),
        ),
        plots=(_plot(summary), *_boxes(by_measure, list(_strategy_rows(about, result)))),
        actions=tuple(_advice(summary)),
        reading=READING,
        undefined=tuple(
            f"the bound of {measure}: it has more than {MOST_ASPECTS} aspects" for measure in result["beyond"]
        ),
    )


def _topic_rows(about: SubjectSummary, result: BoundsResult, measure: str) -> Iterator[TopicBoundRow]:
    """Yield a row for each topic, lowest bound first.

    Topics with equal bounds keep their order.
    """
    bounds = result["measures"][measure]
    best = [_best(bounds["strategies"], scores) for scores in bounds["topics"]]
    order = sorted(range(len(best)), key=lambda topic: (round(best[topic][0], DECIMALS), topic))
    for place, topic in enumerate(order, 1):
        bound, strategy = best[topic]
        yield TopicBoundRow(
            measure=measure,
            place=place,
            topic=about.topics[topic],
            bound=bound,
            strategy=strategy,
            lacking=result["lacking"][topic],
        )


def _best(strategies: Sequence[str], scores: Sequence[float]) -> tuple[float, str]:
    """Return the best score, and the first strategy with this score.

    Scores are compared to DECIMALS decimals to find the strategy.
    """
    rounded = [round(score, DECIMALS) for score in scores]
    return max(scores), strategies[rounded.index(max(rounded))]


def _strategy_rows(about: SubjectSummary, result: BoundsResult) -> Iterator[StrategyRow]:
    for measure, bounds in result["measures"].items():
        for topic, scores in zip(about.topics, bounds["topics"], strict=True):
            for strategy, score in zip(bounds["strategies"], scores, strict=True):
                yield StrategyRow(measure=measure, topic=topic, strategy=strategy, score=score)


def _summarise(rows: Sequence[TopicBoundRow]) -> BoundSummaryRow:
    """Summarise the rows of one measure, which are sorted by bound, lowest first."""
    low = [row for row in rows if row.bound < LOW]
    return BoundSummaryRow(
        measure=rows[0].measure,
        topics=len(rows),
        full=sum(row.bound >= FULL for row in rows) / len(rows),
        low=len(low) / len(rows),
        low_whole=sum(not row.lacking for row in low) / len(rows),
        least=rows[0].bound,
        topic=rows[0].topic,
    )


def _sentences(summary: Sequence[BoundSummaryRow]) -> Iterator[str]:
    """Yield a sentence on the measure with low bounds on the most topics.

    A bound is low if the best rankings score below LOW.
    """
    if not summary:
        return
    row = max(summary, key=lambda row: (row.low, -row.least))
    low, without = round(row.low * row.topics), round((row.low - row.low_whole) * row.topics)
    if not low:
        yield f"By every average over aspects, some ranking scores {LOW} or more on each topic."
        return
    explained = (
        f"; on {without} of these, an aspect has no document above the lowest label" if without else ""
    )
    others = " (no other average has more)" if len(summary) > 1 else ""
    yield (
        f"{row.measure}: the best ranking found scores below {LOW} on {low} of {row.topics} topics{others}"
        f"{explained}. The lowest score of a best ranking found is {row.least:.2f}, on topic {row.topic}."
    )


def _advice(summary: Sequence[BoundSummaryRow]) -> Iterator[str]:
    """Yield what to do about topics with low bounds."""
    if any(row.low for row in summary):
        yield (
            "Do not compare averages over aspects between topics or collections: the best ranking found "
            f"scores below {LOW} on some topics."
        )


def _plot(summary: Sequence[BoundSummaryRow]) -> Plot:
    lowest = min(summary, key=lambda row: row.least, default=None)
    return Plot.curve(
        TOPIC_BOUNDS,
        "topic_bounds",
        title="No average over aspects is given"
        if lowest is None
        else f"The best ranking found of topic {lowest.topic} scores {lowest.least:.2f} by {lowest.measure}"
        if lowest.least < FULL
        else "On every topic, some ranking scores 1",
        caption="Best score of any of the rankings of all judged documents. Topics are sorted by this bound.",
        x="place",
        y="bound",
        series="measure",
        reference=LOW,
        reference_label=f"bound {LOW}",
    )


def _boxes(by_measure: Sequence[Sequence[TopicBoundRow]], scores: Sequence[StrategyRow]) -> tuple[Plot, ...]:
    """Return the plots of the bound and of the score of each ranking.

    They show the distributions over topics.
    """
    bounds = {rows[0].measure: [row.bound for row in rows] for rows in by_measure}
    rankings: dict[str, list[float]] = {}
    for row in scores:
        rankings.setdefault(row.strategy, []).append(row.score)
    return (
        Plot.boxes(
            TOPIC_BOUNDS,
            "ideal",
            title=_describe_medians("ideal rankings", bounds),
            caption="Best score of any of the rankings of all judged documents, a value for each topic: "
            "median, quartiles, and whiskers to the most distant values within 1.5 interquartile ranges "
            "(Maistro et al., CIKM 2021, Figure 2).",
            x="measure",
            y="bound",
            domain=(0.0, 1.0),
        ),
        Plot.boxes(
            STRATEGIES,
            "strategies",
            title=_describe_medians("rankings by one sort key", rankings),
            caption="Score of each ranking of all judged documents, a value for each topic: median, "
            "quartiles, and whiskers to the most distant values within 1.5 interquartile ranges.",
            x="strategy",
            y="score",
            domain=(0.0, 1.0),
            facet="measure",
        ),
    )


def _describe_medians(what: str, values: Mapping[str, Sequence[float]]) -> str:
    """Return the highest and the lowest median over topics, with their names."""
    medians = [(median(by_name), name) for name, by_name in values.items()]
    ends = name_ends(medians, "{:.2f}", every=f"each of {len(medians)}", by="for")
    return f"No {what}" if ends is None else f"Median score of {what}: {ends}"
