"""The assertion of rules that hold for the whole repository."""

from collections.abc import Iterable


def assert_none(violations: Iterable[str]) -> None:
    """Fail with one line for each violation."""
    listed = sorted(violations)
    assert not listed, "\n".join(listed)
