"""Services for the tests of the gateway."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.service.gateway_service import Service, running
from support.service.service_sizes import Places, SizeName, place


@pytest.fixture(scope="session")
def service(size: SizeName, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all tests; each makes tracks of its own."""
    with (
        place(size) as at,
        running(tmp_path_factory.mktemp("service"), attempts=1, retry_seconds=0, **at) as service,
    ):
        yield service


@pytest.fixture
def special(new_place: Places, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Starts services with settings of choice."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(running(tmp_path / "data", **new_place(), **settings))


@pytest.fixture
def track(service: Service) -> str:
    """A track with published judgments."""
    name = service.track()
    service.publish(name)
    return name
