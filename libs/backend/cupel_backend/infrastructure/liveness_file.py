"""The liveness file of a worker or scheduler.

Its age shows whether the process still does its work. The scheduler touches its file on every tick. A worker
touches its file on every wake-up, and the scheduler sends wake-ups even to idle workers. So the health check
also detects a running worker that no longer receives messages from the broker.
"""

from pathlib import Path
from time import time


def record_liveness(path: Path) -> None:
    """Set the modification time of the liveness file to now."""
    path.touch()


def find_problem(path: Path, limit: float) -> str | None:
    """Return a sentence if the file is missing or older than `limit` seconds.

    Otherwise None is returned.
    """
    try:
        age = time() - path.stat().st_mtime
    except FileNotFoundError:
        return "the process has not reported any work yet"
    return f"the process last reported work {age:.0f} seconds ago" if age > limit else None
