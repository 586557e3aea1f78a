"""Output of scores in every format."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click
import numpy as np

from cupel_client.offline.presentation.evaluation_json import print_json
from cupel_client.offline.presentation.score_tables import print_tables
from cupel_client.output import write_csv, write_json, write_lines
from cupel_measures.catalogue.parser import Measure
from cupel_measures.evaluation.evaluation_report import ALL, EvaluationReport
from cupel_measures.grammar.trec_names import trec_name

ONLY_OVER_ALL = ("NumQ", "GMAP", "GMBpref")
"""Measures that trec_eval prints only for the topic `all`."""


def _long(report: EvaluationReport) -> Iterator[dict[str, Any]]:
    """Yield a row per run and measure with the aggregate.

    A row per topic comes before it if requested.

    The value of a topic that does not enter the aggregate is None.
    """
    for name, run in report.scored.items():
        for measure, values, mean in zip(report.measures, run.values or (), run.means, strict=True):
            if report.shows_topics:
                for topic, value in report.by_topic(run, values).items():
                    yield {"run": name, "measure": str(measure), "topic": topic, "value": value}
            yield {"run": name, "measure": str(measure), "topic": ALL, "value": mean}


def _print_jsonl(report: EvaluationReport) -> None:
    """Print the rows as JSON Lines.

    Texts are encoded once, because there may be millions of rows.
    """
    encode = json.JSONEncoder(ensure_ascii=False).encode
    topics = [encode(topic) for topic in report.job.qrels.listed_topics]
    write_lines(_jsonl(report, topics, encode))


def _jsonl(report: EvaluationReport, topics: Sequence[str], encode: Callable[[Any], str]) -> Iterator[str]:
    """Yield the rows of `_long` as lines. topics: all topics, encoded."""
    for name, run in report.scored.items():
        for measure, values, mean in zip(report.measures, run.values or (), run.means, strict=True):
            head = f'{{"run": {encode(name)}, "measure": {encode(str(measure))}, "topic": '
            if report.shows_topics:
                for topic, value in zip(topics, report.by_topic(run, values).values(), strict=True):
                    yield f'{head}{topic}, "value": {"null" if value is None else repr(value)}}}\n'
            yield f'{head}"{ALL}", "value": {mean!r}}}\n'


def _print_csv(report: EvaluationReport) -> None:
    write_csv(("run", "measure", "topic", "value"), _long(report))


def _print_trec_eval(report: EvaluationReport) -> None:
    """Print lines like trec_eval: the topics if requested, then `all`.

    The format of a line is `%-22s      %s      %6.4f`.

    Counts are printed as integers.
    """
    named = [(measure, trec_name(str(measure))) for measure in report.measures]
    for run in report.scored.values():
        rows = list(zip(named, run.values or (), run.means, strict=True))
        if report.shows_topics:
            counted = np.arange(len(report.topics)) if run.over is None else np.flatnonzero(run.over)
            for index in counted.tolist():
                topic = report.topics[index]
                for (measure, name), values, _ in rows:
                    if measure.declaration.name not in ONLY_OVER_ALL:
                        click.echo(_trec_line(measure, name, topic, float(values[index])))
        if len(report.scored) > 1 or report.official:
            click.echo(f"{'runid':<22}\t{ALL}\t{_first_word(run.tag)}")
        for (measure, name), _, mean in rows:
            click.echo(_trec_line(measure, name, ALL, mean))


def _first_word(tag: str | None) -> str:
    """Return the tag up to the first space, as trec_eval reads it."""
    return next(iter((tag or "").split()), "")


def _trec_line(measure: Measure, name: str, topic: str, value: float) -> str:
    shown = f"{value:.0f}" if measure.declaration.scale == "count" else f"{value:6.4f}"
    return f"{name:<22}\t{topic}\t{shown}"


PRINTERS: dict[str, Callable[[EvaluationReport], None]] = {
    "table": print_tables,
    "json": print_json,
    "jsonl": _print_jsonl,
    "csv": _print_csv,
    "trec_eval": _print_trec_eval,
    "latex": lambda report: click.echo(report.to_latex(), nl=False),
    "markdown": lambda report: click.echo(report.to_markdown(), nl=False),
    "html": lambda report: click.echo(report.to_html()),
    "beir": lambda report: write_json(report.to_beir()),
    "mteb": lambda report: write_json(report.to_mteb(task=report.name)),
    "tira": lambda report: click.echo(report.to_tira(), nl=False),
}

BY_TOPIC = ("table", "json", "jsonl", "csv", "trec_eval")
"""Formats that can contain values by topic."""
OF_ONE_RUN = ("beir", "mteb", "tira")
"""Formats that describe one run."""

EXPLAINING = ("table", "json")
"""Formats that can contain explanations."""
