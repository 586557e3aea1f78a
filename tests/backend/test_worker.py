"""Tests that kill or suspend workers and schedulers: every submission is scored exactly once."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import psutil
import pytest
from sqlalchemy import func, select, text

from cupel_backend import jobs, qrels_versions
from cupel_backend.infrastructure.clock import utc_now
from cupel_backend.infrastructure.database import reading
from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.system import System, open_system
from cupel_backend.infrastructure.tables import scores
from cupel_backend.jobs import Job
from cupel_backend.scores import leaderboards, rescoring
from support.backend_cast import ADMIN, ALICE, ORGANISER, make_track, publish_qrels, run_file, submit
from support.patience import seconds, until
from support.service.service_sizes import SizeName, purge

TOPICS = [f"t{number}" for number in range(200)]
DOCUMENTS = [f"d{number}" for number in range(100)]
JUDGED = "".join(f"{topic} 0 {document} 1\n" for topic in TOPICS for document in DOCUMENTS).encode()
SLOW_PLAN = [f"{name}@{cutoff}" for name in ("nDCG", "P", "AP", "RBP") for cutoff in range(1, 50)]
"""Enough measures that a job is still running when the test kills its process."""


def slow_run(tag: str) -> bytes:
    lines = [
        f"{topic} Q0 {document} 1 {-number} {tag}"
        for topic in TOPICS
        for number, document in enumerate(DOCUMENTS)
    ]
    return "\n".join(lines).encode()


class Processes:
    """The background processes of a data folder."""

    def __init__(self, settings: Settings) -> None:
        self._environment = settings.environment()
        self._log = settings.data / "log"
        self.started: list[subprocess.Popen[bytes]] = []

    def use_long_leases(self) -> None:
        """Use a long lease in processes started later, so that it does not expire on a busy machine."""
        self._environment["CUPEL_LEASE_SECONDS"] = "60"

    def start(self, role: str) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "cupel_worker", role]
            process = subprocess.Popen(
                command, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )
        self.started.append(process)
        return process

    @property
    def log(self) -> str:
        return self._log.read_text()

    def end(self) -> None:
        for process in self.started:
            with_children = [process.pid, *(child.pid for child in pool_of(process))]
            process.kill()
            process.wait()
            for pid in with_children[1:]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def pool_of(worker: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return the pool processes of a worker."""
    try:
        return psutil.Process(worker.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


BROKERS: tuple[SizeName, ...] = ("embedded", "production", "rabbitmq")


@pytest.fixture(params=BROKERS)
def size(request: pytest.FixtureRequest) -> SizeName:
    """Run each test with every broker. `make test` runs slow tests with a sample of the brokers."""
    name: SizeName = request.param
    return name


def sampled_brokers(first: SizeName) -> Callable[[Any], Any]:
    """Return a decorator that runs a test with every broker, and in `make test` with `first` only."""
    order = sorted(BROKERS, key=lambda broker: broker != first)

    def decorate(test: Any) -> Any:
        every_broker = pytest.mark.parametrize("size", order, indirect=True)
        return pytest.mark.sampled(every=len(order))(every_broker(test))

    return decorate


@pytest.fixture
def system(at: dict[str, Any]) -> Iterator[System]:
    settings = Settings(
        **at,
        lease_seconds=1.5,
        renew_seconds=0.3,
        sweep_seconds=0.3,
        polling_seconds=0.05,
        turn_seconds=0.05,
        attempts=10,
        analysis_seconds=600,  # analyses of all measures of the slow plan are long jobs
    )
    system = replace(open_system(settings), now=utc_now)
    system.migrate()
    yield system
    system.close()


@pytest.fixture
def processes(system: System) -> Iterator[Processes]:
    started = Processes(system.settings)
    yield started
    started.end()


OTHERS = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL"
)


def evaluations(system: System) -> list[Job]:
    """Return all evaluation jobs, without the analyses that run between them."""
    evaluation_jobs, cursor = [], None
    while True:
        page = jobs.list_(system, ADMIN, limit=500, cursor=cursor)
        evaluation_jobs += [job for job in page.items if job.kind == rescoring.EVALUATE]
        if (cursor := page.next) is None:
            return evaluation_jobs


def all_done(system: System) -> bool:
    return all(job.state == "done" for job in evaluations(system))


def running_jobs(system: System) -> list[Job]:
    return [job for job in evaluations(system) if job.state == "running"]


def score_count(system: System) -> int:
    with system.engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(scores)).scalar_one()


def slow_track(system: System, submitted: int) -> None:
    make_track(system, aspects={"relevance": {"labels": [0, 1]}}, measures=SLOW_PLAN)
    collection = b"qrels: [{file: q, aspect: relevance}]"
    qrels_versions.upload(system, ORGANISER, "track", collection=collection, files={"q": JUDGED})
    qrels_versions.publish(system, ORGANISER, "track", 1)
    for number in range(submitted):
        submit(system, ALICE, slow_run(f"r{number}"))


def test_wake_up_makes_a_worker_score_a_submission(system: System, processes: Processes) -> None:
    make_track(system)
    publish_qrels(system)
    processes.start("worker")
    for number in range(10):
        submit(system, ALICE, run_file(tag=f"r{number}"))
    until(lambda: all_done(system))
    board = leaderboards.read_board(system, ALICE, "track")
    assert board is not None
    assert len(board.rows) == 10


@sampled_brokers("production")
def test_killed_processes_and_a_deleted_broker_neither_lose_nor_repeat_scores(
    system: System, processes: Processes
) -> None:
    slow_track(system, submitted=8)
    worker = processes.start("worker")
    processes.start("scheduler")
    until(lambda: running_jobs(system))
    for process in pool_of(worker):
        process.kill()
    until(lambda: any(job.state == "done" for job in evaluations(system)) and running_jobs(system))
    worker.kill()
    for process in pool_of(worker):
        process.kill()
    delete_broker(system)
    processes.start("worker")
    until(lambda: len([job for job in evaluations(system) if job.state == "done"]) >= 3)
    delete_broker(system)
    until(lambda: all_done(system))
    assert score_count(system) == 8 * len(SLOW_PLAN)
    assert max(job.attempts for job in evaluations(system)) > 1


def delete_broker(system: System) -> None:
    """Delete all messages atomically; the embedded broker's folder is renamed first."""
    if system.settings.broker:
        purge(system.settings.broker)
        return
    until(system.settings.broker_folder.exists)  # wake-ups are sent from another thread
    gone = system.settings.broker_folder.rename(system.settings.data / f"gone-{time.monotonic_ns()}")
    shutil.rmtree(gone)


def suspend_at_work(system: System, processes: list[psutil.Process]) -> bool:
    """Suspend the processes. If they run a job without a write lock, return True; otherwise resume them."""
    for process in processes:
        process.suspend()
    if running_jobs(system) and not has_write_lock(system):
        return True
    for process in processes:
        process.resume()
    if all_done(system):
        submit(system, ALICE, slow_run(f"r{len(evaluations(system))}"))
    return False


def has_write_lock(system: System) -> bool:
    """Return whether a process holds a write lock of the database."""
    if system.engine.dialect.name == "postgresql":
        with reading(system.engine) as connection:
            return connection.execute(text(OTHERS)).scalar_one() > 0
    database = sqlite3.connect(system.settings.data / "cupel.sqlite", timeout=0)
    try:
        database.execute("BEGIN IMMEDIATE").connection.rollback()
    except sqlite3.OperationalError:
        return True
    finally:
        database.close()
    return False


@sampled_brokers("embedded")
def test_worker_suspended_beyond_its_lease_cannot_write_results(system: System, processes: Processes) -> None:
    slow_track(system, submitted=1)
    sleeper = processes.start("worker")
    processes.start("scheduler")
    until(lambda: running_jobs(system))
    asleep = pool_of(sleeper)
    until(lambda: suspend_at_work(system, asleep))
    until(lambda: not running_jobs(system))
    processes.start("worker")
    until(lambda: all_done(system))
    for process in asleep:
        process.resume()
    until(lambda: "another worker may have claimed it" in processes.log)
    evaluation_jobs = evaluations(system)
    assert score_count(system) == len(evaluation_jobs) * len(SLOW_PLAN)
    assert max(job.attempts for job in evaluation_jobs) > 1


@sampled_brokers("embedded")
def test_scheduler_sends_lost_wake_ups_again(system: System, processes: Processes) -> None:
    make_track(system)
    publish_qrels(system)
    submit(system)
    delete_broker(system)
    processes.start("worker")
    processes.start("scheduler")
    processes.start("scheduler")
    until(lambda: all_done(system))


@sampled_brokers("production")
def test_terminated_worker_finishes_only_its_current_job(system: System, processes: Processes) -> None:
    processes.use_long_leases()
    slow_track(system, submitted=4)
    worker, scheduler = processes.start("worker"), processes.start("scheduler")
    until(lambda: any(job.state == "done" for job in evaluations(system)))
    for process in (worker, scheduler):
        process.terminate()
    assert [worker.wait(seconds(60)), scheduler.wait(seconds(60))] == [0, 0]
    states = {job.state for job in evaluations(system)}
    assert states == {"done", "queued"}
    assert pool_of(worker) == []
    processes.start("worker")
    processes.start("scheduler")
    until(lambda: all_done(system))
    assert all(job.attempts == 1 for job in evaluations(system))


def test_unknown_role_is_a_usage_error() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "cupel_worker", "cook"], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 2
    assert "worker|scheduler" in answer.stderr
