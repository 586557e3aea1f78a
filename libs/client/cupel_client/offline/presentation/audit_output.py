"""The result of `cupel audit`: files of it, and what is printed."""

import json
import platform
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
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
from cupel_reports import page

LONGEST = 40
"""Rows of a table that are printed; files have all."""
POINTS = "points"
"""What the file of the first table is called."""


def provenance(seconds: float, request: Mapping[str, Any]) -> dict[str, Any]:
    """Where a result comes from; none of it is part of the result."""
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
    """Write the report in every form; the names of the files."""
    texts = {"report.json": json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"}
    for place, table in enumerate(report.tables):
        texts[f"{table.name if place else POINTS}.csv"] = table.as_csv()
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    (out / "report.html").write_text(page(data), encoding="utf-8")
    return ["report.html", *texts]


def print_tables(data: Mapping[str, Any], report: AuditReport) -> None:
    """What came out, in sentences, and the first table."""
    for sentence in report.verdict:
        click.echo(printable(sentence))
    _print_table(report.tables[0])
    for sentence in report.undefined[:LONGEST]:
        click.echo(printable(f"undefined: {sentence}"))
    for sentence in report.warnings:
        click.echo(printable(f"note: {sentence}"))


def _print_table(table: ReportTable) -> None:
    if not table.rows:
        return
    rows = table.rows[:LONGEST]
    columns = [[_shown(row[place]) for row in rows] for place in range(len(table.columns))]
    titles = [column.title for column in table.columns]
    keys = _keys(table)
    more = len(table.rows) - len(rows)
    show_blocks(
        titles[:keys],
        list(zip(*columns[:keys], strict=True)),
        list(zip(titles[keys:], columns[keys:], strict=True)),
        title=table.title,
        caption=f"and {more:,} more rows: --format csv has them all, and --out keeps them" if more else None,
    )


def _keys(table: ReportTable) -> int:
    """How many of the first columns name rows: those of words, and at least one."""
    words = [
        all(isinstance(row[place], str) for row in table.rows) for place in range(len(table.columns) - 1)
    ]
    return max(1, [*words, False].index(False))


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}" if value.is_integer() and abs(value) < 1e6 else decimal(value)
    return str(value)


def _print_json(data: Mapping[str, Any], report: AuditReport) -> None:
    write_json(data)


def _print_jsonl(data: Mapping[str, Any], report: AuditReport) -> None:
    write_jsonl(_rows(report.tables[0]))
    _tell(report)


def _print_csv(data: Mapping[str, Any], report: AuditReport) -> None:
    table = report.tables[0]
    write_csv([column.name for column in table.columns], _rows(table))
    _tell(report)


def _rows(table: ReportTable) -> Sequence[Mapping[str, Any]]:
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def _tell(report: AuditReport) -> None:
    """Warnings on standard error, where the format has no place for them."""
    for sentence in report.warnings:
        click.echo(printable(sentence), err=True)


PRINTERS: dict[str, Callable[[Mapping[str, Any], AuditReport], None]] = {
    "table": print_tables,
    "json": _print_json,
    "jsonl": _print_jsonl,
    "csv": _print_csv,
}
