"""Fixtures with a real system and its storage."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.system import System
from support.audit_priority import usual_priority as usual_priority
from support.backend_cast import Clock
from support.service.prepared_tables import prepared_place
from support.service.service_sizes import Places, SizeName
from support.service.shared_checkers import open_lasting


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def at(new_place: Places, tmp_path: Path) -> dict[str, Any]:
    """Return settings of empty storage: a data folder, and in production also database, bucket and broker."""
    return {"data": tmp_path / "data", **new_place()}


@pytest.fixture
def prepared_at(size: SizeName, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Yield settings of storage like `at`, with a database whose tables are up to date."""
    with prepared_place(size, tmp_path / "data") as settings:
        yield settings


@pytest.fixture
def open_at(prepared_at: dict[str, Any], clock: Clock) -> Iterator[Callable[..., System]]:
    """Yield a function that opens a system on the prepared storage, with additional settings."""
    opened: list[System] = []

    def open_(**settings: Any) -> System:
        system = replace(open_lasting(Settings(**(prepared_at | settings))), now=clock)
        system.blobs.prepare()
        opened.append(system)
        return system

    yield open_
    for system in opened:
        system.close()


@pytest.fixture
def system(open_at: Callable[..., System]) -> System:
    return open_at()
