"""The supervisor with small children of its own: what becomes of them, whatever happens to it or to them."""

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
from cupel_standalone.supervisor import Child, GaveUp, Supervisor
chosen, *programs = sys.argv[1:]
children = [Child(f"child{n}", (sys.executable, "-c", code), {}) for n, code in enumerate(programs)]
try:
    Supervisor(children, lambda who, text: print(who, "|", text, flush=True), **json.loads(chosen)).run()
except GaveUp as error:
    sys.exit(f"gave up: {error}")
"""
WAIT = "import time\nprint('here', flush=True)\ntime.sleep(600)"

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def supervise() -> Iterator[Start]:
    """Start a supervisor of children that run the given programs."""
    started: list[subprocess.Popen[str]] = []

    def start(*programs: str, **chosen: float) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SUPERVISE, json.dumps(chosen), *programs]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        started.append(
            subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        )
        return started[-1]

    yield start
    for process in started:
        left = children_of(process) if process.poll() is None else []
        process.kill()
        process.communicate()
        for child in left:
            with suppress(psutil.NoSuchProcess):
                child.kill()


def line(process: subprocess.Popen[str], wanted: str) -> str:
    """The next line of output that contains `wanted`."""
    assert process.stdout is not None
    for text in process.stdout:
        if wanted in text:
            return text
    raise AssertionError(f"the supervisor ended without saying {wanted!r}")


def children_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def test_every_line_of_the_log_says_who_said_it(supervise: Start) -> None:
    process = supervise("print('one')\nprint('two')\n" + WAIT, WAIT)
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(4)]
    assert [text for text in said if "child0" in text] == [
        "child0 | one\n",
        "child0 | two\n",
        "child0 | here\n",
    ]
    assert "child1 | here\n" in said


def test_a_child_that_is_killed_is_started_again(supervise: Start) -> None:
    process = supervise(WAIT)
    line(process, "here")
    (child,) = children_of(process)
    child.kill()
    assert "was killed by SIGKILL" in line(process, "starting it again")
    line(process, "here")
    (another,) = children_of(process)
    assert another.pid != child.pid


def test_what_a_dead_child_left_behind_is_ended_before_it_starts_again(supervise: Start) -> None:
    nested = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {WAIT!r}]).wait()"
    process = supervise(nested)
    line(process, "here")
    child, grandchild = children_of(process)
    child.kill()
    line(process, "here")
    assert grandchild.wait(timeout=seconds(60)) is None


def test_a_child_that_can_not_live_ends_the_service_with_its_reason(supervise: Start) -> None:
    output, _ = supervise("raise SystemExit('no such table')", WAIT).communicate(timeout=seconds(60))
    assert output.count("child0 | no such table") == 5
    assert re.search(r"gave up: child0 ended with exit code 1 after \d+ s, 5 times in a row", output)


def test_a_child_that_came_up_once_is_started_again_for_ever(supervise: Start, tmp_path: Path) -> None:
    been = f"import pathlib, time\nbeen = pathlib.Path({str(tmp_path / 'been')!r})\n"
    once = been + "if been.exists(): raise SystemExit('disk full')\nbeen.touch()\ntime.sleep(1)"
    process = supervise(once, WAIT, steady=0.5, patience=2)
    line(process, "here")
    (sibling,) = [child for child in children_of(process) if WAIT in child.cmdline()]
    for _ in range(4):
        line(process, "child0 | disk full")
        line(process, "starting it again")
    assert sibling.is_running()
    assert process.poll() is None


def test_told_to_stop_it_lets_the_children_finish(supervise: Start) -> None:
    finish = "lambda *_: sys.exit(os.write(1, b'finished\\n') - 9)"
    process = supervise(f"import os, signal, sys\nsignal.signal(signal.SIGTERM, {finish})\n" + WAIT)
    line(process, "here")
    process.send_signal(signal.SIGTERM)
    assert "child0 | finished" in process.communicate(timeout=seconds(60))[0]
    assert process.returncode == 0


def test_asked_twice_it_ends_children_that_do_not_listen(supervise: Start) -> None:
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    process = supervise(deaf + WAIT)
    line(process, "here")
    children = children_of(process)
    process.send_signal(signal.SIGINT)
    line(process, "stopping; press Ctrl-C again to end at once")
    process.send_signal(signal.SIGINT)
    assert "did not stop in time" in process.communicate(timeout=seconds(60))[0]
    assert not any(child.is_running() for child in children)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="only Linux ends children together with their parent")
def test_nothing_outlives_a_supervisor_that_is_killed(supervise: Start) -> None:
    process = supervise(WAIT, WAIT)
    line(process, "here")
    line(process, "here")
    children = children_of(process)
    process.kill()
    process.wait()
    gone, alive = psutil.wait_procs(children, timeout=seconds(60))
    assert len(gone) == 2
    assert not alive
