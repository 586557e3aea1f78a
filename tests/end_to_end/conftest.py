"""Services for the tests of the whole."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.service.service_processes import Serve, services
from support.service.service_sizes import Places


@pytest.fixture
def serve(tmp_path: Path, new_place: Places) -> Iterator[Serve]:
    """Start `cupel serve` on a place of this test's own, as often as wanted."""
    with services(tmp_path, **new_place()) as start:
        yield start
