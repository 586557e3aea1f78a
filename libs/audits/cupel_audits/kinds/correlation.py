"""Audit kind `correlation`: how similarly measures, and aspects, order the runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, NotRequired, TypedDict

from cupel_audits.analysis.named_extremes import describe_mover, others_with
from cupel_audits.analysis.run_orders import STRONG, STRONG_IN_PAIRS
from cupel_audits.analysis.score_matrices import OverTopics, RunScores, mid_ranks, score_runs
from cupel_audits.declarations import audit, setting
from cupel_audits.report import AuditReport, Heading, MeasureCell, Plot, ReportTable, RunCell, TableSchema
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.compared_measures import AspectVariant, compared_measure
from cupel_measures.comparing.rank_correlation import overlap, tau_ap, tau_b, tau_b_by_topic
from cupel_measures.grammar.parameters import OneFlag, Persistence

MOVERS = 5
"""Number of runs with the largest changes of rank that are listed for each pair."""

READING = (
    "tau-b is 1 if two measures order all runs alike, 0 if their orders are unrelated, and -1 if one is the "
    "reverse of the other. It takes ties into account. Overall tau compares means over topics. Tau by topic "
    "is computed on each topic and averaged over the topics where it is defined.",
    f"{STRONG_IN_PAIRS}. By convention, orders with a greater tau are called similar. "
    "A low tau between measures of different properties is not a fault. If two measures of the same "
    "property have a low tau by topic but a high overall tau, they may differ by noise that averages out.",
    "Ferrante et al. (2019, Tables 1 and 2) report 0.38 to 0.99 by topic and 0.70 to 0.98 overall between "
    "measures that depend on ranks and the rank-based order RBTO, and 1 where theory predicts it. Maistro "
    "et al. (CIKM 2021, Table 4) print much lower values between measures of several aspects. These are not "
    "consistent with tau on scores (libs/measures/READINGS.md, reading 7), so expect higher values. Palotti "
    "et al. (CIKM 2018) report 0.90 between RBP and uRBP on CLEF eHealth 2015, 0.84 between RBP and H, and "
    "0.48 between relevance and understandability.",
)


@dataclass(frozen=True, kw_only=True)
class MeasurePair:
    """Two measures to correlate, by their texts.

    under: None for two different measures. For one measure under two aspects: the text of the measure without
    an aspect, and the two aspects.
    """

    first: str
    second: str
    under: tuple[str, str, str] | None = None


class CorrelationResult(TypedDict):
    """The correlation of one pair; JSON-serialisable.

    under: see MeasurePair. overall, by_topic, tau_ap, rbo: None where they are undefined. undefined: the
    reason why `overall` is None. topics: tau on each topic. ranks: mid-ranks of the runs by the first and by
    the second measure.
    """

    under: tuple[str, str, str] | None
    first: str
    second: str
    overall: float | None
    undefined: str | None
    by_topic: float | None
    topics: list[float | None]
    ranks: tuple[list[float], list[float]]
    tau_ap: NotRequired[float | None]
    rbo: NotRequired[float | None]


FirstCell = Annotated[str, Heading("first measure")]
SecondCell = Annotated[str, Heading("second measure")]


@dataclass(frozen=True, kw_only=True)
class PairRow:
    """The correlation of two measures, or of one measure under two aspects."""

    base: Annotated[str | None, Heading("measure", "without its aspect")]
    aspects: Annotated[str, Heading("aspects")]
    first: FirstCell
    second: SecondCell
    overall: Annotated[float | None, Heading("tau, overall", "tau-b between means over topics")]
    by_topic: Annotated[
        float | None, Heading("tau, by topic", "mean of tau-b over the topics where it is defined")
    ]
    undefined_topics: Annotated[
        int, Heading("topics without tau", "where all runs have the same score by one of the measures")
    ]
    tau_ap: Annotated[float | None, Heading("tau AP", "with the order by the first measure as the reference")]
    rbo: Annotated[float | None, Heading("RBO", "extrapolated rank-biased overlap of the orders by means")]
    greatest_move: Annotated[
        float | None, Heading("largest rank change", "of any run; tied runs share the mean of their ranks")
    ]


@dataclass(frozen=True, kw_only=True)
class MatrixRow:
    """One cell of the square matrix of measures."""

    first: FirstCell
    second: SecondCell
    overall: Annotated[float | None, Heading("tau, overall")]
    by_topic: Annotated[float | None, Heading("tau, by topic")]


@dataclass(frozen=True, kw_only=True)
class MidRankRow:
    """The rank of a run by one measure."""

    measure: MeasureCell
    run: RunCell
    rank: Annotated[
        float, Heading("rank", "by the mean over topics; tied runs share the mean of their ranks")
    ]


@dataclass(frozen=True, kw_only=True)
class MoverRow:
    """A run whose rank differs between two measures."""

    first: FirstCell
    second: SecondCell
    run: RunCell
    first_rank: Annotated[float, Heading("rank by the first", "tied runs share the mean of their ranks")]
    second_rank: Annotated[float, Heading("rank by the second")]
    move: Annotated[float, Heading("ranks lost", "from the first to the second; below 0: ranks gained")]


@dataclass(frozen=True, kw_only=True)
class TopicTauRow:
    """The correlation of two measures on one topic."""

    first: FirstCell
    second: SecondCell
    topic: Annotated[str, Heading("topic")]
    tau: Annotated[float | None, Heading("tau-b")]


PAIRS = TableSchema.of("pairs", "Pairs of measures", PairRow).with_columns("base").with_columns("aspects")
ASPECT_PAIRS = TableSchema.of("aspects", "One measure under two aspects", PairRow)
MATRIX = TableSchema.of("matrix", "All pairs of measures as a matrix", MatrixRow)
RANKS = TableSchema.of("ranks", "Ranks of the runs", MidRankRow)
MOVES = TableSchema.of("movers", "Runs with the largest changes of rank", MoverRow)
TOPICS = TableSchema.of("topics", "Correlation by topic", TopicTauRow)


@audit(
    "correlation",
    title="Correlation of measures and aspects",
    answers="Which measures, and which aspects, order the runs alike, and which runs change rank?",
    source="Ferrante, Ferro, Losiouk, TKDE 2019, section 5.2; Yilmaz et al., SIGIR 2008 for tau AP",
)
class CorrelationAudit(OverTopics):
    """Correlates the orders of runs by pairs of measures, and under pairs of aspects.

    Every pair of measures is compared. The orders under a pair of aspects are by one measure.

    tau-b = (P - Q) / sqrt((P + Q + T) (P + Q + U)) with P concordant and Q discordant pairs of runs, T pairs
    tied by the first measure only and U by the second only. Overall tau compares means over topics. Tau by
    topic compares the scores on each topic, and is averaged over the topics where neither measure is
    constant. Measures with exact values are compared by exact numbers; other scores are tied if they are
    equal to 12 decimals. A measure of one aspect is compared under each pair of aspects. For a measure that
    combines aspects, its component is compared under each pair of aspects.
    """

    aspects: OneFlag = setting(True, "also correlate each measure under each pair of aspects")
    tau_ap: OneFlag = setting(
        False, "also report tau AP, which gives swaps at the top of the order more weight"
    )
    rbo: OneFlag = setting(
        False, "also report rank-biased overlap, which gives the top of the order more weight"
    )
    rbo_p: Persistence = setting(0.9, "persistence of rank-biased overlap, between 0 and 1")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if subject.about.measures and not _pairs(subject, self.aspects):
            more = "" if self.aspects else ", or set aspects=true"
            yield f"the audit correlates pairs of measures, but only one is given: give two measures{more}"

    def trials(self, subject: AuditSubject) -> int:
        return len(_pairs(subject, self.aspects))

    def run_trials(
        self, subject: AuditSubject, seed: int, trials: Sequence[int]
    ) -> Iterator[CorrelationResult]:
        pairs, scores = _pairs(subject, self.aspects), dict[str, RunScores]()
        for trial in trials:
            pair = pairs[trial]
            for text in (pair.first, pair.second):
                if text not in scores:
                    scores[text] = score_runs(subject, parse(text).bound(subject.qrels.aspects))
            yield self._correlate(pair, scores[pair.first], scores[pair.second])

    def _correlate(self, pair: MeasurePair, first: RunScores, second: RunScores) -> CorrelationResult:
        overall = tau_b(first.means, second.means)
        by_topic = tau_b_by_topic(first.orders, second.orders)
        result = CorrelationResult(
            under=pair.under,
            first=first.measure,
            second=second.measure,
            overall=overall.value,
            undefined=overall.undefined,
            by_topic=by_topic.value,
            topics=list(by_topic.topics),
            ranks=(mid_ranks(first), mid_ranks(second)),
        )
        if self.tau_ap:
            result["tau_ap"] = tau_ap(first.means, second.means).value
        if self.rbo:
            result["rbo"] = overlap(first.means, second.means, p=self.rbo_p).value
        return result

    def report(self, about: SubjectSummary, by_trial: Mapping[int, CorrelationResult]) -> AuditReport:
        results = list(by_trial.values())
        measures = [result for result in results if result["under"] is None]
        aspects = [result for result in results if result["under"] is not None]
        tables = (
            self._pair_table(PAIRS, measures),
            *([self._pair_table(ASPECT_PAIRS, aspects)] if self.aspects else []),
            MATRIX.table(_matrix_rows(about, measures)),
            RANKS.table(_rank_rows(about, measures)),
            MOVES.table(row for result in results for row in _mover_rows(about, result)),
            TOPICS.table(_topic_rows(about, results)),
        )
        return AuditReport(
            verdict=(*_verdict(about, measures, "measures"), *_verdict(about, aspects, "aspects")),
            numbers=_numbers(results),
            tables=tables,
            plots=tuple(_plots(about, measures, aspects)),
            actions=tuple(_advice(about, measures, aspects)),
            reading=READING,
            undefined=tuple(_undefined(results)),
        )

    def _pair_table(self, schema: TableSchema[PairRow], results: Sequence[CorrelationResult]) -> ReportTable:
        columns = schema if self.tau_ap else schema.with_columns("tau_ap")
        columns = columns if self.rbo else columns.with_columns("rbo")
        return columns.table(map(_pair_row, results))


def _pairs(subject: AuditSubject, aspects: bool) -> list[MeasurePair]:
    """Return all pairs of measures, then the pairs of aspects of each measure.

    A measure has every pair of aspects that it can score.
    """
    texts = dict.fromkeys(subject.about.measures)
    pairs = [MeasurePair(first=first, second=second) for first, second in combinations(texts, 2)]
    if not aspects:
        return pairs
    by_base: dict[str, dict[AspectVariant, None]] = {}
    for measure in subject.measures:
        for variant in compared_measure(measure, subject.qrels).variants:
            by_base.setdefault(variant.base, {})[variant] = None
    return pairs + [
        MeasurePair(first=first.measure, second=second.measure, under=(base, first.aspect, second.aspect))
        for base, measures in by_base.items()
        for first, second in combinations(measures, 2)
    ]


def _moves(result: CorrelationResult) -> list[float]:
    """Return the ranks that each run loses from the first measure to the second."""
    return [second - first for first, second in zip(*result["ranks"], strict=True)]


def _largest_moves(result: CorrelationResult) -> list[int]:
    """Return the MOVERS runs with the largest moves; equal moves keep their order."""
    moves = _moves(result)
    return sorted(range(len(moves)), key=lambda run: -abs(moves[run]))[:MOVERS]


def _pair_row(result: CorrelationResult) -> PairRow:
    base, *aspects = result["under"] or (None,)
    return PairRow(
        base=base,
        aspects=" and ".join(aspects),
        first=result["first"],
        second=result["second"],
        overall=result["overall"],
        by_topic=result["by_topic"],
        undefined_topics=sum(tau is None for tau in result["topics"]),
        tau_ap=result.get("tau_ap"),
        rbo=result.get("rbo"),
        greatest_move=max(map(abs, _moves(result)), default=None),
    )


def _matrix_rows(about: SubjectSummary, results: Sequence[CorrelationResult]) -> Iterator[MatrixRow]:
    """Yield both halves of the matrix and its diagonal: a heat map needs all cells."""
    known = {(result["first"], result["second"]): result for result in results}
    known |= {(second, first): result for (first, second), result in known.items()}
    measures = tuple(dict.fromkeys(about.measures))
    for first in measures:
        for second in measures:
            result = known.get((first, second))
            diagonal = 1.0 if first == second else None
            yield MatrixRow(
                first=first,
                second=second,
                overall=diagonal if result is None else result["overall"],
                by_topic=diagonal if result is None else result["by_topic"],
            )


def _rank_rows(about: SubjectSummary, results: Sequence[CorrelationResult]) -> Iterator[MidRankRow]:
    ranks: dict[str, list[float]] = {}
    for result in results:
        ranks |= zip((result["first"], result["second"]), result["ranks"], strict=True)
    for measure in _compared_measures(about, results):
        for run, rank in zip(about.runs, ranks[measure], strict=True):
            yield MidRankRow(measure=measure, run=run, rank=rank)


def _compared_measures(about: SubjectSummary, results: Sequence[CorrelationResult]) -> tuple[str, ...]:
    """Return the measures of `results` in the order of the subject."""
    seen = {text for result in results for text in (result["first"], result["second"])}
    return tuple(measure for measure in dict.fromkeys(about.measures) if measure in seen)


def _mover_rows(about: SubjectSummary, result: CorrelationResult) -> Iterator[MoverRow]:
    moves, (first_ranks, second_ranks) = _moves(result), result["ranks"]
    for run in _largest_moves(result):
        if moves[run]:
            yield MoverRow(
                first=result["first"],
                second=result["second"],
                run=about.runs[run],
                first_rank=first_ranks[run],
                second_rank=second_ranks[run],
                move=moves[run],
            )


def _topic_rows(about: SubjectSummary, results: Sequence[CorrelationResult]) -> Iterator[TopicTauRow]:
    for result in results:
        for topic, tau in zip(about.topics, result["topics"], strict=True):
            yield TopicTauRow(first=result["first"], second=result["second"], topic=topic, tau=tau)


def _verdict(about: SubjectSummary, results: Sequence[CorrelationResult], what: str) -> Iterator[str]:
    """Yield sentences on pairs of measures or of aspects.

    `what` is their plural noun, such as `measures`.
    """
    defined = [(tau, result) for result in results if (tau := result["overall"]) is not None]
    if not defined:
        if results:
            yield f"Tau is undefined for every pair of {what}."
        return
    defined.sort(key=lambda pair: pair[0])
    taus = [tau for tau, _ in defined]
    (lowest, least_alike), (highest, most_alike) = defined[0], defined[-1]
    if lowest == 1:
        yield f"By these topics, all {what} with a defined tau order the runs alike (tau 1.00)."
    elif len(defined) == 1:
        yield f"By these topics, the order of runs differs between {_describe(about, least_alike)}."
    else:
        yield (
            f"By these topics, the order of runs differs most between {_describe(about, least_alike)}"
            f"{others_with(lowest, taus)}."
        )
        strong = sum(tau >= STRONG for tau in taus)
        yield (
            f"It differs least between {_describe(about, most_alike)}{others_with(highest, taus)}. "
            f"Of {len(defined)} pairs of {what}, "
            f"{strong} {'has' if strong == 1 else 'have'} a tau of {STRONG} or more."
        )


def _describe(about: SubjectSummary, result: CorrelationResult) -> str:
    """Return a text on two measures: tau and the run with the largest change of rank."""
    topics = "" if result["by_topic"] is None else f", {result['by_topic']:.2f} by topic"
    run = _largest_moves(result)[0]
    first, second = (ranks[run] for ranks in result["ranks"])
    mover = describe_mover(about.runs[run], [abs(move) for move in _moves(result)])
    move = f"; {mover}, from rank {first:g} to {second:g}" if first != second else ""
    return f"{result['first']} and {result['second']} (tau {result['overall']:.2f} overall{topics}{move})"


def _numbers(results: Sequence[CorrelationResult]) -> dict[str, float | int | None]:
    """Return tau, tau_by_topic, tau_ap and rbo of each pair.

    An example of a name is tau(FIRST,SECOND).
    """
    numbers: dict[str, float | int | None] = {}
    for result in results:
        pair = f"({result['first']},{result['second']})"
        numbers[f"tau{pair}"] = result["overall"]
        numbers[f"tau_by_topic{pair}"] = result["by_topic"]
        if "tau_ap" in result:
            numbers[f"tau_ap{pair}"] = result["tau_ap"]
        if "rbo" in result:
            numbers[f"rbo{pair}"] = result["rbo"]
    return numbers


def _undefined(results: Sequence[CorrelationResult]) -> Iterator[str]:
    for result in results:
        pair = f"{result['first']} and {result['second']}"
        if result["overall"] is None:
            yield f"tau of {pair}: {result['undefined']}"
        if result["by_topic"] is None:
            yield f"tau by topic of {pair}: all runs have the same score by one of them on every topic"


def _advice(
    about: SubjectSummary, measures: Sequence[CorrelationResult], aspects: Sequence[CorrelationResult]
) -> Iterator[str]:
    """Yield which measures and aspects to report."""
    taus = [(tau, result) for result in measures if (tau := result["overall"]) is not None]
    if taus:
        (least, apart), (most, alike) = (end(taus, key=lambda pair: pair[0]) for end in (min, max))
        if least < STRONG:
            yield (
                f"Report both {apart['first']} and {apart['second']}, or decide beforehand which one fits "
                "the task: by these topics, the order of runs depends on the choice."
            )
        if most >= STRONG and len(about.measures) > 2:
            yield (
                f"By these topics, {alike['first']} and {alike['second']} order these runs similarly (tau "
                f"{most:.2f}; by convention, from {STRONG} on)."
            )
    if any(result["overall"] is not None and result["overall"] < STRONG for result in aspects):
        yield (
            f"Report the aspects separately: by these topics, tau of some pair of aspects is below {STRONG}. "
            "`cupel audit aspects` shows the trade-offs."
        )
    yield "Look at the runs that move most before you explain a low tau: a few runs can cause it."


def _matrix_title(measures: Sequence[CorrelationResult], name: str, where: str) -> str:
    """Return a title with the lowest tau of any two measures.

    name: the key of tau in the results.
    """
    defined = [
        (tau, result)
        for result in measures
        if (tau := result[name]) is not None  # type: ignore[literal-required]
    ]
    if not defined:
        return f"No tau is defined {where}"
    tau, least = min(defined, key=lambda pair: pair[0])
    others = "" if len(defined) == 1 else "; no pair has a lower tau"
    return f"{least['first']} and {least['second']} have tau {tau:.2f} {where}{others}"


def _moves_title(about: SubjectSummary, measures: Sequence[CorrelationResult]) -> str:
    """Return a title on the run that moves most between any two measures."""
    moves = [(abs(_moves(result)[run]), run, result) for result in measures for run in _largest_moves(result)]
    largest, run, result = max(moves, key=lambda move: move[0])
    if not largest:
        return "No run changes its rank"
    first, second = (ranks[run] for ranks in result["ranks"])
    mover = describe_mover(about.runs[run], [move for move, _, _ in moves], no="No")
    return f"{mover}: rank {first:g} by {result['first']}, {second:g} by {result['second']}"


def _plots(
    about: SubjectSummary, measures: Sequence[CorrelationResult], aspects: Sequence[CorrelationResult]
) -> Iterator[Plot]:
    if measures:
        yield _heatmap("overall", _matrix_title(measures, "overall", "overall"), "means over topics")
        yield _heatmap("by_topic", _matrix_title(measures, "by_topic", "by topic"), "scores on each topic")
        yield Plot.changes(
            RANKS,
            "ranks",
            title=_moves_title(about, measures),
            caption="Ranks of the runs by measure. Lines cross where two runs exchange ranks.",
            x="measure",
            y="rank",
            series="run",
            x_order=_compared_measures(about, measures),
        )
    if aspects:
        yield Plot.heatmap(
            ASPECT_PAIRS,
            "aspects",
            title=_matrix_title(aspects, "overall", "between two aspects"),
            caption="tau-b between means over topics, of one measure under two aspects.",
            x="aspects",
            y="base",
            value="overall",
            domain=(-1, 1),
        )


def _heatmap(name: str, title: str, compared: str) -> Plot:
    return Plot.heatmap(
        MATRIX,
        name,
        title=title,
        caption=f"tau-b between {compared}: 1 the same order, 0 unrelated, -1 reversed.",
        x="first",
        y="second",
        value=name,
        domain=(-1, 1),
    )
