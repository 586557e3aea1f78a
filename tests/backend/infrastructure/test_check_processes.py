"""The checking process: may be killed at any time, by the file, by the limits, by the system."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from cupel_backend.infrastructure.check_processes import Checkers
from cupel_backend.infrastructure.errors import Invalid, Unavailable
from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.system import System
from support.backend_cast import ALICE, make_track, publish_qrels, run_file, submit
from support.patience import seconds, until
from support.service.service_processes import command_line

LARGE = b"".join(
    b"t%d Q0 %s%d 1 %d tag\n" % (topic, b"d" * 200, number, -number)
    for topic in (1, 2, 3)
    for number in range(90_000)
)
"""About 60 MB."""


@pytest.fixture
def make() -> Iterator[Callable[..., Checkers]]:
    made: list[Checkers] = []

    def make_(**settings: float) -> Checkers:
        made.append(Checkers(Settings(**settings)))  # type: ignore[arg-type]
        return made[-1]

    yield make_
    for checkers in made:
        checkers.close()


def request(tmp_path: Path, content: bytes = run_file()) -> dict[str, object]:
    (tmp_path / "run").write_bytes(content)
    paths = {"file": str(tmp_path / "run"), "ranking": str(tmp_path / "ranking")}
    return {"kind": "run", "name": "run", "limits": {}, "depth": 1000, "qrels": None, **paths}


others: set[int] = set()
"""Checking processes of services that other tests of this session still have."""


@pytest.fixture(autouse=True)
def _leave_others_out() -> Iterator[None]:
    others.update(process.pid for process in own_checkers())
    yield
    others.clear()


def own_checkers() -> list[psutil.Process]:
    children = [child for child in psutil.Process().children(recursive=True) if child.pid not in others]
    return [
        child
        for child in children
        if "cupel_backend.infrastructure.upload_checker" in " ".join(command_line(child))
    ]


def endless(tmp_path: Path) -> dict[str, object]:
    """A file that never comes: opening it waits for a writer."""
    os.mkfifo(tmp_path / "fifo")
    return request(tmp_path) | {"file": str(tmp_path / "fifo")}


def test_a_process_serves_many_files_and_is_replaced_in_time(
    make: Callable[..., Checkers], tmp_path: Path
) -> None:
    checkers = make(checkers=1, checker_turns=2)
    seen = set()
    for _ in range(5):
        assert checkers.check(request(tmp_path))["tag"] == "run"
        seen |= {process.pid for process in own_checkers()}
    assert len(seen) >= 2
    assert len(own_checkers()) <= 1


def test_a_killed_checker_refuses_its_file_and_the_next_one_is_checked(
    make: Callable[..., Checkers], tmp_path: Path
) -> None:
    checkers = make()
    refusals: list[str] = []

    def check() -> None:
        with pytest.raises(Invalid) as refusal:
            checkers.check(endless(tmp_path))
        refusals.append(refusal.value.detail)

    thread = threading.Thread(target=check)
    thread.start()
    until(own_checkers)
    os.kill(own_checkers()[0].pid, signal.SIGKILL)
    thread.join()
    assert "ended before it had a verdict" in refusals[0]
    assert checkers.check(request(tmp_path))["tag"] == "run"


def test_a_checker_killed_between_two_files_is_not_noticed(
    make: Callable[..., Checkers], tmp_path: Path
) -> None:
    checkers = make()
    checkers.check(request(tmp_path))
    [process] = own_checkers()
    process.kill()
    process.wait()
    assert checkers.check(request(tmp_path))["tag"] == "run"


def test_a_file_that_takes_too_long_is_refused(make: Callable[..., Checkers], tmp_path: Path) -> None:
    checkers = make(checker_seconds=1)
    with pytest.raises(Invalid, match="more than 1 seconds"):
        checkers.check(endless(tmp_path))
    assert own_checkers() == []


def test_a_file_that_needs_too_much_memory_is_refused(make: Callable[..., Checkers], tmp_path: Path) -> None:
    with pytest.raises(Invalid) as refusal:
        make(checker_megabytes=250).check(request(tmp_path, LARGE))
    assert refusal.value.code == "check-ended"


def test_whoever_gets_no_turn_is_asked_to_come_back(make: Callable[..., Checkers], tmp_path: Path) -> None:
    checkers = make(checkers=1, checker_seconds=1.5)
    waiting = endless(tmp_path)

    def wait() -> None:
        with pytest.raises(Invalid):
            checkers.check(waiting)

    thread = threading.Thread(target=wait)
    thread.start()
    until(own_checkers)
    checkers._settings = Settings(checker_seconds=0.1)
    with pytest.raises(Unavailable) as refusal:
        checkers.check(request(tmp_path))
    assert refusal.value.retry_after
    thread.join()


def test_a_process_outlives_the_thread_that_needed_it_first(
    make: Callable[..., Checkers], tmp_path: Path
) -> None:
    checkers = make(checkers=1)
    thread = threading.Thread(target=checkers.check, args=[request(tmp_path)])
    thread.start()
    thread.join()
    [first] = own_checkers()
    time.sleep(0.1)  # for a signal to arrive, if there were one
    checkers.check(request(tmp_path))
    assert [process.pid for process in own_checkers()] == [first.pid]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_checker_ends_with_a_killed_service_in_the_midst_of_a_file(tmp_path: Path) -> None:
    script = "import json, sys; from cupel_backend.infrastructure.check_processes import Checkers, Settings; "
    script += "Checkers(Settings()).check(json.loads(sys.argv[1]))"
    service = subprocess.Popen([sys.executable, "-c", script, json.dumps(endless(tmp_path))])
    writer = os.open(tmp_path / "fifo", os.O_WRONLY)  # the checker has opened the file, and waits for it
    [checker] = own_checkers()
    service.kill()
    service.wait()
    assert psutil.wait_procs([checker], timeout=seconds(60))[1] == []
    os.close(writer)


def test_a_checker_may_not_compute_for_ever(make: Callable[..., Checkers], tmp_path: Path) -> None:
    make(checker_seconds=20).check(request(tmp_path))
    [process] = own_checkers()
    assert 20 <= process.rlimit(psutil.RLIMIT_CPU)[0] < 60


def test_a_full_disk_is_not_the_fault_of_the_file(make: Callable[..., Checkers], tmp_path: Path) -> None:
    checkers = make()
    with pytest.raises(Unavailable) as refusal:
        checkers.check(request(tmp_path) | {"ranking": "/dev/full"})
    assert refusal.value.code == "storage-failed"
    assert refusal.value.retry_after
    assert checkers.check(request(tmp_path))["tag"] == "run"


def test_closing_ends_every_process(tmp_path: Path) -> None:
    checkers = Checkers(Settings())
    checkers.check(request(tmp_path))
    assert own_checkers()
    checkers.close()
    assert own_checkers() == []


def test_a_checker_knows_no_secret_of_the_environment(
    make: Callable[..., Checkers], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUPEL_DATABASE", "postgresql://user:secret@host/db")
    make().check(request(tmp_path))
    [process] = own_checkers()
    assert not any("secret" in value for value in process.environ().values())


def test_a_submission_whose_checker_is_killed_is_refused_and_leaves_nothing(
    open_at: Callable[..., System],
) -> None:
    system = open_at(checker_megabytes=250)
    make_track(system)
    publish_qrels(system)
    with pytest.raises(Invalid, match="memory"):
        submit(system, ALICE, LARGE)
    assert list(system.settings.incoming.iterdir()) == []
    assert submit(system, ALICE).state == "queued"
