"""Audits: how far a track's judgments and its board can be trusted.

An audit is a row, and jobs: one that gathers its subject, then one for each part, of some of its trials. Its
report is a function of the trials that are done, so that a partial one is there all along. What is audited is
fixed when it is asked for: whoever withdraws a submission later changes no audit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, Select, and_, false, func, literal, or_, select, update

from cupel_audits import KINDS, AuditError, read
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
from cupel_backend.infrastructure.tables import Instant, audit_parts
from cupel_backend.infrastructure.tables import audits as audit_rows
from cupel_backend.infrastructure.tables import jobs as job_rows
from cupel_backend.infrastructure.tables import qrels as qrels_rows
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_backend.jobs import JobRequest
from cupel_backend.scores import board_analyses, evaluations
from cupel_measures.model import findings
from cupel_measures.model.findings import Finding

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System

PREPARE = "audit"
PART = "audit part"
QUEUE = "audit"

MOST_OPEN = 100
LARGEST_SEED = 2**63 - 1

AUDIT_UNKNOWN = refusal("audit-unknown")
AUDIT_FORBIDDEN = refusal("audit-forbidden")
AUDIT_INVALID = refusal("audit-invalid")
AUDIT_OVER = refusal("audit-over")
PART_UNKNOWN = refusal("audit-part-unknown")
TOO_MANY_AUDITS = refusal("too-many-audits")
WRONG = findings.declare(
    "audit-wrong",
    "error",
    "something about the audit can't be as it was asked for",
    "see GET /v1/audits/kinds for what each kind takes",
)


@dataclass(frozen=True)
class Point:
    """A number of a report, as one audit found it."""

    audit: str
    value: float | None
    qrels: int
    qrels_digest: str
    at: datetime


@dataclass(frozen=True)
class Slot:
    """What a schedule makes an audit for: each once."""

    schedule: str
    name: str


# Asking


def request(
    system: "System",
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
    slot: Slot | None = None,
) -> AuditView:
    """Have a track audited; organisers of the track and admins only.

    measures: default, the plan. seed: default, by the digest of the judgments, so that audits of the same
    ones draw the same. qrels: a published version (default: the current one). other: one to compare it with
    (default, where the kind compares any: the one before). submissions: default, all that are scored and not
    withdrawn, one of each run. part_trials: trials of a part, at most. Raises Forbidden, NotFound for an
    unknown version, Invalid with all else that is wrong.
    """
    now = system.now()
    with reading(system.engine) as connection:
        row = find_track(connection, principal, track)
        version = evaluations.find_version(connection, principal, row, qrels)
        if version is None:
            raise evaluations.VERSION_NOT_PUBLISHED(f"the track {track!r} has no judgments to go by yet")
        compared = _compared(connection, principal, row, version, kind, other)
        entrants, sentences = select_submissions(connection, row, version, submissions)
    texts, *more = _plan(system, row, [one for one in (version, compared) if one is not None], measures)
    wrong = [*_wrong(kind, parameters or {}), *_wrong_other(kind, version, compared), *more, *sentences]
    _require_none(wrong)
    values = {
        "id": new_id("aud"),
        "track_id": row.id,
        "qrels_id": version.id,
        "other_id": compared and compared.id,
        "team": principal.team,
        "schedule_id": slot and slot.schedule,
        "slot": slot and slot.name,
        "kind": kind,
        "parameters": read(kind, parameters).values,
        "measures": list(texts),
        "seed": board_analyses.derive_seed(version.digest) if seed is None else seed,
        "runs": [[one.submission, one.name, one.team] for one in entrants],
        "part_trials": part_trials,
        "created_at": now,
    }
    with writing(system.engine) as connection:
        _require_room(connection, row)
        id = _insert(connection, row, values)
        audit = build_view(connection, _found(connection, id))
    system.wake_ups.send(QUEUE)
    return audit


def _compared(
    connection: Connection,
    principal: Principal,
    track: Row[Any],
    version: Row[Any],
    kind: str,
    other: int | None,
) -> Row[Any] | None:
    """The version to compare with: `other`; else, where the kind compares any, the one current before."""
    if other is not None:
        return evaluations.find_version(connection, principal, track, other)
    if kind not in KINDS or not KINDS[kind].compares:
        return None
    earlier = select(qrels_rows).where(
        qrels_rows.c.track_id == version.track_id,
        qrels_rows.c.number < version.number,
        qrels_rows.c.current_since.is_not(None),
    )
    return connection.execute(earlier.order_by(qrels_rows.c.number.desc()).limit(1)).first()


def _wrong_other(kind: str, version: Row[Any], other: Row[Any] | None) -> Iterator[str]:
    """What is wrong with what the version is to be compared with, in sentences."""
    if other is not None and other.id == version.id:
        yield f"qrels {version.number} are compared with themselves: give another version as `other`"
    if other is None and kind in KINDS and KINDS[kind].compares:
        yield (
            f"it compares two versions of the judgments, and none was current before qrels {version.number}: "
            "publish a second one, or give one as `other`"
        )


def _insert(connection: Connection, track: Row[Any], values: dict[str, Any]) -> str:
    id = str(values["id"])
    first = build_job_request(track, PREPARE, id, {"audit": id})
    jobs.enqueue(connection, [first], now=values["created_at"])
    values["job_id"] = read_job_ids(connection, [first.key])[0]
    connection.execute(audit_rows.insert().values(values))
    return id


def build_job_request(track: Row[Any], kind: str, name: str, payload: Mapping[str, Any]) -> JobRequest:
    """The job of an audit, or of a part of it, that `name` says.

    Its tenant is not that of the track's analyses, so that a board never waits for a whole audit.
    """
    key, tenant = f"audit/{name}", f"audits of {track.name}"
    return JobRequest(key, kind, QUEUE, tenant=tenant, payload=payload, track_id=track.id)


def read_job_ids(connection: Connection, keys: Sequence[str]) -> list[str]:
    """The ids of the jobs of these keys, in the same order."""
    rows = connection.execute(select(job_rows.c.key, job_rows.c.id).where(job_rows.c.key.in_(keys)))
    ids = {row.key: row.id for row in rows}
    return [ids[key] for key in keys]


def require_valid(kind: str, parameters: Mapping[str, Any]) -> None:
    """Raise Invalid with all that is wrong with kind and parameters."""
    _require_none(list(_wrong(kind, parameters)))


def _require_none(sentences: Sequence[str]) -> None:
    if sentences:
        listed = collect_findings(Finding(WRONG, sentence) for sentence in sentences)
        raise AUDIT_INVALID("; ".join(sentences[:3]), findings=listed)


def _wrong(kind: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with kind and parameters, in sentences."""
    try:
        read(kind, parameters)
    except AuditError as error:
        yield from error.sentences
    if kind in KINDS and KINDS[kind].texts:
        yield (
            f"{kind} needs the texts of the documents, which the service does not keep: "
            "do it with `cupel audit` and a collection file that names them as `texts`"
        )


def _plan(
    system: "System", track: Row[Any], versions: Sequence[Row[Any]], measures: Sequence[str]
) -> tuple[Any, ...]:
    """The canonical texts of the measures; then a sentence for each that can't be had."""
    try:
        declared = tracks.parse_aspects(track), track.label_sets or {}
        texts = tuple(tracks.parse_plan(measures, *declared) if measures else track.measures)
    except Invalid as problem:
        return (), problem.detail
    lacking = [one for of in versions for one in tracks.find_uncomputable(system.blobs, of.blob, texts)]
    return texts, *dict.fromkeys(lacking)


def _require_room(connection: Connection, track: Row[Any]) -> None:
    waiting = select(func.count()).where(
        audit_rows.c.track_id == track.id,
        audit_rows.c.concluded_at.is_(None),
        audit_rows.c.cancelled_at.is_(None),
        audit_rows.c.refused.is_(None),
    )
    if connection.execute(waiting).scalar_one() >= MOST_OPEN:
        raise TOO_MANY_AUDITS(f"{MOST_OPEN} audits of {track.name} are waiting", retry_after=60)


def find_track(connection: Connection, principal: Principal, name: str) -> Row[Any]:
    """The row of a track that the caller may have audited; NotFound or Forbidden else."""
    row = tracks.find(connection, name)
    if not tracks.is_organiser(principal, row):
        raise AUDIT_FORBIDDEN(f"the track {name!r} belongs to the team {row.team}")
    return row


def cancel(system: "System", principal: Principal, id: str) -> AuditView:
    """Stop an audit: what waits is taken off, what runs ends soon, what is done stays.

    Raises Conflict if it is over. Cancelling it again changes nothing.
    """
    with writing(system.engine) as connection:
        row = _managed(connection, principal, id)
        here = update(audit_rows).where(audit_rows.c.id == id, audit_rows.c.concluded_at.is_(None))
        since = audit_rows.c.cancelled_at, literal(system.now(), Instant())
        changed = connection.execute(
            here.where(audit_rows.c.refused.is_(None)).values(cancelled_at=func.coalesce(*since))
        )
        if changed.rowcount != 1:
            raise AUDIT_OVER(f"{id} is over")
        jobs.cancel_waiting(connection, _job_ids(row), now=system.now())
        return build_view(connection, _found(connection, id))


def _job_ids(audit: Row[Any]) -> Select[Any]:
    """The jobs of an audit."""
    gathers = select(audit_rows.c.job_id).where(audit_rows.c.id == audit.id)
    of_parts = select(audit_parts.c.job_id).where(audit_parts.c.audit_id == audit.id)
    return select(job_rows.c.id).where(or_(job_rows.c.id.in_(gathers), job_rows.c.id.in_(of_parts)))


def rerun(system: "System", principal: Principal, id: str, number: int) -> AuditView:
    """Try a part again that was given up; 0 is the gathering. Conflict where it was not, or all is over."""
    with reading(system.engine) as connection:
        row = _managed(connection, principal, id)
        if row.cancelled_at is not None or row.concluded_at is not None or row.refused is not None:
            raise AUDIT_OVER(f"{id} is over")
        here = and_(audit_parts.c.audit_id == id, audit_parts.c.number == number)
        of_part = connection.execute(select(audit_parts.c.job_id).where(here)).scalar()
    job = row.job_id if number == 0 else of_part
    if job is None:
        raise PART_UNKNOWN(f"{id} has no part {number}")
    jobs.revive(system, principal, job)
    return get(system, principal, id)


def _managed(connection: Connection, principal: Principal, id: str) -> Row[Any]:
    row = find_visible(connection, principal, id)
    find_track(connection, principal, row.track)
    return row


# Looking


def get(system: "System", principal: Principal, id: str) -> AuditView:
    """The audit, to everybody who may see the board of its judgments; NotFound else."""
    with reading(system.engine) as connection:
        return build_view(connection, find_visible(connection, principal, id))


def list_(
    system: "System",
    principal: Principal,
    track: str,
    *,
    kind: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> ListPage[AuditView]:
    """Audits of a track, newest first; maybe of one kind only."""
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
        query = _readable(select_audits(), principal, row)
        if kind is not None:
            query = query.where(audit_rows.c.kind == kind)
        rows = fetch_page(connection, query, audit_rows.c.id, lambda one: one, limit=limit, cursor=cursor)
        return ListPage(build_views(connection, rows.items), rows.next)


def read_history(
    system: "System", principal: Principal, track: str, *, kind: str, number: str, limit: int = 500
) -> tuple[Point, ...]:
    """A number of the reports of one kind over time and qrels versions: newest audits, oldest first."""
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
        query = _readable(select_audits(), principal, row)
        query = query.where(audit_rows.c.kind == kind, audit_rows.c.concluded_at.is_not(None))
        rows = connection.execute(query.order_by(audit_rows.c.id.desc()).limit(limit)).all()
    return tuple(
        Point(one.id, one.numbers[number], one.version, one.version_digest, one.concluded_at)
        for one in reversed(rows)
        if number in one.numbers
    )


def _readable(query: Select[Any], principal: Principal, track: Row[Any]) -> Select[Any]:
    """The audits of a track that the caller may see: those of boards that are, or were, shown."""
    query = query.where(audit_rows.c.track_id == track.id)
    if tracks.is_organiser(principal, track):
        return query
    shown = or_(audit_rows.c.other_id.is_(None), OTHER.c.current_since.is_not(None))
    return query.where(qrels_rows.c.current_since.is_not(None), shown)


def _found(connection: Connection, id: str) -> Row[Any]:
    return connection.execute(select_audits().where(audit_rows.c.id == id)).one()


def find_visible(connection: Connection, principal: Principal, id: str) -> Row[Any]:
    """The row of an audit that the caller may see, with what else is shown of it; NotFound else."""
    track = connection.execute(
        select(track_rows)
        .join(audit_rows, audit_rows.c.track_id == track_rows.c.id)
        .where(audit_rows.c.id == id)
    ).first()
    query = select(false()) if track is None else _readable(select_audits(), principal, track)
    row = None if track is None else connection.execute(query.where(audit_rows.c.id == id)).first()
    if row is None:
        raise AUDIT_UNKNOWN(f"there is no audit {id!r} that you may see")
    return row
