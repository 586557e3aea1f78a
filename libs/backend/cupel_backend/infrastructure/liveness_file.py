"""The pulse of a process without a door: a file that it touches whenever it does its work.

The scheduler's is touched by every tick; a worker's by every ring that it hears, and it hears some even when
there is nothing to do. So a worker that is up but no longer listens, as brokers and their clients know how to
bring about, is found out.
"""

from pathlib import Path
from time import time


def beat(path: Path) -> None:
    """Note that the work goes on."""
    path.touch()


def complaint(path: Path, longest: float) -> str | None:
    """What is wrong, if the last beat is more than `longest` seconds ago; there has to have been one."""
    try:
        ago = time() - path.stat().st_mtime
    except FileNotFoundError:
        return "nothing was heard of it yet"
    return f"nothing was heard of it for {ago:.0f} seconds" if ago > longest else None
