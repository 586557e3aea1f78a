"""Fixtures and settings of all tests."""

import gc
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from support.memory_folder import use_memory_folder
from support.service import components, prepared_tables
from support.service.service_sizes import SIZES, Places, SizeName, place
from support.xdist_lanes import Lanes, lane_of

# No test asserts a duration. CI draws the same examples in each run, so that only a change can break a test.
settings.register_profile("cupel", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("cupel")

gc.set_threshold(100_000, 20, 100)  # tests create much and leave little; the default takes 6% of the time

ALL_EXAMPLES = "CUPEL_TEST_ALL" in os.environ
"""Whether property tests draw all their examples and sampled tests run with all their parameters."""

SHARE_OF_EXAMPLES = 5
FEWEST_EXAMPLES = 6
"""`make test` draws a fifth of the examples of a property test, but never fewer than these."""

PRODUCTION_EVERY = {
    "tests/gateway/": 6,
    "tests/client/online/": 4,
    "tests/backend/audits/": 3,
    "tests/backend/scores/": 3,
    "tests/backend/test_qrels_versions": 3,
    "tests/backend/test_submissions": 3,
    "tests/backend/test_tracks": 4,
}
"""Beginning of a path -> n: `make test` runs every nth of these tests on the production size.

It runs all of them on the embedded size.

These layers send few statements of their own. The tests of the layers below them run on both sizes.
"""

ROOT = Path(__file__).resolve().parent.parent


def pytest_configure(config: pytest.Config) -> None:
    """Let all processes of this run use the same servers, and write temporary files to memory.

    Let child processes receive Ctrl-C, also if a script has started pytest in the background.
    """
    use_memory_folder()
    components.share_servers()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    prepared_tables.kept.close()
    if os.environ.get("CUPEL_TEST_OWNER") == str(os.getpid()):
        shutil.rmtree(os.environ["CUPEL_TEST_SERVERS"], ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: lane_of(item.nodeid) is None)
    if not ALL_EXAMPLES:
        reduce_examples(items)
        deselect_unsampled(config, items)


def reduce_examples(items: list[pytest.Item]) -> None:
    """Let property tests draw only a share of their examples."""
    functions = {id(function): function for item in items if (function := getattr(item, "function", None))}
    for function in functions.values():
        chosen: settings | None = getattr(function, "_hypothesis_internal_use_settings", None)
        if chosen is not None and chosen.max_examples > FEWEST_EXAMPLES:
            fewer = max(FEWEST_EXAMPLES, chosen.max_examples // SHARE_OF_EXAMPLES)
            function._hypothesis_internal_use_settings = settings(chosen, max_examples=fewer)


def deselect_unsampled(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out experiments, and run only every nth set of parameters of a test marked `sampled(every=n)`.

    All tests in the files of PRODUCTION_EVERY run on the embedded size, and every nth of them on the
    production size too.
    """
    seen: Counter[str] = Counter()
    deselected = []
    for item in items:
        name, every = item.nodeid.partition("[")[0], 1
        if mark := item.get_closest_marker("sampled"):
            every = mark.kwargs["every"]
        elif "[production" in item.nodeid and (files := _sampled_files(name)):
            name, every = files, PRODUCTION_EVERY[files]
        if seen[name] % every or item.get_closest_marker("experiment"):
            deselected.append(item)
        seen[name] += 1
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        left_out = set(map(id, deselected))
        items[:] = [item for item in items if id(item) not in left_out]


def _sampled_files(name: str) -> str | None:
    return next((files for files in PRODUCTION_EVERY if name.startswith(files)), None)


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


@pytest.fixture(scope="session")
def all_examples() -> bool:
    """Return whether tests use all their examples instead of a sample."""
    return ALL_EXAMPLES


@pytest.fixture(scope="session", params=SIZES)
def size(request: pytest.FixtureRequest) -> SizeName:
    """The size of the service. Tests with this fixture run on both sizes."""
    name: SizeName = request.param
    return name


@pytest.fixture
def new_place(size: SizeName) -> Iterator[Places]:
    """A function that returns settings of a new, empty place for a system of this size."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(place(size))
