"""Fixtures of the tests of `cupel audit`."""

from pathlib import Path

import pytest

from support.audited_files import write_audited_files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a current folder with the audited files."""
    write_audited_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
