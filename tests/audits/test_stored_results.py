"""Tests that audit results stored by an earlier release are still valid.

A service stores the results of trials as JSON and computes a report from them at every request. A command
with `--out` stores them in files and resumes from these. So their keys must not change.

stored_results.json.gz holds audits of the extended example by every kind: the parameters, the seed, the
summary of the subject, the results of the trials and the numbers of each table of the report. Most audits
were written at commit fb9622d with this command:

    PYTHONPATH=tests python tests/support/stored_audits.py tests/audits/stored_results.json.gz

New kinds were added later. Kinds whose method changed were recorded again, and keep their older results under
the names of OLDER. Tables with a tau over repeats were updated when the bounds of its interval were clipped.

To add a new kind, add it to `OPTIONS` of tests/support/stored_audits.py, and run the command with the name of
the kind as the last argument.
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
SENTENCES = ("undefined", "lacking")
"""Fields that hold sentences, whose wording may change."""
NOTES = ("notes", "warnings")
"""Fields that hold sentences, whose wording and number may change."""
ADDED = {"pooled", "unexplained", "rbo", "rbo_p"}
"""Keys that later releases added to trials or settings. Stored ones lack them, so reports do without."""


OLDER = {"qrels_versions-hsd": "qrels_versions", "scales-paper": "scales"}
"""Results by older methods, which reports must still show, with their kinds."""


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored") / "example"
    write_extended_example(folder)
    return folder


@pytest.mark.parametrize("name", [*OPTIONS, *OLDER])
def test_stored_trials_give_the_recorded_report(name: str) -> None:
    kind, stored = OLDER.get(name, name), STORED[name]
    trials = {int(number): trial for number, trial in stored["trials"].items()}
    audit, about = read_audit(kind, stored["parameters"]), SubjectSummary.of(stored["about"])
    report = result(audit, about, stored["seed"], len(trials), trials).report
    assert report is not None
    tables = json.loads(json.dumps(report.as_data()))["tables"]
    assert [list(list_numbers(table["rows"])) for table in tables] == stored["tables"]


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("kind", OPTIONS)
def test_trials_have_the_form_of_stored_trials(kind: str, example: Path, tmp_path: Path) -> None:
    recorded = record_audit(kind, example, tmp_path / "audit")
    for part in STORED[kind]:
        assert list_values(recorded[part]) == list_values(STORED[kind][part]), part


def list_values(data: Any) -> Any:
    """Return JSON data with each object as a list of (key, value), without the sentences.

    The values of SENTENCES are replaced by `count_sentences`. Values of NOTES and keys in ADDED are omitted.
    """
    if isinstance(data, list):
        return [list_values(value) for value in data]
    if not isinstance(data, dict):
        return data
    return [
        (key, [] if key in NOTES else count_sentences(value) if key in SENTENCES else list_values(value))
        for key, value in data.items()
        if key not in ADDED
    ]


def count_sentences(value: Any) -> Any:
    """Return the integers in a list, or its length if it has none; for other values, whether it is None."""
    if isinstance(value, list):
        return [number for number in value if isinstance(number, int)] or len(value)
    return value is None


def test_every_kind_is_recorded() -> None:
    assert set(STORED) - set(OLDER) == set(OPTIONS) == set(KINDS)


def test_reports_of_older_results_name_their_method() -> None:
    for name, test in (("qrels_versions-hsd", "randomised Tukey HSD"), ("scales-paper", "Kruskal-Wallis")):
        stored = STORED[name]
        trials = {int(number): trial for number, trial in stored["trials"].items()}
        audit, about = read_audit(OLDER[name], stored["parameters"]), SubjectSummary.of(stored["about"])
        report = result(audit, about, stored["seed"], len(trials), trials).report
        assert report is not None
        assert any(test in sentence for sentence in report.verdict), name
        assert not any("max-T" in sentence for sentence in report.verdict), name
