"""A fixture for tests that wait for audits."""

from collections.abc import Iterator

import pytest

from cupel_backend.audits import audit_parts


@pytest.fixture(autouse=True, scope="session")
def usual_priority() -> Iterator[None]:
    """Let audits run at the priority of the tests, because the tests wait for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_parts, "NICENESS", 0)
        yield
