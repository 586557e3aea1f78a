"""Alerts: bounds on numbers of audit reports.

They are checked against the newest audit of a kind.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, exists, func, select, update

from cupel_audits import KINDS
from cupel_backend import tracks
from cupel_backend.access import Principal
from cupel_backend.audits import audit_requests
from cupel_backend.infrastructure.database import ListPage, fetch_page, insert_new, new_id, reading, writing
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import alarms, alerts
from cupel_backend.infrastructure.tables import audits as audit_rows
from cupel_backend.infrastructure.tables import tracks as track_rows

ALERT_UNKNOWN = refusal("alert-unknown")
ALERT_INVALID = refusal("alert-invalid")


@dataclass(frozen=True, kw_only=True)
class Alert:
    """An alert rule, and its result for the newest finished audit of its kind.

    kind: audit kind. number: name of a number in the reports of this kind. below, above: bounds. raised:
    whether the number is less than `below` or greater than `above`; None before the first audit. value: the
    number in the newest audit; None if its report lacks the number. audit: id of the newest audit. judged_at:
    time of the check. team: team that added the rule.
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
    system: System,
    principal: Principal,
    track: str,
    *,
    kind: str,
    number: str,
    below: float | None = None,
    above: float | None = None,
) -> Alert:
    """Add a rule that raises an alert when a number of a report is out of bounds.

    Only organisers may add rules.
    """
    if kind not in KINDS:
        raise ALERT_INVALID(f"kind: unknown audit kind {kind!r}; use one of {', '.join(KINDS)}")
    if KINDS[kind].needs_texts:
        raise ALERT_INVALID(f"kind: {kind} requires the document texts, which the service does not keep")
    if below is None and above is None:
        raise ALERT_INVALID("below, above: give at least one bound")
    with writing(system.engine) as connection:
        row = audit_requests.find_track(connection, principal, track)
        values = {"id": new_id("alt"), "track_id": row.id, "team": principal.team, "created_at": system.now()}
        values |= {"kind": kind, "number": number, "below": below, "above": above}
        connection.execute(alerts.insert().values(values))
        check_track(connection, row.id, system.now())
        return _build_view(connection.execute(_select_rules().where(alerts.c.id == values["id"])).one())


def list_(
    system: System, principal: Principal, track: str, *, limit: int = 50, cursor: str | None = None
) -> ListPage[Alert]:
    """List the track's alerts, newest first. Organisers only."""
    with reading(system.engine) as connection:
        row = audit_requests.find_track(connection, principal, track)
        query = _select_rules().where(alerts.c.track_id == row.id, alerts.c.removed_at.is_(None))
        return fetch_page(connection, query, alerts.c.id, _build_view, limit=limit, cursor=cursor)


def remove(system: System, principal: Principal, id: str) -> None:
    """Remove an alert; repeating this has no effect."""
    with writing(system.engine) as connection:
        row = connection.execute(_select_rules().where(alerts.c.id == id)).first()
        if row is None or not tracks.is_organiser(principal, tracks.find(connection, row.track)):
            raise ALERT_UNKNOWN(f"alert {id!r} not found, or not visible to you")
        connection.execute(update(alerts).where(alerts.c.id == id).values(removed_at=system.now()))


def check_all(system: System) -> int:
    """Check all rules that are not yet checked against the newest audit of their kind.

    Return the number of tracks with such rules.
    """
    with reading(system.engine) as connection:
        due = {row.track_id for row in connection.execute(_select_unchecked())}
    for track_id in due:
        with writing(system.engine) as connection:
            check_track(connection, track_id, system.now())
    return len(due)


def check_track(connection: Connection, track_id: int, now: datetime) -> None:
    """Check the rules of one track that are not yet checked.

    The results are written in the caller's transaction.
    """
    rows = connection.execute(_select_unchecked().where(alerts.c.track_id == track_id)).all()
    insert_new(connection, alarms, [_check_rule(row, now) for row in rows])


def _check_rule(row: Row[Any], now: datetime) -> dict[str, Any]:
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


def _select_unchecked() -> Select[Any]:
    """Select the rules not yet checked against the newest audit of their kind.

    Each row also has this audit.
    """
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


def _select_rules() -> Select[Any]:
    """Select rules with the result of their last check."""
    other = alarms.alias()
    last_audit = select(func.max(other.c.audit_id)).where(other.c.alert_id == alerts.c.id).scalar_subquery()
    is_last_alarm = and_(alarms.c.alert_id == alerts.c.id, alarms.c.audit_id == last_audit)
    shown = alarms.c.audit_id, alarms.c.value, alarms.c.raised, alarms.c.judged_at
    return (
        select(alerts, track_rows.c.name.label("track"), *shown)
        .select_from(alerts)
        .join(track_rows, track_rows.c.id == alerts.c.track_id)
        .join(alarms, is_last_alarm, isouter=True)
    )


def _build_view(row: Row[Any]) -> Alert:
    return Alert(
        id=row.id,
        track=row.track,
        kind=row.kind,
        number=row.number,
        below=row.below,
        above=row.above,
        raised=row.raised,
        value=row.value,
        audit=row.audit_id,
        judged_at=row.judged_at,
        team=row.team,
        created_at=row.created_at,
    )
