"""`label_selection`: how few labels a measure of texts needs (Hui, PIKM 2014, section 5.2; spec 7.5)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from cupel_audits.analysis import content_measures
from cupel_audits.analysis.content_measures import CLASSIC, MeasureText
from cupel_audits.analysis.lmd_selection import DEEPEST
from cupel_audits.analysis.pools import Depth
from cupel_audits.analysis.run_orders import SPREAD, spread
from cupel_audits.declarations import Audit, audit, setting, whole_number
from cupel_audits.kinds.label_selection.document_labels import Labelling
from cupel_audits.report import AuditReport, Cell, Column, Plot, ReportTable
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.correlation import tau_b
from cupel_measures.grammar.parameters import Whole

Batch = Annotated[int, Whole("a whole number of documents from 1")]
Repeats = Annotated[int, whole_number(0)]
ENOUGH = 0.8
"""The tau that the paper asks for (spec 10.8)."""
SELECTED, RANDOM = "selected", "at random"
READING = (
    "Labels come from the judgments that there are. A document of a pool that nobody judged counts as one "
    "that was labelled and found relevant to nothing, so that an assessor might end earlier.",
    "Where the runs miss a subtopic altogether, its topic's whole pool is labelled in vain. The share of "
    "topics where none is missed tells what the selection needs by itself.",
)


@audit(
    "label_selection",
    title="Selection of labels",
    answers="How few documents have to be labelled for a measure of texts to order the runs?",
    source="Hui, PIKM 2014, section 5.2 (spec 7.5)",
)
class LabelSelection(Audit):
    """Chooses documents that are worth a label, and ranks the runs by a measure of texts with those alone.

    Of each topic the pool of the first `depth` documents of all runs is labelled by decreasing centrality
    (mean closeness to the others), `batch` documents at a time, until every subtopic has a relevant one; then
    where some are missing the next deeper pool, down to 20. Told are the labelled documents as a share of the
    pools of depth 20, and tau-b between the runs' scores by `measure` under these labels, and those by the
    classic measure `reference` under all judgments, as labels grow by a batch a topic at a time.

    The first trial is the selection. Each other one labels as many documents of the pool of depth 20 at
    random, topic by topic: what choosing is worth. Topics without a relevant document need no label.
    """

    needs_texts: ClassVar[bool] = True

    measure: MeasureText = setting("LMD", "the measure of texts")
    reference: MeasureText = setting(CLASSIC, "the classic measure that it is held against")
    depth: Depth = setting(3, "the pool where labelling begins, at most 20")
    batch: Batch = setting(5, "documents that are labelled at a time")
    repeats: Repeats = setting(10, "how often as many documents are labelled at random, to compare with")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        yield from content_measures.problems(subject, self.reference)
        if not parse(self.measure).declaration.texts:
            yield f"{self.measure} does not look at texts: give a measure that does, such as LMD"
        if self.depth > DEEPEST:
            yield f"depth is at most {DEEPEST}, where labelling ends, not {self.depth}"

    def ranking_depth(self) -> int:
        return DEEPEST

    def trials(self, subject: AuditSubject) -> int:
        return 1 + self.repeats

    def steps(self, subject: AuditSubject) -> float:
        return 200.0

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        labelling = Labelling.of(subject, self.depth, self.batch)
        measures = content_measures.bound(subject, [self.measure, self.reference])
        own, classic = (str(one) for one in measures)
        full = content_measures.means_of(subject.evaluator, measures)
        for trial in trials:
            order = labelling.order if trial == 0 else labelling.drawn(self.generator(seed, trial))
            taus = []
            for kept in labelling.grown(order, self.batch):
                found = content_measures.means_of(subject.evaluator.keeping(kept), measures[:1])
                taus.append(tau_b(full[classic], found[own]).value)
            yield {
                "topics": labelling.topics,
                "labels": labelling.sizes(self.batch),
                "taus": taus,
                "full": tau_b(full[classic], full[own]).value,
            }

    def report(self, about: SubjectSummary, found: Mapping[int, Any]) -> AuditReport:
        first = next(iter(found.values()))
        topics = _topics(about, first["topics"])
        pool = sum(row[2] for row in topics)
        points = _points(found, first["labels"], pool)
        numbers = _numbers(points, topics, first)
        return AuditReport(
            verdict=tuple(_verdict(self, numbers, topics, pool)),
            numbers=numbers,
            tables=(
                ReportTable("points", "Orders as labels grow", _POINTS, tuple(points)),
                ReportTable("topics", "Labels by topic", _TOPICS, tuple(topics)),
            ),
            plots=_PLOTS,
            reading=READING,
            undefined=tuple(_undefined(points, numbers)),
        )


def _topics(about: SubjectSummary, topics: Sequence[Sequence[int]]) -> list[tuple[Any, ...]]:
    return [
        (about.topics[topic], labels, pool, labels / pool if pool else None, *others)
        for topic, labels, pool, *others in topics
    ]


def _points(found: Mapping[int, Any], labels: Sequence[int], pool: int) -> list[tuple[Cell, ...]]:
    """A row for the selection, and one for the random labels, after each batch."""
    chosen = [one["taus"] for trial, one in found.items() if trial == 0]
    drawn = [one["taus"] for trial, one in found.items() if trial]
    return [
        (way, number, number / pool if pool else None, *spread([one[place] for one in taus]).cells)
        for way, taus in ((SELECTED, chosen), (RANDOM, drawn))
        if taus
        for place, number in enumerate(labels)
    ]


def _numbers(
    points: Sequence[tuple[Any, ...]], topics: Sequence[tuple[Any, ...]], first: Mapping[str, Any]
) -> dict[str, Any]:
    """What the selection took, and tau at its end: with the selected labels, with random ones, with all."""
    last = {row[0]: row[3] for row in points}
    reached = (row[2] for row in points if row[0] == SELECTED and row[3] is not None and row[3] >= ENOUGH)
    whole = [row for row in topics if not row[6]]
    return {
        "labels": sum(row[1] for row in topics),
        "labelled": _share(topics),
        "labelled_whole": _share(whole),
        f"labelled@{ENOUGH}": next(reached, None),
        "subtopics": sum(row[5] for row in topics),
        "missed": sum(row[6] for row in topics),
        "tau": last.get(SELECTED),
        "tau_random": last.get(RANDOM),
        "tau_all": first["full"],
    }


def _undefined(points: Sequence[tuple[Any, ...]], numbers: Mapping[str, Any]) -> Iterator[str]:
    for way, labels, _, mean, *_ in points:
        if mean is None:
            yield f"tau with {labels} labels, {way}: all runs score the same by one of the measures"
    told = {row[0] for row in points}
    reasons = {
        "tau": None if SELECTED in told else "there is no selection yet, or nothing to label",
        "tau_random": None if RANDOM in told else "nothing was labelled at random",
        "tau_all": "all runs score the same by one of the measures",
        "labelled": "no topic has a subtopic and a ranked document",
        "labelled_whole": "every topic has a subtopic that no run finds",
        f"labelled@{ENOUGH}": f"tau does not reach {ENOUGH}",
    }
    for name, why in reasons.items():
        if numbers[name] is None and why is not None:
            yield f"{name}: {why}"


def _share(topics: Sequence[tuple[Any, ...]]) -> float | None:
    """Labelled documents of those of the pools; None of none."""
    pool = sum(row[2] for row in topics)
    return sum(row[1] for row in topics) / pool if pool else None


def _verdict(
    asked: LabelSelection, numbers: Mapping[str, Any], topics: Sequence[tuple[Any, ...]], pool: int
) -> Iterator[str]:
    if not pool:
        yield "No run ranks a document for a topic that has subtopics: there is nothing to label."
        return
    yield (
        f"The selection labels {numbers['labels']} of {pool} documents of the pools of depth {DEEPEST} "
        f"({100 * numbers['labelled']:.1f} per cent), over {len(topics)} topics."
    )
    if numbers["missed"] and numbers["labelled_whole"] is not None:
        yield (
            f"{numbers['missed']} of {numbers['subtopics']} subtopics have no relevant document in the "
            "pools, and labelling their topics goes on in vain; of the pools of other topics "
            f"{100 * numbers['labelled_whole']:.1f} per cent are labelled."
        )
    told = [
        f"{numbers[name]:.2f} {words}"
        for name, words in (
            ("tau", "with the selected labels"),
            ("tau_random", "with as many at random"),
            ("tau_all", "with all judgments"),
        )
        if numbers[name] is not None
    ]
    if told:
        yield (
            f"{asked.measure}: tau between its order and that of {asked.reference} under all judgments is "
            f"{', '.join(told)}."
        )
    if (enough := numbers[f"labelled@{ENOUGH}"]) is not None:
        yield f"tau first reaches {ENOUGH} when {100 * enough:.1f} per cent of the pools are labelled."


_TAU = "tau-b between the runs' scores by the measure under these labels and the reference's under all"
_POINTS = (
    Column("way", "labels", "selected, or as many documents of the pools at random"),
    Column("labels", "labelled", "documents, over all topics"),
    Column("share", "share", f"of the pools of depth {DEEPEST}"),
    *SPREAD,
)
_TOPICS = (
    Column("topic", "topic"),
    Column("labels", "labelled", "documents"),
    Column("pool", "pool", f"documents of the pool of depth {DEEPEST}"),
    Column("share", "share", "of the pool"),
    Column("depth", "depth", "of the pool where labelling ended"),
    Column("subtopics", "subtopics", "that some judged document is relevant to"),
    Column("missed", "missed", "subtopics without a relevant labelled document"),
)
_PLOTS = (
    Plot(
        "tau",
        "How the order grows with labels",
        f"{_TAU}: of the selection, and mean and interval of random labels.",
        "curve",
        "points",
        "share",
        "mean",
        series="way",
        low="low",
        high="high",
    ),
    Plot(
        "topics",
        "Labels by topic",
        f"Labelled documents as a share of each topic's pool of depth {DEEPEST}.",
        "bars",
        "topics",
        "topic",
        "share",
        domain=(0.0, 1.0),
    ),
)  # fmt: skip
