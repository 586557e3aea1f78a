"""What every test can ask for."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from support.service import components
from support.service.service_sizes import SIZES, Places, SizeName, place
from support.xdist_lanes import Lanes, lane_of

# No test asserts on time. CI draws the same examples each time: a change is judged by what it changes.
settings.register_profile("cupel", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("cupel")

ROOT = Path(__file__).resolve().parent.parent


def pytest_configure(config: pytest.Config) -> None:
    """Workers of this run find the same servers, whoever starts them."""
    components.share_servers()


def pytest_unconfigure(config: pytest.Config) -> None:
    if os.environ.get("CUPEL_TEST_OWNER") == str(os.getpid()):
        shutil.rmtree(os.environ["CUPEL_TEST_SERVERS"], ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: lane_of(item.nodeid) is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes:
    return Lanes(config, log)


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of the real collections, which are not part of the repository.

    CUPEL_SHARED names it (default: the folder `shared` beside the checkout).
    """
    folder = Path(os.environ.get("CUPEL_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no shared data at {folder}: set CUPEL_SHARED to the folder that holds data/")
    return folder


@pytest.fixture(scope="session", params=SIZES)
def size(request: pytest.FixtureRequest) -> SizeName:
    """Each test that asks for it runs on both sizes of the service."""
    name: SizeName = request.param
    return name


@pytest.fixture
def new_place(size: SizeName) -> Iterator[Places]:
    """Gives settings of new, empty places for systems of the size at hand."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(place(size))
