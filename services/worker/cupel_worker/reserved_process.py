"""Reservation of one process of a worker for urgent jobs.

It is reserved while such jobs keep arriving.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time

URGENT_WINDOW = 60.0
"""Seconds after an urgent job during which one process stays free for the next one."""


class ProcessReserve:
    """Slots for jobs that are not urgent.

    For URGENT_WINDOW seconds after an urgent job, the worker has one slot fewer than it has processes, but
    at least one. Otherwise the number of slots is unlimited.

    A slot is a locked file, so the kernel frees the slot of a process that is killed.
    """

    def __init__(self, folder: Path, processes: int) -> None:
        """Create the slots of a worker.

        folder: an empty folder that only this worker uses. processes: number of processes of the worker.
        """
        self._urgent = folder / "urgent"
        self._slots = [folder / f"slot-{number}" for number in range(max(1, processes - 1))]

    def record_urgent_job(self) -> None:
        """Start or extend the reservation."""
        self._urgent.touch()

    @contextmanager
    def acquire_slot(self) -> Iterator[bool]:
        """Yield whether this process may run a job that is not urgent.

        A slot that it acquires is held until the block ends.
        """
        if not self._is_reserved():
            yield True
            return
        for path in self._slots:
            with path.open("w") as file:
                if _try_lock(file.fileno()):
                    yield True
                    return
        yield False

    def _is_reserved(self) -> bool:
        try:
            return time() - os.stat(self._urgent).st_mtime < URGENT_WINDOW
        except FileNotFoundError:
            return False


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
