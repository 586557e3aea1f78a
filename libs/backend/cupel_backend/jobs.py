"""Jobs: queued work as rows. A row is claimed by one conditional UPDATE and held by a lease.

A job is *running* while it has a lease, *done* once finished, *dead* once given up, else *queued*.
Every claim gets a new token, and only the holder of the last one may finish: a worker that was
thought dead and comes back is refused, so each job's results are written once.
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
"""The queue that workers of several look at first: scores, which people wait for."""

LONGEST_ERROR = 2000
AT_ONCE = 500
"""Rows of one statement: few round trips, and below every database's limit of parameters."""

JOB_UNKNOWN = refusal("job-unknown")
JOB_STATE_UNKNOWN = refusal("job-state-unknown")
JOB_NOT_DEAD = refusal("job-not-dead")
REVIVAL_FORBIDDEN = refusal("job-revival-forbidden")
JOB_LIST_FORBIDDEN = refusal("job-list-forbidden")


class LeaseLost(Exception):
    """The claim is no longer ours: its lease ran out, and somebody else may have the job now."""


class JobPostponed(Exception):
    """The job was put off (`postpone`) for something urgent: it goes on later, where it stopped."""


@dataclass(frozen=True)
class Job:
    """A job as people see it."""

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


@dataclass(frozen=True)
class Claim:
    """The right to work on a job until the lease ends; `token` proves it."""

    id: str
    kind: str
    queue: str
    token: int
    attempts: int
    created_at: datetime
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class SweepResult:
    """What a sweep did: leases that had run out, jobs that died of it, queues that it rang for."""

    expired: int
    died: int
    waiting_queues: tuple[str, ...]


# What the queue does


@dataclass(frozen=True)
class JobRequest:
    """Work to be queued, once: `key` names it. tenant: whose turn it takes. The ids say what it concerns."""

    key: str
    kind: str
    queue: str
    tenant: str
    payload: Mapping[str, Any]
    track_id: int | None = None
    submission_id: str | None = None
    qrels_id: int | None = None


def enqueue(connection: Connection, wanted: Iterable[JobRequest], *, now: datetime) -> int:
    """Add jobs in the caller's transaction, except those whose key ever was; returns how many are new."""
    begin = {"created_at": now, "ready_at": now, "token": 0, "attempts": 0}
    rows = [{"id": new_id("job"), **vars(one), "payload": dict(one.payload), **begin} for one in wanted]
    return sum(
        insert_new(connection, jobs, rows[first : first + AT_ONCE]) for first in range(0, len(rows), AT_ONCE)
    )


def requeue(connection: Connection, wanted: Sequence[JobRequest], *, now: datetime) -> int:
    """As `enqueue`, but a job of the key that has ended is queued anew; returns how many are new, or anew."""
    queued = enqueue(connection, wanted, now=now)
    begin = {"created_at": now, "ready_at": now, "attempts": 0, "claimed_at": None, "error": None}
    for one in wanted:
        ended = update(jobs).where(jobs.c.key == one.key, or_(JOB_STATES["done"], JOB_STATES["dead"]))
        anew = ended.values(**begin, payload=dict(one.payload), finished_at=None, dead_at=None)
        queued += connection.execute(anew).rowcount
    return queued


def claim_next(system: System, queue: str) -> Claim | None:
    """Take the next job of `queue`; None if none is ready.

    The fair rule: the tenant that was served longest ago comes first, with its oldest job. So one
    submission of a small team waits for one job of each other team, never for a whole deadline storm.
    """
    while True:
        now = system.now()
        with writing(system.engine) as connection:
            first = _next(queue, now)
            # A job that another worker is just taking is passed over; where no tenant has another one,
            # that worker's turn is waited for, for it may have left more behind.
            chosen = connection.execute(first.with_for_update(of=jobs, skip_locked=True)).first()
            chosen = chosen or connection.execute(first).first()
            if chosen is None:
                return None
            # by the clock of this moment: whoever waited long for the row has a whole lease all the same
            row = connection.execute(_take(chosen.id, system.now(), system.settings.lease_seconds)).first()
            if row is not None:
                _serve(connection, queue, row.tenant, now)
                return _claim(row)


def _next(queue: str, now: datetime) -> Select[Any]:
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
    """A new job is ready at once, one that was given back when its pause is over.

    No clock is asked about a new one: that of a worker may be some milliseconds behind the gateway's, and a
    worker that hears the bell must not find the job to be of the future.
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
    return Claim(row.id, row.kind, row.queue, row.token, row.attempts, row.created_at, row.payload)


def _serve(connection: Connection, queue: str, tenant: str, now: datetime) -> None:
    insert_new(connection, turns, [{"queue": queue, "tenant": tenant, "served_at": now}])
    here = and_(turns.c.queue == queue, turns.c.tenant == tenant)
    connection.execute(update(turns).where(here).values(served_at=now))


def _held(claim: Claim) -> ColumnElement[bool]:
    return and_(jobs.c.id == claim.id, jobs.c.token == claim.token, IS_RUNNING)


def renew(system: System, claim: Claim) -> bool:
    """Extend the lease; False if the claim is no longer ours."""
    until = system.now() + timedelta(seconds=system.settings.lease_seconds)
    with writing(system.engine) as connection:
        changed = connection.execute(update(jobs).where(_held(claim)).values(lease_until=until))
        return changed.rowcount == 1


def finish(connection: Connection, claim: Claim, *, now: datetime) -> None:
    """Mark the job done, in the transaction that writes its results.

    Raises LeaseLost if the token is stale.
    """
    done = update(jobs).where(_held(claim)).values(finished_at=now, lease_until=None, error=None)
    if connection.execute(done).rowcount != 1:
        raise LeaseLost(claim.id)


def fail(system: System, claim: Claim, error: str, *, charged: bool = True) -> bool:
    """Give the job back after an error: to be tried again a little later, or dead after the last attempt.

    charged: whether the attempt counts; where storage or database were away for a while, it does not.
    Returns False, and changes nothing, if the claim is no longer ours.
    """
    now = system.now()
    pause = timedelta(seconds=system.settings.retry_seconds * claim.attempts)
    values: dict[str, Any] = {"lease_until": None, "error": error[:LONGEST_ERROR], "ready_at": now + pause}
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
    """Give the job back unfinished and not charged, keeping its partial results.

    Raises LeaseLost if the token is stale.
    """
    values = {"lease_until": None, "attempts": claim.attempts - 1}
    if connection.execute(update(jobs).where(_held(claim)).values(values)).rowcount != 1:
        raise LeaseLost(claim.id)


def cancel_waiting(connection: Connection, ids: Select[Any], *, now: datetime) -> int:
    """End those of the jobs `ids` that nobody works on, undone; returns how many."""
    waiting = or_(IS_QUEUED, JOB_STATES["dead"])
    ended = update(jobs).where(jobs.c.id.in_(ids), waiting).values(finished_at=now, dead_at=None, error=None)
    return connection.execute(ended).rowcount


def should_postpone(system: System, claim: Claim) -> bool:
    """Return whether an urgent job that this worker may take is waiting.

    Raises LeaseLost if the claim is no longer valid.
    """
    with reading(system.engine) as connection:
        if connection.execute(select(jobs.c.id).where(_held(claim))).first() is None:
            raise LeaseLost(claim.id)
        return URGENT in system.settings.queues and _is_urgent(connection, system.now())


def has_urgent_work(system: System) -> bool:
    """Whether something urgent waits."""
    with reading(system.engine) as connection:
        return _is_urgent(connection, system.now())


def _is_urgent(connection: Connection, now: datetime) -> bool:
    ready = select(jobs.c.id).where(jobs.c.queue == URGENT, IS_QUEUED, _ready(now)).limit(1)
    return connection.execute(ready).first() is not None


def sweep(system: System) -> SweepResult:
    """Free the jobs whose lease ran out (or declare them dead), and ring for all that is waiting."""
    now = system.now()
    worn_out = jobs.c.attempts >= system.settings.attempts
    # In order, and past what others hold: two sweeps, or a sweep and a worker, never wait for each other.
    late = select(jobs.c.id).where(IS_RUNNING, jobs.c.lease_until < now).order_by(jobs.c.id)
    expired = (
        update(jobs)
        .where(jobs.c.id.in_(late.with_for_update(skip_locked=True)))
        .values(
            lease_until=None,
            dead_at=case((worn_out, literal(now, Instant())), else_=None),
            error="the worker stopped responding: its lease ran out",
        )
        .returning(jobs.c.track_id, jobs.c.dead_at)
    )
    waiting = select(jobs.c.queue, func.count()).where(IS_QUEUED, _ready(now)).group_by(jobs.c.queue)
    with writing(system.engine) as connection:
        freed = connection.execute(expired).all()
        dead = [row.track_id for row in freed if row.dead_at is not None]
        bump_revision(connection, dead)
        counts = connection.execute(waiting).all()
    for queue, count in counts:  # few, for whoever is at work goes on by himself: more would only pile up
        system.wake_ups.send(queue, times=min(count, system.settings.workers))
    return SweepResult(len(freed), len(dead), tuple(queue for queue, _ in counts))


# What people do


def get(system: System, principal: Principal, id: str) -> Job:
    """The job `id`, if it concerns the caller's team, track or the caller is admin; NotFound else."""
    with reading(system.engine) as connection:
        return _job(_visible(connection, principal, id))


def list_(
    system: System,
    principal: Principal,
    *,
    state: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> ListPage[Job]:
    """Jobs, newest first: all to an admin, of their own tracks to organisers; Forbidden to others."""
    if not principal.has_scope(TokenScope.ORGANISER):
        raise JOB_LIST_FORBIDDEN("listing jobs needs the scope organiser")
    query = select(jobs)
    if state is not None:
        if state not in JOB_STATES:
            raise JOB_STATE_UNKNOWN(f"there is no job state {state!r}")
        query = query.where(JOB_STATES[state])
    if not principal.has_scope(TokenScope.ADMIN):
        query = query.where(jobs.c.track_id.in_(_own_tracks(principal)))
    with reading(system.engine) as connection:
        return fetch_page(connection, query, jobs.c.id, _job, limit=limit, cursor=cursor)


def revive(system: System, principal: Principal, id: str) -> Job:
    """Queue a dead job again with all its attempts; organisers of its track and admins only."""
    now = system.now()
    with writing(system.engine) as connection:
        row = _visible(connection, principal, id)
        if not _may_revive(connection, principal, row):
            raise REVIVAL_FORBIDDEN("reviving a job is for the organisers of its track")
        again = update(jobs).where(jobs.c.id == id, JOB_STATES["dead"])
        values = {"dead_at": None, "attempts": 0, "ready_at": now}
        revived = connection.execute(again.values(values).returning(jobs)).first()
        if revived is None:
            raise JOB_NOT_DEAD(f"{id} is {state_of(row)}")
        bump_revision(connection, [row.track_id])
    system.wake_ups.send(revived.queue)
    return _job(revived)


def find_by_key(connection: Connection, keys: Sequence[str]) -> tuple[Job, ...]:
    """The jobs of these keys, oldest first."""
    rows = connection.execute(select(jobs).where(jobs.c.key.in_(keys)).order_by(jobs.c.id))
    return tuple(map(_job, rows))


def find_by_submission(connection: Connection, ids: list[str], kind: str) -> dict[str, tuple[Job, ...]]:
    """The jobs of a kind for each submission, oldest first."""
    found: dict[str, list[Job]] = {id: [] for id in ids}
    here = and_(jobs.c.submission_id.in_(ids), jobs.c.kind == kind)
    for row in connection.execute(select(jobs).where(here).order_by(jobs.c.id)):
        found[row.submission_id].append(_job(row))
    return {id: tuple(of_one) for id, of_one in found.items()}


def state_of(row: Row[Any]) -> JobState:
    """The state of a row of `jobs`, read off its timestamps."""
    if row.finished_at is not None:
        return JobState.DONE
    if row.dead_at is not None:
        return JobState.DEAD
    return JobState.QUEUED if row.lease_until is None else JobState.RUNNING


def _job(row: Row[Any]) -> Job:
    return Job(
        row.id,
        row.kind,
        row.queue,
        state_of(row),
        row.attempts,
        row.error,
        row.submission_id,
        row.created_at,
        row.claimed_at,
        row.finished_at,
    )


def _own_tracks(principal: Principal) -> Select[Any]:
    return select(tracks.c.id).where(tracks.c.team == principal.team)


def _may_revive(connection: Connection, principal: Principal, row: Row[Any]) -> bool:
    if principal.has_scope(TokenScope.ADMIN):
        return True
    own = _own_tracks(principal).where(tracks.c.id == row.track_id)
    return principal.has_scope(TokenScope.ORGANISER) and connection.execute(own).first() is not None


def _visible(connection: Connection, principal: Principal, id: str) -> Row[Any]:
    query = select(jobs).where(jobs.c.id == id)
    if not principal.has_scope(TokenScope.ADMIN):
        own = select(submissions.c.id).where(submissions.c.team == principal.team)
        mine: ColumnElement[bool] = jobs.c.submission_id.in_(own)
        if principal.has_scope(TokenScope.ORGANISER):
            mine = or_(mine, jobs.c.track_id.in_(_own_tracks(principal)))
        query = query.where(mine)
    row = connection.execute(query).first()
    if row is None:
        raise JOB_UNKNOWN(f"there is no job {id!r} that you may see")
    return row
