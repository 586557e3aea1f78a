"""Views of audits as shown to users."""

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
    """Numbers of trials and parts of an audit: in total, and finished.

    The totals are None until the subject is prepared.
    """

    trials: int | None
    trials_done: int
    parts: int | None
    parts_done: int


@dataclass(frozen=True)
class PartFailure:
    """A part whose job is dead, with its last error.

    Part 0 is the preparation of the subject.
    """

    part: int
    error: str
    job: str


@dataclass(frozen=True, kw_only=True)
class RaisedAlert:
    """An alert that an audit raised, because a number is out of bounds.

    The number is less than `below` or greater than `above`.
    """

    alert: str
    number: str
    value: float
    below: float | None
    above: float | None


@dataclass(frozen=True, kw_only=True)
class AuditView:
    """An audit as shown to users.

    qrels: number of the qrels version. other: number of the version that it is compared with. seed: random
    seed. team: team that requested the audit. schedule: id of the schedule that requested it, if any.
    problems: sentences that say why the subject cannot be audited. digest, verdict, numbers: digest, verdict
    and numbers of the report, which are set once all parts are done.
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
    failures: tuple[PartFailure, ...]
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
    """Select audits with the columns of other tables that views need."""
    preparation = {name: state.label(f"gathering_{name}") for name, state in JOB_STATES.items()}
    return (
        select(
            audit_rows,
            track_rows.c.name.label("track"),
            qrels_rows.c.number.label("version"),
            qrels_rows.c.digest.label("version_digest"),
            OTHER.c.number.label("other"),
            job_rows.c.error.label("gathering_error"),
            *preparation.values(),
        )
        .join(track_rows, track_rows.c.id == audit_rows.c.track_id)
        .join(qrels_rows, qrels_rows.c.id == audit_rows.c.qrels_id)
        .join(OTHER, OTHER.c.id == audit_rows.c.other_id, isouter=True)
        .join(job_rows, job_rows.c.id == audit_rows.c.job_id)
    )


def build_view(connection: Connection, row: Row[Any]) -> AuditView:
    """Build the view of an audit from a row of `select_audits`."""
    return build_views(connection, [row])[0]


def build_views(connection: Connection, rows: Sequence[Row[Any]]) -> tuple[AuditView, ...]:
    """Build the views of audits from rows of `select_audits`.

    The number of queries is constant.
    """
    ids = [row.id for row in rows]
    parts = {counts.audit_id: counts for counts in connection.execute(_select_part_counts(ids))}
    failures, raised = _read_failures(connection, ids), _read_raised_alerts(connection, ids)
    return tuple(
        _build_view(row, parts.get(row.id), failures.get(row.id, []), raised.get(row.id, [])) for row in rows
    )


def _select_part_counts(ids: Sequence[str]) -> Select[Any]:
    """Select the numbers of parts in each state and of finished trials, by audit."""
    states = {name: func.count().filter(state).label(f"parts_{name}") for name, state in JOB_STATES.items()}
    done = func.sum(audit_parts.c.done).label("trials")
    return (
        select(audit_parts.c.audit_id, func.count().label("parts"), done, *states.values())
        .join(job_rows, job_rows.c.id == audit_parts.c.job_id)
        .where(audit_parts.c.audit_id.in_(ids))
        .group_by(audit_parts.c.audit_id)
    )


def _read_failures(connection: Connection, ids: Sequence[str]) -> dict[str, list[PartFailure]]:
    """Read the failed parts of audits."""
    query = (
        select(audit_parts.c.audit_id, audit_parts.c.number, job_rows.c.id, job_rows.c.error)
        .join(job_rows, job_rows.c.id == audit_parts.c.job_id)
        .where(audit_parts.c.audit_id.in_(ids), JOB_STATES["dead"])
        .order_by(audit_parts.c.audit_id, audit_parts.c.number)
    )
    failures: dict[str, list[PartFailure]] = {}
    for row in connection.execute(query):
        failures.setdefault(row.audit_id, []).append(PartFailure(row.number, row.error or "", row.id))
    return failures


def _read_raised_alerts(connection: Connection, ids: Sequence[str]) -> dict[str, list[RaisedAlert]]:
    """Read the alerts that audits raised."""
    query = (
        select(alarms.c.audit_id, alarms.c.value, alerts)
        .join(alerts, alerts.c.id == alarms.c.alert_id)
        .where(alarms.c.audit_id.in_(ids), alarms.c.raised)
        .order_by(alerts.c.id)
    )
    raised: dict[str, list[RaisedAlert]] = {}
    for row in connection.execute(query):
        alert = RaisedAlert(
            alert=row.id, number=row.number, value=row.value, below=row.below, above=row.above
        )
        raised.setdefault(row.audit_id, []).append(alert)
    return raised


def _build_view(
    row: Row[Any], parts: Row[Any] | None, failures: list[PartFailure], raised: list[RaisedAlert]
) -> AuditView:
    if row.gathering_dead:
        failures = [PartFailure(0, row.gathering_error or "", row.job_id)]
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
        runs=tuple(AuditedSubmission(*run) for run in row.runs),
        team=row.team,
        schedule=row.schedule_id,
        state=_derive_state(row, parts),
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


def _derive_state(row: Row[Any], parts: Row[Any] | None) -> AuditState:
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
