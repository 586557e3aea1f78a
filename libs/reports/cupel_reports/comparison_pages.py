"""The page and the plots of a comparison of runs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from cupel_audits.report import (
    AuditReport,
    Cell,
    Column,
    Heading,
    Plot,
    ReportTable,
    RunCell,
    TableSchema,
)
from cupel_measures.comparing.comparison import Difference, MeasureComparison, compared_values
from cupel_measures.comparing.corrections import letters
from cupel_measures.evaluation.comparison_result import ComparisonResult
from cupel_measures.evaluation.difference_marks import caption_of, is_higher, labels_of, marks_of
from cupel_measures.evaluation.test_titles import TITLES
from cupel_reports.number_formats import shown
from cupel_reports.report_page import rendered
from cupel_reports.score_pages import MOST_DRAWN, MOST_ROWS, page_data

LONGEST_LABEL = 24
"""Maximum number of characters of the label of a pair."""
MOST_NAMED = 6
"""Maximum number of pairs with a sentence and a plot of topics of their own."""
MOST_TOPICS = 60
"""Maximum number of topics of a plot."""


@dataclass(frozen=True, kw_only=True)
class DifferenceRow:
    pair: Annotated[str, Heading("pair")]
    run: RunCell
    baseline: Annotated[str, Heading("baseline")]
    difference: Annotated[float | None, Heading("difference", "mean of run minus baseline over topics")]
    low: Annotated[float | None, Heading("low", "lower bound of the interval of the difference")]
    high: Annotated[float | None, Heading("high", "upper bound of the interval of the difference")]
    p: Annotated[float | None, Heading("p")]
    corrected_p: Annotated[float | None, Heading("corrected p")]
    significant: Annotated[bool, Heading("significant")]
    margin_verdict: Annotated[str | None, Heading("verdict with the margin")]
    effect_size: Annotated[float | None, Heading("effect size")]
    higher: Annotated[int | None, Heading("higher", "number of topics where the run scores higher")]
    same: Annotated[int | None, Heading("same")]
    lower: Annotated[int | None, Heading("lower")]


@dataclass(frozen=True, kw_only=True)
class TopicDifferenceRow:
    topic: Annotated[str, Heading("topic")]
    differences: tuple[float | None, ...]


def page(result: ComparisonResult, *, name: str | None = None) -> str:
    """Return the page of a comparison as HTML.

    It has means, differences with intervals, and bars by topic. name: of the judgments, for the heading
    (default: that of the scores). The page loads nothing from the network. The same comparison gives the same
    page.
    """
    topic_tables = [_topic_table(result, pair) for pair in _drawn_pairs(result)]
    report = AuditReport(
        verdict=tuple(_verdict(result)),
        numbers={},
        tables=(
            _means(result),
            *_pair_tables(result),
            *topic_tables,
            *_all_topics(result),
        ),
        plots=(*_pair_plots(result), *(_topic_plot(result, pair) for pair in _drawn_pairs(result))),
        reading=tuple(_reading(result)),
        warnings=(
            *result.scored.remarks(),
            *result.printed_warnings(intervals=result.shows_intervals),
        ),
    )
    return rendered(
        page_data("comparison", result.scored, report, name, result.compared.choices.seed),
        eyebrow="Comparison with",
        title="Differences between runs",
        question="",
        source="",
        method=[],
        settings=[*_settings(result)],
    )


def plot(result: ComparisonResult, measure: str | None = None, *, run: str | None = None) -> Any:
    """Draw the differences by one measure, with their intervals.

    measure: default: the first one. run: draw the differences of this run from the baseline by topic instead.
    """
    from cupel_reports.drawings import draw  # imported late, because it needs the packages of figures

    places = {item.measure.text: place for place, item in enumerate(result.compared.measures)}
    place = 0 if measure is None else places[measure]
    if run is None:
        return draw(_pair_plot(result, place), _pair_tables(result)[place])
    if result.compared.choices.all_pairs:
        raise ValueError("differences by topic are from a baseline; compare without all_pairs")
    others = list(result.compared.systems[1:])
    if run not in others:
        raise KeyError(f"the run {run!r} is not compared with the baseline: {', '.join(others)}")
    return draw(_topic_plot(result, others.index(run), place), _topic_table(result, others.index(run), place))


def _differences(result: ComparisonResult, place: int) -> tuple[Difference, ...]:
    return result.compared.measures[place].differences


def _verdict(result: ComparisonResult) -> Iterator[str]:
    for comparison in result.compared.measures:
        pairs, text = comparison.differences, comparison.measure.text
        if len(pairs) <= MOST_NAMED:
            verdicts = _margin_verdicts(result, text)
            sentences = zip(pairs, verdicts, strict=True)
            yield from (f"{text}: {_sentence(result, pair)}{verdict}" for pair, verdict in sentences)
        else:
            count = sum(pair.significant for pair in pairs)
            yield f"{text}: {count} of {len(pairs)} differences are significant."


def _margin_verdicts(result: ComparisonResult, measure: str) -> list[str]:
    """Return a sentence with the verdict of each pair.

    The texts are empty without a margin.
    """
    outcomes = result.margins.outcomes.get(measure) if result.margins else None
    if outcomes is None:
        return [""] * len(result.compared.pairs)
    return [f" With the margin {shown(item.margin)}: {item.verdict}." for item in outcomes]


def _sentence(result: ComparisonResult, pair: Difference) -> str:
    baseline, run = result.pair(pair.first, pair.second)
    if pair.difference.value is None:
        return f"the difference between {run} and {baseline} is undefined."
    numbers = f"difference {shown(pair.difference.value, 4)}, {_p(pair)}"
    if not pair.significant:
        return f"{run} and {baseline} do not differ significantly ({numbers})."
    word = "higher" if is_higher(result.compared, pair) else "lower"
    return f"{run} is significantly {word} than {baseline} ({numbers})."


def _p(pair: Difference) -> str:
    if pair.corrected_p is None:
        return "p undefined"
    return "p < 0.0001" if pair.corrected_p < 0.0001 else f"p = {pair.corrected_p:.4f}"


def _means(result: ComparisonResult) -> ReportTable:
    compared = result.compared
    columns, cells = [Column("run", "run")], [[*labels_of(compared)]]
    for item in compared.measures:
        text = item.measure.text
        columns += [Column(text, text), Column(f"{text} marks", f"marks of {text}")]
        cells.append([mean.value for mean in item.means])  # type: ignore[misc]
        cells.append([",".join(marks_of(compared, item, place)) for place in range(len(compared.systems))])
    first = compared.measures[0].means
    order = sorted(range(len(first)), key=lambda place: -(first[place].value or 0.0))
    rows: list[tuple[Cell, ...]] = list(zip(*cells, strict=True))
    return ReportTable("means", "Means by run", tuple(columns), tuple(rows[place] for place in order))


def _pair_schema(result: ComparisonResult, place: int) -> TableSchema[DifferenceRow]:
    text = result.compared.measures[place].measure.text
    schema = TableSchema.of(f"differences_{place + 1}", f"Differences by {text}", DifferenceRow)
    absent = ["pair"] * (not result.compared.choices.all_pairs) + ["margin_verdict"] * (not result.margins)
    for name in absent:
        schema = schema.with_columns(name)
    return schema


def _pair_tables(result: ComparisonResult) -> list[ReportTable]:
    """Return the table of the pairs for each measure."""
    records = [row for row in result.records() if row["aspect"] is None]
    pairs = len(result.compared.pairs)
    return [
        _pair_table(result, place, records[place * pairs : (place + 1) * pairs])
        for place in range(len(result.compared.measures))
    ]


def _pair_table(result: ComparisonResult, place: int, records: Sequence[Mapping[str, Any]]) -> ReportTable:
    hidden: dict[str, Any] = {} if result.shows_intervals else {"low": None, "high": None}
    names = DifferenceRow.__dataclass_fields__.keys() - {"pair"}
    rows = []
    for label, record in zip(_pair_labels(result), records, strict=True):
        cells: dict[str, Any] = {name: record.get(name) for name in names} | hidden
        rows.append(DifferenceRow(pair=label, **cells))
    return _pair_schema(result, place).table(rows)


def _pair_labels(result: ComparisonResult) -> list[str]:
    """Return a label for each pair: the names of its runs.

    The labels have the letters of the runs instead if names are long.
    """
    pairs = result.compared.pairs
    labels = [f"{run} − {baseline}" for baseline, run in (result.pair(*pair) for pair in pairs)]
    if max(map(len, labels)) <= LONGEST_LABEL:
        return labels
    return [f"{letters(second)} − {letters(first)}" for first, second in pairs]


def _pair_plots(result: ComparisonResult) -> Iterator[Plot]:
    if len(result.compared.pairs) <= MOST_DRAWN:
        yield from (_pair_plot(result, place) for place in range(len(result.compared.measures)))


def _pair_plot(result: ComparisonResult, place: int) -> Plot:
    compared, text = result.compared, result.compared.measures[place].measure.text
    what = "of all pairs" if compared.choices.all_pairs else f"from {compared.systems[0]}"
    intervals = f", with the {result.difference_heading}" if result.shows_intervals else ""
    return Plot.bars(
        _pair_schema(result, place),
        f"differences-{place + 1}",
        title=f"{text}: differences {what}",
        caption=f"Means of differences over {len(compared.topics)} topics{intervals}.",
        x="pair" if compared.choices.all_pairs else "run",
        y="difference",
        low="low" if result.shows_intervals else None,
        high="high" if result.shows_intervals else None,
    )


def _drawn_pairs(result: ComparisonResult) -> range:
    return range(min(len(result.compared.pairs), MOST_NAMED))


def _topic_differences(
    result: ComparisonResult, comparison: MeasureComparison, pair: int
) -> dict[str, float | None]:
    """Return the difference of one pair by topic; None if it is undefined."""
    place = result.compared.measures.index(comparison)
    first, second = result.compared.pairs[pair]
    scores = [
        compared_values(
            (result.scored.scored[result.compared.systems[at]].values or ())[place], comparison.measure
        )
        for at in (first, second)
    ]
    differences = (scores[1] - scores[0]).tolist()
    defined = (value if math.isfinite(value) else None for value in differences)
    return dict(zip(result.compared.topics, defined, strict=True))


def _topic_schema(result: ComparisonResult, pair: int, place: int) -> TableSchema[TopicDifferenceRow]:
    baseline, run = result.pair(*result.compared.pairs[pair])
    title = f"Differences by topic: {run} − {baseline}"
    texts = [item.measure.text for item in result.compared.measures]
    columns = [Column(text, f"difference of {text}") for text in [texts[place], *texts] if text]
    schema = TableSchema.of(f"topics_{pair + 1}", title, TopicDifferenceRow)
    return schema.with_columns("differences", *dict.fromkeys(columns))


def _topic_table(result: ComparisonResult, pair: int, place: int = 0) -> ReportTable:
    """Return the differences of a pair on the topics where they are largest.

    The highest come first.
    """
    measures = result.compared.measures
    ordered = dict.fromkeys([place, *range(len(measures))])
    columns = [_topic_differences(result, measures[at], pair) for at in ordered]
    sizes = {topic: value for topic, value in columns[0].items() if value is not None}
    largest = sorted(sizes, key=lambda topic: -abs(sizes[topic]))[:MOST_TOPICS]
    rows = [
        TopicDifferenceRow(topic=topic, differences=tuple(column[topic] for column in columns))
        for topic in sorted(largest, key=lambda topic: -sizes[topic])
    ]
    return _topic_schema(result, pair, place).table(rows)


def _topic_plot(result: ComparisonResult, pair: int, place: int = 0) -> Plot:
    baseline, run = result.pair(*result.compared.pairs[pair])
    topics, text = len(result.compared.topics), result.compared.measures[place].measure.text
    which = (
        "each topic"
        if topics <= MOST_TOPICS
        else f"the {MOST_TOPICS} topics where it is largest, of {topics}"
    )
    return Plot.bars(
        _topic_schema(result, pair, place),
        f"topics-{pair + 1}",
        title=f"{text} by topic: {run} − {baseline}",
        caption=f"Difference on {which}; bars to the right: {run} scores higher.",
        x="topic",
        y=text,
    )


def _topic_rows(result: ComparisonResult) -> int:
    compared = result.compared
    return len(compared.pairs) * len(compared.measures) * len(compared.topics)


def _all_topics(result: ComparisonResult) -> Iterator[ReportTable]:
    """Yield the table of all differences by topic, unless it is too long."""
    if _topic_rows(result) > MOST_ROWS:
        return
    names = ("measure", "run", "baseline", "topic", "difference")
    rows = tuple(
        (item.measure.text, *reversed(result.pair(*indices)), topic, value)
        for item in result.compared.measures
        for pair, indices in enumerate(result.compared.pairs)
        for topic, value in _topic_differences(result, item, pair).items()
    )
    columns = tuple(Column(name, name) for name in names)
    yield ReportTable("topic_differences", "Differences of all pairs by topic", columns, rows)


def _reading(result: ComparisonResult) -> Iterator[str]:
    compared = result.compared
    yield caption_of(compared, result.correction())
    if compared.choices.all_pairs:
        yield "Labels of pairs with long names are the letters of the runs in the table of means."
    if not result.shows_intervals:
        yield "The test compares ranks or signs, so intervals of differences of means are not shown."
    if len(compared.pairs) > MOST_DRAWN:
        yield f"Differences are drawn for at most {MOST_DRAWN} pairs; the tables have all pairs."
    if len(compared.pairs) > MOST_NAMED:
        yield f"Topics are drawn for the first {MOST_NAMED} of {len(compared.pairs)} pairs."
    if _topic_rows(result) > MOST_ROWS:
        yield f"The page does not contain all {shown(_topic_rows(result))} differences by topic."


def _settings(result: ComparisonResult) -> Iterator[dict[str, str]]:
    choices = result.compared.choices
    baseline = "none: all pairs are compared" if choices.all_pairs else result.compared.systems[0]
    values = {
        "baseline": baseline,
        "test": TITLES[choices.test_name],
        "correction": choices.correction_name,
        "alpha": shown(choices.alpha),
        "intervals": f"{result.difference_heading} ({choices.interval})",
        "replicates": shown(choices.replicates),
    }
    yield from ({"name": name, "value": str(value), "about": ""} for name, value in values.items())
