"""Tests of the job queue: claims, leases, retries and rights."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import text

from cupel_backend import job_execution, jobs, submissions
from cupel_backend.infrastructure.database import writing
from cupel_backend.infrastructure.errors import Conflict, Forbidden, Invalid, NotFound
from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.system import System, open_blobs, open_system
from cupel_backend.job_handlers import HANDLERS
from cupel_backend.jobs import Claim, LeaseLost
from cupel_backend.scores import leaderboards
from support.backend_cast import (
    ADMIN,
    ALICE,
    ORGANISER,
    STRANGER,
    Clock,
    make_track,
    publish_qrels,
    submit,
    work_off,
)
from support.sent_wake_ups import record_wake_ups
from support.service.prepared_tables import prepared_place
from support.service.service_sizes import Places, SizeName


def add(system: System, key: str, *, tenant: str = "alice", queue: str = "score") -> bool:
    with writing(system.engine) as connection:
        request = jobs.JobRequest(key=key, kind="test", queue=queue, tenant=tenant, payload={"key": key})
        return jobs.enqueue(connection, [request], now=system.now()) == 1


def take(system: System) -> Claim:
    claim = jobs.claim_next(system, "score")
    assert claim is not None
    return claim


def use_all_attempts(system: System, clock: Clock) -> None:
    for _ in range(3):
        jobs.fail(system, take(system), "no")
        clock.forward(10)


def finish(system: System, claim: Claim) -> None:
    with writing(system.engine) as connection:
        jobs.finish(connection, claim, now=system.now())


def finish_with_a_result(system: System, claim: Claim) -> None:
    with writing(system.engine) as connection:
        connection.execute(text("INSERT INTO turns VALUES ('result', 'x', '2030-01-01 00:00:00')"))
        jobs.finish(connection, claim, now=system.now())


def states(system: System) -> list[str]:
    return [job.state for job in jobs.list_(system, ADMIN).items]


def work(system: System) -> None:
    job_execution.run_jobs(system, "score", HANDLERS)


def test_attempt_during_a_storage_failure_does_not_count(
    system: System, clock: Clock, tmp_path: Path
) -> None:
    make_track(system)
    publish_qrels(system)
    submitted = submit(system)
    (tmp_path / "file").touch()
    broken = Settings(data=tmp_path, blobs=(tmp_path / "file").as_uri())
    away = replace(system, blobs=open_blobs(broken))
    for _ in range(2 * system.settings.attempts):
        work(away)
        [job] = jobs.list_(system, ADMIN).items
        assert (job.state, job.attempts) == ("queued", 0)
        assert "storage failed" in str(job.error)
        clock.forward(60)
    work(system)
    assert submissions.get(system, ALICE, submitted.id).state == "scored"


def test_attempt_without_its_file_counts(
    system: System, clock: Clock, new_place: Places, tmp_path: Path
) -> None:
    make_track(system)
    publish_qrels(system)
    submit(system)
    elsewhere = new_place() or {"blobs": (tmp_path / "empty").as_uri()}
    emptied = replace(system, blobs=open_blobs(Settings(data=tmp_path, **elsewhere)))
    emptied.blobs.prepare()
    for attempts in (1, 2, 3):
        work(emptied)
        [job] = jobs.list_(system, ADMIN).items
        assert (job.state, job.attempts) == ("dead" if attempts == 3 else "queued", attempts)
        assert "is not in the store" in str(job.error)
        clock.forward(60)


def test_leaderboard_changes_only_when_a_failed_job_is_dead(system: System, clock: Clock) -> None:
    make_track(system)
    publish_qrels(system)
    submit(system)
    board = leaderboards.read_board(system, ORGANISER, "track")
    assert board is not None
    for attempt in (1, 2, 3):
        jobs.fail(system, take(system), "no")
        changed = leaderboards.read_board(system, ORGANISER, "track", known=board.etag) is not None
        assert changed == (attempt == 3)
        clock.forward(60)


def test_key_is_queued_once(system: System) -> None:
    assert [add(system, "a"), add(system, "a")] == [True, False]
    finish(system, take(system))
    assert not add(system, "a")
    assert states(system) == ["done"]


def test_every_claim_gets_a_new_token(system: System, clock: Clock) -> None:
    add(system, "a")
    first = take(system)
    assert jobs.claim_next(system, "score") is None
    clock.forward(21)
    jobs.sweep(system)
    assert take(system).token > first.token


def test_claim_takes_jobs_of_its_queue_only(system: System) -> None:
    add(system, "a", queue="audit")
    assert jobs.claim_next(system, "score") is None
    assert jobs.claim_next(system, "audit") is not None


def test_renewed_lease_does_not_expire(system: System, clock: Clock) -> None:
    add(system, "a")
    claim = take(system)
    for _ in range(5):
        clock.forward(15)
        assert jobs.renew(system, claim)
        assert jobs.sweep(system).expired == 0
    finish(system, claim)
    assert states(system) == ["done"]


def test_stale_token_is_refused(system: System, clock: Clock) -> None:
    add(system, "a")
    stale = take(system)
    clock.forward(21)
    jobs.sweep(system)
    current = take(system)
    assert not jobs.renew(system, stale)
    assert not jobs.fail(system, stale, "too late")
    with pytest.raises(LeaseLost):
        finish(system, stale)
    finish(system, current)
    assert states(system) == ["done"]


def test_results_with_a_stale_token_are_rolled_back(system: System, clock: Clock) -> None:
    add(system, "a")
    stale = take(system)
    clock.forward(21)
    jobs.sweep(system)
    with pytest.raises(LeaseLost):
        finish_with_a_result(system, stale)
    with writing(system.engine) as connection:
        assert connection.execute(text("SELECT count(*) FROM turns WHERE queue = 'result'")).scalar() == 0


def test_failed_job_is_retried_and_then_dead_with_its_last_error(system: System, clock: Clock) -> None:
    add(system, "a")
    for attempt in (1, 2, 3):
        claim = take(system)
        assert claim.attempts == attempt
        assert jobs.fail(system, claim, f"error {attempt}")
        assert jobs.claim_next(system, "score") is None
        clock.forward(10)
    assert jobs.claim_next(system, "score") is None
    [job] = jobs.list_(system, ADMIN, state="dead").items
    assert (job.attempts, job.error) == (3, "error 3")


def test_job_is_dead_after_three_expired_leases(system: System, clock: Clock) -> None:
    add(system, "a")
    for expected in (0, 0, 1):
        take(system)
        clock.forward(21)
        assert jobs.sweep(system).died == expected
    [job] = jobs.list_(system, ADMIN, state="dead").items
    assert job.error is not None
    assert "stopped responding" in job.error


def test_revived_job_has_all_its_attempts(system: System, clock: Clock) -> None:
    add(system, "a")
    use_all_attempts(system, clock)
    [job] = jobs.list_(system, ADMIN, state="dead").items
    assert jobs.revive(system, ADMIN, job.id).state == "queued"
    assert take(system).attempts == 1
    with pytest.raises(Conflict, match="running"):
        jobs.revive(system, ADMIN, job.id)


def test_tenants_take_turns_regardless_of_queue_length(system: System, clock: Clock) -> None:
    for number in range(6):
        add(system, f"storm {number}", tenant="big")
    for number in range(2):
        add(system, f"small {number}", tenant="small")
    served = []
    for _ in range(8):
        claim = take(system)
        served.append(claim.payload["key"].split()[0])
        finish(system, claim)
        clock.forward(1)
    assert served == ["storm", "small", "storm", "small", "storm", "storm", "storm", "storm"]


def test_sweep_reports_queues_with_waiting_jobs(system: System) -> None:
    assert jobs.sweep(system).waiting_queues == ()
    add(system, "a")
    assert jobs.sweep(system).waiting_queues == ("score",)
    take(system)
    assert jobs.sweep(system).waiting_queues == ()


def test_jobs_are_visible_to_their_team_and_organisers(system: System) -> None:
    make_track(system)
    publish_qrels(system)
    [job] = submit(system, ALICE).jobs
    for principal in (ALICE, ORGANISER, ADMIN):
        assert jobs.get(system, principal, job.id).id == job.id
    with pytest.raises(NotFound):
        jobs.get(system, STRANGER, job.id)
    with pytest.raises(Forbidden):
        jobs.list_(system, ALICE)
    assert jobs.list_(system, STRANGER).items == ()
    assert len(jobs.list_(system, ORGANISER).items) == 1


def test_participant_cannot_revive_a_job(system: System, clock: Clock) -> None:
    make_track(system)
    publish_qrels(system)
    [job] = submit(system, ALICE).jobs
    use_all_attempts(system, clock)
    with pytest.raises(Forbidden):
        jobs.revive(system, ALICE, job.id)
    assert jobs.revive(system, ORGANISER, job.id).state == "queued"
    assert work_off(system) == 1


def test_organiser_of_another_track_cannot_revive_a_job_of_their_submission(
    system: System, clock: Clock
) -> None:
    make_track(system)
    publish_qrels(system)
    [job] = submit(system, STRANGER).jobs
    use_all_attempts(system, clock)
    with pytest.raises(Forbidden):
        jobs.revive(system, STRANGER, job.id)
    assert jobs.get(system, STRANGER, job.id).state == "dead"


def test_worker_without_an_urgent_job_does_not_postpone(system: System) -> None:
    add(system, "a", queue="audit")
    claim = jobs.claim_next(system, "audit")
    assert claim is not None
    assert not jobs.should_postpone(system, claim)
    add(system, "b")
    assert jobs.should_postpone(system, claim)


def test_unknown_state_is_refused(system: System) -> None:
    with pytest.raises(Invalid, match="'lost'"):
        jobs.list_(system, ADMIN, state="lost")


def test_many_jobs_are_queued_at_once(system: System) -> None:
    requests = [
        jobs.JobRequest(key=f"{n}", kind="test", queue="score", tenant="alice", payload={})
        for n in range(1001)
    ]
    with writing(system.engine) as connection:
        assert jobs.enqueue(connection, requests[:3], now=system.now()) == 3
        assert jobs.enqueue(connection, requests, now=system.now()) == 998
        assert jobs.enqueue(connection, [], now=system.now()) == 0


def test_worker_with_a_slow_clock_claims_a_newly_queued_job(system: System, clock: Clock) -> None:
    add(system, "a")
    clock.forward(-5)
    assert take(system).attempts == 1


def test_pause_before_a_retry_grows_with_the_attempts(system: System, clock: Clock) -> None:
    add(system, "a")
    for pause in (2, 4):
        jobs.fail(system, take(system), "no")
        clock.forward(pause - 0.1)
        assert jobs.claim_next(system, "score") is None
        clock.forward(0.1)
    assert take(system).attempts == 3


def test_lease_ends_after_lease_seconds(system: System, clock: Clock) -> None:
    add(system, "a")
    take(system)
    clock.forward(20)
    assert jobs.sweep(system).expired == 0
    clock.forward(0.1)
    assert jobs.sweep(system).expired == 1


def test_long_error_is_cut_to_2000_characters(system: System) -> None:
    add(system, "a")
    jobs.fail(system, take(system), "x" * 3000)
    [job] = jobs.list_(system, ADMIN).items
    assert job.error == "x" * 2000


def test_only_a_stale_claim_cannot_be_postponed(system: System, clock: Clock) -> None:
    add(system, "a")
    stale = take(system)
    clock.forward(21)
    jobs.sweep(system)
    current = take(system)
    with pytest.raises(LeaseLost), writing(system.engine) as connection:
        jobs.postpone(connection, stale)
    with pytest.raises(LeaseLost):
        jobs.should_postpone(system, stale)
    with writing(system.engine) as connection:
        jobs.postpone(connection, current)
    assert take(system).attempts == 2


def test_revived_job_wakes_a_worker(system: System, clock: Clock) -> None:
    system, sent = record_wake_ups(system)
    add(system, "a")
    use_all_attempts(system, clock)
    [job] = jobs.list_(system, ADMIN).items
    jobs.revive(system, ADMIN, job.id)
    assert sent == [("score", 1)]
    assert take(system).attempts == 1


class Interleavings(RuleBasedStateMachine):
    """Workers, a clock and a sweeper in any order.

    The result of a job is written at most once, by the holder of its newest token, and no job disappears.
    """

    @initialize()
    def begin(self) -> None:
        self.clock = Clock()
        self.stack = ExitStack()
        at = self.stack.enter_context(prepared_place(self.size, Path(mkdtemp(dir=self.base))))
        self.system = replace(open_system(Settings(**at)), now=self.clock)
        self.system.blobs.prepare()
        self.claims: list[Claim] = []
        self.written: list[str] = []
        self.added: set[str] = set()

    base: Path
    size: SizeName

    def teardown(self) -> None:
        if hasattr(self, "system"):
            self.system.close()
            self.stack.close()

    @rule(key=st.sampled_from("abcd"), tenant=st.sampled_from(["alice", "bob"]))
    def enqueue(self, key: str, tenant: str) -> None:
        assert add(self.system, key, tenant=tenant) == (key not in self.added)
        self.added.add(key)

    @rule()
    def claim(self) -> None:
        claim = jobs.claim_next(self.system, "score")
        if claim is not None:
            held = [c for c in self.claims if c.id == claim.id]
            assert all(c.token < claim.token for c in held)
            assert claim.payload["key"] not in self.written
            self.claims.append(claim)

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        newest = max(c.token for c in self.claims if c.id == claim.id)
        try:
            finish(self.system, claim)
        except LeaseLost:
            return
        assert claim.token == newest
        self.written.append(claim.payload["key"])

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        newest = max(c.token for c in self.claims if c.id == claim.id)
        assert not jobs.renew(self.system, claim) or claim.token == newest

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), charged=st.booleans())
    def fail(self, data: st.DataObject, charged: bool) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        newest = max(c.token for c in self.claims if c.id == claim.id)
        assert not jobs.fail(self.system, claim, "no", charged=charged) or claim.token == newest

    @rule(seconds=st.sampled_from([1, 7, 30]))
    def wait_and_sweep(self, seconds: int) -> None:
        self.clock.forward(seconds)
        jobs.sweep(self.system)

    @rule()
    def revive(self) -> None:
        for job in jobs.list_(self.system, ADMIN, state="dead").items:
            jobs.revive(self.system, ADMIN, job.id)

    @invariant()
    def results_are_written_once_and_no_job_disappears(self) -> None:
        if not hasattr(self, "system"):
            return
        listed = jobs.list_(self.system, ADMIN).items
        assert len(self.written) == len(set(self.written))
        assert len(listed) == len(self.added)
        assert sum(job.state == "done" for job in listed) == len(self.written)
        assert all(job.attempts <= 3 for job in listed)


def test_every_interleaving_writes_each_result_once(
    size: SizeName, tmp_path: Path, all_examples: bool
) -> None:
    most = 50 if size == "embedded" else 12  # each example creates a database
    machine: Any = type("Machine", (Interleavings,), {"base": tmp_path, "size": size})
    machine.TestCase.settings = settings(
        max_examples=most if all_examples else most // 3,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    machine.TestCase().runTest()
