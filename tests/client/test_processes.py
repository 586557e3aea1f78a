"""The processes that share the work: they end with the command, and one that is killed is told."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

WAITING = """
import sys, time
from pathlib import Path
from cupel_client.offline.processes import each

def work(path):
    Path(path.name + ".pid").write_text(str(__import__("os").getpid()))
    time.sleep(600)

each(work, [Path("a"), Path("b")], doing="waiting", jobs=2)
"""


def lives(process: int) -> bool:
    """Whether a process is there and not only waiting to be collected."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def until(condition: object) -> None:
    """Wait for what has to come; a minute without it is a failure."""
    assert callable(condition)
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it did not come")


@pytest.fixture
def waiting(tmp_path: Path, root: Path) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """A command whose two processes are busy, and their numbers."""
    paths = os.pathsep.join(str(root / "libs" / name) for name in ("client", "measures"))
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-c", WAITING]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as process:
        files = [tmp_path / "a.pid", tmp_path / "b.pid"]
        until(lambda: all(file.exists() and file.read_text() for file in files))
        workers = [int(file.read_text()) for file in files]
        yield process, workers
        for one in filter(lives, [process.pid, *workers]):
            os.kill(one, signal.SIGKILL)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_the_command_however_it_ends(
    waiting: tuple[subprocess.Popen[bytes], list[int]], ending: signal.Signals
) -> None:
    process, workers = waiting
    assert all(map(lives, workers))
    process.send_signal(ending)
    process.wait(60)
    until(lambda: not any(map(lives, workers)))


MORTAL = """
import os, signal, time
from pathlib import Path
from cupel_client.offline.processes import each

def work(path):
    if path.name == "c":
        time.sleep(0.5)  # the others are done meanwhile
        os.kill(os.getpid(), signal.SIGKILL)
    return path.name

print(each(work, [Path("a"), Path("b"), Path("c")], doing="testing", jobs=2))
"""


def test_what_a_killed_process_worked_on_is_lost_and_the_rest_is_there(root: Path) -> None:
    paths = os.pathsep.join(str(root / "libs" / name) for name in ("client", "measures"))
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-c", MORTAL]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "['a', 'b', None]\n"
