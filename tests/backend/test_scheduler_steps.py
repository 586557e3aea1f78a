"""Tests of the steps of the scheduler: wake-ups, recovery and clean-up."""

import os
from datetime import timedelta

from cupel_backend import jobs, scheduler_steps
from cupel_backend.infrastructure.database import writing
from cupel_backend.infrastructure.settings import QUEUES
from cupel_backend.infrastructure.system import System
from support.backend_cast import ADMIN, ALICE, Clock, make_track, publish_qrels, submit
from support.sent_wake_ups import record_wake_ups


def add_jobs(system: System, count: int) -> None:
    with writing(system.engine) as connection:
        requests = [
            jobs.JobRequest(key=f"{n}", kind="test", queue="score", tenant="alice", payload={})
            for n in range(count)
        ]
        jobs.enqueue(connection, requests, now=system.now())


def test_every_idle_queue_gets_one_wake_up(system: System) -> None:
    system, sent = record_wake_ups(system)
    scheduler_steps.tick(system)
    assert sorted(sent) == [(queue, 1) for queue in sorted(QUEUES)]


def test_waiting_queue_gets_a_wake_up_per_job_up_to_the_number_of_processes(system: System) -> None:
    system, sent = record_wake_ups(system)
    add_jobs(system, 1)
    scheduler_steps.tick(system)
    assert sorted(sent) == [("audit", 1), ("score", 1)]
    sent.clear()
    add_jobs(system, 9)
    scheduler_steps.tick(system)
    assert system.settings.workers == 2
    assert sorted(sent) == [("audit", 1), ("score", 2)]


def test_expired_leases_are_counted(system: System, clock: Clock) -> None:
    system, _ = record_wake_ups(system)
    add_jobs(system, 1)
    for _ in range(3):
        assert jobs.claim_next(system, "score") is not None
        clock.forward(21)
        scheduler_steps.tick(system)
    exposed = system.metrics.exposition(system).decode()
    assert "cupel_sweeps_total 3.0" in exposed
    assert 'cupel_expired_leases_total{outcome="requeued"} 2.0' in exposed
    assert 'cupel_expired_leases_total{outcome="died"} 1.0' in exposed
    [job] = jobs.list_(system, ADMIN).items
    assert job.state == "dead"


def test_stale_uploads_are_removed_after_upload_hours(system: System, clock: Clock) -> None:
    system, _ = record_wake_ups(system)
    ages = {"stale": system.settings.upload_hours + 0.01, "recent": system.settings.upload_hours - 0.01}
    for name, hours in ages.items():
        path = system.settings.incoming / name
        path.touch()
        changed = (clock() - timedelta(hours=hours)).timestamp()
        os.utime(path, (changed, changed))
    scheduler_steps.tick(system)
    assert [path.name for path in system.settings.incoming.iterdir()] == ["recent"]


def test_old_idempotency_keys_are_removed(system: System, clock: Clock) -> None:
    system, _ = record_wake_ups(system)
    make_track(system)
    publish_qrels(system)
    first = submit(system, ALICE, key="key").id
    clock.forward(47 * 3600)
    scheduler_steps.tick(system)
    assert submit(system, ALICE, key="key").id == first
    clock.forward(2 * 3600)
    scheduler_steps.tick(system)
    assert submit(system, ALICE, key="key").id != first
