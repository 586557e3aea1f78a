"""Reports of audits, recorded in tests/audits/recorded_reports.json.

The recording shows in reviews which sentences, titles and cells a change affects. If a change is intended,
record again:

    PYTHONPATH=tests python tests/audits/test_every_kind.py
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from cupel_audits.report import AuditReport

FILE = Path(__file__).parents[2] / "audits" / "recorded_reports.json"
Recording = Mapping[str, Sequence[str]]
"""Name of a report -> its lines."""
MOST = 3
"""Number of sentences on undefined numbers that are recorded in full."""


def describe(report: AuditReport) -> list[str]:
    """Return the sentences and titles of a report, and digests of its numbers, tables and plots."""
    return [
        *(f"verdict: {sentence}" for sentence in report.verdict),
        *(f"action: {sentence}" for sentence in report.actions),
        *(f"warning: {sentence}" for sentence in report.warnings),
        *(f"undefined: {sentence}" for sentence in report.undefined[:MOST]),
        *(f"plot {plot.name}: {plot.title}" for plot in report.plots),
        *_digests(report),
    ]


def _digests(report: AuditReport) -> Iterator[str]:
    yield f"reading: {_digest(report.reading)}"
    yield f"plots: {_digest([asdict(plot) for plot in report.plots])}"
    yield f"undefined: {len(report.undefined)}, {_digest(report.undefined)}"
    numbers = [[*map(_round, item)] for item in report.numbers.items()]
    yield f"numbers: {len(numbers)}, {_digest(numbers)}"
    for table in report.tables:
        cells = [[*map(_round, row)] for row in table.rows]
        yield f"table {table.name}: {len(cells)} rows, {_digest([table.names, cells])}"


def _round(cell: Any) -> str:
    """Return a cell with 6 digits. Without the 0.0, a result of -0.0 would have a sign."""
    return f"{cell + 0.0:.6g}" if isinstance(cell, float) else str(cell)


def _digest(data: Any) -> str:
    return sha256(json.dumps(data).encode()).hexdigest()[:12]


def read() -> Recording:
    recording: Recording = json.loads(FILE.read_text())
    return recording


def write(recording: Recording) -> None:
    FILE.write_text(json.dumps(recording, indent=0, ensure_ascii=False) + "\n")
