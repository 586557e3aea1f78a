"""Output of `cupel audit`: the files of a result, and the printed formats."""

import json
import platform
import shlex
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import numpy as np

from cupel_audits.report import AuditReport, ReportTable
from cupel_client import __version__
from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.output import decimal, printable, write_csv, write_json, write_jsonl
from cupel_measures.scoring.evaluator import SCORING_VERSION
from cupel_reports import missing_packages, page

PRINTED_ROWS = 40
"""Maximum number of printed rows of a table; files have all rows."""
SMALL = 0.0001
"""Smallest absolute value that is printed with four decimals; smaller ones, such as p-values, as <0.0001."""
POINTS = "points"
"""Name of the CSV file of the first table."""


def provenance(seconds: float, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provenance of a result. The digest of the result does not cover it."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "command": shlex.join(["cupel", *sys.argv[1:]]),
        "cupel": __version__,
        "scoring_version": SCORING_VERSION,
        "python": platform.python_version(),
        "numpy": np.__version__,
        **{name: request[name] for name in ("qrels", "other", "texts", "runs")},
    }


def write_files(out: Path, data: Mapping[str, Any], report: AuditReport) -> list[str]:
    """Write the report as JSON, CSV and HTML; return the names of the files.

    The HTML page is left out if the packages that draw its figures are not installed.
    """
    texts = {"report.json": json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"}
    for place, table in enumerate(report.tables):
        texts[f"{table.name if place else POINTS}.csv"] = table.as_csv()
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    if missing_packages():
        return [*texts]
    (out / "report.html").write_text(page(data), encoding="utf-8")
    return ["report.html", *texts]


def warn_of_missing_page() -> None:
    """Warn if `write_files` cannot write the HTML page.

    The user then knows before a long audit.
    """
    if missing := missing_packages():
        packages = " and ".join(missing)
        click.echo(f"report.html is not written: the page needs {packages}; run `make setup`", err=True)


def print_tables(data: Mapping[str, Any], report: AuditReport) -> None:
    """Print the verdict, the first table, undefined values, warnings and actions."""
    for sentence in report.verdict:
        click.echo(printable(sentence))
    _print_table(report.tables[0])
    for sentence in report.undefined[:PRINTED_ROWS]:
        click.echo(printable(f"undefined: {sentence}"))
    for sentence in report.warnings:
        click.echo(printable(f"note: {sentence}"))
    if report.actions:
        click.echo("What you can do:")
    for sentence in report.actions:
        click.echo(printable(f"- {sentence}"))


def _print_table(table: ReportTable) -> None:
    if not table.rows:
        return
    columns = [[_format(cell) for cell in table.column(name)[:PRINTED_ROWS]] for name in table.names]
    titles = [column.title for column in table.columns]
    keys = _count_keys(table)
    omitted = len(table.rows) - PRINTED_ROWS
    show_blocks(
        titles[:keys],
        list(zip(*columns[:keys], strict=True)),
        list(zip(titles[keys:], columns[keys:], strict=True)),
        title=table.title,
        caption=f"and {omitted:,} more rows: use --format csv or --out to get all" if omitted > 0 else None,
    )


def _count_keys(table: ReportTable) -> int:
    """Return the number of leading text columns, which identify a row; at least one."""
    are_texts = [all(isinstance(cell, str) for cell in table.column(name)) for name in table.names[:-1]]
    return max(1, [*are_texts, False].index(False))


def _format(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if 0 < abs(value) < SMALL:
            return f"<{SMALL:.4f}" if value > 0 else f">-{SMALL:.4f}"
        return f"{value:g}" if value.is_integer() and abs(value) < 1e6 else decimal(value)
    return str(value)


def _print_json(data: Mapping[str, Any], report: AuditReport) -> None:
    write_json(data)


def _print_jsonl(data: Mapping[str, Any], report: AuditReport) -> None:
    write_jsonl(report.tables[0].records())
    _print_warnings(report)


def _print_csv(data: Mapping[str, Any], report: AuditReport) -> None:
    table = report.tables[0]
    write_csv(table.names, table.records())
    _print_warnings(report)


def _print_warnings(report: AuditReport) -> None:
    """Print warnings on standard error, because the format has no field for them."""
    for sentence in report.warnings:
        click.echo(printable(sentence), err=True)


PRINTERS: dict[str, Callable[[Mapping[str, Any], AuditReport], None]] = {
    "table": print_tables,
    "json": _print_json,
    "jsonl": _print_jsonl,
    "csv": _print_csv,
}
