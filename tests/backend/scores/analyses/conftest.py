"""Fixtures of the tests of board analyses."""

from collections.abc import Callable

import pytest

from cupel_backend.infrastructure.system import System
from support.analysed_boards import QRELS
from support.backend_cast import (
    make_track,
    publish_qrels,
)


@pytest.fixture
def system(open_at: Callable[..., System]) -> System:
    """Return a system that never delays an analysis."""
    return open_at(analysis_seconds=0)


@pytest.fixture(autouse=True)
def track(system: System) -> None:
    """Make the analysed track with its published judgments."""
    make_track(system)
    publish_qrels(system, relevance=QRELS)
