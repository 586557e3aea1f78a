"""Jobs: queued work as database rows.

A job is claimed by one conditional UPDATE and held by a lease. A job is *running* while it has a lease,
*done* after it finished, *dead* after its last attempt failed, and otherwise *queued*. Every claim gets a new
fencing token, and only the newest token may finish a job. So a worker that continues after its lease was lost
cannot finish, and the results of a job are written once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, case, func, literal, or_, select, update

from cupel_backend.access import Principal
from cupel_backend.infrastructure.database import ListPage, fetch_page, insert_new, new_id, reading, writing
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.settings import QUEUES
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import (
    JOB_STATES,
    Instant,
    bump_revision,
    jobs,
    submissions,
    tracks,
    turns,
)
from cupel_contract.states import JobState, TokenScope

IS_QUEUED, IS_RUNNING = JOB_STATES["queued"], JOB_STATES["running"]

URGENT = QUEUES[0]
"""The urgent queue, which is for scores, because people wait for them. Its jobs interrupt other jobs."""

MAX_ERROR_LENGTH = 2000
"""Maximum number of characters of a stored error message."""

ROWS_PER_INSERT = 500
"""Maximum number of rows per INSERT, because databases limit the number of parameters of a statement."""

JOB_UNKNOWN = refusal("job-unknown")
JOB_STATE_UNKNOWN = refusal("job-state-unknown")
JOB_NOT_DEAD = refusal("job-not-dead")
REVIVAL_FORBIDDEN = refusal("job-revival-forbidden")
JOB_LIST_FORBIDDEN = refusal("job-list-forbidden")


class LeaseLost(Exception):
    """The lease of a claim expired, so another worker may run the job."""


class JobPostponed(Exception):
    """A handler stopped for an urgent job.

    Before that, it saved its progress and called `postpone`.
    """


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job as the API shows it."""

    id: str
    kind: str
    queue: str
    state: JobState
    attempts: int
    error: str | None
    submission: str | None
    created_at: datetime
    claimed_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The right to run a job until its lease ends.

    token: fencing token. attempts: includes this attempt.
    """

    id: str
    kind: str
    queue: str
    token: int
    attempts: int
    created_at: datetime
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class SweepResult:
    """The result of a sweep.

    expired: number of expired leases. died: number of jobs whose last attempt ended with an expired lease.
    waiting_queues: queues with jobs that wait.
    """

    expired: int
    died: int
    waiting_queues: tuple[str, ...]


# Operations of the queue


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """A job to queue.

    key: unique name of the job; a second job with the same key is not created. tenant: name of the group to
    which the job belongs; tenants take turns when jobs are claimed.
    """

    key: str
    kind: str
    queue: str
    tenant: str
    payload: Mapping[str, Any]
    track_id: int | None = None
    submission_id: str | None = None
    qrels_id: int | None = None


def enqueue(connection: Connection, requests: Iterable[JobRequest], *, now: datetime) -> int:
    """Add jobs in the caller's transaction, except for keys that exist.

    Returns the number of new jobs.
    """
    initial = {"created_at": now, "ready_at": now, "token": 0, "attempts": 0}
    rows = [{"id": new_id("job"), **vars(job), "payload": dict(job.payload), **initial} for job in requests]
    return sum(
        insert_new(connection, jobs, rows[first : first + ROWS_PER_INSERT])
        for first in range(0, len(rows), ROWS_PER_INSERT)
    )


def requeue(connection: Connection, requests: Sequence[JobRequest], *, now: datetime) -> int:
    """Queue jobs; a done or dead job with the same key is queued again.

    Returns the number of queued jobs.
    """
    queued = enqueue(connection, requests, now=now)
    initial = {"created_at": now, "ready_at": now, "attempts": 0, "claimed_at": None, "error": None}
    for job in requests:
        ended = update(jobs).where(jobs.c.key == job.key, or_(JOB_STATES["done"], JOB_STATES["dead"]))
        again = ended.values(**initial, payload=dict(job.payload), finished_at=None, dead_at=None)
        queued += connection.execute(again).rowcount
    return queued


def claim_next(system: System, queue: str) -> Claim | None:
    """Claim the next job of `queue`; return None if none is ready.

    The result is the oldest job of the tenant that was served longest ago. So a team with one queued job
    waits for at most one job of each other team, even if the other teams have queued many jobs.
    """
    while True:
        now = system.now()
        with writing(system.engine) as connection:
            next_job = _select_next(queue, now)
            # Skip a job that another worker is claiming. If there is no other job, wait for that worker's
            # transaction, because its tenant may have more jobs.
            selected = connection.execute(next_job.with_for_update(of=jobs, skip_locked=True)).first()
            selected = selected or connection.execute(next_job).first()
            if selected is None:
                return None
            # Read the clock again: a worker that waited for the row still gets a full lease.
            taken = _take(selected.id, system.now(), system.settings.lease_seconds)
            row = connection.execute(taken).first()
            if row is not None:
                _record_turn(connection, queue, row.tenant, now)
                return _claim(row)


def _select_next(queue: str, now: datetime) -> Select[Any]:
    waiting = (
        select(jobs.c.tenant, func.min(jobs.c.id).label("id"))
        .where(jobs.c.queue == queue, IS_QUEUED, _ready(now))
        .group_by(jobs.c.tenant)
        .subquery()
    )
    served = and_(turns.c.queue == queue, turns.c.tenant == waiting.c.tenant)
    never_first = turns.c.served_at.is_not(None)
    return (
        select(jobs.c.id)
        .select_from(jobs.join(waiting, jobs.c.id == waiting.c.id).outerjoin(turns, served))
        .order_by(never_first, turns.c.served_at, jobs.c.id)
        .limit(1)
    )


def _ready(now: datetime) -> ColumnElement[bool]:
    """Return the condition that a queued job may be claimed.

    The job is new, or its pause after an error is over. New jobs are not compared with the clock, because a
    worker that is woken for a new job must see it. The clock of the worker may be some milliseconds behind
    the clock of the gateway.
    """
    return or_(jobs.c.error.is_(None), jobs.c.ready_at <= now)


def _take(id: str, now: datetime, lease_seconds: float) -> Any:
    return (
        update(jobs)
        .where(jobs.c.id == id, IS_QUEUED)
        .values(
            token=jobs.c.token + 1,
            attempts=jobs.c.attempts + 1,
            claimed_at=now,
            lease_until=now + timedelta(seconds=lease_seconds),
        )
        .returning(jobs)
    )


def _claim(row: Row[Any]) -> Claim:
    return Claim(
        id=row.id,
        kind=row.kind,
        queue=row.queue,
        token=row.token,
        attempts=row.attempts,
        created_at=row.created_at,
        payload=row.payload,
    )


def _record_turn(connection: Connection, queue: str, tenant: str, now: datetime) -> None:
    insert_new(connection, turns, [{"queue": queue, "tenant": tenant, "served_at": now}])
    turn = and_(turns.c.queue == queue, turns.c.tenant == tenant)
    connection.execute(update(turns).where(turn).values(served_at=now))


def _held(claim: Claim) -> ColumnElement[bool]:
    return and_(jobs.c.id == claim.id, jobs.c.token == claim.token, IS_RUNNING)


def renew(system: System, claim: Claim) -> bool:
    """Extend the lease; return False if the claim is no longer valid."""
    until = system.now() + timedelta(seconds=system.settings.lease_seconds)
    with writing(system.engine) as connection:
        changed = connection.execute(update(jobs).where(_held(claim)).values(lease_until=until))
        return changed.rowcount == 1


def finish(connection: Connection, claim: Claim, *, now: datetime) -> None:
    """Mark the job as done, in the transaction that writes its results.

    Raises LeaseLost if the token is stale.
    """
    done = update(jobs).where(_held(claim)).values(finished_at=now, lease_until=None, error=None)
    if connection.execute(done).rowcount != 1:
        raise LeaseLost(claim.id)


def fail(system: System, claim: Claim, error: str, *, charged: bool = True) -> bool:
    """Record an error of a job.

    The job is tried again after a pause, or is dead after its last attempt. charged: whether to count the
    attempt; False if the object store or the database was unavailable. Returns False, and changes nothing, if
    the claim is no longer valid.
    """
    now = system.now()
    pause = timedelta(seconds=system.settings.retry_seconds * claim.attempts)
    values: dict[str, Any] = {"lease_until": None, "error": error[:MAX_ERROR_LENGTH], "ready_at": now + pause}
    if not charged:
        values["attempts"] = claim.attempts - 1
    elif claim.attempts >= system.settings.attempts:
        values["dead_at"] = now
    with writing(system.engine) as connection:
        row = connection.execute(update(jobs).where(_held(claim)).values(values).returning(jobs)).first()
        if row is not None and row.dead_at is not None:
            bump_revision(connection, [row.track_id])
        return row is not None


def postpone(connection: Connection, claim: Claim) -> None:
    """Queue a claimed job again without counting the attempt.

    Raises LeaseLost if the token is stale.
    """
    values = {"lease_until": None, "attempts": claim.attempts - 1}
    if connection.execute(update(jobs).where(_held(claim)).values(values)).rowcount != 1:
        raise LeaseLost(claim.id)


def cancel_waiting(connection: Connection, ids: Select[Any], *, now: datetime) -> int:
    """Mark the queued and the dead jobs among `ids` as done without running them.

    Returns the number of these jobs.
    """
    waiting = or_(IS_QUEUED, JOB_STATES["dead"])
    ended = update(jobs).where(jobs.c.id.in_(ids), waiting).values(finished_at=now, dead_at=None, error=None)
    return connection.execute(ended).rowcount


def should_postpone(system: System, claim: Claim) -> bool:
    """Return whether an urgent job waits and this worker runs urgent jobs.

    Raises LeaseLost if the claim is no longer valid.
    """
    with reading(system.engine) as connection:
        if connection.execute(select(jobs.c.id).where(_held(claim))).first() is None:
            raise LeaseLost(claim.id)
        return URGENT in system.settings.queues and _urgent_job_is_ready(connection, system.now())


def has_urgent_work(system: System) -> bool:
    """Return whether an urgent job is ready."""
    with reading(system.engine) as connection:
        return _urgent_job_is_ready(connection, system.now())


def _urgent_job_is_ready(connection: Connection, now: datetime) -> bool:
    ready = select(jobs.c.id).where(jobs.c.queue == URGENT, IS_QUEUED, _ready(now)).limit(1)
    return connection.execute(ready).first() is not None


def sweep(system: System) -> SweepResult:
    """Queue jobs with expired leases again, or mark them as dead.

    The sweep also sends wake-ups for waiting jobs.
    """
    now = system.now()
    is_last_attempt = jobs.c.attempts >= system.settings.attempts
    # Ordered and with SKIP LOCKED, so that a sweep never waits for a worker or another sweep.
    late = select(jobs.c.id).where(IS_RUNNING, jobs.c.lease_until < now).order_by(jobs.c.id)
    expired = (
        update(jobs)
        .where(jobs.c.id.in_(late.with_for_update(skip_locked=True)))
        .values(
            lease_until=None,
            dead_at=case((is_last_attempt, literal(now, Instant())), else_=None),
            error="the worker stopped responding and its lease expired",
        )
        .returning(jobs.c.track_id, jobs.c.dead_at)
    )
    waiting = select(jobs.c.queue, func.count()).where(IS_QUEUED, _ready(now)).group_by(jobs.c.queue)
    with writing(system.engine) as connection:
        freed = connection.execute(expired).all()
        dead = [row.track_id for row in freed if row.dead_at is not None]
        bump_revision(connection, dead)
        counts = connection.execute(waiting).all()
    for queue, count in counts:  # One wake-up per process is enough, because a process runs several jobs.
        system.wake_ups.send(queue, times=min(count, system.settings.workers))
    return SweepResult(len(freed), len(dead), tuple(queue for queue, _ in counts))


# Operations of users


def get(system: System, principal: Principal, id: str) -> Job:
    """Return the job `id`; raise NotFound if the caller may not see it.

    Participants see the jobs of their team's submissions. Organisers also see the jobs of their tracks.
    Admins see all jobs.
    """
    with reading(system.engine) as connection:
        return _build_job(_find_visible(connection, principal, id))


def list_(
    system: System,
    principal: Principal,
    *,
    state: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> ListPage[Job]:
    """List jobs, newest first. Admins see all jobs, organisers those of their tracks.

    Raises Forbidden for participants.
    """
    if not principal.has_scope(TokenScope.ORGANISER):
        raise JOB_LIST_FORBIDDEN("listing jobs requires the scope organiser")
    query = select(jobs)
    if state is not None:
        if state not in JOB_STATES:
            raise JOB_STATE_UNKNOWN(f"unknown job state {state!r}; use one of {', '.join(JOB_STATES)}")
        query = query.where(JOB_STATES[state])
    if not principal.has_scope(TokenScope.ADMIN):
        query = query.where(jobs.c.track_id.in_(_select_team_tracks(principal)))
    with reading(system.engine) as connection:
        return fetch_page(connection, query, jobs.c.id, _build_job, limit=limit, cursor=cursor)


def revive(system: System, principal: Principal, id: str) -> Job:
    """Queue a dead job again, and reset its number of attempts to 0.

    The caller must be an organiser of the job's track, or an admin.
    """
    now = system.now()
    with writing(system.engine) as connection:
        row = _find_visible(connection, principal, id)
        if not _may_revive(connection, principal, row):
            raise REVIVAL_FORBIDDEN("reviving a job requires an organiser of its track")
        again = update(jobs).where(jobs.c.id == id, JOB_STATES["dead"])
        values = {"dead_at": None, "attempts": 0, "ready_at": now}
        revived = connection.execute(again.values(values).returning(jobs)).first()
        if revived is None:
            raise JOB_NOT_DEAD(f"{id} is {state_of(row)}")
        bump_revision(connection, [row.track_id])
    system.wake_ups.send(revived.queue)
    return _build_job(revived)


def find_by_key(connection: Connection, keys: Sequence[str]) -> tuple[Job, ...]:
    """Return the jobs with these keys, oldest first."""
    rows = connection.execute(select(jobs).where(jobs.c.key.in_(keys)).order_by(jobs.c.id))
    return tuple(map(_build_job, rows))


def find_by_submission(connection: Connection, ids: list[str], kind: str) -> dict[str, tuple[Job, ...]]:
    """Return the jobs of a kind for each submission, oldest first."""
    by_submission: dict[str, list[Job]] = {id: [] for id in ids}
    selected = and_(jobs.c.submission_id.in_(ids), jobs.c.kind == kind)
    for row in connection.execute(select(jobs).where(selected).order_by(jobs.c.id)):
        by_submission[row.submission_id].append(_build_job(row))
    return {id: tuple(submission_jobs) for id, submission_jobs in by_submission.items()}


def state_of(row: Row[Any]) -> JobState:
    """Return the state of a row of `jobs`, which follows from its timestamps."""
    if row.finished_at is not None:
        return JobState.DONE
    if row.dead_at is not None:
        return JobState.DEAD
    return JobState.QUEUED if row.lease_until is None else JobState.RUNNING


def _build_job(row: Row[Any]) -> Job:
    return Job(
        id=row.id,
        kind=row.kind,
        queue=row.queue,
        state=state_of(row),
        attempts=row.attempts,
        error=row.error,
        submission=row.submission_id,
        created_at=row.created_at,
        claimed_at=row.claimed_at,
        finished_at=row.finished_at,
    )


def _select_team_tracks(principal: Principal) -> Select[Any]:
    return select(tracks.c.id).where(tracks.c.team == principal.team)


def _may_revive(connection: Connection, principal: Principal, row: Row[Any]) -> bool:
    if principal.has_scope(TokenScope.ADMIN):
        return True
    track = _select_team_tracks(principal).where(tracks.c.id == row.track_id)
    return principal.has_scope(TokenScope.ORGANISER) and connection.execute(track).first() is not None


def _find_visible(connection: Connection, principal: Principal, id: str) -> Row[Any]:
    query = select(jobs).where(jobs.c.id == id)
    if not principal.has_scope(TokenScope.ADMIN):
        submitted = select(submissions.c.id).where(submissions.c.team == principal.team)
        is_visible: ColumnElement[bool] = jobs.c.submission_id.in_(submitted)
        if principal.has_scope(TokenScope.ORGANISER):
            is_visible = or_(is_visible, jobs.c.track_id.in_(_select_team_tracks(principal)))
        query = query.where(is_visible)
    row = connection.execute(query).first()
    if row is None:
        raise JOB_UNKNOWN(f"no job {id!r} is visible to you")
    return row
