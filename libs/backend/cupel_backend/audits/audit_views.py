"""What people see of audits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select

from cupel_backend.audits.audit_subjects import AuditedSubmission
from cupel_backend.infrastructure.tables import JOB_STATES, alarms, alerts, audit_parts
from cupel_backend.infrastructure.tables import audits as audit_rows
from cupel_backend.infrastructure.tables import jobs as job_rows
from cupel_backend.infrastructure.tables import qrels as qrels_rows
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_contract.states import AuditState


@dataclass(frozen=True)
class PartsProgress:
    """How far an audit is: trials and parts, of how many; both None until its subject is gathered."""

    trials: int | None
    trials_done: int
    parts: int | None
    parts_done: int


@dataclass(frozen=True)
class Failure:
    """A part that was given up, and why; part 0 is the gathering of the subject."""

    part: int
    error: str
    job: str


@dataclass(frozen=True)
class RaisedAlert:
    """An alert that the audit raised: the number was below `below` or above `above`."""

    alert: str
    number: str
    value: float
    below: float | None
    above: float | None


@dataclass(frozen=True)
class AuditView:
    """An audit as people see it.

    qrels, other: numbers of versions. seed: of all that is drawn. problems: why it can't be done of its
    subject, in sentences. digest: of the result; with verdict and numbers it is there once all is done.
    """

    id: str
    track: str
    kind: str
    parameters: Mapping[str, Any]
    measures: tuple[str, ...]
    seed: int
    qrels: int
    qrels_digest: str
    other: int | None
    runs: tuple[AuditedSubmission, ...]
    team: str
    schedule: str | None
    state: AuditState
    progress: PartsProgress
    failures: tuple[Failure, ...]
    problems: tuple[str, ...]
    digest: str | None
    verdict: tuple[str, ...]
    numbers: Mapping[str, float | int | None]
    alerts: tuple[RaisedAlert, ...]
    created_at: datetime
    cancelled_at: datetime | None
    concluded_at: datetime | None


OTHER = qrels_rows.alias("other")


def select_audits() -> Select[Any]:
    """Audits, with what else is shown of them."""
    gathers = {name: state.label(f"gathering_{name}") for name, state in JOB_STATES.items()}
    return (
        select(
            audit_rows,
            track_rows.c.name.label("track"),
            qrels_rows.c.number.label("version"),
            qrels_rows.c.digest.label("version_digest"),
            OTHER.c.number.label("other"),
            job_rows.c.error.label("gathering_error"),
            *gathers.values(),
        )
        .join(track_rows, track_rows.c.id == audit_rows.c.track_id)
        .join(qrels_rows, qrels_rows.c.id == audit_rows.c.qrels_id)
        .join(OTHER, OTHER.c.id == audit_rows.c.other_id, isouter=True)
        .join(job_rows, job_rows.c.id == audit_rows.c.job_id)
    )


def build_view(connection: Connection, row: Row[Any]) -> AuditView:
    """An audit, from a row of `select_audits`."""
    return build_views(connection, [row])[0]


def build_views(connection: Connection, rows: Sequence[Row[Any]]) -> tuple[AuditView, ...]:
    """Audits, from rows of `select_audits`, by as many queries for many as for one."""
    ids = [row.id for row in rows]
    parts = {one.audit_id: one for one in connection.execute(_counts(ids))}
    failures, raised = _failures(connection, ids), _raised(connection, ids)
    return tuple(
        _audit(row, parts.get(row.id), failures.get(row.id, []), raised.get(row.id, [])) for row in rows
    )


def _counts(ids: Sequence[str]) -> Select[Any]:
    """How far the parts of audits are."""
    states = {name: func.count().filter(state).label(f"parts_{name}") for name, state in JOB_STATES.items()}
    done = func.sum(audit_parts.c.done).label("trials")
    return (
        select(audit_parts.c.audit_id, func.count().label("parts"), done, *states.values())
        .join(job_rows, job_rows.c.id == audit_parts.c.job_id)
        .where(audit_parts.c.audit_id.in_(ids))
        .group_by(audit_parts.c.audit_id)
    )


def _failures(connection: Connection, ids: Sequence[str]) -> dict[str, list[Failure]]:
    """The parts of audits that were given up."""
    query = (
        select(audit_parts.c.audit_id, audit_parts.c.number, job_rows.c.id, job_rows.c.error)
        .join(job_rows, job_rows.c.id == audit_parts.c.job_id)
        .where(audit_parts.c.audit_id.in_(ids), JOB_STATES["dead"])
        .order_by(audit_parts.c.audit_id, audit_parts.c.number)
    )
    failures: dict[str, list[Failure]] = {}
    for row in connection.execute(query):
        failures.setdefault(row.audit_id, []).append(Failure(row.number, row.error or "", row.id))
    return failures


def _raised(connection: Connection, ids: Sequence[str]) -> dict[str, list[RaisedAlert]]:
    """The alerts that audits raised."""
    query = (
        select(alarms.c.audit_id, alarms.c.value, alerts)
        .join(alerts, alerts.c.id == alarms.c.alert_id)
        .where(alarms.c.audit_id.in_(ids), alarms.c.raised)
        .order_by(alerts.c.id)
    )
    raised: dict[str, list[RaisedAlert]] = {}
    for row in connection.execute(query):
        one = RaisedAlert(row.id, row.number, row.value, row.below, row.above)
        raised.setdefault(row.audit_id, []).append(one)
    return raised


def _audit(
    row: Row[Any], parts: Row[Any] | None, failures: list[Failure], raised: list[RaisedAlert]
) -> AuditView:
    if row.gathering_dead:
        failures = [Failure(0, row.gathering_error or "", row.job_id)]
    return AuditView(
        id=row.id,
        track=row.track,
        kind=row.kind,
        parameters=row.parameters,
        measures=tuple(row.measures),
        seed=row.seed,
        qrels=row.version,
        qrels_digest=row.version_digest,
        other=row.other,
        runs=tuple(AuditedSubmission(*one) for one in row.runs),
        team=row.team,
        schedule=row.schedule_id,
        state=_state(row, parts),
        progress=PartsProgress(
            row.trials, parts.trials if parts else 0, parts and parts.parts, parts.parts_done if parts else 0
        ),
        failures=tuple(failures),
        problems=tuple(row.refused or ()),
        digest=row.digest,
        verdict=tuple(row.verdict or ()),
        numbers=row.numbers or {},
        alerts=tuple(raised),
        created_at=row.created_at,
        cancelled_at=row.cancelled_at,
        concluded_at=row.concluded_at,
    )


def _state(row: Row[Any], parts: Row[Any] | None) -> AuditState:
    if row.cancelled_at is not None:
        return AuditState.CANCELLED
    if row.concluded_at is not None:
        return AuditState.DONE
    if row.refused is not None or row.gathering_dead:
        return AuditState.FAILED
    if parts is None:
        return AuditState.RUNNING if row.gathering_running else AuditState.QUEUED
    failed = parts.parts_dead and not parts.parts_queued + parts.parts_running
    return AuditState.FAILED if failed else AuditState.RUNNING
