"""Fixtures of the tests of the command line."""

import pytest

from cupel_client.offline import parallel


@pytest.fixture(autouse=True)
def spawned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start processes with "spawn": the tests call commands in their own process, which has threads."""
    monkeypatch.setattr(parallel, "START", "spawn")
