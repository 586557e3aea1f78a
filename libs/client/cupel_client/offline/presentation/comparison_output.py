"""JSON, JSON Lines and CSV output of a comparison of runs."""

from collections.abc import Callable

import click

from cupel_client import __version__
from cupel_client.offline.presentation import finding_lines
from cupel_client.output import printable, write_csv, write_json, write_jsonl
from cupel_measures.evaluation.comparison_result import ComparisonResult


def print_json(result: ComparisonResult) -> None:
    """Print the whole comparison as one JSON object."""
    refused = [
        {"run": name, "errors": [finding_lines.as_data(error) for error in run.findings.errors]}
        for name, run in result.scored.refused.items()
    ]
    write_json({"cupel": __version__, **result.as_data(), "refused": refused})


def print_jsonl(result: ComparisonResult) -> None:
    """Print the rows as JSON Lines."""
    write_jsonl(result.records())
    print_warnings(result)


def print_csv(result: ComparisonResult) -> None:
    """Print the rows as CSV."""
    rows = list(result.records())
    write_csv(list(rows[0]), rows)
    print_warnings(result)


def print_warnings(result: ComparisonResult) -> None:
    """Print the warnings on standard error, because the format has no field for them."""
    for warning in result.printed_warnings():
        click.echo(printable(warning), err=True)


def print_latex(result: ComparisonResult) -> None:
    """Print a LaTeX table."""
    click.echo(result.to_latex(), nl=False)
    print_warnings(result)


def print_markdown(result: ComparisonResult) -> None:
    """Print a Markdown table with its notes."""
    click.echo(result.to_markdown(), nl=False)


def print_html(result: ComparisonResult) -> None:
    """Print an HTML table with its notes."""
    click.echo(result.to_html())


PRINTERS: dict[str, Callable[[ComparisonResult], None]] = {
    "json": print_json,
    "jsonl": print_jsonl,
    "csv": print_csv,
    "latex": print_latex,
    "markdown": print_markdown,
    "html": print_html,
}
