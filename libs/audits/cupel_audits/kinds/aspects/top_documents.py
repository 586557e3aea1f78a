"""What the best runs rank first (Maistro et al., CIKM 2021, 4.3.3 and 4.3.4; spec 3.9 and 3.10)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cupel_audits.analysis.pools import tops_of
from cupel_audits.kinds.aspects.aspect_measures import asked, cut, kind_of, plain
from cupel_audits.report import AuditReport, Cell, Column, Plot, ReportTable
from cupel_audits.subject import DECIMALS, AuditSubject, Tops, by_topic
from cupel_measures.grammar.measure import Measure
from cupel_measures.model import ABSENT, NEGATIVE, Floats, Ints
from cupel_measures.scoring.pool import Mask

MEASURE = Column("measure", "measure", "by which the best run of each topic was chosen")
READING = (
    "For each topic the run that a measure puts first is looked at (of equal ones the smallest name): a "
    "measure that serves all aspects leads to documents that are worth something on some of them.",
)


@dataclass(frozen=True, eq=False)
class Worth:
    """The first documents of all runs, U of them, and at the end, for -1, nothing.

    judged: bool[U + 1], by some aspect. total: int64[U + 1], sum of the labels (an index each, negative ones
    0). zero: bool[U + 1], no label above the lowest.
    """

    tops: Tops
    judged: Mask
    total: Ints
    zero: Mask

    @classmethod
    def of(cls, subject: AuditSubject) -> "Worth":
        """ValueError where they were not gathered."""
        tops = tops_of(subject)
        pooled = np.append(tops.pooled, -1)
        known = np.append(subject.qrels.labels, np.full((len(subject.qrels.aspects), 1), ABSENT), axis=1)
        labels = known[:, pooled]
        total = np.maximum(labels.astype(np.int64), 0).sum(axis=0)
        judged = np.asarray((labels >= NEGATIVE).any(axis=0))
        return cls(tops, judged, total, total == 0)

    def first(self, runs: Ints, depth: int) -> Ints:
        """int64[topics, depth]: the documents of one run for each topic; -1 below its last."""
        found = np.full((len(runs), depth), -1, dtype=np.int64)
        of_topic = self.tops.ranked[runs, np.arange(len(runs)), :depth]
        found[:, : of_topic.shape[1]] = of_topic
        return found


def documents(
    subject: AuditSubject, measures: Sequence[Measure], first: int, depth: int, width: int
) -> dict[str, Any]:
    """What the best runs rank first by each measure; and which of them take no cutoff.

    zero: measure at cutoff `first` -> what it asks of each aspect, its kind, and for each rank [zero-aspect
    judged, unjudged, judged]. quality: measure at cutoff `depth` -> the same two, and for each bin of `width`
    ranks [sum of the labels, judged, unjudged].
    """
    worth = Worth.of(subject)
    zero: dict[str, Any] = {}
    quality: dict[str, Any] = {}
    uncut = []
    for one in (plain(one, subject.about.aspects) for one in measures):
        at_first, at_depth = cut(one, first), cut(one, depth)
        if at_first is None or at_depth is None:
            uncut.append(str(one))
            continue
        ranked = worth.first(best_runs(subject, at_first), first)
        zero[str(at_first)] = [asked(at_first), kind_of(one), _zero(worth, ranked)]
        ranked = worth.first(best_runs(subject, at_depth), depth)
        quality[str(at_depth)] = [asked(at_depth), kind_of(one), _quality(worth, ranked, width)]
    return {"zero": zero, "quality": quality, "uncut": uncut}


def best_runs(subject: AuditSubject, measure: Measure) -> Ints:
    """int64[topics]: the run of the greatest score; ties: the smallest name."""
    [scores] = by_topic(subject.evaluator.evaluate([measure]), [measure]).values()
    names = subject.about.runs
    order = np.array(sorted(range(len(names)), key=lambda run: names[run].encode()))
    rounded: Floats = np.round(scores[:, order], DECIMALS)
    best: Ints = order[np.argmax(rounded, axis=1)]
    return best


def _zero(worth: Worth, ranked: Ints) -> list[list[int]]:
    there = ranked >= 0
    judged = there & worth.judged[ranked]
    counted = (judged & worth.zero[ranked], there & ~judged, judged)
    return np.stack([one.sum(axis=0) for one in counted], axis=1).tolist()  # type: ignore[no-any-return]


def _quality(worth: Worth, ranked: Ints, width: int) -> list[list[int]]:
    there = ranked >= 0
    judged = there & worth.judged[ranked]
    counted = (np.where(judged, worth.total[ranked], 0), judged, there & ~judged)
    by_rank = np.stack([one.sum(axis=0) for one in counted], axis=1)
    starts = np.arange(0, ranked.shape[1], width)
    return np.add.reduceat(by_rank, starts, axis=0).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Counting:
    """How documents are counted (spec 3.9, 3.10).

    unjudged: an unjudged document is a zero-aspect document. exclude: it is none of a bin's documents.
    """

    unjudged: bool
    exclude: bool
    depth: int
    width: int


def report(found: Mapping[str, Any], counting: Counting) -> AuditReport:
    """Zero-aspect documents by rank, and the mean sum of labels by bin of ranks."""
    counted = _summed(found["zero"])
    ranks = [row for of, name, kind, by in counted for row in _shares((of, kind, name), by, counting)]
    whole = [_total(name, by, counting) for _, name, _, by in counted]
    bins = [
        row
        for of, name, kind, by in _summed(found["quality"])
        for row in _bins((of, kind, name), by, counting)
    ]
    undefined = [f"{one}: what it asks of an aspect takes no cutoff" for one in found["uncut"]]
    undefined += [f"zero-aspect documents of {row[0]}: no document to count" for row in whole if not row[2]]
    empty: dict[Any, list[Any]] = {}
    for row in bins:
        if row[4] is None:
            empty.setdefault(row[3], []).append(row[2])
    undefined += [
        f"quality at ranks {at}: no document there in the best runs of {', '.join(by)}"
        for at, by in empty.items()
    ]
    numbers: dict[str, Any] = {f"zero({row[0]})": row[3] for row in whole}
    return AuditReport(
        verdict=(*_extremes(whole, counting), *_best_bins(bins)),
        numbers=numbers | {f"quality({row[2]})@{row[3]}": row[4] for row in bins},
        tables=(
            ReportTable("zero", "Zero-aspect documents of the best runs", _ZERO, tuple(whole)),
            ReportTable("zero_ranks", "Zero-aspect documents by rank", _RANKS, tuple(ranks)),
            ReportTable("quality", "Sum of labels of the best runs", _QUALITY, tuple(bins)),
        ),
        plots=_PLOTS,
        reading=READING,
        undefined=tuple(undefined),
    )


def _summed(found: Mapping[str, Any]) -> list[tuple[str, str, str, Any]]:
    """(what is asked of each aspect, measure, kind, counts); and over all that is asked, by kind."""
    rows = [(of, name, kind, counts) for name, (of, kind, counts) in found.items()]
    for kind in dict.fromkeys(row[2] for row in rows):
        same = [row[3] for row in rows if row[2] == kind]
        if len(same) > 1:
            rows.append(("all", f"all {kind}", kind, np.sum(np.array(same), axis=0).tolist()))
    return rows


def _total(measure: str, ranks: Sequence[Sequence[int]], counting: Counting) -> tuple[Cell, ...]:
    """Over all ranks: how many of how many, and per cent."""
    more = int(counting.unjudged)
    count = sum(zero + more * unjudged for zero, unjudged, _ in ranks)
    whole = sum(judged + more * unjudged for _, unjudged, judged in ranks)
    return measure, count, whole, 100.0 * count / whole if whole else None


def _shares(
    named: tuple[str, ...], ranks: Sequence[Sequence[int]], counting: Counting
) -> list[tuple[Cell, ...]]:
    """By rank: one denominator serves all."""
    whole: Any = _total(named[-1], ranks, counting)[2]
    counts = [zero + int(counting.unjudged) * unjudged for zero, unjudged, _ in ranks]
    return [
        (*named, rank, count, 100.0 * count / whole if whole else None)
        for rank, count in enumerate(counts, 1)
    ]


def _bins(
    named: tuple[str, ...], bins: Sequence[Sequence[int]], counting: Counting
) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for place, (total, judged, unjudged) in enumerate(bins):
        low = place * counting.width
        number = judged + (0 if counting.exclude else unjudged)
        ranks = f"{low + 1}-{min(low + counting.width, counting.depth)}"
        rows.append((*named, ranks, total / number if number else None, number))
    return rows


def _extremes(whole: Sequence[Sequence[Any]], counting: Counting) -> list[str]:
    """By which measure the first documents are most often, and least often, worth nothing."""
    told = [row for row in whole if row[2]]
    if not told:
        return []
    most, least = max(told, key=lambda row: row[3]), min(told, key=lambda row: row[3])
    documents = "documents" if counting.unjudged else "judged documents"
    return [
        f"Of the {documents} that its best runs rank first, {most[0]} lets most through that are worth "
        f"nothing on any aspect, {most[1]} of {most[2]} ({most[3]:.1f} per cent), and {least[0]} fewest, "
        f"{least[1]} of {least[2]} ({least[3]:.1f} per cent)."
    ]


def _best_bins(bins: Sequence[Sequence[Any]]) -> list[str]:
    """Which measure's best runs rank the best documents first."""
    first = [row for row in bins if row[3] == bins[0][3] and row[4] is not None]
    if len(first) < 2:
        return []
    best, worst = max(first, key=lambda row: row[4]), min(first, key=lambda row: row[4])
    return [
        f"At ranks {best[3]} the labels of a document sum to {best[4]:.2f} on average in the best runs of "
        f"{best[2]}, and to {worst[4]:.2f} in those of {worst[2]}."
    ]


_NAMED = (
    Column("of", "asked of each aspect", "all: summed over what is asked"),
    Column("kind", "aggregate"),
    MEASURE,
)
_ZERO = (
    MEASURE,
    Column("count", "zero-aspect documents", "with no label above the lowest, at the first ranks"),
    Column("documents", "documents", "at these ranks, over all topics"),
    Column("percent", "per cent", "of these documents"),
)
_RANKS = (
    *_NAMED,
    Column("rank", "rank"),
    Column("count", "zero-aspect documents", "with no label above the lowest"),
    Column("percent", "per cent", "of the documents at all the first ranks together"),
)
_QUALITY = (
    *_NAMED,
    Column("ranks", "ranks"),
    Column("labels", "mean sum of labels", "label indices over all aspects, negative ones 0"),
    Column("documents", "documents"),
)
_PLOTS = (
    Plot(
        "zero",
        "Zero-aspect documents",
        "Documents worth nothing on any aspect at the first ranks of the best runs, in per cent of all.",
        "bars",
        "zero_ranks",
        "rank",
        "percent",
        series="kind",
        facet="of",
    ),
    Plot(
        "quality",
        "Quality by rank",
        "Mean sum of labels of the documents of the best runs.",
        "bars",
        "quality",
        "ranks",
        "labels",
        series="kind",
        facet="of",
    ),
)
