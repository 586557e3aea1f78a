"""Quality of the documents that the best runs of each measure rank first.

Source: Maistro, Lima, Simonsen, Lioma, CIKM 2021, sections 4.3.3 and 4.3.4.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, TypedDict, final

import numpy as np

from cupel_audits.analysis.named_extremes import name_ends
from cupel_audits.analysis.pools import tops_of
from cupel_audits.kinds.aspects.aspect_measures import (
    aggregate_name,
    component_of,
    with_component_cutoff,
    without_default_aspects,
)
from cupel_audits.report import AuditReport, Heading, Plot, TableSchema
from cupel_audits.subject import DECIMALS, AuditSubject, Tops, scores_by_topic
from cupel_measures.grammar.measure import Measure
from cupel_measures.model import ABSENT, NEGATIVE, Floats, Ints
from cupel_measures.scoring.pool import Mask

ALL = "all"
"""The component of a sum over measures with the same aggregation."""

READING = (
    "For each topic, the run with the highest score by a measure is inspected (ties: the smallest name). A "
    "zero-aspect document has no label above the lowest on any aspect. A measure that serves all aspects "
    "prefers runs with few zero-aspect documents.",
)


@dataclass(frozen=True, kw_only=True)
class DocumentCount:
    """Documents at a rank or in a bin of ranks, over the best runs of all topics.

    judged, unjudged: numbers of documents. zero: judged documents without a label above the lowest. labels:
    sum of the label indices of the judged documents over all aspects; negative labels count as 0.
    """

    judged: int
    unjudged: int
    zero: int = 0
    labels: int = 0


@dataclass(frozen=True, kw_only=True)
class MeasureCounts:
    """Counts of documents by rank or by bin of ranks for one measure.

    kind: the aggregation of the measure, without the component.
    """

    component: str
    kind: str
    measure: str
    counts: Sequence[DocumentCount]


StoredCounts = tuple[str, str, list[tuple[int, int, int]]]
"""The component of a measure, its aggregation without the component, and three numbers by rank or by bin."""


@final
class DocumentsResult(TypedDict):
    """The result of the second trial, on documents of the best runs.

    The value is JSON-serialisable.

    zero: by measure with the cutoff `first`, the numbers of zero-aspect, unjudged and judged documents of the
    best runs at each rank. quality: by measure with the cutoff `depth`, the sum of the label indices and the
    numbers of judged and unjudged documents of the best runs in each bin of ranks. uncut: measures that are
    left out because their component takes no cutoff.
    """

    zero: dict[str, StoredCounts]
    quality: dict[str, StoredCounts]
    uncut: list[str]


ComponentCell = Annotated[
    str,
    Heading(
        "component", "measure of one aspect that the aggregate combines; all: the sum over these measures"
    ),
]
KindCell = Annotated[str, Heading("aggregate")]
BestRunMeasureCell = Annotated[str, Heading("measure", "measure that selects the best run of each topic")]


@dataclass(frozen=True, kw_only=True)
class ZeroAspectRow:
    """The number of zero-aspect documents at the top ranks of the best runs.

    A zero-aspect document serves no aspect.
    """

    measure: BestRunMeasureCell
    count: Annotated[
        int, Heading("zero-aspect documents", "at the top ranks; no aspect has a label above the lowest")
    ]
    documents: Annotated[int, Heading("documents", "at the top ranks, over all topics")]
    percent: Annotated[float | None, Heading("percent", "of the documents at the top ranks")]


@dataclass(frozen=True, kw_only=True)
class ZeroAspectRankRow:
    """The number of zero-aspect documents at one rank of the best runs by one measure."""

    component: ComponentCell
    kind: KindCell
    measure: BestRunMeasureCell
    rank: Annotated[int, Heading("rank")]
    count: Annotated[int, Heading("zero-aspect documents", "no aspect has a label above the lowest")]
    percent: Annotated[float | None, Heading("percent", "of the documents at all top ranks together")]


@dataclass(frozen=True, kw_only=True)
class QualityRow:
    """Labels of the documents of the best runs of one measure in one bin of ranks."""

    component: ComponentCell
    kind: KindCell
    measure: BestRunMeasureCell
    ranks: Annotated[str, Heading("ranks")]
    labels: Annotated[
        float | None,
        Heading("mean sum of labels", "label indices over all aspects; negative labels count as 0"),
    ]
    documents: Annotated[int, Heading("documents")]


ZERO_ASPECT = TableSchema.of("zero", "Zero-aspect documents of the best runs", ZeroAspectRow)
ZERO_ASPECT_RANKS = TableSchema.of("zero_ranks", "Zero-aspect documents by rank", ZeroAspectRankRow)
QUALITY = TableSchema.of("quality", "Sum of labels of the best runs", QualityRow)


@dataclass(frozen=True, eq=False)
class DocumentWorth:
    """Labels of the U first documents of all runs (see `Tops`).

    judged: bool[U + 1], whether the document is judged on some aspect. total: int64[U + 1], the sum of its
    label indices; negative labels count as 0. is_zero: bool[U + 1], whether it has no label above the lowest.
    The last entry of each array is for an empty rank, whose document index is -1.
    """

    tops: Tops
    judged: Mask
    total: Ints
    is_zero: Mask

    @classmethod
    def of(cls, subject: AuditSubject) -> "DocumentWorth":
        """Look up the labels; raise ValueError if the first documents were not collected."""
        tops = tops_of(subject)
        pooled = np.append(tops.pooled, -1)
        known = np.append(subject.qrels.labels, np.full((len(subject.qrels.aspects), 1), ABSENT), axis=1)
        labels = known[:, pooled]
        total = np.maximum(labels.astype(np.int64), 0).sum(axis=0)
        judged = np.asarray((labels >= NEGATIVE).any(axis=0))
        return cls(tops, judged, total, total == 0)

    def first_documents(self, runs: Ints, depth: int) -> Ints:
        """Return the first documents of one run for each topic.

        The documents are int64[topics, depth], -1 at empty ranks.

        runs: int64[topics], the run of each topic.
        """
        documents = np.full((len(runs), depth), -1, dtype=np.int64)
        ranked = self.tops.ranked[runs, np.arange(len(runs)), :depth]
        documents[:, : ranked.shape[1]] = ranked
        return documents


def count_documents(
    subject: AuditSubject, measures: Sequence[Measure], first: int, depth: int, width: int
) -> DocumentsResult:
    """Count documents of the best runs by each measure.

    Documents are counted at each of the first ranks and in bins of ranks.
    """
    worth = DocumentWorth.of(subject)
    result = DocumentsResult(zero={}, quality={}, uncut=[])
    for measure in (without_default_aspects(given, subject.about.aspects) for given in measures):
        at_first, at_depth = with_component_cutoff(measure, first), with_component_cutoff(measure, depth)
        if at_first is None or at_depth is None:
            result["uncut"].append(str(measure))
            continue
        # Measures that differ only by their cutoff become equal, so their counts have the same key.
        by_rank = _count(subject, worth, at_first, first, 1)
        by_bin = _count(subject, worth, at_depth, depth, width)
        result["zero"][str(at_first)] = (
            component_of(at_first),
            aggregate_name(at_first),
            [(count.zero, count.unjudged, count.judged) for count in by_rank],
        )
        result["quality"][str(at_depth)] = (
            component_of(at_depth),
            aggregate_name(at_depth),
            [(count.labels, count.judged, count.unjudged) for count in by_bin],
        )
    return result


def _count(
    subject: AuditSubject, worth: DocumentWorth, measure: Measure, depth: int, width: int
) -> list[DocumentCount]:
    """Count documents of the best runs in bins of `width` ranks.

    Only the first `depth` ranks are counted.
    """
    documents = worth.first_documents(choose_best_runs(subject, measure), depth)
    is_filled = documents >= 0
    judged = is_filled & worth.judged[documents]
    labels = np.where(judged, worth.total[documents], 0)
    by_rank = (judged, is_filled & ~judged, judged & worth.is_zero[documents], labels)
    bins = np.arange(0, depth, width)
    columns = [np.add.reduceat(counted.sum(axis=0), bins).tolist() for counted in by_rank]
    return [
        DocumentCount(judged=judged, unjudged=unjudged, zero=zero, labels=labels)
        for judged, unjudged, zero, labels in zip(*columns, strict=True)
    ]


def choose_best_runs(subject: AuditSubject, measure: Measure) -> Ints:
    """Return the run with the greatest score on each topic.

    The runs are int64[topics]. Among tied runs, the one with the smallest name is chosen.
    """
    [scores] = scores_by_topic(subject.evaluator.evaluate([measure]), [measure]).values()
    names = subject.about.runs
    order = np.array(sorted(range(len(names)), key=lambda run: names[run].encode()))
    rounded: Floats = np.round(scores[:, order], DECIMALS)
    best: Ints = order[np.argmax(rounded, axis=1)]
    return best


@dataclass(frozen=True, kw_only=True)
class CountingRules:
    """Settings of the audit that determine how documents are counted.

    count_unjudged: whether an unjudged document counts as a zero-aspect document. exclude_unjudged: whether
    an unjudged document is left out of its bin. depth: the last rank of the last bin. width: the number of
    ranks in a bin.
    """

    count_unjudged: bool
    exclude_unjudged: bool
    depth: int
    width: int


def report(result: DocumentsResult, rules: CountingRules) -> AuditReport:
    """Return the report on zero-aspect documents and on the mean sum of labels.

    The documents are reported by rank, the sums by bin.
    """
    by_rank = _with_sums(list(_read_zero(result)))
    totals = [_total_row(counts, rules) for counts in by_rank]
    ranks = [
        row for counts, total in zip(by_rank, totals, strict=True) for row in _rank_rows(counts, total, rules)
    ]
    bins = [row for counts in _with_sums(list(_read_quality(result))) for row in _quality_rows(counts, rules)]
    numbers: dict[str, float | int | None] = {f"zero({row.measure})": row.percent for row in totals}
    return AuditReport(
        verdict=(*_zero_aspect_sentence(totals, rules), *_quality_sentence(bins)),
        numbers=numbers | {f"quality({row.measure})@{row.ranks}": row.labels for row in bins},
        tables=(ZERO_ASPECT.table(totals), ZERO_ASPECT_RANKS.table(ranks), QUALITY.table(bins)),
        plots=_plots(totals, bins),
        actions=tuple(_advice(result, totals, rules)),
        reading=READING,
        undefined=tuple(_undefined(result, totals, bins)),
    )


def _read_zero(result: DocumentsResult) -> Iterator[MeasureCounts]:
    for measure, (component, kind, by_rank) in result["zero"].items():
        counts = [
            DocumentCount(zero=zero, unjudged=unjudged, judged=judged) for zero, unjudged, judged in by_rank
        ]
        yield MeasureCounts(component=component, kind=kind, measure=measure, counts=counts)


def _read_quality(result: DocumentsResult) -> Iterator[MeasureCounts]:
    for measure, (component, kind, by_bin) in result["quality"].items():
        counts = [
            DocumentCount(labels=labels, judged=judged, unjudged=unjudged)
            for labels, judged, unjudged in by_bin
        ]
        yield MeasureCounts(component=component, kind=kind, measure=measure, counts=counts)


def _with_sums(counts: Sequence[MeasureCounts]) -> list[MeasureCounts]:
    """Return the counts, then the sums over components.

    Each aggregation that has several components has a sum.
    """
    sums = []
    for kind in dict.fromkeys(count.kind for count in counts):
        same = [count.counts for count in counts if count.kind == kind]
        if len(same) > 1:
            total = [_sum(at_place) for at_place in zip(*same, strict=True)]
            sums.append(MeasureCounts(component=ALL, kind=kind, measure=f"{ALL} {kind}", counts=total))
    return [*counts, *sums]


def _sum(counts: Sequence[DocumentCount]) -> DocumentCount:
    return DocumentCount(
        judged=sum(count.judged for count in counts),
        unjudged=sum(count.unjudged for count in counts),
        zero=sum(count.zero for count in counts),
        labels=sum(count.labels for count in counts),
    )


def _zero_aspect_count(count: DocumentCount, rules: CountingRules) -> int:
    return count.zero + (count.unjudged if rules.count_unjudged else 0)


def _total_row(measure: MeasureCounts, rules: CountingRules) -> ZeroAspectRow:
    """Return the counts of one measure over all ranks."""
    total = _sum(measure.counts)
    zero = _zero_aspect_count(total, rules)
    documents = total.judged + (total.unjudged if rules.count_unjudged else 0)
    percent = 100.0 * zero / documents if documents else None
    return ZeroAspectRow(measure=measure.measure, count=zero, documents=documents, percent=percent)


def _rank_rows(
    measure: MeasureCounts, total: ZeroAspectRow, rules: CountingRules
) -> Iterator[ZeroAspectRankRow]:
    """Yield a row for each rank.

    The denominator of each percentage is the number of documents at all ranks together.
    """
    for rank, at_rank in enumerate(measure.counts, 1):
        zero = _zero_aspect_count(at_rank, rules)
        yield ZeroAspectRankRow(
            component=measure.component,
            kind=measure.kind,
            measure=measure.measure,
            rank=rank,
            count=zero,
            percent=100.0 * zero / total.documents if total.documents else None,
        )


def _quality_rows(measure: MeasureCounts, rules: CountingRules) -> Iterator[QualityRow]:
    for place, in_bin in enumerate(measure.counts):
        before = place * rules.width
        documents = in_bin.judged + (0 if rules.exclude_unjudged else in_bin.unjudged)
        yield QualityRow(
            component=measure.component,
            kind=measure.kind,
            measure=measure.measure,
            ranks=f"{before + 1}-{min(before + rules.width, rules.depth)}",
            labels=in_bin.labels / documents if documents else None,
            documents=documents,
        )


def _undefined(
    result: DocumentsResult, totals: Sequence[ZeroAspectRow], bins: Sequence[QualityRow]
) -> Iterator[str]:
    for measure in result["uncut"]:
        yield f"{measure}: its component takes no cutoff"
    for row in totals:
        if not row.documents:
            yield f"zero-aspect documents of {row.measure}: no document can be counted"
    empty: dict[str, list[str]] = {}
    for quality in bins:
        if quality.labels is None:
            empty.setdefault(quality.ranks, []).append(quality.measure)
    for ranks, measures in empty.items():
        yield f"quality at ranks {ranks}: no document of the best runs of {', '.join(measures)} counts"


def _zero_aspect_sentence(totals: Sequence[ZeroAspectRow], rules: CountingRules) -> Iterator[str]:
    """Yield a sentence on the extreme numbers of zero-aspect documents.

    It names the measures whose best runs have the most and the fewest of them.
    """
    values = _zero_percents(totals)
    documents = "documents" if rules.count_unjudged else "judged documents"
    if (ends := name_ends(values, "{:.1f}%")) is not None:
        yield f"Zero-aspect documents among the first {documents} of the best runs: {ends}."


def _quality_sentence(bins: Sequence[QualityRow]) -> Iterator[str]:
    """Yield a sentence on the measures with the highest and the lowest labels.

    The labels are those of the best runs of a measure.
    """
    if (ends := name_ends(_first_labels(bins), "{:.2f}")) is not None:
        yield f"Mean sum of the labels of a document of the best runs at ranks {bins[0].ranks}: {ends}."


def _first_labels(bins: Sequence[QualityRow]) -> list[tuple[float, str]]:
    """Return the mean sum of labels at the first ranks, with the measure.

    Undefined means and sums of measures are left out.
    """
    first = [row for row in bins if row.ranks == bins[0].ranks]
    return [(row.labels, row.measure) for row in first if row.labels is not None and row.component != ALL]


def _zero_percents(totals: Sequence[ZeroAspectRow]) -> list[tuple[float, str]]:
    """Return the percentage of zero-aspect documents of each measure.

    Sums of measures are left out.
    """
    single = [row for row in totals if not row.measure.startswith(f"{ALL} ")]
    return [(row.percent, row.measure) for row in single if row.percent is not None]


def _advice(result: DocumentsResult, totals: Sequence[ZeroAspectRow], rules: CountingRules) -> Iterator[str]:
    """Yield what to do about zero-aspect documents and about unjudged ones."""
    if any(row.percent for row in totals):
        yield (
            "Look at the first documents of the best runs by a measure before you use it, above all where "
            "the share of zero-aspect documents is high."
        )
    unjudged = sum(unjudged for _, _, by_rank in result["zero"].values() for _, unjudged, _ in by_rank)
    if unjudged and not rules.count_unjudged:
        yield "Set `count_unjudged=true` to see the counts if unjudged documents serve no aspect."


def _plots(totals: Sequence[ZeroAspectRow], bins: Sequence[QualityRow]) -> tuple[Plot, ...]:
    zero = name_ends(_zero_percents(totals), "{:.1f}%")
    quality = name_ends(_first_labels(bins), "{:.2f}")
    return (
        Plot.bars(
            ZERO_ASPECT_RANKS,
            "zero",
            title=f"Zero-aspect documents of the best runs: {zero or 'none can be counted'}",
            caption="Documents of the best runs that have no label above the lowest on any aspect, as a "
            "percentage of the documents at all top ranks together.",
            x="rank",
            y="percent",
            series="kind",
            facet="component",
        ),
        Plot.bars(
            QUALITY,
            "quality",
            title=f"Labels at the first ranks of the best runs: {quality or 'none can be counted'}",
            caption="Mean sum of labels of the documents of the best runs.",
            x="ranks",
            y="labels",
            series="kind",
            facet="component",
        ),
    )
