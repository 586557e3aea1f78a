"""What the tests of the command line share."""

import pytest

from cupel_client.offline import parallel


@pytest.fixture(autouse=True)
def spawned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verbs called within the test process, which has threads, must not fork it."""
    monkeypatch.setattr(parallel, "START", "spawn")
