"""Tests of metrics: sums over all processes, including ended ones, and states read from the database."""

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from cupel_backend import jobs
from cupel_backend.infrastructure.clock import utc_now
from cupel_backend.infrastructure.errors import Invalid, Unavailable
from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.system import System, open_system
from support.backend_cast import ALICE, Clock, make_track, publish_qrels, run_file, submit, work_off
from support.patience import seconds, until
from support.service.service_processes import command_line

COUNT = """
import sys
from pathlib import Path
from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.system import open_system
system = open_system(Settings(data=Path(sys.argv[1])))
for _ in range(int(sys.argv[2])):
    system.metrics.count_request(method="GET", route="/v1", status=200, seconds=0.02)
print("counted", flush=True)
sys.stdin.read()
"""


def values(text: str) -> dict[tuple[str, ...], float]:
    """Return (name, label values sorted by label name) -> value for each sample."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for sample in samples
    }


def scrape(system: System) -> dict[tuple[str, ...], float]:
    return values(system.metrics.exposition(system).decode())


@pytest.fixture
def count_in_process(tmp_path: Path) -> Callable[[int], subprocess.Popen[bytes]]:
    def start(times: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", COUNT, str(tmp_path / "data"), str(times)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"counted\n"
        return process

    return start


REQUESTS = ("cupel_requests_total", "GET", "/v1", "200")


@pytest.mark.sampled(every=2)
def test_requests_of_several_processes_are_summed(
    system: System, count_in_process: Callable[[int], subprocess.Popen[bytes]]
) -> None:
    others = [count_in_process(3), count_in_process(4)]
    system.metrics.count_request(method="GET", route="/v1", status=200, seconds=0.02)
    metrics = scrape(system)
    assert metrics[REQUESTS] == 8
    assert metrics["cupel_request_duration_seconds_count", "GET", "/v1"] == 8
    assert metrics["cupel_request_duration_seconds_bucket", "0.01", "GET", "/v1"] == 0
    assert metrics["cupel_request_duration_seconds_bucket", "0.025", "GET", "/v1"] == 8
    for other in others:
        other.communicate()


@pytest.mark.sampled(every=2)
def test_counts_are_kept_and_the_file_is_removed_after_a_process_ends(
    system: System, count_in_process: Callable[[int], subprocess.Popen[bytes]]
) -> None:
    for _ in range(3):
        other = count_in_process(5)
        other.kill()
        other.communicate()
    for _ in range(2):
        metrics = scrape(system)
        assert metrics[REQUESTS] == 15
        assert metrics["cupel_request_duration_seconds_count", "GET", "/v1"] == 15
    owners = {path.stem.partition("_")[2] for path in system.settings.metrics.glob("*.db")}
    assert owners <= {"ended", str(os.getpid())}


def test_queue_lengths_and_dead_jobs_are_read_from_the_database(system: System, clock: Clock) -> None:
    make_track(system)
    publish_qrels(system)
    for number in range(3):
        submit(system, ALICE, run_file(tag=f"r{number}"))
    clock.forward(7)
    claim = jobs.claim_next(system, "score")
    assert claim is not None
    metrics = scrape(system)
    assert metrics["cupel_queued_jobs", "score"] == 2
    assert metrics["cupel_running_jobs", "score"] == 1
    assert metrics["cupel_oldest_queued_job_age_seconds", "score"] == 7
    assert metrics["cupel_queued_jobs", "audit"] == 0
    jobs.fail(system, claim, "no")
    for _ in range(8):
        while (claim := jobs.claim_next(system, "score")) is not None:
            jobs.fail(system, claim, "no")
        clock.forward(10)
    metrics = scrape(system)
    assert (metrics["cupel_dead_jobs", "score"], metrics["cupel_queued_jobs", "score"]) == (3, 0)
    assert metrics["cupel_oldest_queued_job_age_seconds", "score"] == 0


def test_age_of_a_postponed_job_keeps_growing(system: System, clock: Clock) -> None:
    make_track(system)
    publish_qrels(system)
    submit(system)
    for _ in range(10):
        claim = jobs.claim_next(system, "score")
        assert claim is not None
        jobs.fail(system, claim, "the store is away", charged=False)
        clock.forward(60)
    assert scrape(system)["cupel_oldest_queued_job_age_seconds", "score"] == 600


def test_checks_are_counted_by_verdict(system: System) -> None:
    make_track(system)
    publish_qrels(system)
    submit(system)
    with pytest.raises(Invalid):
        submit(system, content=b"nonsense\n")
    work_off(system)
    metrics = scrape(system)
    assert metrics["cupel_checks_total", "run", "accepted"] == 1
    assert metrics["cupel_checks_total", "run", "refused"] == 1
    assert metrics["cupel_checks_total", "qrels", "accepted"] == 1


def test_object_store_operations_are_timed(system: System) -> None:
    make_track(system)
    publish_qrels(system)
    submit(system)
    with pytest.raises(Unavailable):
        system.blobs.get("00/0000")
    metrics = scrape(system)
    assert (
        metrics["cupel_storage_operation_duration_seconds_count", "put", "done"] == 3
    )  # judgments, a run, its ranking
    assert metrics["cupel_storage_operation_duration_seconds_count", "copy", "done"] == 1
    assert metrics["cupel_storage_operation_duration_seconds_count", "get", "failed"] == 1


def test_unavailable_database_is_reported_beside_other_metrics(tmp_path: Path) -> None:
    system = open_system(Settings(data=tmp_path / "data"))
    system.metrics.count_request(method="GET", route="/v1", status=200, seconds=0.02)
    metrics = scrape(system)
    assert metrics[("cupel_database_up",)] == 0
    assert metrics[REQUESTS] == 1
    system.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fetch_metrics(port: int) -> dict[tuple[str, ...], float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=seconds(60)) as answer:
        return values(answer.read().decode())


def count_done_jobs(port: int) -> float | None:
    """Return the number of scoring jobs that the worker reports, or None while it does not answer."""
    with suppress(OSError):
        return fetch_metrics(port).get(("cupel_job_attempts_total", "done", "score"))
    return None


@pytest.mark.sampled(every=2)
def test_worker_reports_jobs_of_killed_pool_processes(open_at: Callable[..., System]) -> None:
    port = free_port()
    system = replace(open_at(metrics_port=port), now=utc_now)
    make_track(system)
    publish_qrels(system)
    worker = subprocess.Popen(
        [sys.executable, "-m", "cupel_worker", "worker"],
        env=system.settings.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for number in range(4):
            submit(system, ALICE, run_file(tag=f"r{number}"))
        until(lambda: count_done_jobs(port) == 4)
        for process in psutil.Process(worker.pid).children():
            if "metrics" not in command_line(process):
                process.kill()
        submit(system, ALICE, run_file(tag="one more"))
        until(lambda: count_done_jobs(port) == 5)
    finally:
        worker.terminate()
        worker.wait()
    with pytest.raises(OSError, match="refused"):
        fetch_metrics(port)
