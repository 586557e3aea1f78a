"""Alerts: rules on numbers of audits' reports, judged once by each audit that is the newest of its kind."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, Select, and_, exists, func, select, update

from cupel_audits import KINDS
from cupel_backend import tracks
from cupel_backend.access import Principal
from cupel_backend.audits import audit_requests
from cupel_backend.infrastructure.database import ListPage, fetch_page, insert_new, new_id, reading, writing
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.tables import alarms, alerts
from cupel_backend.infrastructure.tables import audits as audit_rows
from cupel_backend.infrastructure.tables import tracks as track_rows

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System

ALERT_UNKNOWN = refusal("alert-unknown")
ALERT_INVALID = refusal("alert-invalid")


@dataclass(frozen=True)
class Alert:
    """A rule, and how the newest audit of the kind was judged by it.

    raised: whether the number is below `below` or above `above`; None while there is no audit. value: None
    also where the audit's report has none.
    """

    id: str
    track: str
    kind: str
    number: str
    below: float | None
    above: float | None
    raised: bool | None
    value: float | None
    audit: str | None
    judged_at: datetime | None
    team: str
    created_at: datetime


def add(
    system: "System",
    principal: Principal,
    track: str,
    *,
    kind: str,
    number: str,
    below: float | None = None,
    above: float | None = None,
) -> Alert:
    """Be alerted when a number of a report, by its name, is out of bounds. Organisers of the track only."""
    if kind not in KINDS:
        raise ALERT_INVALID(f"there is no audit {kind!r}; there are {', '.join(KINDS)}")
    if KINDS[kind].texts:
        raise ALERT_INVALID(f"{kind} needs the texts of the documents: the service has no audit of it")
    if below is None and above is None:
        raise ALERT_INVALID("give a bound: below, above, or both")
    with writing(system.engine) as connection:
        row = audit_requests.find_track(connection, principal, track)
        values = {"id": new_id("alt"), "track_id": row.id, "team": principal.team, "created_at": system.now()}
        values |= {"kind": kind, "number": number, "below": below, "above": above}
        connection.execute(alerts.insert().values(values))
        check_track(connection, row.id, system.now())
        return _view(connection.execute(_rows().where(alerts.c.id == values["id"])).one())


def list_(
    system: "System", principal: Principal, track: str, *, limit: int = 50, cursor: str | None = None
) -> ListPage[Alert]:
    """The track's alerts, newest first, to its organisers."""
    with reading(system.engine) as connection:
        row = audit_requests.find_track(connection, principal, track)
        query = _rows().where(alerts.c.track_id == row.id, alerts.c.removed_at.is_(None))
        return fetch_page(connection, query, alerts.c.id, _view, limit=limit, cursor=cursor)


def remove(system: "System", principal: Principal, id: str) -> None:
    """End an alert. Ending it again changes nothing."""
    with writing(system.engine) as connection:
        row = connection.execute(_rows().where(alerts.c.id == id)).first()
        if row is None or not tracks.is_organiser(principal, tracks.find(connection, row.track)):
            raise ALERT_UNKNOWN(f"there is no alert {id!r} that you may see")
        connection.execute(update(alerts).where(alerts.c.id == id).values(removed_at=system.now()))


def check_all(system: "System") -> int:
    """Judge what was not, as rule or audit is new; returns for how many tracks."""
    with reading(system.engine) as connection:
        due = {row.track_id for row in connection.execute(_due())}
    for track_id in due:
        with writing(system.engine) as connection:
            check_track(connection, track_id, system.now())
    return len(due)


def check_track(connection: Connection, track_id: int, now: datetime) -> None:
    """As `check_all`, for one track in the caller's transaction."""
    rows = connection.execute(_due().where(alerts.c.track_id == track_id)).all()
    insert_new(connection, alarms, [_alarm(row, now) for row in rows])


def _alarm(row: Row[Any], now: datetime) -> dict[str, Any]:
    value = row.numbers.get(row.number)
    low = value is not None and row.below is not None and value < row.below
    high = value is not None and row.above is not None and value > row.above
    return {
        "alert_id": row.id,
        "audit_id": row.audit,
        "value": value,
        "raised": low or high,
        "judged_at": now,
    }


def _due() -> Select[Any]:
    """Rules with the newest audit of their kind, where they were not judged by it."""
    other = audit_rows.alias()
    newest = select(func.max(other.c.id)).where(
        other.c.track_id == alerts.c.track_id,
        other.c.kind == alerts.c.kind,
        other.c.concluded_at.is_not(None),
    )
    judged = exists().where(alarms.c.alert_id == alerts.c.id, alarms.c.audit_id == audit_rows.c.id)
    return (
        select(alerts, audit_rows.c.id.label("audit"), audit_rows.c.numbers)
        .select_from(alerts)
        .join(audit_rows, audit_rows.c.id == newest.scalar_subquery())
        .where(alerts.c.removed_at.is_(None), ~judged)
    )


def _rows() -> Select[Any]:
    """Rules with their last alarm."""
    other = alarms.alias()
    last = select(func.max(other.c.audit_id)).where(other.c.alert_id == alerts.c.id).scalar_subquery()
    here = and_(alarms.c.alert_id == alerts.c.id, alarms.c.audit_id == last)
    shown = alarms.c.audit_id, alarms.c.value, alarms.c.raised, alarms.c.judged_at
    return (
        select(alerts, track_rows.c.name.label("track"), *shown)
        .select_from(alerts)
        .join(track_rows, track_rows.c.id == alerts.c.track_id)
        .join(alarms, here, isouter=True)
    )


def _view(row: Row[Any]) -> Alert:
    return Alert(
        row.id,
        row.track,
        row.kind,
        row.number,
        row.below,
        row.above,
        row.raised,
        row.value,
        row.audit_id,
        row.judged_at,
        row.team,
        row.created_at,
    )
