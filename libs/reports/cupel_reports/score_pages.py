"""The page and the plots of scored runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cupel_audits.report import (
    AuditReport,
    Cell,
    Column,
    Heading,
    Plot,
    ReportTable,
    RunCell,
    TableSchema,
    digest,
)
from cupel_audits.subject_files import NamedQrels, summary_of
from cupel_measures.comparing.t_intervals import t_intervals
from cupel_measures.comparing.topic_sets.detectable_differences import clip_mean, range_of_means
from cupel_measures.evaluation.evaluation_report import EvaluationReport
from cupel_reports.number_formats import shown
from cupel_reports.report_page import rendered

MOST_DRAWN = 150
"""Maximum number of bars of a plot."""
MOST_ROWS = 50_000
"""Maximum number of rows of a table of values by topic, because the page contains them all."""
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class MeanRow:
    run: RunCell
    score: Annotated[float, Heading("score")]
    low: Annotated[float | None, Heading("low", "lower bound of the 95% t interval of the mean over topics")]
    high: Annotated[float | None, Heading("high", "upper bound of this interval")]


def page(scores: EvaluationReport, *, name: str | None = None) -> str:
    """Return the page of scored runs as HTML: ranked table, and bars with intervals.

    name: of the judgments, for the heading (default: that of the scores). The page loads nothing from the
    network. The same scores give the same page.
    """
    report = AuditReport(
        verdict=tuple(_verdict(scores)),
        numbers={},
        tables=(_ranking(scores), *_mean_tables(scores), *_topic_tables(scores)),
        plots=tuple(_plots(scores)),
        reading=tuple(_reading(scores)),
        warnings=tuple(scores.remarks()),
    )
    return rendered(
        page_data("evaluation", scores, report, name),
        eyebrow="Evaluation with",
        title="Scores of runs",
        question="",
        source="",
        method=[],
        settings=[{"name": "average over", "value": _averaged_topics(scores), "about": ""}],
    )


def plot(scores: EvaluationReport, measure: str | None = None) -> Any:
    """Draw the scores of the runs by one measure, with 95% intervals.

    measure: default: the first one.
    """
    from cupel_reports.drawings import draw  # imported late, because it needs the packages of figures

    places = {str(item): place for place, item in enumerate(scores.measures)}
    place = 0 if measure is None else places[measure]
    return draw(_plot(scores, place), _mean_table(scores, place))


def page_data(
    kind: str, scores: EvaluationReport, report: AuditReport, name: str | None, seed: int | None = None
) -> dict[str, Any]:
    """Return the data of a page on scored runs, as `report_page.rendered` takes them."""
    judgments = NamedQrels(name or scores.name, scores.job.qrels)
    about = summary_of(
        judgments, tuple(scores.scored), scores.measures, scores.job.profile, None, scores.job.depth, None
    )
    data = report.as_data()
    return {
        "kind": kind,
        "parameters": {},
        "seed": seed,
        "trials": 0,
        "done": 0,
        "about": about.as_data(),
        "report": data,
        "digest": digest(data),
    }


def _verdict(scores: EvaluationReport) -> Iterator[str]:
    for place, measure in enumerate(scores.measures):
        means = {name: run.means[place] for name, run in scores.scored.items()}
        best = max(means.values())
        names = [name for name, value in means.items() if value == best]
        if len(means) == 1:
            yield f"{measure}: {names[0]} scores {shown(best, 4)}."
        elif len(names) == 1:
            yield f"{measure}: {names[0]} has the highest score of {len(means)} runs, {shown(best, 4)}."
        else:
            yield f"{measure}: {len(names)} of {len(means)} runs share the highest score, {shown(best, 4)}."


def _averaged_topics(scores: EvaluationReport) -> str:
    return "topics of each run" if scores.job.over_run else "all judged topics"


def _ranking(scores: EvaluationReport) -> ReportTable:
    columns = (
        Column("rank", "rank"),
        Column("run", "run"),
        *(Column(text, text) for text in map(str, scores.measures)),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (rank, name, *run.means) for rank, name, run in scores.best_first()
    )
    return ReportTable("scores", f"Runs by {scores.measures[0]}", columns, rows)


def _schema(scores: EvaluationReport, place: int) -> TableSchema[MeanRow]:
    text, name = str(scores.measures[place]), f"means_{place + 1}"
    if _is_mean(scores, place):
        return TableSchema.of(name, f"{text} with 95% intervals", MeanRow)
    return TableSchema.of(name, text, MeanRow).with_columns("low").with_columns("high")


def _is_mean(scores: EvaluationReport, place: int) -> bool:
    """Return whether scores are means over topics, so that they have intervals."""
    return scores.measures[place].declaration.aggregate == "mean"


def _mean_tables(scores: EvaluationReport) -> Iterator[ReportTable]:
    return (_mean_table(scores, place) for place in range(len(scores.measures)))


def _mean_table(scores: EvaluationReport, place: int) -> ReportTable:
    rows = [_mean_row(scores, name, place) for name in scores]
    return _schema(scores, place).table(sorted(rows, key=lambda row: (-row.score, row.run)))


def _mean_row(scores: EvaluationReport, name: str, place: int) -> MeanRow:
    """Return the score of a run with its interval, if the score is a mean over topics."""
    run, measure = scores.scored[name], scores.measures[place]
    values = np.asarray((run.values or ())[place])
    counted = values if run.over is None else values[run.over]
    low, high = None, None
    if _is_mean(scores, place) and len(counted) > 1:
        [interval] = t_intervals(counted[:, np.newaxis], confidence=CONFIDENCE)
        interval = clip_mean(interval, range_of_means(str(measure)))
        low, high = interval.low, interval.high
    return MeanRow(run=name, score=run.means[place], low=low, high=high)


def _plots(scores: EvaluationReport) -> Iterator[Plot]:
    if len(scores) <= MOST_DRAWN:
        yield from (_plot(scores, place) for place in range(len(scores.measures)))


def _plot(scores: EvaluationReport, place: int) -> Plot:
    is_mean = _is_mean(scores, place)
    return Plot.bars(
        _schema(scores, place),
        f"means-{place + 1}",
        title=f"{scores.measures[place]} by run",
        caption="Means over topics with 95% t intervals." if is_mean else "Scores over all topics.",
        x="run",
        y="score",
        low="low" if is_mean else None,
        high="high" if is_mean else None,
    )


def _topic_rows(scores: EvaluationReport) -> int:
    return len(scores) * len(scores.measures) * len(scores.topics)


def _topic_tables(scores: EvaluationReport) -> Iterator[ReportTable]:
    if _topic_rows(scores) <= MOST_ROWS:
        names = ("run", "measure", "topic", "value")
        rows = tuple(tuple(row[name] for name in names) for row in scores.records(per_topic=True))
        columns = tuple(Column(name, name) for name in names)
        yield ReportTable("topics", "Values by topic", columns, rows)


def _reading(scores: EvaluationReport) -> Iterator[str]:
    if any(_is_mean(scores, place) for place in range(len(scores.measures))):
        yield (
            "The intervals are about the topics: other topics of the same kind would give other means. Runs "
            "are scored on the same topics, so intervals of two runs that overlap do not show that the runs "
            "are equal. `cupel compare` tests differences."
        )
    if len(scores) > MOST_DRAWN:
        yield f"Bars are drawn for at most {MOST_DRAWN} runs; the tables have all runs."
    if _topic_rows(scores) > MOST_ROWS:
        yield (
            f"The page does not contain the {shown(_topic_rows(scores))} values by topic; "
            "`cupel evaluate --per-topic --format csv` prints them."
        )
