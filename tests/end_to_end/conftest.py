"""Fixtures for the end-to-end tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.service.service_processes import Serve, services
from support.service.service_sizes import Places


@pytest.fixture
def serve(tmp_path: Path, new_place: Places) -> Iterator[Serve]:
    """Return a function that starts `cupel serve`, repeatedly if needed, with storage of this test only."""
    with services(tmp_path, **new_place()) as start:
        yield start
