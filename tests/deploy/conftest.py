"""The stack of docker-compose.yml for the tests of this folder."""

from collections.abc import Iterator

import pytest

from support.service.compose_stack import QUICK, Stack


@pytest.fixture(scope="package")
def quick_stack() -> Iterator[Stack]:
    """A stack that notices at once what is wrong, and gives no job up for any single disaster."""
    with Stack(**QUICK, attempts=5, liveness_seconds=3) as stack:
        yield stack
