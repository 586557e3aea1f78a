"""Tests that one process of a worker stays free for urgent jobs while such jobs keep arriving."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from cupel_worker.reserved_process import ProcessReserve


def acquire_slots(reserve: ProcessReserve, n_processes: int) -> list[bool]:
    """Request slots for several processes at once. Return whether each process gets a slot."""
    with ExitStack() as stack:
        return [stack.enter_context(reserve.acquire_slot()) for _ in range(n_processes)]


def age_urgent_job(folder: Path, seconds: float) -> None:
    """Make the last urgent job `seconds` older."""
    earlier = os.stat(folder / "urgent").st_mtime - seconds
    os.utime(folder / "urgent", (earlier, earlier))


def test_without_urgent_jobs_every_process_gets_a_slot(tmp_path: Path) -> None:
    assert acquire_slots(ProcessReserve(tmp_path, 2), 3) == [True] * 3


def test_after_an_urgent_job_one_process_stays_free(tmp_path: Path) -> None:
    reserve = ProcessReserve(tmp_path, 3)
    reserve.record_urgent_job()
    assert acquire_slots(reserve, 4) == [True, True, False, False]
    assert acquire_slots(reserve, 3) == [True, True, False]  # the slots were released


def test_reservation_lasts_for_a_minute(tmp_path: Path) -> None:
    reserve = ProcessReserve(tmp_path, 2)
    reserve.record_urgent_job()
    age_urgent_job(tmp_path, 30)
    assert acquire_slots(reserve, 2) == [True, False]
    age_urgent_job(tmp_path, 31)
    assert acquire_slots(reserve, 2) == [True, True]


def test_worker_with_one_process_runs_every_job(tmp_path: Path) -> None:
    reserve = ProcessReserve(tmp_path, 1)
    reserve.record_urgent_job()
    assert acquire_slots(reserve, 1) == [True]


def test_killed_process_releases_its_slot(tmp_path: Path) -> None:
    reserve = ProcessReserve(tmp_path, 2)
    reserve.record_urgent_job()
    script = (
        "import sys, pathlib; from cupel_worker.reserved_process import ProcessReserve\n"
        "with ProcessReserve(pathlib.Path(sys.argv[1]), 2).acquire_slot() as is_free:\n"
        "    print(is_free, flush=True); input()"
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
    assert acquire_slots(reserve, 1) == [False]
    process.kill()
    process.communicate()
    assert acquire_slots(reserve, 1) == [True]
