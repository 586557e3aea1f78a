"""Fixtures of the tests of `cupel evaluate`."""

from pathlib import Path

import pytest

from support.evaluated_files import write_evaluated_files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a current folder with the evaluated files."""
    write_evaluated_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
