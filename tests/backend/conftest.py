"""A real system in a folder of the test's own."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backend.cast import Clock
from cupel_backend.settings import Settings
from cupel_backend.system import System, open_system


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_at(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., System]]:
    """Opens the system of the test's folder, with settings of choice."""
    opened: list[System] = []

    def open_(**settings: Any) -> System:
        system = replace(open_system(Settings(data=tmp_path / "data", **settings)), now=clock)
        system.migrate()
        opened.append(system)
        return system

    yield open_
    for system in opened:
        system.close()


@pytest.fixture
def system(open_at: Callable[..., System]) -> System:
    return open_at()
