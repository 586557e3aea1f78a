"""Audits: requests, cancellation, reruns and lists.

An audit is a row with several jobs. The first job prepares the subject: the runs and judgments to audit.
Then one job runs each part, which is a group of trials. The report is a function of the finished trials, so a
partial report is available early. The subject is fixed when the audit is requested; withdrawing a submission
later does not change it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, false, func, literal, or_, select, update

from cupel_audits import KINDS, AuditError, read_audit
from cupel_backend import jobs, tracks
from cupel_backend.access import Principal
from cupel_backend.audits.audit_subjects import select_submissions
from cupel_backend.audits.audit_views import OTHER, build_view, build_views, select_audits
from cupel_backend.audits.audit_views import AuditView as AuditView
from cupel_backend.infrastructure.database import ListPage, fetch_page, new_id, reading, writing
from cupel_backend.infrastructure.errors import (
    Invalid,
    collect_findings,
    refusal,
)
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import Instant, audit_parts
from cupel_backend.infrastructure.tables import audits as audit_rows
from cupel_backend.infrastructure.tables import jobs as job_rows
from cupel_backend.infrastructure.tables import qrels as qrels_rows
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_backend.jobs import JobRequest
from cupel_backend.scores import board_analyses, evaluations
from cupel_measures import findings
from cupel_measures.findings import Finding

PREPARE = "audit"
PART = "audit part"
QUEUE = "audit"

MAX_OPEN = 100

AUDIT_UNKNOWN = refusal("audit-unknown")
AUDIT_FORBIDDEN = refusal("audit-forbidden")
AUDIT_INVALID = refusal("audit-invalid")
AUDIT_OVER = refusal("audit-over")
PART_UNKNOWN = refusal("audit-part-unknown")
TOO_MANY_AUDITS = refusal("too-many-audits")
AUDIT_PROBLEM = findings.declare(
    "audit-wrong",
    "error",
    "the request for an audit has a problem",
    "see GET /v1/audits/kinds for the parameters of each kind",
)


@dataclass(frozen=True, kw_only=True)
class HistoryPoint:
    """The value of a number in the report of one audit.

    at: time at which the audit was concluded.
    """

    audit: str
    value: float | None
    qrels: int
    qrels_digest: str
    at: datetime


@dataclass(frozen=True)
class ScheduleSlot:
    """An occasion on which a schedule requests an audit. A slot has at most one audit.

    schedule: id of the schedule. name: text that identifies the slot within the schedule, such as a due time.
    """

    schedule: str
    name: str


# Requesting


def request(
    system: System,
    principal: Principal,
    track: str,
    *,
    kind: str,
    parameters: Mapping[str, Any] | None = None,
    measures: Sequence[str] = (),
    seed: int | None = None,
    qrels: int | None = None,
    other: int | None = None,
    submissions: Sequence[str] = (),
    part_trials: int | None = None,
    slot: ScheduleSlot | None = None,
) -> AuditView:
    """Request an audit of a track. Organisers of the track and admins only.

    measures: texts of measures (default: the plan). seed: random seed (default: derived from the digest of
    the judgments, so that audits of the same judgments are reproducible). qrels: number of a published
    version (default: the current one). other: number of the version to compare with (default, if the kind
    compares two versions: the one that was current before). submissions: ids (default: one submission of each
    run that is scored and not withdrawn). part_trials: maximum number of trials per part. slot: the slot that
    the audit belongs to, if a schedule requests it. Raises Forbidden, NotFound for an unknown version, and
    Invalid with all other problems.
    """
    now = system.now()
    with reading(system.engine) as connection:
        row = find_track(connection, principal, track)
        version = evaluations.find_version(connection, principal, row, qrels)
        if version is None:
            raise evaluations.VERSION_NOT_PUBLISHED(f"the track {track!r} has no current qrels version yet")
        compared = _find_other_version(connection, principal, row, version, kind, other)
        audited, sentences = select_submissions(connection, row, version, submissions)
    texts, *more = _resolve_measures(
        system, row, [version] if compared is None else [version, compared], measures
    )
    problems = [
        *_check_kind(kind, parameters or {}),
        *_check_other_version(kind, version, compared),
        *more,
        *sentences,
    ]
    _raise_problems(problems)
    values = {
        "id": new_id("aud"),
        "track_id": row.id,
        "qrels_id": version.id,
        "other_id": compared and compared.id,
        "team": principal.team,
        "schedule_id": slot and slot.schedule,
        "slot": slot and slot.name,
        "kind": kind,
        "parameters": read_audit(kind, parameters).values,
        "measures": list(texts),
        "seed": board_analyses.derive_seed(version.digest) if seed is None else seed,
        "runs": [[entry.submission, entry.name, entry.team] for entry in audited],
        "part_trials": part_trials,
        "created_at": now,
    }
    with writing(system.engine) as connection:
        _require_quota(connection, row)
        id = _insert_audit(connection, row, values)
        audit = build_view(connection, _read_audit(connection, id))
    system.wake_ups.send(QUEUE)
    return audit


def _find_other_version(
    connection: Connection,
    principal: Principal,
    track: Row[Any],
    version: Row[Any],
    kind: str,
    other: int | None,
) -> Row[Any] | None:
    """Return the version to compare with, or None.

    It is version `other` or, if the kind compares two versions, the one that was current before `version`.
    """
    if other is not None:
        return evaluations.find_version(connection, principal, track, other)
    if kind not in KINDS or not KINDS[kind].needs_other_qrels:
        return None
    earlier = select(qrels_rows).where(
        qrels_rows.c.track_id == version.track_id,
        qrels_rows.c.number < version.number,
        qrels_rows.c.current_since.is_not(None),
    )
    return connection.execute(earlier.order_by(qrels_rows.c.number.desc()).limit(1)).first()


def _check_other_version(kind: str, version: Row[Any], other: Row[Any] | None) -> Iterator[str]:
    """Yield a sentence for each problem with the version to compare with."""
    if other is not None and other.id == version.id:
        yield f"other: version {version.number} cannot be compared with itself; give another version"
    if other is None and kind in KINDS and KINDS[kind].needs_other_qrels:
        yield (
            f"other: {kind} compares two versions, but no version was current before version "
            f"{version.number}; publish another version, or name one"
        )


def _insert_audit(connection: Connection, track: Row[Any], values: dict[str, Any]) -> str:
    id = str(values["id"])
    first = build_job_request(track, PREPARE, id, {"audit": id})
    jobs.enqueue(connection, [first], now=values["created_at"])
    values["job_id"] = read_job_ids(connection, [first.key])[0]
    connection.execute(audit_rows.insert().values(values))
    return id


def build_job_request(track: Row[Any], kind: str, name: str, payload: Mapping[str, Any]) -> JobRequest:
    """Build the job with key `name` that prepares an audit or runs a part of it.

    The jobs of a track's audits have a separate tenant. Tenants take turns, so the board analyses of the
    track do not wait until all parts of an audit are done.
    """
    key, tenant = f"audit/{name}", f"audits of {track.name}"
    return JobRequest(key=key, kind=kind, queue=QUEUE, tenant=tenant, payload=payload, track_id=track.id)


def read_job_ids(connection: Connection, keys: Sequence[str]) -> list[str]:
    """Return the ids of the jobs with these keys, in the same order."""
    rows = connection.execute(select(job_rows.c.key, job_rows.c.id).where(job_rows.c.key.in_(keys)))
    ids = {row.key: row.id for row in rows}
    return [ids[key] for key in keys]


def require_valid(kind: str, parameters: Mapping[str, Any]) -> None:
    """Raise Invalid with all problems of the audit kind and its parameters."""
    _raise_problems(list(_check_kind(kind, parameters)))


def _raise_problems(sentences: Sequence[str]) -> None:
    if sentences:
        listed = collect_findings(Finding(code=AUDIT_PROBLEM, message=sentence) for sentence in sentences)
        raise AUDIT_INVALID("; ".join(sentences[:3]), findings=listed)


def _check_kind(kind: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each problem of the audit kind and its parameters."""
    try:
        read_audit(kind, parameters)
    except AuditError as error:
        yield from error.sentences
    if kind in KINDS and KINDS[kind].needs_texts:
        yield (
            f"kind: {kind} requires the document texts, which the service does not keep; "
            "use `cupel audit` and a collection file that declares `texts`"
        )


def _resolve_measures(
    system: System, track: Row[Any], versions: Sequence[Row[Any]], measures: Sequence[str]
) -> tuple[Any, ...]:
    """Return the canonical texts of the measures, then the problems.

    There is a sentence for each measure that is uncomputable.
    """
    try:
        declared = tracks.parse_aspects(track), track.label_sets or {}
        texts = tuple(tracks.parse_plan(measures, *declared) if measures else track.measures)
    except Invalid as problem:
        return (), problem.detail
    problems = [
        sentence
        for version in versions
        for sentence in tracks.find_uncomputable(system.blobs, version.blob, texts)
    ]
    return texts, *dict.fromkeys(problems)


def _require_quota(connection: Connection, track: Row[Any]) -> None:
    waiting = select(func.count()).where(
        audit_rows.c.track_id == track.id,
        audit_rows.c.concluded_at.is_(None),
        audit_rows.c.cancelled_at.is_(None),
        audit_rows.c.refused.is_(None),
    )
    if connection.execute(waiting).scalar_one() >= MAX_OPEN:
        raise TOO_MANY_AUDITS(f"the track {track.name!r} has {MAX_OPEN} open audits", retry_after=60)


def find_track(connection: Connection, principal: Principal, name: str) -> Row[Any]:
    """Return the row of a track whose audits the caller may manage.

    Raises NotFound or Forbidden.
    """
    row = tracks.find(connection, name)
    if not tracks.is_organiser(principal, row):
        raise AUDIT_FORBIDDEN(f"the track {name!r} belongs to team {row.team}")
    return row


def cancel(system: System, principal: Principal, id: str) -> AuditView:
    """Cancel an audit: remove its queued jobs and stop its running parts.

    Finished trials are kept. Raises Conflict if the audit is done or failed. Repeating this has no effect.
    """
    with writing(system.engine) as connection:
        row = _find_manageable(connection, principal, id)
        unfinished = update(audit_rows).where(audit_rows.c.id == id, audit_rows.c.concluded_at.is_(None))
        since = audit_rows.c.cancelled_at, literal(system.now(), Instant())
        changed = connection.execute(
            unfinished.where(audit_rows.c.refused.is_(None)).values(cancelled_at=func.coalesce(*since))
        )
        if changed.rowcount != 1:
            raise AUDIT_OVER(f"audit {id} is done, failed or cancelled")
        jobs.cancel_waiting(connection, _select_job_ids(row), now=system.now())
        return build_view(connection, _read_audit(connection, id))


def _select_job_ids(audit: Row[Any]) -> Select[Any]:
    """Select the ids of an audit's jobs."""
    preparation = select(audit_rows.c.job_id).where(audit_rows.c.id == audit.id)
    part_jobs = select(audit_parts.c.job_id).where(audit_parts.c.audit_id == audit.id)
    return select(job_rows.c.id).where(or_(job_rows.c.id.in_(preparation), job_rows.c.id.in_(part_jobs)))


def rerun(system: System, principal: Principal, id: str, number: int) -> AuditView:
    """Queue a failed part again; part 0 is the preparation of the subject.

    Raises Conflict if the part has not failed, or if the audit is done, failed or cancelled.
    """
    with reading(system.engine) as connection:
        row = _find_manageable(connection, principal, id)
        if row.cancelled_at is not None or row.concluded_at is not None or row.refused is not None:
            raise AUDIT_OVER(f"audit {id} is done, failed or cancelled")
        matches = and_(audit_parts.c.audit_id == id, audit_parts.c.number == number)
        part_job = connection.execute(select(audit_parts.c.job_id).where(matches)).scalar()
    job = row.job_id if number == 0 else part_job
    if job is None:
        raise PART_UNKNOWN(f"audit {id} has no part {number}")
    jobs.revive(system, principal, job)
    return get(system, principal, id)


def _find_manageable(connection: Connection, principal: Principal, id: str) -> Row[Any]:
    row = find_visible(connection, principal, id)
    find_track(connection, principal, row.track)
    return row


# Reading


def get(system: System, principal: Principal, id: str) -> AuditView:
    """Return an audit.

    Raises NotFound unless the caller may see the leaderboards of its qrels versions.
    """
    with reading(system.engine) as connection:
        return build_view(connection, find_visible(connection, principal, id))


def list_(
    system: System,
    principal: Principal,
    track: str,
    *,
    kind: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> ListPage[AuditView]:
    """List audits of a track, newest first, optionally of one kind only."""
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
        query = _restrict_to_visible(select_audits(), principal, row)
        if kind is not None:
            query = query.where(audit_rows.c.kind == kind)
        rows = fetch_page(connection, query, audit_rows.c.id, lambda row: row, limit=limit, cursor=cursor)
        return ListPage(build_views(connection, rows.items), rows.next)


def read_history(
    system: System, principal: Principal, track: str, *, kind: str, number: str, limit: int = 500
) -> tuple[HistoryPoint, ...]:
    """Return the values of a number in the reports of audits of a kind, oldest first.

    The newest `limit` audits are read.
    """
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
        query = _restrict_to_visible(select_audits(), principal, row)
        query = query.where(audit_rows.c.kind == kind, audit_rows.c.concluded_at.is_not(None))
        rows = connection.execute(query.order_by(audit_rows.c.id.desc()).limit(limit)).all()
    return tuple(
        HistoryPoint(
            audit=audit.id,
            value=audit.numbers[number],
            qrels=audit.version,
            qrels_digest=audit.version_digest,
            at=audit.concluded_at,
        )
        for audit in reversed(rows)
        if number in audit.numbers
    )


def _restrict_to_visible(query: Select[Any], principal: Principal, track: Row[Any]) -> Select[Any]:
    """Restrict a query to those audits of the track that the caller may see.

    These are the audits of versions whose leaderboards the caller may see.
    """
    query = query.where(audit_rows.c.track_id == track.id)
    if tracks.is_organiser(principal, track):
        return query
    shown = or_(audit_rows.c.other_id.is_(None), OTHER.c.current_since.is_not(None))
    return query.where(qrels_rows.c.current_since.is_not(None), shown)


def _read_audit(connection: Connection, id: str) -> Row[Any]:
    return connection.execute(select_audits().where(audit_rows.c.id == id)).one()


def find_visible(connection: Connection, principal: Principal, id: str) -> Row[Any]:
    """Return an audit as a row of `select_audits`.

    Raises NotFound unless the caller may see the audit.
    """
    track = connection.execute(
        select(track_rows)
        .join(audit_rows, audit_rows.c.track_id == track_rows.c.id)
        .where(audit_rows.c.id == id)
    ).first()
    query = select(false()) if track is None else _restrict_to_visible(select_audits(), principal, track)
    row = None if track is None else connection.execute(query.where(audit_rows.c.id == id)).first()
    if row is None:
        raise AUDIT_UNKNOWN(f"audit {id!r} not found, or not visible to you")
    return row
