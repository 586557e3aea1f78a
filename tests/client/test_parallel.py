"""The processes that share the work: they end with the command, and one that is killed is told."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.patience import seconds, until

WAITING = """
import sys, time
from pathlib import Path
from cupel_client.offline.parallel import each

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
    process.wait(seconds(60))
    until(lambda: not any(map(lives, workers)))


MORTAL = """
import os, signal, time
from pathlib import Path
from cupel_client.offline.parallel import each

def work(path):
    if path.name == "c":
        while not Path("d.started").exists():  # each process has handed in what it did before
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    if path.name == "d":
        Path("d.started").touch()
        time.sleep(600)
    return path.name

print(each(work, [Path("a"), Path("b"), Path("c"), Path("d")], doing="testing", jobs=2))
"""


def test_what_a_killed_process_worked_on_is_lost_and_the_rest_is_there(root: Path, tmp_path: Path) -> None:
    paths = os.pathsep.join(str(root / "libs" / name) for name in ("client", "measures"))
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-c", MORTAL]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds(60),
        check=True,
    )
    assert done.stdout == "['a', 'b', None, None]\n"
