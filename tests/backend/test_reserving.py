"""The processes of a worker: one is free for scores, as long as those are wanted now and then."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from cupel_worker import reserved_process
from cupel_worker.reserved_process import Reserve


def places(reserve: Reserve, asked: int) -> list[bool]:
    """What so many processes are told that ask at once."""
    with ExitStack() as stack:
        return [stack.enter_context(reserve.place()) for _ in range(asked)]


def test_while_nothing_is_urgent_all_do_what_is_not(tmp_path: Path) -> None:
    assert places(Reserve(tmp_path, 2), 3) == [True] * 3


def test_after_something_urgent_one_process_does_nothing_else(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path, 3)
    reserve.note()
    assert places(reserve, 4) == [True, True, False, False]
    assert places(reserve, 3) == [True, True, False]  # places are free again
    earlier = os.stat(tmp_path / "urgent").st_mtime - reserved_process.LATELY - 1
    os.utime(tmp_path / "urgent", (earlier, earlier))
    assert places(reserve, 3) == [True] * 3


def test_a_worker_of_one_process_does_everything(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path, 1)
    reserve.note()
    assert places(reserve, 1) == [True]


def test_a_killed_process_leaves_its_place(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path, 2)
    reserve.note()
    script = (
        "import sys, pathlib; from cupel_worker.reserved_process import Reserve\n"
        "with Reserve(pathlib.Path(sys.argv[1]), 2).place() as free: print(free, flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    assert places(reserve, 1) == [False]
    process.kill()
    process.communicate()
    assert places(reserve, 1) == [True]
