"""The report of `label_selection`.

It has the labelled documents, and the order of runs as labels are added.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypedDict

from cupel_audits.analysis.lmd_selection import DEEPEST
from cupel_audits.analysis.named_extremes import name_ends
from cupel_audits.analysis.run_orders import MONTE_CARLO, RepeatSummary, summarise_repeats
from cupel_audits.kinds.label_selection.document_labels import TopicLabels
from cupel_audits.report import AuditReport, Heading, Plot, TableSchema
from cupel_audits.subject import SubjectSummary

STRONG_TAU = 0.8
"""The tau that the paper aims for (Hui, PIKM 2014, section 5)."""
SELECTED, RANDOM = "selected", "at random"
TAU = (
    "tau-b between the runs' scores by the measure under these labels and their scores by the reference "
    "under all judgments"
)


class LabellingTrial(TypedDict):
    """The selection (trial 0) or a random baseline.

    The value is serialised to JSON with lists in place of tuples.

    topics: the labels of the selection by topic. labels: number of labelled documents after each batch. taus:
    tau (see TAU) under the labels after each batch, None where it is undefined. full: tau between the scores
    by the measure under all judgments and those by the reference under all judgments, None if undefined.
    """

    topics: Sequence[TopicLabels]
    labels: list[int]
    taus: list[float | None]
    full: float | None


@dataclass(frozen=True, kw_only=True)
class LabelPoint:
    """The agreement with the reference after a batch of labels."""

    way: Annotated[str, Heading("labels", "selected documents, or as many random documents of the pools")]
    labels: Annotated[int, Heading("labelled", "number of documents over all topics")]
    share: Annotated[
        float | None, Heading("labelled share", f"of the documents in the pools of depth {DEEPEST}")
    ]
    tau: RepeatSummary


@dataclass(frozen=True, kw_only=True)
class LabelledTopicRow:
    """The labels of a topic."""

    topic: Annotated[str, Heading("topic")]
    labels: Annotated[int, Heading("labelled", "number of documents")]
    pool: Annotated[int, Heading("pool", f"number of documents in the pool of depth {DEEPEST}")]
    share: Annotated[float | None, Heading("labelled share", "of the documents in the pool")]
    depth: Annotated[int, Heading("depth", "depth of the pool where labelling ended")]
    subtopics: Annotated[int, Heading("subtopics", "subtopics with a relevant document")]
    missed: Annotated[int, Heading("missed", "subtopics without a relevant labelled document")]


POINTS = TableSchema.of("points", "Agreement with the reference as labels are added", LabelPoint)
TOPICS = TableSchema.of("topics", "Labels by topic", LabelledTopicRow)


@dataclass(frozen=True, kw_only=True)
class LabellingSummary:
    """Totals over the topics, and tau after the last batch.

    labels: number of labelled documents. pool: number of documents in the pools. share: labels / pool.
    share_complete: labels / pool over the topics without a missed subtopic. share_strong: share at which tau
    of the selection first reaches STRONG_TAU. tau, tau_random, tau_all: tau-b between the scores of the runs
    by the measure and their scores by the reference under all judgments. The scores by the measure use the
    selected labels, as many labels of random documents, and all judgments, respectively.
    """

    topics: int
    labels: int
    pool: int
    share: float | None
    share_complete: float | None
    share_strong: float | None
    subtopics: int
    missed: int
    tau: float | None
    tau_random: float | None
    tau_all: float | None


def report(
    about: SubjectSummary, measure: str, reference: str, results: Mapping[int, LabellingTrial]
) -> AuditReport:
    """Return the report on the selection and the random baselines.

    results: the result by trial number; trial 0 is the selection.
    """
    first = next(iter(results.values()))
    topics = [_topic_row(about, TopicLabels(*labels)) for labels in first["topics"]]
    points = _points(results, first["labels"], sum(row.pool for row in topics))
    summary = _summarise(points, topics, first["full"])
    return AuditReport(
        verdict=tuple(_verdict(measure, reference, summary)),
        numbers={
            "labels": summary.labels,
            "labelled": summary.share,
            "labelled_whole": summary.share_complete,
            f"labelled@{STRONG_TAU}": summary.share_strong,
            "subtopics": summary.subtopics,
            "missed": summary.missed,
            "tau": summary.tau,
            "tau_random": summary.tau_random,
            "tau_all": summary.tau_all,
        },
        tables=(POINTS.table(points), TOPICS.table(topics)),
        plots=_plots(points, topics),
        actions=tuple(_advice(measure, summary)),
        reading=READING,
        undefined=tuple(_undefined(points, summary)),
    )


def _topic_row(about: SubjectSummary, labels: TopicLabels) -> LabelledTopicRow:
    return LabelledTopicRow(
        topic=about.topics[labels.topic],
        labels=labels.labelled,
        pool=labels.pool,
        share=labels.labelled / labels.pool if labels.pool else None,
        depth=labels.depth,
        subtopics=labels.subtopics,
        missed=labels.missed,
    )


def _points(results: Mapping[int, LabellingTrial], labels: Sequence[int], pool: int) -> list[LabelPoint]:
    """Return a point after each batch.

    The points for the selected documents come first, then those for the random documents.
    """
    selected = [trial["taus"] for number, trial in results.items() if number == 0]
    drawn = [trial["taus"] for number, trial in results.items() if number]
    return [
        LabelPoint(
            way=way,
            labels=labelled,
            share=labelled / pool if pool else None,
            tau=summarise_repeats([taus[batch] for taus in trials]),
        )
        for way, trials in ((SELECTED, selected), (RANDOM, drawn))
        if trials
        for batch, labelled in enumerate(labels)
    ]


def _summarise(
    points: Sequence[LabelPoint], topics: Sequence[LabelledTopicRow], tau_all: float | None
) -> LabellingSummary:
    last = {point.way: point.tau.mean for point in points}
    selected = [point for point in points if point.way == SELECTED]
    strong = (
        labelling.share
        for labelling in selected
        if labelling.tau.mean is not None and labelling.tau.mean >= STRONG_TAU
    )
    return LabellingSummary(
        topics=len(topics),
        labels=sum(row.labels for row in topics),
        pool=sum(row.pool for row in topics),
        share=_labelled_share(topics),
        share_complete=_labelled_share([row for row in topics if not row.missed]),
        share_strong=next(strong, None),
        subtopics=sum(row.subtopics for row in topics),
        missed=sum(row.missed for row in topics),
        tau=last.get(SELECTED),
        tau_random=last.get(RANDOM),
        tau_all=tau_all,
    )


def _labelled_share(topics: Sequence[LabelledTopicRow]) -> float | None:
    """Return labelled documents as a share of the documents in the pools.

    The result is None if the pools are empty.
    """
    pool = sum(row.pool for row in topics)
    return sum(row.labels for row in topics) / pool if pool else None


def _undefined(points: Sequence[LabelPoint], summary: LabellingSummary) -> Iterator[str]:
    same_score = "all runs have the same score by one of the measures"
    for point in points:
        if point.tau.mean is None:
            yield f"tau with {point.labels} labels, {point.way}: {same_score}"
    ways = {point.way for point in points}
    if summary.tau is None and SELECTED not in ways:
        yield "tau: the selection is not finished, or there is nothing to label"
    if summary.tau_random is None and RANDOM not in ways:
        yield "tau_random: no random documents were drawn"
    if summary.tau_all is None:
        yield f"tau_all: {same_score}"
    if summary.share is None:
        yield "labelled: no topic has both a retrieved document and a subtopic with a relevant document"
    if summary.share_complete is None:
        yield "labelled_whole: every topic has a subtopic without a relevant document in the pools"
    if summary.share_strong is None:
        yield f"labelled@{STRONG_TAU}: tau does not reach {STRONG_TAU}"


def _verdict(measure: str, reference: str, summary: LabellingSummary) -> Iterator[str]:
    if summary.share is None:
        yield "No run retrieves a document for a topic with subtopics, so there is nothing to label."
        return
    yield (
        f"The selection labels {summary.labels} of the {summary.pool} documents in the pools of depth "
        f"{DEEPEST} ({summary.share:.1%}), over {summary.topics} topics."
    )
    if summary.missed and summary.share_complete is not None:
        yield (
            f"{summary.missed} of {summary.subtopics} subtopics have no relevant document in the pools, so "
            "the pools of their topics are labelled completely. In the pools of the other topics, "
            f"{summary.share_complete:.1%} of the documents are labelled."
        )
    taus = (
        (summary.tau, "with the selected labels"),
        (summary.tau_random, "with the labels of as many random documents"),
        (summary.tau_all, "with all judgments"),
    )
    if defined := [f"{tau:.2f} {labels}" for tau, labels in taus if tau is not None]:
        yield (
            f"{measure}: tau between its order of runs and that of {reference} under all judgments is "
            f"{', '.join(defined)}."
        )
    if summary.share_strong is not None:
        yield f"tau first reaches {STRONG_TAU} when {summary.share_strong:.1%} of the pools are labelled."


def _advice(measure: str, summary: LabellingSummary) -> Iterator[str]:
    """Yield how many documents to label, and how to choose them."""
    if summary.share is None:
        yield "Give runs that retrieve documents for topics with subtopics, and run the audit again."
        return
    if summary.share_strong is not None:
        yield (
            f"Label about {summary.share_strong:.0%} of the pools in the order of centrality if a tau of "
            f"{STRONG_TAU} with the reference is enough."
        )
    elif summary.tau is not None:
        yield f"Do not replace the reference by {measure} with these labels: tau stays below {STRONG_TAU}."
    else:
        yield f"Do not infer whether {measure} can replace the reference: tau is undefined with these labels."
    if summary.tau is not None and summary.tau_random is not None and summary.tau <= summary.tau_random:
        yield "The selection gives no higher tau than as many random labels on average (untested)."
    if summary.missed:
        yield "Add relevant documents for the missed subtopics, for example from deeper pools."


def _plots(points: Sequence[LabelPoint], topics: Sequence[LabelledTopicRow]) -> tuple[Plot, ...]:
    return (
        Plot.curve(
            POINTS,
            "tau",
            title=_tau_title(points),
            caption=f"{TAU}: tau with the selected labels, and the mean and interval of tau with the "
            f"labels of as many random documents. {MONTE_CARLO}.",
            x="share",
            y="mean",
            series="way",
            low="low",
            high="high",
            reference=STRONG_TAU,
            reference_label=f"tau {STRONG_TAU}, the aim of the paper",
        ),
        Plot.bars(
            TOPICS,
            "topics",
            title=_topics_title(topics),
            caption=f"Labelled documents as a share of each topic's pool of depth {DEEPEST}.",
            x="topic",
            y="share",
            domain=(0.0, 1.0),
        ),
    )


def _tau_title(points: Sequence[LabelPoint]) -> str:
    last = {point.way: point.tau.mean for point in points if point.tau.mean is not None}
    if not last:
        return "No tau is defined"
    return "Tau with all labels: " + ", ".join(f"{tau:.2f} {way}" for way, tau in last.items())


def _topics_title(topics: Sequence[LabelledTopicRow]) -> str:
    defined = [(row.share, f"topic {row.topic}") for row in topics if row.share is not None]
    ends = name_ends(defined, "{:.0%}", every="every topic", by="for")
    return "No topic has a pool" if ends is None else f"Labelled share of a topic's pool: {ends}"


READING = (
    "Labels come from the existing judgments. An unjudged document of a pool counts as labelled and not "
    "relevant. If an assessor found it relevant, labelling could end earlier.",
    "If a subtopic has no relevant document in the pool, the whole pool of its topic is labelled. The share "
    "over topics without a missed subtopic shows the effort of the selection alone.",
)
