"""Tests of the supervisor with small child processes: logs, restarts, and shutdown."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from support.patience import seconds

SUPERVISE = """
import json
import sys
from cupel_standalone.supervisor import Child, ChildFailed, Supervisor
options, *programs = sys.argv[1:]
children = [
    Child(name=f"child{n}", command=(sys.executable, "-c", code), environment={})
    for n, code in enumerate(programs)
]
try:
    Supervisor(children, lambda name, text: print(name, "|", text, flush=True), **json.loads(options)).run()
except ChildFailed as error:
    sys.exit(f"child failed: {error}")
"""
WAIT = "import time\nprint('started', flush=True)\ntime.sleep(600)"

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def supervise() -> Iterator[Start]:
    """Return a function that starts a supervisor of children that run the given programs."""
    supervisors: list[subprocess.Popen[str]] = []

    def start(*programs: str, **options: float) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SUPERVISE, json.dumps(options), *programs]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        supervisors.append(
            subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        )
        return supervisors[-1]

    yield start
    for process in supervisors:
        remaining = children_of(process) if process.poll() is None else []
        process.kill()
        process.communicate()
        for child in remaining:
            with suppress(psutil.NoSuchProcess):
                child.kill()


def wait_for_line(process: subprocess.Popen[str], text: str) -> str:
    """Return the next line of output that contains `text`."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"the supervisor ended without printing {text!r}")


def children_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def test_log_lines_start_with_the_name_of_the_process(supervise: Start) -> None:
    process = supervise("print('first')\nprint('second')\n" + WAIT, WAIT)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(4)]
    assert [line for line in lines if "child0" in line] == [
        "child0 | first\n",
        "child0 | second\n",
        "child0 | started\n",
    ]
    assert "child1 | started\n" in lines


def test_killed_child_is_restarted(supervise: Start) -> None:
    process = supervise(WAIT)
    wait_for_line(process, "started")
    (child,) = children_of(process)
    child.kill()
    assert "was killed by SIGKILL" in wait_for_line(process, "restarting it")
    wait_for_line(process, "started")
    (restarted,) = children_of(process)
    assert restarted.pid != child.pid


def test_processes_of_a_dead_child_are_killed_before_its_restart(supervise: Start) -> None:
    nested = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {WAIT!r}]).wait()"
    process = supervise(nested)
    wait_for_line(process, "started")
    child, grandchild = children_of(process)
    child.kill()
    wait_for_line(process, "started")
    assert grandchild.wait(timeout=seconds(60)) is None


def test_child_that_always_fails_ends_the_supervisor_with_its_output(supervise: Start) -> None:
    output, _ = supervise("raise SystemExit('no such table')", WAIT).communicate(timeout=seconds(60))
    assert output.count("child0 | no such table") == 5
    assert re.search(r"child failed: child0 ended with exit code 1 after \d+ s, 5 times in a row", output)


def test_child_that_started_once_is_restarted_forever(supervise: Start, tmp_path: Path) -> None:
    prelude = f"import pathlib, time\nmarker = pathlib.Path({str(tmp_path / 'marker')!r})\n"
    once = prelude + "if marker.exists(): raise SystemExit('disk full')\nmarker.touch()\ntime.sleep(1)"
    process = supervise(once, WAIT, stable_seconds=0.5, max_deaths=2)
    wait_for_line(process, "started")
    (sibling,) = [child for child in children_of(process) if WAIT in child.cmdline()]
    for _ in range(4):
        wait_for_line(process, "child0 | disk full")
        wait_for_line(process, "restarting it")
    assert sibling.is_running()
    assert process.poll() is None


def test_children_finish_after_a_stop_signal(supervise: Start) -> None:
    finish = "lambda *_: sys.exit(os.write(1, b'finished\\n') - 9)"
    process = supervise(f"import os, signal, sys\nsignal.signal(signal.SIGTERM, {finish})\n" + WAIT)
    wait_for_line(process, "started")
    process.send_signal(signal.SIGTERM)
    assert "child0 | finished" in process.communicate(timeout=seconds(60))[0]
    assert process.returncode == 0


def test_second_stop_signal_kills_children_that_ignore_the_first(supervise: Start) -> None:
    ignore = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    process = supervise(ignore + WAIT)
    wait_for_line(process, "started")
    children = children_of(process)
    process.send_signal(signal.SIGINT)
    wait_for_line(process, "stopping; press Ctrl-C again to stop immediately")
    process.send_signal(signal.SIGINT)
    assert "did not stop in time" in process.communicate(timeout=seconds(60))[0]
    assert not any(child.is_running() for child in children)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="the parent-death signal needs Linux")
def test_children_end_with_a_killed_supervisor(supervise: Start) -> None:
    process = supervise(WAIT, WAIT)
    wait_for_line(process, "started")
    wait_for_line(process, "started")
    children = children_of(process)
    process.kill()
    process.wait()
    gone, alive = psutil.wait_procs(children, timeout=seconds(60))
    assert len(gone) == 2
    assert not alive
