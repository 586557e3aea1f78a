"""Comparison of complete audit reports with expected ones."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from cupel_audits.report import AuditReport

ExpectedTable = tuple[str, Sequence[Sequence[Any]]]
"""The names of the columns, separated by spaces, and the rows."""


def assert_report(
    report: AuditReport,
    *,
    verdict: Sequence[str],
    numbers: Mapping[str, float | None],
    tables: Mapping[str, ExpectedTable],
    undefined: Sequence[str] = (),
    warnings: Sequence[str] = (),
    titles: Sequence[str] | None = None,
) -> None:
    """Assert that the report has these sentences, numbers and tables, and no others.

    titles: those of the plots (default: they are not compared).
    """
    assert list(report.verdict) == list(verdict)
    assert dict(report.numbers) == pytest.approx(numbers, abs=1e-9)
    assert [table.name for table in report.tables] == list(tables)
    for name, (columns, rows) in tables.items():
        assert " ".join(report.table(name).names) == columns
        assert len(report.table(name).rows) == len(rows), name
        for cells, expected in zip(report.table(name).rows, rows, strict=True):
            assert list(cells) == pytest.approx(list(expected), abs=1e-9), name
    assert list(report.undefined) == list(undefined)
    assert list(report.warnings) == list(warnings)
    assert titles is None or [plot.title for plot in report.plots] == list(titles)
