"""Check that every score, digest, comparison, audit and simulation keeps its recorded value, bit by bit.

The collection is the example, with subtopics and texts added; the recording is unchanged_values.json. If
values or the example change on purpose, record again: python tests/test_unchanged_values.py
CHANGELOG.md lists the changes of values with their reasons.

Not recorded, because wording or names may change:
- digests of audits and reports, and keys of requests, which cover parameters, sentences and titles;
- verdicts, warnings, and names and titles of tables, columns and numbers (tables are identified by position);
- cells and fields that are words, true, false or null.
Not recorded, because they differ between recordings: identifiers, tokens, times, and a service's summary of a
board's analysis (the intervals and ranks in the board's rows are recorded).
"""

import json
import sys
import tempfile
from pathlib import Path

import pytest

from support.extended_example import describe_extended_example, write_extended_example
from support.record_values import Recording, flatten, list_differences, record, write_recording

GOLDEN = Path(__file__).parent / "unchanged_values.json"
EXPECTED: Recording = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record_example(tmp_path_factory.mktemp("example") / "extended", EXPECTED["measures"])


def record_example(folder: Path, measures: list[str]) -> Recording:
    write_extended_example(folder)
    return record(describe_extended_example(folder), measures)


@pytest.mark.parametrize("part", EXPECTED)
def test_values_equal_the_recorded_values(part: str, recording: Recording) -> None:
    differences = list_differences({part: EXPECTED[part]}, {part: recording[part]})
    assert not differences, "\n".join(differences)


def test_recording_has_no_failed_command() -> None:
    assert not [name for name, _ in flatten(EXPECTED) if name.endswith("exit")]


def test_recording_has_the_expected_parts_only(recording: Recording) -> None:
    assert set(recording) == set(EXPECTED)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_recording(GOLDEN, record_example(Path(folder) / "extended", sys.argv[1:]))
