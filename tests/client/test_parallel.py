"""Worker processes of a command: they end with the command, and a killed worker loses only its own work."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.patience import seconds, until

BLOCKED_COMMAND = """
import sys, time
from pathlib import Path
from cupel_client.offline.parallel import map_in_parallel

def work(path):
    Path(path.name + ".pid").write_text(str(__import__("os").getpid()))
    time.sleep(600)

map_in_parallel(work, [Path("a"), Path("b")], doing="waiting", jobs=2)
"""


def is_running(process: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def environment_with(root: Path) -> dict[str, str]:
    paths = os.pathsep.join(str(root / "libs" / name) for name in ("client", "measures"))
    return {**os.environ, "PYTHONPATH": paths}


def run_command(source: str, root: Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", source],
        cwd=folder,
        env=environment_with(root),
        capture_output=True,
        text=True,
        timeout=seconds(60),
    )


@pytest.fixture
def blocked_command(tmp_path: Path, root: Path) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """Yield a command with two busy worker processes, and their process ids."""
    command = [sys.executable, "-c", BLOCKED_COMMAND]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment_with(root), stderr=subprocess.PIPE
    ) as process:
        files = [tmp_path / "a.pid", tmp_path / "b.pid"]
        until(lambda: all(file.exists() and file.read_text() for file in files))
        workers = [int(file.read_text()) for file in files]
        yield process, workers
        for process_id in filter(is_running, [process.pid, *workers]):
            os.kill(process_id, signal.SIGKILL)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_workers_end_when_the_command_is_signalled(
    blocked_command: tuple[subprocess.Popen[bytes], list[int]], ending: signal.Signals
) -> None:
    process, workers = blocked_command
    assert all(map(is_running, workers))
    process.send_signal(ending)
    process.wait(seconds(60))
    until(lambda: not any(map(is_running, workers)))


INTERRUPTED_CALLBACK = """
import os, signal, time
from cupel_client.offline.parallel import map_in_parallel

class Interruption:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)

class Items(list):
    def __getitem__(self, _slice):
        return self

    def __iter__(self):
        yield from super().__iter__()
        Interruption()

map_in_parallel(time.sleep, Items([600, 600]), doing="waiting", jobs=2)
"""


def test_ctrl_c_during_a_callback_ends_the_command(root: Path) -> None:
    done = run_command(INTERRUPTED_CALLBACK, root)
    assert done.stderr.endswith("KeyboardInterrupt\n")
    assert done.returncode == -signal.SIGINT


KILLED_WORKER = """
import os, signal, time
from pathlib import Path
from cupel_client.offline.parallel import map_in_parallel

def work(path):
    if path.name == "c":
        while not Path("d.started").exists():  # until then, the results of a and b are returned
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    if path.name == "d":
        Path("d.started").touch()
        time.sleep(600)
    return path.name

print(map_in_parallel(work, [Path("a"), Path("b"), Path("c"), Path("d")], doing="testing", jobs=2))
"""


def test_killed_worker_loses_only_its_unfinished_items(root: Path, tmp_path: Path) -> None:
    done = run_command(KILLED_WORKER, root, tmp_path)
    assert done.stdout == "['a', 'b', None, None]\n"


def test_tests_of_ctrl_c_pass_in_a_background_job(root: Path) -> None:
    """Shell scripts start background jobs with SIGINT ignored, and children inherit that."""
    tests = f"{__file__}::test_workers_end_when_the_command_is_signalled"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "2", tests],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=seconds(120),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert "1 passed" in done.stdout
