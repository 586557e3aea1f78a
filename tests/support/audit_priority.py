"""A fixture for tests that wait for audits."""

import pytest

from cupel_backend.audits import audit_parts


@pytest.fixture(autouse=True)
def usual_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let audits run at the priority of the tests, which wait for them."""
    monkeypatch.setattr(audit_parts, "NICENESS", 0)
