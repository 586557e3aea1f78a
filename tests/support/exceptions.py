"""Violations that existed when a rule was introduced, and the assertion that there are no others."""

import tomllib
from collections.abc import Iterable
from pathlib import Path

EXCEPTIONS: dict[str, list[str]] = tomllib.loads(
    (Path(__file__).parents[1] / "open_exceptions.toml").read_text()
)


def assert_none(violations: Iterable[str]) -> None:
    """Fail with one line for each violation."""
    listed = sorted(violations)
    assert not listed, "\n".join(listed)
