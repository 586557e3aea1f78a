"""Fixtures of the tests of the command line."""

import pytest

from cupel_client.offline import parallel


@pytest.fixture(autouse=True)
def spawned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start processes with "spawn", because the test process, which calls the commands, has threads."""
    monkeypatch.setattr(parallel, "START", "spawn")
