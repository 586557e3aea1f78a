"""The result of `cupel evaluate` as tables for people."""

from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.offline.presentation.evaluation_report import ALL, EvaluationReport
from cupel_client.offline.presentation.explanation_lines import show_explanations
from cupel_client.output import decimal
from cupel_measures.catalogue.parser import Measure


def print_tables(report: EvaluationReport) -> None:
    if report.per_topic:
        _print_topics(report)
    if not report.per_topic or len(report.scored) > 1:
        _print_board(report)
    for _, name, one in report.best_first():
        for measure, told in zip(report.measures, one.explanations, strict=False):
            show_explanations(name, str(measure), told)


def _print_board(report: EvaluationReport) -> None:
    """Runs by the first measure, best first."""
    if not report.scored:
        return
    keys = [[str(rank), name] for rank, name, _ in report.best_first()]
    columns = [
        (_heading(measure), [_shown(measure, one.means[i]) for _, _, one in report.best_first()])
        for i, measure in enumerate(report.measures)
    ]
    show_blocks(["", "run"], keys, columns, caption=_caption(report))


def _print_topics(report: EvaluationReport) -> None:
    """One run: a column per measure. Several: a table per measure with a column per run."""
    keys = [[topic] for topic in (*report.topics, ALL)]
    if len(report.scored) == 1:
        ((name, one),) = report.scored.items()
        columns = [
            (_heading(measure), [_shown(measure, value) for value in (*values.tolist(), mean)])
            for measure, values, mean in zip(report.measures, one.values or (), one.means, strict=True)
        ]
        show_blocks(["topic"], keys, columns, title=name, caption=_caption(report), last_apart=True)
        return
    for i, measure in enumerate(report.measures):
        columns = [
            (name, [_shown(measure, value) for value in (*(one.values or ())[i].tolist(), one.means[i])])
            for name, one in report.scored.items()
        ]
        show_blocks(["topic"], keys, columns, title=str(measure), last_apart=True)


def _shown(measure: Measure, value: float) -> str:
    return f"{value:,.0f}" if measure.declaration.scale == "count" else decimal(value)


def _heading(measure: Measure) -> str:
    """A measure's text; a long one is broken before its brackets, between parameters, and before @."""
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


def _caption(report: EvaluationReport) -> str:
    inferred = [aspect.name for aspect in report.collection.aspects if aspect.inferred]
    scale = f", scale of {', '.join(inferred)} inferred" if inferred else ""
    return f"{len(report.topics)} topics, profile {report.job.profile}{scale}"
