"""Tests of faults on the stack of docker-compose.yml: every submission is scored once, and no data is lost.

Clients submit runs during each fault, and repeat failed requests with the same idempotency key.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import httpx
import pytest

from cupel_client.api.client import Client
from support.patience import seconds, until
from support.service import faults
from support.service.compose_stack import Container, Stack
from support.service.faults import Traffic, short_pauses
from support.service.invariants import assert_consistent

pytestmark = pytest.mark.drill


@pytest.fixture(scope="module")
def stack(quick_stack: Stack) -> Iterator[Stack]:
    with short_pauses():
        yield quick_stack


@pytest.fixture(scope="module")
def organiser(stack: Stack) -> Iterator[Client]:
    with stack.client() as client:
        yield client


@pytest.fixture
def traffic(stack: Stack, organiser: Client) -> Iterator[Traffic]:
    """Submit runs during the test; afterwards check that all of them have the correct scores."""
    with Traffic(stack, organiser, f"track-{uuid4().hex[:8]}") as traffic:
        yield traffic
    assert_consistent(organiser, traffic.load, traffic.accepted, query=stack.query, blobs=stack.blobs())


@contextmanager
def assert_processes_survive(container: Container) -> Iterator[None]:
    """Check that the block neither ends nor replaces a process of the container."""
    before = container.processes()
    yield
    assert container.processes() == before


def count_ends(container: Container) -> int:
    return len(container.ends)


def test_killed_worker_and_pool_lose_no_job(traffic: Traffic) -> None:
    before = count_ends(traffic.stack["worker-score"])
    faults.worker_killed(traffic)
    assert count_ends(traffic.stack["worker-score"]) == before + 1


def test_killed_main_process_of_a_worker_loses_no_job(traffic: Traffic) -> None:
    before = count_ends(traffic.stack["worker-score"])
    faults.worker_main_killed(traffic)
    assert count_ends(traffic.stack["worker-score"]) == before + 1


def test_killed_pool_is_replaced_without_restarting_the_worker(traffic: Traffic) -> None:
    before = count_ends(traffic.stack["worker-score"])
    faults.pool_killed(traffic)
    assert count_ends(traffic.stack["worker-score"]) == before


def test_killed_gateway_keeps_submissions_and_repeats_no_idempotent_request(traffic: Traffic) -> None:
    gateway = traffic.stack["gateway"]
    before = count_ends(gateway)
    stale = gateway.folder / "data" / "incoming" / "stale"
    stale.touch()
    os.utime(stale, (0, 0))
    run = traffic.load.runs[0]
    id = traffic.organiser.submit(traffic.load.track, run, key="lost response").id
    traffic.accepted[id] = run
    faults.gateway_killed(traffic)
    assert count_ends(gateway) == before + 1
    assert traffic.organiser.submit(traffic.load.track, run, key="lost response").id == id
    until(lambda: not stale.exists())


def test_workers_receive_wake_ups_after_redis_was_killed_and_emptied(traffic: Traffic) -> None:
    workers = [traffic.stack[name] for name in ("worker-score", "worker-audit")]
    with assert_processes_survive(workers[0]), assert_processes_survive(workers[1]):
        faults.broker_lost(traffic)
        for worker in workers:
            last = read_liveness_time(worker)
            until(lambda: read_liveness_time(worker) > last)  # noqa: B023  (called at once)


def read_liveness_time(worker: Container) -> float:
    """Return the time of the last wake-up that the worker received, as a POSIX timestamp."""
    return (worker.folder / "data" / "liveness-worker").stat().st_mtime


def test_postgresql_restart_loses_no_job(traffic: Traffic) -> None:
    with (
        assert_processes_survive(traffic.stack["worker-score"]),
        assert_processes_survive(traffic.stack["scheduler"]),
    ):
        faults.database_restarted(traffic)


def test_postgresql_crash_loses_no_job(traffic: Traffic) -> None:
    with (
        assert_processes_survive(traffic.stack["worker-score"]),
        assert_processes_survive(traffic.stack["scheduler"]),
    ):
        faults.database_crashed(traffic)


def test_busy_object_store_postpones_jobs_and_refuses_uploads_with_retry_after(traffic: Traffic) -> None:
    run = traffic.load.runs[0]
    headers = {"Authorization": f"Bearer {traffic.stack.token()}", "Idempotency-Key": uuid4().hex}

    def submit() -> httpx.Response:
        url = f"{traffic.stack.url}/v1/tracks/{traffic.load.track}/submissions"
        return httpx.post(url, content=run.read_bytes(), headers=headers, timeout=seconds(60))

    def check_refusal() -> None:
        refused = submit()
        assert refused.status_code == 503
        assert refused.headers["content-type"] == "application/problem+json"
        assert int(refused.headers["retry-after"]) > 0
        assert refused.json()["code"] == "storage-failed"

    faults.store_busy(traffic, check_refusal)
    accepted = submit()
    assert accepted.status_code == 202
    traffic.accepted[accepted.json()["id"]] = run
    assert_postponed(traffic)


def test_unavailable_object_store_postpones_jobs_without_charging_attempts(traffic: Traffic) -> None:
    faults.store_unavailable(traffic)
    assert_postponed(traffic)


def assert_postponed(traffic: Traffic) -> None:
    """Check that some claims did not count as attempts.

    One claim may count: the one that was lost when the worker was stopped.
    """
    ((uncharged, attempts),) = traffic.jobs("max(token - attempts), max(attempts)")
    assert uncharged > 0
    assert attempts <= 2


def test_two_schedulers_do_no_harm_when_one_is_killed(traffic: Traffic) -> None:
    faults.schedulers_doubled(traffic)


def test_stack_recovers_from_a_power_cut_in_any_start_order(traffic: Traffic) -> None:
    faults.power_cut(traffic)
    traffic.stack.wait_until_healthy()


def test_worker_that_resumes_after_its_lease_expired_is_refused(traffic: Traffic) -> None:
    worker = traffic.stack["worker-score"]
    with assert_processes_survive(worker):
        faults.worker_suspended(traffic)
        until(lambda: "another worker may have claimed it" in worker.log())
    ((attempts,),) = traffic.jobs("max(attempts)")
    assert attempts == 2
