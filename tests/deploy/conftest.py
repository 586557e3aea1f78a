"""A fixture with the stack of docker-compose.yml."""

from collections.abc import Iterator

import pytest

from support.service.compose_stack import QUICK, Stack


@pytest.fixture(scope="package")
def quick_stack() -> Iterator[Stack]:
    """Yield a stack that detects faults quickly, and whose jobs survive any single fault."""
    with Stack(**QUICK, attempts=5, liveness_seconds=3) as stack:
        yield stack
