"""Temporary files of the tests in memory, because every commit and upload waits for the disk otherwise.

Files on a memory file system survive the end of the processes that write them, as on a disk.
"""

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
NEEDED_BYTES = 4 << 30


def use_memory_folder() -> None:
    """Let this process and its children write temporary files to memory, if TMPDIR is not set."""
    if "TMPDIR" not in os.environ and _is_suitable(MEMORY):
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None


def _is_suitable(folder: Path) -> bool:
    """Return whether a folder has space, and its files can have the extended attributes that Swift needs."""
    try:
        if shutil.disk_usage(folder).free < NEEDED_BYTES:
            return False
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            os.setxattr(file.name, "user.cupel", b"")
    except (OSError, AttributeError):
        return False
    return True
