"""Fixtures of the gateway tests: running services and tracks."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.audit_priority import usual_priority as usual_priority
from support.service.gateway_service import Service, run_service
from support.service.service_sizes import Places, SizeName, place


@pytest.fixture(scope="session")
def service(size: SizeName, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that all tests share; each test creates its own tracks."""
    with (
        place(size) as at,
        run_service(tmp_path_factory.mktemp("service"), attempts=1, retry_seconds=0, **at) as service,
    ):
        yield service


@pytest.fixture
def start_service(new_place: Places, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """A function that starts a service with the given settings."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(
            run_service(tmp_path / "data", **new_place(), **settings)
        )


@pytest.fixture
def track(service: Service) -> str:
    """A track with published judgments."""
    name = service.create_track()
    service.publish(name)
    return name
