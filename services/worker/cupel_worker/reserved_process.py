"""How the processes of a worker share: while scores are wanted, one of them is free for those."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time

LATELY = 60.0
"""Seconds after something urgent in which more of it is expected."""


class Reserve:
    """Places for what is not urgent: fewer than processes if something urgent came lately, else no end.

    A place is the lock of a file, so that a process which is killed leaves it.
    """

    def __init__(self, folder: Path, processes: int) -> None:
        """folder: an empty one, of this worker's own."""
        self._urgent = folder / "urgent"
        self._places = [folder / f"place-{number}" for number in range(max(1, processes - 1))]

    def note(self) -> None:
        """Something urgent came."""
        self._urgent.touch()

    @contextmanager
    def place(self) -> Iterator[bool]:
        """Whether there is a place; it is kept until the end of the block."""
        if not self._expecting():
            yield True
            return
        for path in self._places:
            with path.open("w") as file:
                if _locked(file.fileno()):
                    yield True
                    return
        yield False

    def _expecting(self) -> bool:
        try:
            return time() - os.stat(self._urgent).st_mtime < LATELY
        except FileNotFoundError:
            return False


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
