"""Reports of gates: tables, files for CI systems, and annotations."""

from pathlib import Path

import click

from cupel_client import __version__
from cupel_client.offline.presentation import finding_lines
from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.output import printable, write_json
from cupel_measures.evaluation.gates.gate_formats import annotations_of, cells_of, explanations_of
from cupel_measures.evaluation.gates.gate_reports import GateReport


def write_gate_files(report: GateReport, junit: Path | None, summary: Path | None) -> None:
    """Write the JUnit file, and append the report to the summary.

    Raise OSError if a file cannot be written.
    """
    if junit is not None:
        junit.write_text(report.to_junit(), encoding="utf-8")
    if summary is not None:
        with summary.open("a", encoding="utf-8") as stream:
            stream.write(report.to_markdown() + "\n")


def print_report(report: GateReport, form: str) -> None:
    """Print a report as a table, JSON or Markdown."""
    if form == "json":
        write_json({"cupel": __version__, **report.to_dict()})
    elif form == "markdown":
        click.echo(report.to_markdown(), nl=False)
    else:
        _print_table(report)


def _print_table(report: GateReport) -> None:
    head, rows = cells_of(report)
    columns = [(heading, cells) for heading, *cells in zip(head[1:], *(row[1:] for row in rows), strict=True)]
    show_blocks(head[:1], [row[:1] for row in rows], columns, title=report.title)
    for line in explanations_of(report):
        click.echo(printable(line))


def print_gate_warnings(report: GateReport) -> None:
    """Print a summary of the warnings about the runs to standard error."""
    for line in finding_lines.summary(report.findings):
        click.echo(line, err=True)


def print_annotations(report: GateReport) -> None:
    """Print workflow commands of GitHub Actions to standard error.

    The runner reads them there too, so that standard output can be JSON.
    """
    for line in annotations_of(report):
        click.echo(line, err=True)
