"""What every test can ask for."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The real collections, which are not part of the repository (`CUPEL_SHARED`, default ../shared)."""
    folder = Path(os.environ.get("CUPEL_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no shared data at {folder}: set CUPEL_SHARED to the folder that holds data/")
    return folder
