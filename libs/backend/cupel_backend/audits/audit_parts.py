"""Execution of audits, from the preparation of the subject to the report.

The subject of an audit is the runs and judgments that it covers. A part is a group of trials, which one job
runs.
"""

import json
import logging
import os
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, and_, exists, select, update

from cupel_audits import Audit, AuditError, execution, read_audit, subject_files
from cupel_audits.declarations import check_audit
from cupel_audits.execution import Result
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_audits.subject_files import NamedQrels
from cupel_backend import jobs
from cupel_backend.access import Principal
from cupel_backend.audits import audit_alerts, audit_requests
from cupel_backend.infrastructure.database import reading, writing
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.object_store import Blobs
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import JOB_STATES, audit_parts, runs, submissions
from cupel_backend.infrastructure.tables import audits as audit_rows
from cupel_backend.infrastructure.tables import jobs as job_rows
from cupel_backend.infrastructure.tables import qrels as qrels_rows
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_backend.jobs import Claim
from cupel_backend.scores import evaluations
from cupel_measures.catalogue.parser import parse
from cupel_measures.model import profiles
from cupel_measures.reading.run_files import unpack
from cupel_measures.scoring.evaluator import SCORING_VERSION

log = logging.getLogger(__name__)

T = TypeVar("T")

POLL_SECONDS = 0.05
"""Minimum time between two checks whether a running part should stop. Checks happen between trials."""

MAX_TRIALS = 20_000
"""Maximum number of trials of an audit, because its report needs all their results in memory."""

OTHER_TOPICS = (
    "an earlier release prepared the audit with topics that have no judgments; request the audit again"
)
"""Problem of an audit that an earlier release prepared and that this release cannot finish."""

NICENESS = 15
"""Niceness of threads that run audits, so that requests and scoring get the processor first."""

REPORT_NOT_BEGUN = refusal("audit-not-begun")
TABLE_UNKNOWN = refusal("audit-table-unknown")


# Preparing


@dataclass(frozen=True, kw_only=True)
class _AuditInput:
    """The input of an audit job, read at its start."""

    audit: Row[Any]
    track: Row[Any]
    version: Row[Any]
    other: Row[Any] | None
    rankings: Mapping[str, str]
    """Submission id -> key of the blob with its ranking."""


def prepare_audit(system: System, claim: Claim) -> None:
    """Handle a claimed job: prepare the subject of an audit, and queue its parts.

    The parts are written and the job is finished in one transaction. Raises `jobs.LeaseLost`.
    """
    with reading(system.engine) as connection:
        inputs = _read_input(connection, claim.payload["audit"])
    if inputs.audit.cancelled_at is None:
        try:
            prepared = _run_at_low_priority(lambda: _prepare(system, inputs))
        except AuditError as error:
            _refuse(system, claim, inputs, error)
        else:
            _queue_parts(system, claim, inputs, *prepared)
    else:
        _finish_job(system, claim)
    system.metrics.observe_job_wait(queue=claim.queue, waited=system.now() - claim.created_at)


def _read_input(connection: Connection, id: str) -> _AuditInput:
    audit = connection.execute(select(audit_rows).where(audit_rows.c.id == id)).one()
    track = connection.execute(select(track_rows).where(track_rows.c.id == audit.track_id)).one()
    versions = select(qrels_rows).where(qrels_rows.c.id.in_([audit.qrels_id, audit.other_id]))
    known = {row.id: row for row in connection.execute(versions)}
    blobs = (
        select(submissions.c.id, runs.c.ranking_blob)
        .join(runs, runs.c.id == submissions.c.run_id)
        .where(submissions.c.id.in_([id for id, _, _ in audit.runs]))
    )
    rankings = {row.id: row.ranking_blob for row in connection.execute(blobs)}
    return _AuditInput(
        audit=audit,
        track=track,
        version=known[audit.qrels_id],
        other=known.get(audit.other_id),
        rankings=rankings,
    )


def _prepare(system: System, inputs: _AuditInput) -> tuple[SubjectSummary, str, int, tuple[range, ...]]:
    """Store the subject, and divide the trials into parts.

    Returns the summary of the subject, its blob key, the number of trials, and the trials of each part.
    Raises AuditError if the subject cannot be audited.
    """
    audit, track = read_audit(inputs.audit.kind, inputs.audit.parameters), inputs.track
    judged = _load_judgments(system.blobs, inputs.version)
    other = None if inputs.other is None else _load_judgments(system.blobs, inputs.other)
    run_views = [
        (
            name,
            subject_files.view_of(
                unpack(system.blobs.get(inputs.rankings[submission])),
                judged.qrels,
                profile=profiles.find(track.profile),
                depth=track.depth,
                top=audit.ranking_depth(),
                other=None if other is None else other.qrels,
            ),
        )
        for submission, name, _ in inputs.audit.runs
    ]
    measures = [parse(text) for text in inputs.audit.measures]
    teams = [team for _, _, team in inputs.audit.runs]
    subject = subject_files.assemble_subject(
        judged, run_views, measures, teams=teams, depth=track.depth, top=audit.ranking_depth(), other=other
    )
    check_audit(audit, subject)
    if (trials := audit.trials(subject)) > MAX_TRIALS:
        raise AuditError([f"the audit has {trials:,} trials; the limit is {MAX_TRIALS:,}"])
    key = _store(system, subject_files.pack(subject))
    parts = execution.parts(audit, subject, most=inputs.audit.part_trials)
    return subject.about, key, trials, parts


def _load_judgments(blobs: Blobs, version: Row[Any]) -> NamedQrels:
    return NamedQrels(f"qrels {version.number}", evaluations.load_qrels(blobs, version.blob))


def _store(system: System, content: bytes) -> str:
    with TemporaryDirectory(dir=system.settings.incoming) as folder:
        path = Path(folder) / "subject"
        path.write_bytes(content)
        return system.blobs.put_file(path, sha256(content).hexdigest())


def _queue_parts(
    system: System,
    claim: Claim,
    inputs: _AuditInput,
    about: SubjectSummary,
    key: str,
    trials: int,
    parts: tuple[range, ...],
) -> None:
    """Finish the job; write the prepared subject and queue its parts.

    The subject is not written, and no parts are queued, if the audit was cancelled.
    """
    id, now = inputs.audit.id, system.now()
    job_requests = [
        audit_requests.build_job_request(
            inputs.track, audit_requests.PART, f"{id}/{number}", {"audit": id, "part": number}
        )
        for number in range(1, len(parts) + 1)
    ]
    gathered = {"about": about.as_data(), "subject_blob": key, "trials": trials}
    matches = and_(audit_rows.c.id == id, audit_rows.c.cancelled_at.is_(None))
    with writing(system.engine) as connection:
        jobs.finish(connection, claim, now=now)
        if connection.execute(update(audit_rows).where(matches).values(gathered)).rowcount != 1:
            return
        jobs.enqueue(connection, job_requests, now=now)
        ids = audit_requests.read_job_ids(connection, [job.key for job in job_requests])
        rows = [
            {
                "audit_id": id,
                "number": number,
                "first": part.start,
                "trials": len(part),
                "job_id": job,
                "done": 0,
            }
            for number, (part, job) in enumerate(zip(parts, ids, strict=True), 1)
        ]
        connection.execute(audit_parts.insert(), rows)
    system.wake_ups.send(audit_requests.QUEUE, times=len(parts))


def _refuse(system: System, claim: Claim, inputs: _AuditInput, error: AuditError) -> None:
    """Record why the subject cannot be audited, and finish the job.

    A retry would not help.
    """
    statement = update(audit_rows).where(audit_rows.c.id == inputs.audit.id)
    with writing(system.engine) as connection:
        jobs.finish(connection, claim, now=system.now())
        connection.execute(statement.values(refused=list(error.sentences)))


def _finish_job(system: System, claim: Claim) -> None:
    with writing(system.engine) as connection:
        jobs.finish(connection, claim, now=system.now())


# Parts


def run_part(system: System, claim: Claim) -> None:
    """Handle a claimed job: run the remaining trials of a part.

    The part is postponed when urgent work waits. Results are stored in both cases. Raises `jobs.JobPostponed`
    if the part is postponed, and `jobs.LeaseLost`.
    """
    id, number = claim.payload["audit"], claim.payload["part"]
    matches = and_(audit_parts.c.audit_id == id, audit_parts.c.number == number)
    with reading(system.engine) as connection:
        part = connection.execute(select(audit_parts).where(matches)).one()
        inputs = _read_input(connection, id)
    results = unpack_results(part.results)
    left = [trial for trial in range(part.first, part.first + part.trials) if trial not in results]
    try:
        results |= _run_at_low_priority(lambda: dict(_run_until_interrupted(system, claim, inputs, left)))
    except AuditError as error:
        _refuse(system, claim, inputs, error)
        return
    ended = len(results) == part.trials or _is_cancelled(system, id)
    with writing(system.engine) as connection:
        if ended:
            jobs.finish(connection, claim, now=system.now())
        else:
            jobs.postpone(connection, claim)
        kept = {"results": pack_results(results), "done": len(results)}
        connection.execute(update(audit_parts).where(matches).values(kept))
    if not ended:
        raise jobs.JobPostponed(claim.id)
    system.metrics.observe_job_wait(queue=claim.queue, waited=system.now() - claim.created_at)
    conclude(system, id)


def _run_until_interrupted(
    system: System, claim: Claim, inputs: _AuditInput, trials: list[int]
) -> Iterator[tuple[int, Any]]:
    """Run trials until urgent work waits or the audit is cancelled.

    Yields each trial with its result. At least one trial is run, unless the audit was cancelled before.
    """
    if inputs.audit.cancelled_at is not None or not trials:
        return
    audit, subject = (
        read_audit(inputs.audit.kind, inputs.audit.parameters),
        _load_subject(system.blobs, inputs),
    )
    polled_at = monotonic()
    for trial, result in execution.run_trials(audit, subject, inputs.audit.seed, trials):
        yield trial, result
        if monotonic() - polled_at > POLL_SECONDS:
            if jobs.should_postpone(system, claim) or _is_cancelled(system, inputs.audit.id):
                return
            polled_at = monotonic()


def _is_cancelled(system: System, id: str) -> bool:
    query = select(audit_rows.c.id).where(audit_rows.c.id == id, audit_rows.c.cancelled_at.is_not(None))
    with reading(system.engine) as connection:
        return connection.execute(query).first() is not None


def _load_subject(blobs: Blobs, inputs: _AuditInput) -> AuditSubject:
    """Return the prepared subject.

    Raises AuditError if its topics are not those of the qrels. Earlier releases prepared subjects that
    included topics without judgments.
    """
    other = None if inputs.other is None else inputs.other.blob
    subject = _unpack_subject(blobs, inputs.audit.subject_blob, inputs.version.blob, other)
    for part in filter(None, (subject, subject.other_subject)):
        if part.about.topics != part.qrels.topics:
            raise AuditError([OTHER_TOPICS])
    return subject


@lru_cache(maxsize=1)
def _unpack_subject(blobs: Blobs, key: str, version: str, other: str | None) -> AuditSubject:
    """Unpack a subject.

    The last subject is cached, because parts of an audit run one after another.
    """
    compared = None if other is None else evaluations.load_qrels(blobs, other)
    return subject_files.unpack(blobs.get(key), evaluations.load_qrels(blobs, version), compared)


def pack_results(results: Mapping[int, Any]) -> bytes:
    """Pack results of trials for storage."""
    return zlib.compress(json.dumps(results, allow_nan=False).encode(), 1)


def unpack_results(packed: bytes | None) -> dict[int, Any]:
    """Unpack results that `pack_results` packed."""
    values = {} if packed is None else json.loads(zlib.decompress(packed))
    return {int(trial): result for trial, result in values.items()}


def _run_at_low_priority(call: Callable[[], T]) -> T:
    """Call `call` in a low-priority thread and return its result."""
    with ThreadPoolExecutor(1, initializer=_lower_priority) as pool:
        return pool.submit(call).result()


def _lower_priority() -> None:
    with suppress(OSError):  # some platforms have no niceness per thread
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


# Reporting


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The origin of a result. Neither the result nor its digest contains it."""

    audit: str
    track: str
    qrels: int
    qrels_digest: str
    scoring_version: int
    created_at: datetime
    concluded_at: datetime | None


def read_report(system: System, principal: Principal, id: str) -> tuple[Result, Provenance]:
    """Return the result of the finished trials, and its provenance.

    Raises NotFound if no trial is finished or the subject could not be audited.
    """
    with reading(system.engine) as connection:
        row = audit_requests.find_visible(connection, principal, id)
        results = _read_results(connection, row)
    if row.refused:
        raise REPORT_NOT_BEGUN(f"audit {id} failed: {'; '.join(row.refused)}")
    if not results:
        raise REPORT_NOT_BEGUN(f"audit {id} has no finished trials yet")
    origin = Provenance(
        audit=row.id,
        track=row.track,
        qrels=row.version,
        qrels_digest=row.version_digest,
        scoring_version=SCORING_VERSION,
        created_at=row.created_at,
        concluded_at=row.concluded_at,
    )
    return _compute_result(row, results), origin


def _read_results(connection: Connection, audit: Row[Any]) -> dict[int, Any]:
    """Read the results of the finished trials."""
    rows = connection.execute(select(audit_parts.c.results).where(audit_parts.c.audit_id == audit.id))
    return {trial: result for row in rows for trial, result in unpack_results(row.results).items()}


def _compute_result(audit: Row[Any], results: Mapping[int, Any]) -> Result:
    kind: Audit = read_audit(audit.kind, audit.parameters)
    return execution.result(kind, SubjectSummary.of(audit.about), audit.seed, audit.trials, results)


FIRST_TABLE = "points"
"""Name that selects the first table of any report."""


def export_table(result: Result, name: str) -> str:
    """Return a table of a report as CSV; raises NotFound for an unknown name."""
    assert result.report is not None
    tables = {table.name: table for table in result.report.tables}
    chosen = next(iter(tables)) if name == FIRST_TABLE and name not in tables else name
    if chosen not in tables:
        raise TABLE_UNKNOWN(f"unknown table {chosen!r}; use one of {', '.join(tables)}")
    return tables[chosen].as_csv()


def conclude(system: System, id: str) -> bool:
    """Store the summary of an audit once all its parts are done.

    Returns whether this call stored it. Call it after every event that may complete the audit. The scheduler
    makes up for missed calls. If the report cannot be computed, the error is stored as a problem of the
    audit. So the scheduler does not retry it forever.
    """
    with reading(system.engine) as connection:
        row = connection.execute(_select_due().where(audit_rows.c.id == id)).first()
        results = {} if row is None else _read_results(connection, row)
    if row is None or not results:
        return False
    now = system.now()
    try:
        values = _summarise(_compute_result(row, results)) | {"concluded_at": now}
    except Exception as error:
        log.exception("the report of audit %s failed", id)
        values = {"refused": [f"the report failed ({type(error).__name__}: {error})"]}
    matches = and_(
        audit_rows.c.id == id, audit_rows.c.concluded_at.is_(None), audit_rows.c.cancelled_at.is_(None)
    )
    with writing(system.engine) as connection:
        concluded = connection.execute(update(audit_rows).where(matches).values(values)).rowcount == 1
        audit_alerts.check_track(connection, row.track_id, now)
        return concluded


def _summarise(result: Result) -> dict[str, Any]:
    """Return the columns that summarise a complete result."""
    assert result.report is not None
    return {
        "digest": result.as_data()["digest"],
        "verdict": list(result.report.verdict),
        "numbers": dict(result.report.numbers),
    }


def conclude_all(system: System) -> int:
    """Call `conclude` for every audit that is due.

    This is needed when a worker died before its call.
    """
    with reading(system.engine) as connection:
        ids = [row.id for row in connection.execute(_select_due())]
    return sum(conclude(system, id) for id in ids)


def _select_due() -> Any:
    """Select the audits to conclude.

    Their subject is prepared, all their parts are done, and they are neither concluded, cancelled nor
    refused.
    """
    open_parts = exists().where(
        audit_parts.c.audit_id == audit_rows.c.id,
        job_rows.c.id == audit_parts.c.job_id,
        ~JOB_STATES["done"],
    )
    return select(audit_rows).where(
        audit_rows.c.trials.is_not(None),
        audit_rows.c.concluded_at.is_(None),
        audit_rows.c.cancelled_at.is_(None),
        audit_rows.c.refused.is_(None),
        ~open_parts,
    )
