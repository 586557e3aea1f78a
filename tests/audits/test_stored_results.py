"""Tests that results of audits which an earlier release stored are still valid.

A service stores the results of trials as JSON and computes a report from them at every request. A command
with `--out` stores them in files and resumes from these. So their keys must not change.

stored_results.json.gz holds audits of the extended example by every kind: the parameters, the seed, the
summary of the subject, the results of the trials and the numbers of each table of the report. It was written
by commit fb9622d, with the python of its environment:

    PYTHONPATH=tests python tests/support/stored_audits.py tests/audits/stored_results.json.gz

A new kind is added to `OPTIONS` of tests/support/stored_audits.py, and recorded with its name as the last
argument.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from cupel_audits import KINDS, read_audit
from cupel_audits.execution import result
from cupel_audits.subject import SubjectSummary
from support.extended_example import write_extended_example
from support.record_values import list_numbers
from support.stored_audits import OPTIONS, record_audit

GOLDEN = Path(__file__).parent / "stored_results.json.gz"
STORED: dict[str, Any] = json.loads(gzip.decompress(GOLDEN.read_bytes()))
SENTENCES = ("undefined", "notes", "warnings", "lacking")
"""Fields that hold sentences, whose wording may change."""


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored") / "example"
    write_extended_example(folder)
    return folder


@pytest.mark.parametrize("kind", OPTIONS)
def test_stored_trials_give_the_recorded_report(kind: str) -> None:
    stored = STORED[kind]
    trials = {int(number): trial for number, trial in stored["trials"].items()}
    audit, about = read_audit(kind, stored["parameters"]), SubjectSummary.of(stored["about"])
    report = result(audit, about, stored["seed"], len(trials), trials).report
    assert report is not None
    tables = json.loads(json.dumps(report.as_data()))["tables"]
    assert [list(list_numbers(table["rows"])) for table in tables] == stored["tables"]


@pytest.mark.parametrize("kind", OPTIONS)
def test_trials_have_the_form_of_stored_ones(kind: str, example: Path, tmp_path: Path) -> None:
    recorded = record_audit(kind, example, tmp_path / "audit")
    for part in STORED[kind]:
        assert list_values(recorded[part]) == list_values(STORED[kind][part]), part


def list_values(data: Any) -> Any:
    """Return objects as lists of their keys and values, with the number of sentences for sentences."""
    if isinstance(data, list):
        return [list_values(value) for value in data]
    if not isinstance(data, dict):
        return data
    return [
        (key, count_sentences(value) if key in SENTENCES else list_values(value))
        for key, value in data.items()
    ]


def count_sentences(value: Any) -> Any:
    """Return the number of sentences; numbers under the same key are returned unchanged."""
    if isinstance(value, list):
        return [number for number in value if isinstance(number, int)] or len(value)
    return value is None


def test_every_kind_is_recorded() -> None:
    assert set(STORED) == set(OPTIONS) == set(KINDS)
