"""Disasters on the stack of docker-compose.yml: in the end every submission is scored once, and all is sound.

Runs are handed in and scored while they happen, by clients that repeat what failed with its idempotency key.
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
from support.service.faults import Traffic, impatient
from support.service.invariants import assert_sound


@pytest.fixture(scope="module")
def stack(quick_stack: Stack) -> Iterator[Stack]:
    with impatient():
        yield quick_stack


@pytest.fixture(scope="module")
def organiser(stack: Stack) -> Iterator[Client]:
    with stack.client() as client:
        yield client


@pytest.fixture
def traffic(stack: Stack, organiser: Client) -> Iterator[Traffic]:
    """Runs that are being handed in. When the test is over, all of them were scored as they should be."""
    with Traffic(stack, organiser, f"track-{uuid4().hex[:8]}") as traffic:
        yield traffic
    assert_sound(organiser, traffic.load, traffic.accepted, query=stack.query, blobs=stack.blobs())


@contextmanager
def all_its_own(container: Container) -> Iterator[None]:
    """Within it, no process of a container is replaced by another one."""
    before = container.processes()
    yield
    assert container.processes() == before


def ends(container: Container) -> int:
    return len(container.ends)


def test_a_worker_that_is_killed_with_its_pool_loses_nothing(traffic: Traffic) -> None:
    before = ends(traffic.stack["worker-score"])
    faults.worker_killed(traffic)
    assert ends(traffic.stack["worker-score"]) == before + 1


def test_a_worker_whose_main_process_is_killed_loses_nothing(traffic: Traffic) -> None:
    before = ends(traffic.stack["worker-score"])
    faults.worker_main_killed(traffic)
    assert ends(traffic.stack["worker-score"]) == before + 1


def test_a_pool_that_is_killed_is_replaced_within_its_worker(traffic: Traffic) -> None:
    before = ends(traffic.stack["worker-score"])
    faults.pool_killed(traffic)
    assert ends(traffic.stack["worker-score"]) == before


def test_a_gateway_that_is_killed_keeps_what_it_accepted_and_accepts_nothing_twice(traffic: Traffic) -> None:
    gateway = traffic.stack["gateway"]
    before = ends(gateway)
    forgotten = gateway.folder / "data" / "incoming" / "forgotten"
    forgotten.touch()
    os.utime(forgotten, (0, 0))
    run = traffic.load.runs[0]
    id = traffic.organiser.submit(traffic.load.track, run, key="whose answer was lost").id
    traffic.accepted[id] = run
    faults.gateway_killed(traffic)
    assert ends(gateway) == before + 1
    assert traffic.organiser.submit(traffic.load.track, run, key="whose answer was lost").id == id
    until(lambda: not forgotten.exists())


def test_workers_hear_again_when_redis_was_killed_and_emptied(traffic: Traffic) -> None:
    workers = [traffic.stack[name] for name in ("worker-score", "worker-audit")]
    with all_its_own(workers[0]), all_its_own(workers[1]):
        faults.broker_lost(traffic)
        for worker in workers:
            heard = pulse(worker)
            until(lambda: pulse(worker) > heard)  # noqa: B023  (called at once)


def pulse(worker: Container) -> float:
    """When a ring was last heard."""
    return (worker.folder / "data" / "liveness-worker").stat().st_mtime


def test_postgresql_may_be_started_anew(traffic: Traffic) -> None:
    with all_its_own(traffic.stack["worker-score"]), all_its_own(traffic.stack["scheduler"]):
        faults.database_restarted(traffic)


def test_postgresql_may_be_killed(traffic: Traffic) -> None:
    with all_its_own(traffic.stack["worker-score"]), all_its_own(traffic.stack["scheduler"]):
        faults.database_crashed(traffic)


def test_a_store_that_has_enough_puts_jobs_off_and_uploads_are_told_to_come_back(traffic: Traffic) -> None:
    run = traffic.load.runs[0]
    headers = {"Authorization": f"Bearer {traffic.stack.token()}", "Idempotency-Key": uuid4().hex}

    def hand_in() -> httpx.Response:
        url = f"{traffic.stack.url}/v1/tracks/{traffic.load.track}/submissions"
        return httpx.post(url, content=run.read_bytes(), headers=headers, timeout=seconds(60))

    def meanwhile() -> None:
        refused = hand_in()
        assert refused.status_code == 503
        assert refused.headers["content-type"] == "application/problem+json"
        assert int(refused.headers["retry-after"]) > 0
        assert refused.json()["code"] == "storage-failed"

    faults.store_busy(traffic, meanwhile)
    accepted = hand_in()
    assert accepted.status_code == 202
    traffic.accepted[accepted.json()["id"]] = run
    assert_put_off(traffic)


def test_a_store_that_is_gone_puts_jobs_off_without_charging_them(traffic: Traffic) -> None:
    faults.store_gone(traffic)
    assert_put_off(traffic)


def assert_put_off(traffic: Traffic) -> None:
    """Some claims did not count; what may is the one that was lost when the worker was stopped."""
    ((uncharged, attempts),) = traffic.jobs("max(token - attempts), max(attempts)")
    assert uncharged > 0
    assert attempts <= 2


def test_two_schedulers_do_no_harm_whoever_is_killed(traffic: Traffic) -> None:
    faults.schedulers_doubled(traffic)


def test_after_a_power_cut_all_come_back_in_whatever_order(traffic: Traffic) -> None:
    faults.power_cut(traffic)
    traffic.stack.wait_until_healthy()


def test_a_worker_that_wakes_after_its_lease_is_refused(traffic: Traffic) -> None:
    sleeper = traffic.stack["worker-score"]
    with all_its_own(sleeper):
        faults.worker_asleep(traffic)
        until(lambda: "given to another worker" in sleeper.log())
    ((attempts,),) = traffic.jobs("max(attempts)")
    assert attempts == 2
