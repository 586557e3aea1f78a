"""How much the best ranking can have of CAM and MM (Maistro et al., CIKM 2021, 4.2; spec 3.7)."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from cupel_audits.kinds.aspects.aspect_measures import plain
from cupel_audits.report import AuditReport, Cell, Column, Plot, ReportTable
from cupel_audits.subject import DECIMALS, AuditSubject, SubjectSummary
from cupel_measures.grammar.measure import Measure
from cupel_measures.model import NEGATIVE, Ints, Joined, Qrels
from cupel_measures.model.profiles import Profile
from cupel_measures.scoring.evaluator import Evaluator

MOST_ASPECTS = 6
REACHED, LOW = 1 - 1e-9, 0.9
MEASURE, TOPIC = Column("measure", "measure"), Column("topic", "topic")
READING = (
    "The bound of a topic is the best score of a few rankings of all its judged documents: by every order of "
    "the aspects, by the sum of labels, of their squares, and by the greatest label. A better ranking may "
    "exist, but not one above 1; a topic where an aspect has no good document can't reach 1 at all.",
)


def bounds(subject: AuditSubject, measures: Sequence[Measure]) -> dict[str, Any]:
    """By measure the names of the strategies, and for each topic the score of each; and what topics lack.

    Only measures that average scores by aspect have such a bound: that of TOMA is 1. MeasureError where a
    measure can't be had.
    """
    averaging = [one for one in measures if one.declaration.combination in ("mean", "harmonic mean")]
    found: dict[str, Any] = {}
    for aspects in dict.fromkeys(one.arguments["aspects"] for one in averaging):
        if len(aspects) <= MOST_ASPECTS:
            found |= _of_aspects(
                subject, aspects, [m for m in averaging if m.arguments["aspects"] == aspects]
            )
    beyond = [
        str(plain(one, subject.about.aspects))
        for one in averaging
        if len(one.arguments["aspects"]) > MOST_ASPECTS
    ]
    return {"measures": found, "beyond": beyond, "lacking": lacking(subject.qrels)}


def _of_aspects(subject: AuditSubject, aspects: Sequence[str], measures: Sequence[Measure]) -> dict[str, Any]:
    texts = {one: str(plain(one, subject.about.aspects)) for one in measures}
    names: list[str] = []
    scores: dict[str, list[list[float]]] = {text: [] for text in texts.values()}
    for name, joined in rankings(subject.qrels, aspects, subject.joined.profile):
        names.append(name)
        for measure, values in Evaluator(subject.qrels, joined).evaluate(measures).values.items():
            scores[texts[measure]].append(values.tolist())
    return {
        text: {"strategies": names, "topics": [list(one) for one in zip(*of, strict=True)]}
        for text, of in scores.items()
    }


def lacking(qrels: Qrels) -> list[int]:
    """For each topic how many aspects have no document above the lowest label."""
    above = np.zeros((len(qrels.aspects), len(qrels.topics)), dtype=np.int64)
    aspect, document = np.nonzero(qrels.labels > 0)
    np.add.at(above, (aspect, qrels.topic_of[document]), 1)
    missing: list[int] = np.count_nonzero(above == 0, axis=0).tolist()
    return missing


def rankings(qrels: Qrels, aspects: Sequence[str], profile: Profile) -> Iterator[tuple[str, Joined]]:
    """The n! + 3 rankings of all judged documents by name, each as a row per topic.

    By label index, a negative label being 0; ties: increasing document id.
    """
    document = np.flatnonzero((qrels.labels >= NEGATIVE).any(axis=0))
    labels = np.maximum(qrels.labels[:, document].astype(np.int64), 0)
    labels = labels[[qrels.aspect_index(name) for name in aspects]]
    for order in permutations(range(len(aspects))):
        name = " > ".join(aspects[one] for one in order)
        yield name, _ranking(qrels, document, labels[list(order)], profile)
    simple = {"sum": labels.sum(axis=0), "squares": (labels**2).sum(axis=0), "maximum": labels.max(axis=0)}
    for name, key in simple.items():
        yield name, _ranking(qrels, document, key[None], profile)


def _ranking(qrels: Qrels, document: Ints, keys: Ints, profile: Profile) -> Joined:
    """By decreasing keys, int64[k, n], the first being the most important."""
    topic = qrels.topic_of[document]
    order = np.lexsort((document, *(-keys[::-1]), topic))
    retrieved = np.bincount(topic, minlength=len(qrels.topics))
    offsets = np.concatenate([[0], np.cumsum(retrieved)])
    rank = (np.arange(len(document)) - offsets[topic] + 1).astype(np.int32)
    return Joined(retrieved, offsets, document[order].astype(np.int32), rank, rank, rank, profile)


def report(about: SubjectSummary, found: Mapping[str, Any]) -> AuditReport:
    """The share of topics where a ranking reaches 1, and where none reaches 0.9."""
    tops, scores, summary, verdict = [], [], [], []
    numbers: dict[str, Any] = {}
    for measure, of in found["measures"].items():
        best = [_best(of["strategies"], one) for one in of["topics"]]
        order = sorted(range(len(best)), key=lambda at, best=best: (round(best[at][0], DECIMALS), at))  # type: ignore[misc]
        tops += [
            (measure, place, about.topics[at], *best[at], found["lacking"][at])
            for place, at in enumerate(order, 1)
        ]
        scores += [
            (measure, topic, strategy, value)
            for topic, values in zip(about.topics, of["topics"], strict=True)
            for strategy, value in zip(of["strategies"], values, strict=True)
        ]
        row = _summary(about, [bound for bound, _ in best], found["lacking"])
        summary.append((measure, *row))
        numbers |= {f"bound_1({measure})": row[1], f"bound_below_0.9({measure})": row[2]}
        verdict.append(_sentence(measure, *row))
    tables = (
        ReportTable("bounds", "What the best ranking can reach", _SUMMARY, tuple(summary)),
        ReportTable("topic_bounds", "What the best ranking can reach, by topic", _TOPICS, tuple(tops)),
        ReportTable("strategies", "Rankings that were tried", _STRATEGIES, tuple(scores)),
    )
    undefined = [f"the bound of {one}: it has more than {MOST_ASPECTS} aspects" for one in found["beyond"]]
    return AuditReport(tuple(verdict), numbers, tables, _PLOTS, READING, tuple(undefined))


def _best(strategies: Sequence[str], values: Sequence[float]) -> tuple[float, str]:
    """The best score, and the first strategy that has it."""
    best = max(values)
    rounded = [round(value, DECIMALS) for value in values]
    return best, strategies[rounded.index(max(rounded))]


def _summary(about: SubjectSummary, tops: Sequence[float], missing: Sequence[int]) -> tuple[Cell, ...]:
    topics = len(tops)
    least = min(range(topics), key=lambda place: (round(tops[place], DECIMALS), place))
    return (
        topics,
        sum(one >= REACHED for one in tops) / topics,
        sum(one < LOW for one in tops) / topics,
        sum(one < LOW and not lacks for one, lacks in zip(tops, missing, strict=True)) / topics,
        tops[least],
        about.topics[least],
    )


def _sentence(measure: str, topics: Any, full: Any, low: Any, whole: Any, least: Any, topic: Any) -> str:
    below = f"below {LOW} on {round(low * topics)}"
    if low > whole:
        below += f" ({round((low - whole) * topics)} where an aspect has no good document)"
    return (
        f"{measure}: some ranking has a full score on {round(full * topics)} of {topics} topics. The best "
        f"one that was found stays {below}; the least of these bounds is {least:.2f}, of topic {topic}."
    )


_SUMMARY = (
    MEASURE,
    Column("topics", "topics"),
    Column("full", "bound 1", "share of topics where some ranking scores 1"),
    Column("low", "bound below 0.9", "share of topics where none of the rankings scores 0.9"),
    Column(
        "low_whole", "of these with good documents", "share of topics, every aspect having good documents"
    ),
    Column("least", "least bound"),
    Column("topic", "on topic"),
)
_TOPICS = (
    MEASURE,
    Column("place", "topics", "in the order of their bounds"),
    TOPIC,
    Column("bound", "bound", "best score of the rankings"),
    Column("strategy", "by", "the first ranking that has it"),
    Column("lacking", "aspects without", "how many aspects have no document above the lowest label"),
)
_STRATEGIES = (MEASURE, TOPIC, Column("strategy", "ranking"), Column("score", "score"))
_PLOTS = (
    Plot(
        "topic_bounds",
        "What the best ranking can reach",
        "The best score of the rankings of all judged documents, from the topic of the least on.",
        "curve",
        "topic_bounds",
        "place",
        "bound",
        series="measure",
        reference=LOW,
    ),
)  # fmt: skip
