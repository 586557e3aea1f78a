"""Schedules: repeated requests for audits.

Audits are repeated by a cron expression, for every new qrels version, or for every N new runs. A schedule
requests one audit for each slot: a due time, a qrels version, or a number of runs. Slots missed while no
scheduler ran are combined into one. A slot is unique in the table of audits. So no audit is requested twice,
even if two schedulers run, or if a scheduler dies before it updates the schedule.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from sqlalchemy import Connection, Row, Select, distinct, func, select, update
from sqlalchemy.exc import IntegrityError

from cupel_backend import tracks
from cupel_backend.access import Principal
from cupel_backend.audits import audit_requests
from cupel_backend.audits.audit_requests import ScheduleSlot
from cupel_backend.infrastructure.database import ListPage, fetch_page, new_id, reading, writing
from cupel_backend.infrastructure.errors import Problem, TooMany, Unavailable, refusal
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import schedules, submissions
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_backend.scores import rescoring
from cupel_contract.states import TokenScope

log = logging.getLogger(__name__)

SCHEDULE_UNKNOWN = refusal("schedule-unknown")
SCHEDULE_INVALID = refusal("schedule-invalid")
MAX_CRON_LENGTH = 200
"""Maximum number of characters of a cron expression."""
CRON_FIELDS = 5


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A schedule as shown to users.

    request: arguments of `audit_requests.request`. cron: cron expression of the audits. zone: its time zone.
    runs: number of new runs that triggers an audit. If both cron and runs are None, every new
    current qrels version triggers an audit. due_at: next time that the expression matches. problem: why the
    last due audit could not be requested. team: team that added the schedule.
    """

    id: str
    track: str
    request: Mapping[str, Any]
    cron: str | None
    zone: str | None
    runs: int | None
    due_at: datetime | None
    problem: str | None
    team: str
    created_at: datetime
    paused_at: datetime | None


def add(
    system: System,
    principal: Principal,
    track: str,
    *,
    request: Mapping[str, Any],
    cron: str | None = None,
    zone: str | None = None,
    runs: int | None = None,
) -> Schedule:
    """Add a schedule (see `Schedule`). Organisers of the track only.

    zone: time zone of the cron expression (default: UTC).
    """
    now = system.now()
    if cron is not None and runs is not None:
        raise SCHEDULE_INVALID(
            "cron, runs: give at most one; omit both for an audit of every new qrels version"
        )
    if zone is not None and cron is None:
        raise SCHEDULE_INVALID("zone: requires cron")
    zone = None if cron is None else zone or "UTC"
    audit_requests.require_valid(request.get("kind", ""), request.get("parameters", {}))
    with writing(system.engine) as connection:
        row = audit_requests.find_track(connection, principal, track)
        if request.get("measures"):
            tracks.parse_plan(request["measures"], tracks.parse_aspects(row), row.label_sets or {})
        values = {
            "id": new_id("sch"),
            "track_id": row.id,
            "team": principal.team,
            "request": dict(request),
            "cron": cron,
            "zone": zone,
            "every_runs": runs,
            "due_at": None if cron is None or zone is None else compute_next_run(cron, zone, now),
            "created_at": now,
        }
        values["seen"] = _read_trigger(connection, row, runs)
        connection.execute(schedules.insert().values(values))
        return _build_view(
            connection.execute(_select_schedules().where(schedules.c.id == values["id"])).one()
        )


def list_(
    system: System, principal: Principal, track: str, *, limit: int = 50, cursor: str | None = None
) -> ListPage[Schedule]:
    """List the track's schedules, newest first. Organisers only."""
    with reading(system.engine) as connection:
        row = audit_requests.find_track(connection, principal, track)
        query = _select_schedules().where(schedules.c.track_id == row.id, schedules.c.removed_at.is_(None))
        return fetch_page(connection, query, schedules.c.id, _build_view, limit=limit, cursor=cursor)


def change(system: System, principal: Principal, id: str, *, paused: bool) -> Schedule:
    """Pause or resume a schedule. Slots missed while it was paused are skipped."""
    now = system.now()
    with writing(system.engine) as connection:
        row = _find_manageable(connection, principal, id)
        values: dict[str, Any] = {"paused_at": (row.paused_at or now) if paused else None}
        if row.paused_at is not None and not paused:
            track = tracks.find(connection, row.track)
            values["seen"] = _read_trigger(connection, track, row.every_runs)
            values["due_at"] = None if row.cron is None else compute_next_run(row.cron, row.zone, now)
        connection.execute(update(schedules).where(schedules.c.id == id).values(values))
        return _build_view(connection.execute(_select_schedules().where(schedules.c.id == id)).one())


def remove(system: System, principal: Principal, id: str) -> None:
    """Remove a schedule, but not its audits; repeating this has no effect."""
    with writing(system.engine) as connection:
        _find_manageable(connection, principal, id)
        connection.execute(update(schedules).where(schedules.c.id == id).values(removed_at=system.now()))


def compute_next_run(cron: str, zone: str, after: datetime) -> datetime:
    """Return the first time after `after` that a cron expression matches, in UTC.

    The expression is read in the time zone `zone`. Clock changes are handled as in Debian's cron. If the
    change skips a fixed time of day, the expression matches right after the change. If the change repeats a
    fixed time, the expression matches once. Expressions for every hour or minute match at equal intervals of
    elapsed time. Raises Invalid for an invalid expression or zone.
    """
    try:
        local = after.astimezone(ZoneInfo(zone))
    except (KeyError, ValueError, OSError):
        name = zone[:MAX_CRON_LENGTH]
        raise SCHEDULE_INVALID(
            f"zone: unknown time zone {name!r}; use a name such as Europe/Berlin"
        ) from None
    try:
        if len(cron) > MAX_CRON_LENGTH:
            raise CronSimError("too long")
        if len(cron.split()) > CRON_FIELDS:  # cronsim would read six fields as an expression with seconds
            raise CronSimError("Wrong number of fields")
        return next(CronSim(cron, local)).astimezone(UTC)
    except CronSimError as error:
        problem = f"invalid expression {cron[:MAX_CRON_LENGTH]!r} ({error})"
    except StopIteration:
        problem = f"{cron!r} never matches"
    raise SCHEDULE_INVALID(f"cron: {problem}; write minute hour day month weekday, such as 0 3 * * 1")


# Requesting audits


def request_due_audits(system: System) -> int:
    """Request the audits of all due schedules; return the number of requested audits."""
    with reading(system.engine) as connection:
        active = _select_schedules().where(schedules.c.removed_at.is_(None), schedules.c.paused_at.is_(None))
        due = [
            (row, *due_slot)
            for row in connection.execute(active)
            if (due_slot := _find_due_slot(connection, row, system.now())) is not None
        ]
    return sum(_request_audit(system, row, slot, values) for row, slot, values in due)


def _find_due_slot(connection: Connection, row: Row[Any], now: datetime) -> tuple[str, dict[str, Any]] | None:
    """Return the due slot of a schedule and the new values of its row.

    Returns None if no audit is due.
    """
    if row.cron is not None:
        if row.due_at > now:
            return None
        return row.due_at.isoformat(), {"due_at": compute_next_run(row.cron, row.zone, now)}
    track = tracks.find(connection, row.track)
    state = _read_trigger(connection, track, row.every_runs)
    if state - row.seen < (row.every_runs or 1):
        return None
    if row.every_runs and rescoring.is_scoring(connection, track.id):
        return None
    return str(row.seen), {"seen": state}


def _request_audit(system: System, row: Row[Any], slot: str, values: dict[str, Any]) -> bool:
    """Request the audit of a slot unless it exists, and update the schedule.

    Returns whether the audit was requested.
    """
    is_requested, problem = False, None
    caller = Principal(row.track_team, TokenScope.ORGANISER)
    try:
        audit_requests.request(system, caller, row.track, **row.request, slot=ScheduleSlot(row.id, slot))
        is_requested = True
    except IntegrityError:
        pass  # already requested, by another scheduler or before a crash
    except (Unavailable, TooMany):
        return False  # the next tick tries again
    except Problem as refusal:
        problem = refusal.detail
    except Exception as error:  # an error in one schedule must not stop the others
        log.exception("schedule %s could not request its audit", row.id)
        problem = f"the audit could not be requested ({type(error).__name__})"
    is_unchanged = schedules.c.due_at == row.due_at if row.cron is not None else schedules.c.seen == row.seen
    statement = update(schedules).where(schedules.c.id == row.id, is_unchanged)
    with writing(system.engine) as connection:
        connection.execute(statement.values(values | {"problem": problem}))
    return is_requested


def _read_trigger(connection: Connection, track: Row[Any], every_runs: int | None) -> int:
    """Return the number that triggers a schedule without cron.

    This is the current version or the number of runs.
    """
    if every_runs is None:
        return track.current or 0
    counted = select(func.count(distinct(submissions.c.run_id))).where(submissions.c.track_id == track.id)
    return int(connection.execute(counted).scalar_one())


def _select_schedules() -> Select[Any]:
    names = track_rows.c.name.label("track"), track_rows.c.team.label("track_team")
    return select(schedules, *names).join(track_rows, track_rows.c.id == schedules.c.track_id)


def _find_manageable(connection: Connection, principal: Principal, id: str) -> Row[Any]:
    row = connection.execute(_select_schedules().where(schedules.c.id == id)).first()
    if row is None or not tracks.is_organiser(principal, tracks.find(connection, row.track)):
        raise SCHEDULE_UNKNOWN(f"schedule {id!r} not found, or not visible to you")
    return row


def _build_view(row: Row[Any]) -> Schedule:
    return Schedule(
        id=row.id,
        track=row.track,
        request=row.request,
        cron=row.cron,
        zone=row.zone,
        runs=row.every_runs,
        due_at=row.due_at,
        problem=row.problem,
        team=row.team,
        created_at=row.created_at,
        paused_at=row.paused_at,
    )
