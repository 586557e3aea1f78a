"""Schedules: audits that are made again and again, by a cron expression or with what is new on a track.

A schedule makes one audit for each slot: a moment that it was due at, a qrels version, so many runs. Slots
that were missed while nobody ticked make one together. The slot is unique in the table of audits, so that two
schedulers, or one that dies before it has noted what it did, make no second one.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from sqlalchemy import Connection, Row, Select, distinct, func, select, update
from sqlalchemy.exc import IntegrityError

from cupel_backend import tracks
from cupel_backend.access import Principal
from cupel_backend.audits import audit_requests
from cupel_backend.audits.audit_requests import Slot
from cupel_backend.infrastructure.database import ListPage, fetch_page, new_id, reading, writing
from cupel_backend.infrastructure.errors import Problem, TooMany, Unavailable, refusal
from cupel_backend.infrastructure.tables import schedules, submissions
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_backend.scores import rescoring
from cupel_contract.states import TokenScope

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System

log = logging.getLogger(__name__)

SCHEDULE_UNKNOWN = refusal("schedule-unknown")
SCHEDULE_INVALID = refusal("schedule-invalid")
LONGEST = 200
"""Characters of a cron expression."""
FIELDS = 5


@dataclass(frozen=True)
class Schedule:
    """A schedule as people see it.

    request: of its audits, as `audits.request` takes it. cron and zone, or runs (so many new ones), or
    neither: with every qrels version that becomes current. due_at: by its cron expression. problem: why it
    made no audit when it was last due.
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
    system: "System",
    principal: Principal,
    track: str,
    *,
    request: Mapping[str, Any],
    cron: str | None = None,
    zone: str | None = None,
    runs: int | None = None,
) -> Schedule:
    """Have audits made from now on: see `Schedule`. Organisers of the track only; zone: default UTC."""
    now = system.now()
    if cron is not None and runs is not None:
        raise SCHEDULE_INVALID("give cron, or runs, or none of them (with every new qrels version)")
    if zone is not None and cron is None:
        raise SCHEDULE_INVALID("a zone is that of a cron expression: give cron, too")
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
        values["seen"] = _state(connection, row, runs)
        connection.execute(schedules.insert().values(values))
        return _view(connection.execute(_rows().where(schedules.c.id == values["id"])).one())


def list_(
    system: "System", principal: Principal, track: str, *, limit: int = 50, cursor: str | None = None
) -> ListPage[Schedule]:
    """The track's schedules, newest first, to its organisers."""
    with reading(system.engine) as connection:
        row = audit_requests.find_track(connection, principal, track)
        query = _rows().where(schedules.c.track_id == row.id, schedules.c.removed_at.is_(None))
        return fetch_page(connection, query, schedules.c.id, _view, limit=limit, cursor=cursor)


def change(system: "System", principal: Principal, id: str, *, paused: bool) -> Schedule:
    """Pause a schedule, or let it go on: what it missed meanwhile is passed over."""
    now = system.now()
    with writing(system.engine) as connection:
        row = _managed(connection, principal, id)
        values: dict[str, Any] = {"paused_at": (row.paused_at or now) if paused else None}
        if row.paused_at is not None and not paused:
            track = tracks.find(connection, row.track)
            values["seen"] = _state(connection, track, row.every_runs)
            values["due_at"] = None if row.cron is None else compute_next_run(row.cron, row.zone, now)
        connection.execute(update(schedules).where(schedules.c.id == id).values(values))
        return _view(connection.execute(_rows().where(schedules.c.id == id)).one())


def remove(system: "System", principal: Principal, id: str) -> None:
    """End a schedule; its audits stay. Ending it again changes nothing."""
    with writing(system.engine) as connection:
        _managed(connection, principal, id)
        connection.execute(update(schedules).where(schedules.c.id == id).values(removed_at=system.now()))


def compute_next_run(cron: str, zone: str, after: datetime) -> datetime:
    """The first moment after `after` that a cron expression names in a time zone, in UTC; Invalid if none.

    As Debian's cron has it: a fixed time that the clocks skip in spring is made up for right after, one that
    they repeat in autumn counts once; what goes by the hour or minute goes on by real time.
    """
    try:
        local = after.astimezone(ZoneInfo(zone))
    except (KeyError, ValueError, OSError):
        raise SCHEDULE_INVALID(
            f"there is no time zone {zone[:LONGEST]!r}: give one like Europe/Berlin"
        ) from None
    try:
        if len(cron) > LONGEST:
            raise CronSimError("too long")
        if len(cron.split()) > FIELDS:  # it would take the first for seconds
            raise CronSimError("Wrong number of fields")
        return next(CronSim(cron, local)).astimezone(UTC)
    except CronSimError as problem:
        about = f"{cron[:LONGEST]!r} is no cron expression ({problem})"
    except StopIteration:
        about = f"{cron!r} names no moment that ever comes"
    raise SCHEDULE_INVALID(f"{about}: write minute hour day month weekday, such as 0 3 * * 1")


# Ticking


def request_due_audits(system: "System") -> int:
    """Make the audits that are due; returns how many. To be called by the scheduler."""
    with reading(system.engine) as connection:
        active = _rows().where(schedules.c.removed_at.is_(None), schedules.c.paused_at.is_(None))
        due = [
            (row, *found)
            for row in connection.execute(active)
            if (found := _slot(connection, row, system.now())) is not None
        ]
    return sum(_make(system, row, slot, values) for row, slot, values in due)


def _slot(connection: Connection, row: Row[Any], now: datetime) -> tuple[str, dict[str, Any]] | None:
    """What the schedule is to make an audit for, and what is to be noted then; None while it is not due."""
    if row.cron is not None:
        if row.due_at > now:
            return None
        return row.due_at.isoformat(), {"due_at": compute_next_run(row.cron, row.zone, now)}
    track = tracks.find(connection, row.track)
    state = _state(connection, track, row.every_runs)
    if state - row.seen < (row.every_runs or 1):
        return None
    if row.every_runs and rescoring.is_scoring(connection, track.id):
        return None
    return str(row.seen), {"seen": state}


def _make(system: "System", row: Row[Any], slot: str, values: dict[str, Any]) -> bool:
    """Make the audit of a slot, unless it is there, and note that; returns whether it was made."""
    made, problem = False, None
    caller = Principal(row.track_team, TokenScope.ORGANISER)
    try:
        audit_requests.request(system, caller, row.track, **row.request, slot=Slot(row.id, slot))
        made = True
    except IntegrityError:
        pass  # it was made, by another scheduler, or by one that died before it noted so
    except (Unavailable, TooMany):
        return False  # tried again at the next tick
    except Problem as refusal:
        problem = refusal.detail
    except Exception as error:  # whatever is wrong with this one, the others are due as well
        log.exception("schedule %s made no audit", row.id)
        problem = f"its audit could not be made ({type(error).__name__})"
    same = schedules.c.due_at == row.due_at if row.cron is not None else schedules.c.seen == row.seen
    here = update(schedules).where(schedules.c.id == row.id, same)
    with writing(system.engine) as connection:
        connection.execute(here.values(values | {"problem": problem}))
    return made


def _state(connection: Connection, track: Row[Any], every_runs: int | None) -> int:
    """What a schedule goes by that has no cron expression: the current version, or the number of runs."""
    if every_runs is None:
        return track.current or 0
    counted = select(func.count(distinct(submissions.c.run_id))).where(submissions.c.track_id == track.id)
    return int(connection.execute(counted).scalar_one())


def _rows() -> Select[Any]:
    names = track_rows.c.name.label("track"), track_rows.c.team.label("track_team")
    return select(schedules, *names).join(track_rows, track_rows.c.id == schedules.c.track_id)


def _managed(connection: Connection, principal: Principal, id: str) -> Row[Any]:
    row = connection.execute(_rows().where(schedules.c.id == id)).first()
    if row is None or not tracks.is_organiser(principal, tracks.find(connection, row.track)):
        raise SCHEDULE_UNKNOWN(f"there is no schedule {id!r} that you may see")
    return row


def _view(row: Row[Any]) -> Schedule:
    return Schedule(
        row.id,
        row.track,
        row.request,
        row.cron,
        row.zone,
        row.every_runs,
        row.due_at,
        row.problem,
        row.team,
        row.created_at,
        row.paused_at,
    )
