"""Waiting limits of the tests, which CUPEL_TEST_PATIENCE multiplies on a slow or busy machine.

A limit only decides when a test gives up, so it is generous. A test that succeeds never waits for it.
"""

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = float(os.environ.get("CUPEL_TEST_PATIENCE", "1.0"))
"""Factor for all waiting limits (default: 1.0)."""

POLL_SECONDS = 0.02
"""Pause between two looks at a condition."""


def seconds(n: float) -> float:
    """Return `n` seconds as a waiting limit on this machine."""
    return n * PATIENCE


def until(condition: Callable[[], T], *, limit: float = 60.0) -> T:
    """Return the first true value of `condition`, called again and again.

    limit: seconds to wait on an idle machine; PATIENCE multiplies them.
    Raises AssertionError when the limit passes.
    """
    deadline = time.monotonic() + seconds(limit)
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(POLL_SECONDS)
    raise AssertionError(f"the condition did not hold within {seconds(limit):.0f} seconds")
