"""Tests of job execution: outcomes, turns, and the renewal of leases."""

import threading
from collections.abc import Callable, Mapping

import pytest

from cupel_backend import jobs
from cupel_backend.infrastructure.database import writing
from cupel_backend.infrastructure.object_store import STORAGE_FAILED
from cupel_backend.infrastructure.system import System
from cupel_backend.job_execution import Handler, run_jobs
from cupel_backend.jobs import Claim, JobPostponed
from support.backend_cast import ADMIN, Clock
from support.patience import seconds, until

FAST_RENEWAL = {"lease_seconds": 60.0, "renew_seconds": 0.01}


def add_job(system: System, key: str, *, queue: str = "score") -> None:
    with writing(system.engine) as connection:
        request = jobs.JobRequest(key=key, kind="test", queue=queue, tenant="alice", payload={"key": key})
        jobs.enqueue(connection, [request], now=system.now())


def finish(system: System, claim: Claim) -> None:
    with writing(system.engine) as connection:
        jobs.finish(connection, claim, now=system.now())


def handled_by(handler: Handler) -> Mapping[str, Handler]:
    return {"test": handler}


def list_states(system: System) -> list[str]:
    return sorted(job.state for job in jobs.list_(system, ADMIN).items)


def count_attempts(system: System, outcome: str, queue: str = "score") -> float:
    """Return the metric of attempts with an outcome."""
    prefix = f'cupel_job_attempts_total{{outcome="{outcome}",queue="{queue}"}} '
    lines = system.metrics.exposition(system).decode().splitlines()
    return sum(float(line.removeprefix(prefix)) for line in lines if line.startswith(prefix))


def test_exception_fails_its_job_and_the_next_job_runs(system: System) -> None:
    add_job(system, "bad")
    add_job(system, "good")

    def handle(system: System, claim: Claim) -> None:
        if claim.payload["key"] == "bad":
            raise RuntimeError("broken input")
        finish(system, claim)

    assert not run_jobs(system, "score", handled_by(handle))
    failed = next(job for job in jobs.list_(system, ADMIN).items if job.error)
    assert failed.error == "RuntimeError: broken input"
    assert list_states(system) == ["done", "queued"]
    assert (count_attempts(system, "done"), count_attempts(system, "failed")) == (1, 1)


@pytest.mark.parametrize(
    ("retry_after", "outcome", "attempts"), [(30.0, "postponed", 0), (None, "failed", 1)]
)
def test_attempt_counts_unless_the_failure_is_temporary(
    system: System, retry_after: float | None, outcome: str, attempts: int
) -> None:
    add_job(system, "a")

    def handle(system: System, claim: Claim) -> None:
        raise STORAGE_FAILED("away", retry_after=retry_after)

    run_jobs(system, "score", handled_by(handle))
    [job] = jobs.list_(system, ADMIN).items
    assert (job.state, job.attempts, job.error) == ("queued", attempts, "away")
    assert count_attempts(system, outcome) == 1


def test_lost_lease_is_counted_and_the_job_is_unchanged(system: System, clock: Clock) -> None:
    add_job(system, "a")

    def handle(system: System, claim: Claim) -> None:
        clock.forward(21)
        jobs.sweep(system)
        assert jobs.claim_next(system, "score") is not None
        finish(system, claim)

    run_jobs(system, "score", handled_by(handle))
    assert list_states(system) == ["running"]
    assert count_attempts(system, "lost") == 1


def test_turn_ends_after_its_time_limit(open_at: Callable[..., System]) -> None:
    system = open_at(turn_seconds=1e-9)
    add_job(system, "a")
    assert run_jobs(system, "score", {})
    assert list_states(system) == ["queued"]


def test_urgent_job_ends_the_turn_of_another_queue(system: System) -> None:
    add_job(system, "first", queue="audit")
    add_job(system, "second", queue="audit")

    def handle(system: System, claim: Claim) -> None:
        add_job(system, "urgent")
        finish(system, claim)

    assert run_jobs(system, "audit", handled_by(handle))
    assert list_states(system) == ["done", "queued", "queued"]


def test_urgent_job_does_not_end_the_turn_of_its_own_queue(system: System) -> None:
    add_job(system, "first")
    add_job(system, "second")
    assert not run_jobs(system, "score", handled_by(finish))
    assert list_states(system) == ["done", "done"]


def test_failed_urgent_job_interrupts_no_turn_before_its_retry(system: System, clock: Clock) -> None:
    add_job(system, "urgent")
    claim = jobs.claim_next(system, "score")
    assert claim is not None
    jobs.fail(system, claim, "no")
    assert not jobs.has_urgent_work(system)
    clock.forward(2)
    assert jobs.has_urgent_work(system)


def test_handler_may_postpone_its_job(open_at: Callable[..., System]) -> None:
    system = open_at(turn_seconds=seconds(60))
    add_job(system, "long", queue="audit")

    def handle(system: System, claim: Claim) -> None:
        assert not jobs.should_postpone(system, claim)
        add_job(system, "urgent")
        assert jobs.should_postpone(system, claim)
        with writing(system.engine) as connection:
            jobs.postpone(connection, claim)
        raise JobPostponed(claim.id)

    assert run_jobs(system, "audit", handled_by(handle))
    long_job = next(job for job in jobs.list_(system, ADMIN).items if job.queue == "audit")
    assert (long_job.state, long_job.attempts, long_job.error) == ("queued", 0, None)
    assert count_attempts(system, "postponed", "audit") == 1


def test_worker_without_the_urgent_queue_postpones_nothing(open_at: Callable[..., System]) -> None:
    system = open_at(queues=("audit",))
    add_job(system, "long", queue="audit")
    claim = jobs.claim_next(system, "audit")
    assert claim is not None
    add_job(system, "urgent")
    assert not jobs.should_postpone(system, claim)


def test_lease_is_renewed_while_its_handler_runs(open_at: Callable[..., System], clock: Clock) -> None:
    system = open_at(**FAST_RENEWAL)
    add_job(system, "a")
    renewals = threading.Semaphore(0)

    def handle(system: System, claim: Claim) -> None:
        for _ in range(3):
            clock.forward(50)  # Without a renewal, the second step would exceed the lease of 60 s.
            # Wait for two renewals, because the first one may have read the clock before it moved.
            for _ in range(2):
                assert renewals.acquire(timeout=seconds(60))
            assert jobs.sweep(system).expired == 0
        finish(system, claim)

    run_jobs(system, "score", handled_by(handle), on_renewal=renewals.release)
    assert list_states(system) == ["done"]


def test_renewal_continues_after_an_error(open_at: Callable[..., System]) -> None:
    system = open_at(**FAST_RENEWAL)
    add_job(system, "a")
    renewals: list[None] = []
    renewed_again = threading.Event()

    def fail_once() -> None:
        renewals.append(None)
        if len(renewals) == 1:
            raise RuntimeError("the database is away")
        renewed_again.set()

    def handle(system: System, claim: Claim) -> None:
        assert renewed_again.wait(seconds(60))
        finish(system, claim)

    run_jobs(system, "score", handled_by(handle), on_renewal=fail_once)
    assert list_states(system) == ["done"]


def renewal_is_over() -> bool:
    return not any(thread.name.startswith("lease of") for thread in threading.enumerate())


def test_renewal_does_not_keep_a_process_alive(system: System) -> None:
    add_job(system, "a")

    def handle(system: System, claim: Claim) -> None:
        finish(system, claim)
        assert [thread.daemon for thread in threading.enumerate() if thread.name.startswith("lease of")] == [
            True
        ]

    run_jobs(system, "score", handled_by(handle))
    assert count_attempts(system, "done") == 1


def test_lost_lease_is_not_renewed(open_at: Callable[..., System], clock: Clock) -> None:
    system = open_at(**FAST_RENEWAL)
    add_job(system, "a")

    def handle(system: System, claim: Claim) -> None:
        finish(system, claim)
        until(renewal_is_over)

    run_jobs(system, "score", handled_by(handle))


def test_lease_is_not_renewed_beyond_the_time_limit_of_a_job(open_at: Callable[..., System]) -> None:
    system = open_at(**FAST_RENEWAL, job_seconds=1e-9)
    add_job(system, "a")
    renewals: list[None] = []

    def handle(system: System, claim: Claim) -> None:
        until(renewal_is_over)
        finish(system, claim)

    run_jobs(system, "score", handled_by(handle), on_renewal=lambda: renewals.append(None))
    assert renewals == []
