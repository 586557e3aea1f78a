"""Tests of check processes: limits, failures, and the end of the service."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest

from cupel_backend.infrastructure.check_processes import Checkers
from cupel_backend.infrastructure.errors import Invalid, Unavailable
from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.system import System
from support.backend_cast import ALICE, make_track, publish_qrels, run_file, submit
from support.patience import seconds, until


@cache
def large_run() -> bytes:
    """Return a run of about 60 MB."""
    return b"".join(
        b"t%d Q0 %s%d 1 %d tag\n" % (topic, b"d" * 200, number, -number)
        for topic in (1, 2, 3)
        for number in range(90_000)
    )


@pytest.fixture
def make_checkers() -> Iterator[Callable[..., Checkers]]:
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


existing: set[int] = set()
"""Ids of the check processes that earlier tests of this session started."""


@pytest.fixture(autouse=True)
def _ignore_existing_processes() -> Iterator[None]:
    existing.update(process.pid for process in list_check_processes())
    yield
    existing.clear()


def list_check_processes() -> list[psutil.Process]:
    """Return the check processes that this test started and that have not ended."""
    children = [child for child in psutil.Process().children(recursive=True) if child.pid not in existing]
    return [child for child in children if is_check_process(child)]


def is_check_process(process: psutil.Process) -> bool:
    try:
        return "cupel_backend.infrastructure.upload_checker" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def endless_request(tmp_path: Path) -> dict[str, object]:
    """Return a request whose check never ends, because opening a FIFO waits for a writer."""
    os.mkfifo(tmp_path / "fifo")
    return request(tmp_path) | {"file": str(tmp_path / "fifo")}


def test_process_is_reused_and_replaced_after_its_turns(
    make_checkers: Callable[..., Checkers], tmp_path: Path
) -> None:
    checkers = make_checkers(checkers=1, checker_turns=2)
    seen = []
    for _ in range(5):
        assert checkers.check(request(tmp_path))["tag"] == "run"
        seen.append([process.pid for process in list_check_processes()])
    first, second = seen[0], seen[2]
    assert len(first) == len(second) == 1
    assert first != second
    assert seen[1] == seen[3] == []  # a process ends after its last turn


def start_check(checkers: Checkers, file: dict[str, object]) -> tuple[threading.Thread, list[str]]:
    """Check a file in a thread. Return the thread and a list to which it appends the detail of a refusal."""
    refusals: list[str] = []

    def check() -> None:
        with pytest.raises(Invalid) as refusal:
            checkers.check(file)
        refusals.append(refusal.value.detail)

    thread = threading.Thread(target=check)
    thread.start()
    return thread, refusals


def test_file_whose_process_is_killed_is_refused_and_the_next_one_is_checked(
    make_checkers: Callable[..., Checkers], tmp_path: Path
) -> None:
    checkers = make_checkers()
    thread, refusals = start_check(checkers, endless_request(tmp_path))
    [process] = until(list_check_processes)
    process.kill()
    thread.join()
    assert "ended without a verdict" in refusals[0]
    assert checkers.check(request(tmp_path))["tag"] == "run"


def test_process_that_is_killed_while_it_starts_refuses_the_file(
    make_checkers: Callable[..., Checkers], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkers = make_checkers(checkers=1)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", KilledProcess)
        with pytest.raises(Invalid, match="ended without a verdict"):
            checkers.check(request(tmp_path))
    assert checkers.check(request(tmp_path))["tag"] == "run"


class KilledProcess(subprocess.Popen):
    """A process that has been killed before anything is written to it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.kill()
        self.wait()


def test_process_that_is_killed_while_idle_is_replaced(
    make_checkers: Callable[..., Checkers], tmp_path: Path
) -> None:
    checkers = make_checkers()
    checkers.check(request(tmp_path))
    [process] = list_check_processes()
    process.kill()
    process.wait()
    assert checkers.check(request(tmp_path))["tag"] == "run"


def test_file_that_takes_too_long_is_refused(make_checkers: Callable[..., Checkers], tmp_path: Path) -> None:
    checkers = make_checkers(checker_seconds=1)
    with pytest.raises(Invalid, match="more than 1 seconds"):
        checkers.check(endless_request(tmp_path))
    assert list_check_processes() == []


def test_file_that_needs_too_much_memory_is_refused(
    make_checkers: Callable[..., Checkers], tmp_path: Path
) -> None:
    with pytest.raises(Invalid) as refusal:
        make_checkers(checker_megabytes=250).check(request(tmp_path, large_run()))
    assert refusal.value.code == "check-ended"


def test_upload_without_a_free_process_gets_retry_after(
    make_checkers: Callable[..., Checkers], tmp_path: Path
) -> None:
    checkers = make_checkers(checkers=1)
    thread, _ = start_check(checkers, endless_request(tmp_path))
    [process] = until(list_check_processes)
    checkers._settings = Settings(checker_seconds=0.1)
    with pytest.raises(Unavailable) as refusal:
        checkers.check(request(tmp_path))
    assert refusal.value.code == "checkers-busy"
    assert refusal.value.retry_after
    process.kill()
    thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_process_outlives_the_thread_that_started_it(
    make_checkers: Callable[..., Checkers], tmp_path: Path
) -> None:
    checkers = make_checkers(checkers=1)
    thread = threading.Thread(target=checkers.check, args=[request(tmp_path)])
    thread.start()
    thread.join()
    until(lambda: not Path(f"/proc/self/task/{thread.native_id}").exists())
    [first] = list_check_processes()
    checkers.check(request(tmp_path))
    assert [process.pid for process in list_check_processes()] == [first.pid]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_check_process_ends_when_its_service_is_killed(tmp_path: Path) -> None:
    script = "import json, sys; from cupel_backend.infrastructure.check_processes import Checkers, Settings; "
    script += "Checkers(Settings()).check(json.loads(sys.argv[1]))"
    service = subprocess.Popen([sys.executable, "-c", script, json.dumps(endless_request(tmp_path))])
    # `open` returns when the check process has opened the FIFO.
    writer = os.open(tmp_path / "fifo", os.O_WRONLY)
    [process] = until(list_check_processes)
    service.kill()
    service.wait()
    assert psutil.wait_procs([process], timeout=seconds(60))[1] == []
    os.close(writer)


def test_cpu_time_of_a_process_is_limited(make_checkers: Callable[..., Checkers], tmp_path: Path) -> None:
    make_checkers(checker_seconds=20).check(request(tmp_path))
    [process] = list_check_processes()
    assert 20 <= process.rlimit(psutil.RLIMIT_CPU)[0] < 60


def test_full_disk_is_a_failure_of_the_service(
    make_checkers: Callable[..., Checkers], tmp_path: Path
) -> None:
    checkers = make_checkers()
    with pytest.raises(Unavailable) as refusal:
        checkers.check(request(tmp_path) | {"ranking": "/dev/full"})
    assert refusal.value.code == "storage-failed"
    assert refusal.value.retry_after
    assert checkers.check(request(tmp_path))["tag"] == "run"


def test_close_ends_every_process(tmp_path: Path) -> None:
    checkers = Checkers(Settings())
    checkers.check(request(tmp_path))
    assert list_check_processes()
    checkers.close()
    assert list_check_processes() == []


def test_check_process_has_no_secrets_in_its_environment(
    make_checkers: Callable[..., Checkers], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUPEL_DATABASE", "postgresql://user:secret@host/db")
    make_checkers().check(request(tmp_path))
    [process] = list_check_processes()
    assert not any("secret" in value for value in process.environ().values())


def test_submission_beyond_the_memory_limit_leaves_no_files_or_rows(
    open_at: Callable[..., System],
) -> None:
    system = open_at(checker_megabytes=250)
    make_track(system)
    publish_qrels(system)
    with pytest.raises(Invalid, match="memory"):
        submit(system, ALICE, large_run())
    assert list(system.settings.incoming.iterdir()) == []
    assert submit(system, ALICE).state == "queued"
