"""Services for the tests of the whole."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from processes import Serve, services


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start `cupel serve` on a data folder of this test's own, as often as wanted."""
    with services(tmp_path) as start:
        yield start
