"""Tests of `cupel audit` in processes that are interrupted or killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from cupel_client.offline.audit_work import SavedParts
from support.audited_files import RUNS, cupel
from support.patience import seconds, until

pytestmark = pytest.mark.usefixtures("folder")


def test_two_processes_may_save_the_same_part_at_once(tmp_path: Path) -> None:
    saved = SavedParts(tmp_path)
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(_save_repeatedly, [saved, saved]))
    assert saved.trials() == {0: "x" * 9}


def _save_repeatedly(saved: SavedParts) -> None:
    for _ in range(1000):
        saved.save(range(1), f'{{"0": "{"x" * 9}"}}')


LONG = (
    "downsampling",
    "qrels.txt",
    *RUNS,
    "-m",
    "AP",
    "--ratios",
    "80,40",
    "--repeats",
    "300",
    "--seed",
    "7",
)
COMMAND = "from cupel_client.main import main; main()"


@pytest.fixture
def environment(root: Path) -> dict[str, str]:
    paths = os.pathsep.join(str(root / "libs" / name) for name in ("client", "measures"))
    return {**os.environ, "PYTHONPATH": paths}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", COMMAND, "audit", *arguments]


def run_to_end(*arguments: str, out: str) -> tuple[str, str]:
    """Run a command in this process, without interruption; return the report's digest and standard error."""
    done = cupel(*arguments, "--out", out)
    assert done.exit_code == 0, done.stderr
    return json.loads(Path(out, "report.json").read_text())["digest"], done.stderr


def workers_of(process: int) -> list[int]:
    """Return the ids of the processes that a process started."""
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(word) for word in text.split()]


def is_alive(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def disturb(
    arguments: tuple[str, ...],
    environment: dict[str, str],
    signal_number: signal.Signals,
    *,
    worker: bool = False,
) -> tuple[int, str]:
    """Send a signal to an audit (or to a worker of it) after its first part.

    Return its exit code and standard error. An audit that ended before the signal arrived runs again, up to
    ten times.
    """
    for _ in range(10):
        shutil.rmtree("disturbed", ignore_errors=True)
        audit = command(*arguments, "--out", "disturbed")
        with subprocess.Popen(audit, env=environment, stderr=subprocess.PIPE, text=True) as process:
            until(lambda: [*Path("disturbed").glob("parts/0*.json")])
            workers = workers_of(process.pid)
            with suppress(ProcessLookupError, IndexError):
                os.kill(workers[0] if worker else process.pid, signal_number)
            _, stderr = process.communicate(timeout=seconds(60))
        until(lambda: not any(map(is_alive, workers)))  # noqa: B023  (called at once)
        if process.returncode != 0:
            break
    return process.returncode, stderr


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    ("end_signal", "jobs"), [(signal.SIGINT, "2"), (signal.SIGINT, "1"), (signal.SIGKILL, "2")]
)
def test_result_is_independent_of_processes_and_interruptions(
    environment: dict[str, str], end_signal: signal.Signals, jobs: str
) -> None:
    arguments = (*LONG, "--jobs", jobs)
    code, stderr = disturb(arguments, environment, end_signal)
    assert code == {signal.SIGINT: 130, signal.SIGKILL: -9}[end_signal]
    assert not Path("disturbed", "report.json").exists()
    assert "Traceback" not in stderr
    if end_signal == signal.SIGINT:
        assert "interrupted: the same command resumes from disturbed" in stderr
    digest, stderr = run_to_end(*arguments, out="disturbed")
    assert "of 8 parts are already done" in stderr
    assert digest == run_to_end(*LONG, "--jobs", "1", out="undisturbed")[0]


def test_killed_worker_is_reported_and_the_next_command_completes_its_parts(
    environment: dict[str, str],
) -> None:
    arguments = (*LONG, "--jobs", "2")
    code, stderr = disturb(arguments, environment, signal.SIGKILL, worker=True)
    assert code == 3
    assert "not finished, because a process was killed (out of memory?): the same command resumes" in stderr
    assert run_to_end(*arguments, out="disturbed")[0] == run_to_end(*LONG, out="undisturbed")[0]
