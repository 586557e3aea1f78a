"""Tables of scores for people."""

from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.offline.presentation.explanation_lines import show_explanations
from cupel_client.output import decimal
from cupel_measures.catalogue.parser import Measure
from cupel_measures.evaluation.evaluation_report import ALL, EvaluationReport
from cupel_measures.evaluation.run_scoring import Scored

NO_VALUE = "-"
"""Cell of a topic that enters no mean."""


def print_tables(report: EvaluationReport) -> None:
    """Print the scores by topic or run, then the explanations of each run."""
    if report.shows_topics:
        _print_topics(report)
    if not report.shows_topics or len(report.scored) > 1:
        _print_board(report)
    for _, name, run in report.best_first():
        for measure, explanation in zip(report.measures, run.explanations, strict=False):
            show_explanations(name, str(measure), explanation)


def _print_board(report: EvaluationReport) -> None:
    """Print the runs by the first measure, best first."""
    if not report.scored:
        return
    keys = [[str(rank), name] for rank, name, _ in report.best_first()]
    columns = [
        (_heading(measure), [_format_value(measure, run.means[i]) for _, _, run in report.best_first()])
        for i, measure in enumerate(report.measures)
    ]
    show_blocks(["", "run"], keys, columns, caption=report.caption())


def _print_topics(report: EvaluationReport) -> None:
    """Print the values by topic.

    There is a column per measure for one run, and a table per measure for several.
    """
    keys = [[topic] for topic in (*report.job.qrels.listed_topics, ALL)]
    if len(report.scored) == 1:
        ((name, run),) = report.scored.items()
        columns = [(_heading(measure), _column(report, run, measure)) for measure in report.measures]
        show_blocks(["topic"], keys, columns, title=name, caption=report.caption(), last_apart=True)
        return
    for measure in report.measures:
        columns = [(name, _column(report, run, measure)) for name, run in report.scored.items()]
        show_blocks(["topic"], keys, columns, title=str(measure), last_apart=True)


def _column(report: EvaluationReport, run: Scored, measure: Measure) -> list[str]:
    place = report.measures.index(measure)
    by_topic = report.by_topic(run, (run.values or ())[place])
    return [_format_value(measure, value) for value in (*by_topic.values(), run.means[place])]


def _format_value(measure: Measure, value: float | None) -> str:
    if value is None:
        return NO_VALUE
    return f"{value:,.0f}" if measure.declaration.scale == "count" else decimal(value)


def _heading(measure: Measure) -> str:
    """Return the text of a measure as a heading.

    Long text is broken at parentheses, between parameters and before @.
    """
    text = str(measure)
    if len(text) <= 16:
        return text
    head, bracket, rest = text.partition("(")
    inside, closing, after = rest.rpartition(")")
    lines, depth = [bracket], 0
    for character in inside:
        depth += (character in "([{") - (character in ")]}")
        lines[-1] += character
        if character == "," and not depth:
            lines.append("")
    lines[-1] += closing
    return "\n".join([head, *lines, *([after] if after else [])])
