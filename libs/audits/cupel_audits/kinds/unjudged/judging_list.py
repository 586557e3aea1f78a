"""The report of `unjudged`: documents to judge next, and unjudged shares of runs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypedDict

from cupel_audits.analysis.named_extremes import name_tied
from cupel_audits.kinds.unjudged.document_influence import LeadChange, MeasureInfluence
from cupel_audits.report import AuditReport, Heading, MeasureCell, Plot, RunCell, TableSchema
from cupel_audits.subject import SubjectSummary

TopicCell = Annotated[str, Heading("topic")]
DocumentCell = Annotated[str, Heading("document")]


class RankInRun(NamedTuple):
    """The index of a run, and the rank of a document in this run."""

    run: int
    rank: int


class UnjudgedShares(NamedTuple):
    """The values of unjudged@depth of all runs on a topic.

    The value is None for a run that retrieves no documents.
    """

    depth: int
    shares: Sequence[float | None]


class ExaminedDocument(TypedDict):
    """An unjudged document with its influence.

    runs: number of runs that retrieve the document. where: the runs that rank it highest. influence: mean of
    its influence over the measures.
    """

    document: str
    runs: int
    where: Sequence[RankInRun]
    influence: float
    measures: Mapping[str, MeasureInfluence]


class TopicTrial(TypedDict):
    """The trial of one topic; serialised to JSON with lists in place of named tuples.

    missing: number of unjudged documents within the depth of some run. tried: number of these documents that
    were examined. turning: number of examined documents that reverse the order of two runs by some measure.
    influence: sum of the influences of the examined documents. documents: the most influential documents.
    """

    unjudged: Sequence[UnjudgedShares]
    missing: int
    tried: int
    turning: int
    influence: float
    documents: Sequence[ExaminedDocument]


@dataclass(frozen=True, kw_only=True)
class JudgingCandidate:
    """A document on the list, with its influence by each measure.

    The row also names the runs that rank the document highest.
    """

    topic: str
    document: str
    runs: int
    highest_ranks: Sequence[RankInRun]
    influence: float
    measures: Mapping[str, MeasureInfluence]

    @property
    def reversed(self) -> int:
        """Return the largest number of pairs of runs that the judgment reverses.

        The largest number is taken over the measures.
        """
        return max((by_measure.reversed for by_measure in self.measures.values()), default=0)

    def describe_change(self, about: SubjectSummary) -> str | None:
        """Describe the largest change of a lead by the measure with the largest influence."""
        measure = max(self.measures, key=lambda text: self.measures[text].influence, default=None)
        pair = None if measure is None else _pair(self.measures[measure])
        if pair is None:
            return None
        upper, lower = about.runs[pair.upper], about.runs[pair.lower]
        return (
            f"the lead of {upper} over {lower} by {measure} changes from {pair.lead:.5f} to {pair.left:.5f}"
        )


def _pair(influence: MeasureInfluence) -> LeadChange | None:
    return None if influence.pair is None else LeadChange(*influence.pair)


@dataclass(frozen=True, kw_only=True)
class ListRow:
    """A document to judge."""

    place: Annotated[int, Heading("place")]
    topic: TopicCell
    document: DocumentCell
    influence: Annotated[
        float,
        Heading(
            "influence",
            "shares of leads that a judgment could remove, summed over pairs of adjacent runs; mean over "
            "measures",
        ),
    ]
    share: Annotated[
        float | None,
        Heading("cumulative share", "of the influence of all examined documents, down to this row"),
    ]
    reversed: Annotated[int, Heading("reversed pairs", "of runs; largest number over the measures")]
    runs: Annotated[int, Heading("runs", "number of runs that retrieve the document")]
    best: Annotated[int, Heading("best rank")]
    highest_ranks: Annotated[str, Heading("found in", "runs that rank the document highest, and this rank")]
    settles: Annotated[str | None, Heading("largest change", "if the document is highly relevant")]


@dataclass(frozen=True, kw_only=True)
class ChangeRow:
    """The influence of a listed document by one measure."""

    topic: TopicCell
    document: DocumentCell
    measure: MeasureCell
    influence: Annotated[float, Heading("influence")]
    reversed: Annotated[int, Heading("reversed pairs", "of runs")]
    upper: Annotated[str | None, Heading("upper run", "of the two adjacent runs whose lead changes most")]
    lower: Annotated[str | None, Heading("lower run", "of the two adjacent runs whose lead changes most")]
    lead: Annotated[float | None, Heading("lead", "under the present judgments")]
    left: Annotated[float | None, Heading("new lead", "if the document is highly relevant")]


@dataclass(frozen=True, kw_only=True)
class ShareRow:
    """The share of unjudged documents of a run down to a depth (unjudged@depth)."""

    run: RunCell
    depth: Annotated[int, Heading("depth")]
    share: Annotated[
        float | None, Heading("unjudged", "share of the run's first documents, mean over topics")
    ]


@dataclass(frozen=True, kw_only=True)
class JudgingTopicRow:
    """The missing judgments of a topic."""

    topic: TopicCell
    missing: Annotated[int, Heading("unjudged", "documents within the depth of some run")]
    tried: Annotated[int, Heading("examined", "documents whose influence was computed")]
    reversing: Annotated[
        int, Heading("reversing a pair", "examined documents that could alone reverse the order of two runs")
    ]
    influence: Annotated[float, Heading("influence", "sum over the examined documents")]


DOCUMENTS = TableSchema.of("documents", "Documents to judge next", ListRow)
CHANGES = TableSchema.of("changes", "Influence of each document by measure", ChangeRow)
SHARES = TableSchema.of("unjudged", "Unjudged share of each run's first documents", ShareRow)
TOPICS = TableSchema.of("topics", "Missing judgments by topic", JudgingTopicRow)


def report(about: SubjectSummary, depth: int, most: int, results: Mapping[int, TopicTrial]) -> AuditReport:
    """Return the report on the examined topics.

    results: the trial of each topic by the index of the topic. depth: pool depth whose unjudged documents
    were examined. most: largest number of documents to list.
    """
    candidates = _rank_candidates(about, results, most)
    shares = _share_rows(about, list(results.values()))
    total = math.fsum(trial["influence"] for trial in results.values())
    return AuditReport(
        verdict=(
            *_describe_shares(depth, shares),
            _describe_missing(depth, shares, results),
            *_describe_list(about, candidates, total),
        ),
        numbers={
            **_numbers(shares),
            "missing": sum(trial["missing"] for trial in results.values()),
            "turning": sum(trial["turning"] for trial in results.values()),
        },
        tables=(
            DOCUMENTS.table(_list_rows(about, candidates, total)),
            CHANGES.table(_change_rows(about, candidates)),
            SHARES.table(shares),
            TOPICS.table(_topic_rows(about, results)),
        ),
        plots=_plots(depth, candidates, shares, total),
        actions=tuple(_advice(about, candidates, total)),
        reading=READING,
        undefined=(*_skipped_measures(about, candidates), *_undefined_shares(shares)),
        warnings=(*about.cautions, *_unexamined(results)),
    )


def _rank_candidates(
    about: SubjectSummary, results: Mapping[int, TopicTrial], most: int
) -> list[JudgingCandidate]:
    """Return the `most` most influential documents of all topics.

    The most influential document comes first.
    """
    candidates = [
        JudgingCandidate(
            topic=about.topics[topic],
            document=document["document"],
            runs=document["runs"],
            highest_ranks=[RankInRun(*values) for values in document["where"]],
            influence=document["influence"],
            measures={text: MeasureInfluence(*values) for text, values in document["measures"].items()},
        )
        for topic, trial in results.items()
        for document in trial["documents"]
    ]
    return sorted(
        candidates, key=lambda candidate: (-candidate.influence, candidate.topic, candidate.document)
    )[:most]


def _list_rows(
    about: SubjectSummary, candidates: Sequence[JudgingCandidate], total: float
) -> Iterator[ListRow]:
    cumulative = 0.0
    for place, candidate in enumerate(candidates, 1):
        cumulative += candidate.influence
        yield ListRow(
            place=place,
            topic=candidate.topic,
            document=candidate.document,
            influence=candidate.influence,
            share=cumulative / total if total else None,
            reversed=candidate.reversed,
            runs=candidate.runs,
            best=candidate.highest_ranks[0].rank,
            highest_ranks=", ".join(
                f"{about.runs[entry.run]} {entry.rank}" for entry in candidate.highest_ranks
            ),
            settles=candidate.describe_change(about),
        )


def _change_rows(about: SubjectSummary, candidates: Sequence[JudgingCandidate]) -> Iterator[ChangeRow]:
    for candidate in candidates:
        for measure, by_measure in candidate.measures.items():
            pair = _pair(by_measure)
            yield ChangeRow(
                topic=candidate.topic,
                document=candidate.document,
                measure=measure,
                influence=by_measure.influence,
                reversed=by_measure.reversed,
                upper=pair and about.runs[pair.upper],
                lower=pair and about.runs[pair.lower],
                lead=pair and pair.lead,
                left=pair and pair.left,
            )


def _share_rows(about: SubjectSummary, trials: Sequence[TopicTrial]) -> list[ShareRow]:
    """Return the mean of unjudged@depth over the topics, for each depth and run."""
    shares_by_topic = [dict(UnjudgedShares(*values) for values in trial["unjudged"]) for trial in trials]
    return [
        ShareRow(run=name, depth=depth, share=_mean([shares[depth][run] for shares in shares_by_topic]))
        for depth in shares_by_topic[0]
        for run, name in enumerate(about.runs)
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the defined values, or None if there are none."""
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined else None


def _topic_rows(about: SubjectSummary, results: Mapping[int, TopicTrial]) -> Iterator[JudgingTopicRow]:
    for topic, trial in results.items():
        yield JudgingTopicRow(
            topic=about.topics[topic],
            missing=trial["missing"],
            tried=trial["tried"],
            reversing=trial["turning"],
            influence=trial["influence"],
        )


def _numbers(shares: Sequence[ShareRow]) -> dict[str, float | int | None]:
    """Return the numbers of the report about unjudged shares.

    For each depth k these are unjudged@k (mean over runs), worst(unjudged@k), and unjudged@k(RUN).
    """
    numbers: dict[str, float | int | None] = {}
    for depth in dict.fromkeys(row.depth for row in shares):
        by_run = {row.run: row.share for row in shares if row.depth == depth}
        numbers[f"unjudged@{depth}"] = _mean([*by_run.values()])
        numbers[f"worst(unjudged@{depth})"] = max(
            (share for share in by_run.values() if share is not None), default=None
        )
        numbers |= {f"unjudged@{depth}({run})": share for run, share in by_run.items()}
    return numbers


def _describe_shares(depth: int, shares: Sequence[ShareRow]) -> Iterator[str]:
    """Yield a sentence on the unjudged share at the deepest cutoff.

    A sentence on the share at `depth` comes before it if `depth` is shallower.
    """
    deepest = max(row.depth for row in shares)
    for k in sorted({min(depth, deepest), deepest}):
        by_run = {row.run: row.share for row in shares if row.depth == k and row.share is not None}
        if by_run:
            largest = f"{max(by_run.values()):.1%}"
            tied = [run for run, share in by_run.items() if f"{share:.1%}" == largest]
            mean = math.fsum(by_run.values()) / len(by_run)
            yield (
                f"On average {mean:.1%} of the top {k} of a run are unjudged; the largest share "
                f"is {largest} ({name_tied(tied)})."
            )


def _describe_missing(depth: int, shares: Sequence[ShareRow], results: Mapping[int, TopicTrial]) -> str:
    missing = sum(trial["missing"] for trial in results.values())
    if all(row.share is None for row in shares):
        return "No run retrieves a document for these topics."
    if not missing:
        return f"All documents in the top {depth} of any run are judged."
    reversing = sum(trial["turning"] for trial in results.values())
    examined = sum(trial["tried"] for trial in results.values())
    return (
        f"{missing} documents in the top {depth} of some run are unjudged. Of {examined} examined "
        f"documents, {reversing} could alone reverse the order of two runs."
    )


def _describe_list(
    about: SubjectSummary, candidates: Sequence[JudgingCandidate], total: float
) -> Iterator[str]:
    if candidates and total:
        share, first = math.fsum(candidate.influence for candidate in candidates) / total, candidates[0]
        yield (
            f"The listed documents ({len(candidates)}) have {share:.0%} of the influence of all examined "
            f"documents. If {first.document} of topic {first.topic} is highly relevant, "
            f"{first.describe_change(about)}."
        )


def _skipped_measures(about: SubjectSummary, candidates: Sequence[JudgingCandidate]) -> Iterator[str]:
    for measure in about.measures:
        if candidates and all(measure not in candidate.measures for candidate in candidates):
            yield (
                f"{measure}: not examined, because the measure reads texts or uses a declared label set "
                "without the tuple of the highest labels"
            )


def _undefined_shares(shares: Sequence[ShareRow]) -> Iterator[str]:
    for row in shares:
        if row.share is None:
            yield f"unjudged@{row.depth} of {row.run}: the run retrieves no document for the examined topics"


def _unexamined(results: Mapping[int, TopicTrial]) -> Iterator[str]:
    left = sum(trial["missing"] - trial["tried"] for trial in results.values())
    if left:
        yield (
            f"{left} unjudged documents with the smallest sums of 1 / rank were not examined: increase "
            "`tried` to examine more documents per topic."
        )


def _advice(about: SubjectSummary, candidates: Sequence[JudgingCandidate], total: float) -> Iterator[str]:
    """Yield which documents to judge, and how to report until they are judged."""
    if candidates and total:
        first = candidates[0]
        yield (
            f"Judge {first.document} of topic {first.topic} first: if it is highly relevant, "
            f"{first.describe_change(about)}."
        )
        yield (
            "Download the table of documents, judge them in this order, and run the audit again: influences "
            "change with every judgment."
        )
        yield (
            "Until then, report the unjudged share beside the scores, or use a measure such as Bpref, which "
            "is not free of bias if judgments are missing because of the pool."
        )
    else:
        yield (
            "No examined document alone would reduce a lead or break a tie. Other documents and combinations "
            "of documents were not examined. Run the audit again when a run is added."
        )


def _plots(
    depth: int, candidates: Sequence[JudgingCandidate], shares: Sequence[ShareRow], total: float
) -> tuple[Plot, ...]:
    return (
        Plot.curve(
            DOCUMENTS,
            "share",
            title=_influence_title(candidates, total),
            caption="Influence of the first documents of the list, as a share of the influence of all "
            "examined documents.",
            x="place",
            y="share",
            domain=(0.0, 1.0),
        ),
        Plot.bars(
            SHARES,
            "unjudged",
            title=_shares_title(depth, shares),
            caption="Share of each run's first documents that are unjudged, by depth.",
            x="run",
            y="share",
            series="depth",
            domain=(0.0, 1.0),
        ),
    )


def _influence_title(candidates: Sequence[JudgingCandidate], total: float) -> str:
    if not candidates or not total:
        return "No examined document has influence on the order of runs"
    first = candidates[:FIRST_PLACES]
    share = math.fsum(candidate.influence for candidate in first) / total
    number = "first document has" if len(first) == 1 else f"first {len(first)} documents have"
    return f"The {number} {share:.0%} of the influence of all examined documents"


def _shares_title(depth: int, shares: Sequence[ShareRow]) -> str:
    deepest = max(row.depth for row in shares)
    at_depth = [row for row in shares if row.depth == min(depth, deepest) and row.share is not None]
    worst = max(at_depth, key=lambda row: row.share or 0, default=None)
    if worst is None:
        return "No run retrieves a document"
    if not worst.share:
        return f"All documents in the top {worst.depth} of every run are judged"
    tied = [row.run for row in at_depth if f"{row.share:.0%}" == f"{worst.share:.0%}"]
    return f"Top {worst.depth}: the largest unjudged share is {worst.share:.0%} ({name_tied(tied)})"


FIRST_PLACES = 10
"""Number of documents of the list in the title of the plot of influence."""
READING = (
    "A document has influence if judging it could reduce the lead of a run over the next one, or break a "
    "tie. Each document alone is assumed to be highly relevant. Most documents will turn out not to be "
    "relevant, so the list shows what could happen, not what will happen.",
    "The score of a run with a much larger unjudged share than the others may be too low.",
)
