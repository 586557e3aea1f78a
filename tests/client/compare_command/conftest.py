"""Fixtures of the tests of `cupel compare`."""

from pathlib import Path

import pytest

from support.compared_files import write_compared_files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a current folder with the compared files."""
    write_compared_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
