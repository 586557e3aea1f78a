"""What every test can ask for."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# No test asserts on time. CI draws the same examples each time: a change is judged by what it changes.
settings.register_profile("cupel", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("cupel")

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
