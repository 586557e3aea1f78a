"""Services for the tests of the gateway."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gateway_service import Service, running


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all tests; each makes tracks of its own."""
    with running(tmp_path_factory.mktemp("service"), attempts=1, retry_seconds=0) as service:
        yield service


@pytest.fixture
def special(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Starts services with settings of choice."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(running(tmp_path / "data", **settings))


@pytest.fixture
def track(service: Service) -> str:
    """A track with published judgments."""
    name = service.track()
    service.publish(name)
    return name
