"""The working of audits: gathering the subject, doing parts, and the report on what is done."""

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
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, Row, and_, exists, select, update

from cupel_audits import Audit, AuditError, execution, read, subject_files
from cupel_audits.declarations import require
from cupel_audits.execution import Result
from cupel_audits.subject import About, AuditSubject
from cupel_audits.subject_files import GatheredJudgments
from cupel_backend import jobs
from cupel_backend.access import Principal
from cupel_backend.audits import audit_alerts, audit_requests
from cupel_backend.infrastructure.database import reading, writing
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.object_store import Blobs
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

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System

log = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_SECONDS = 0.05
"""How often, between trials, a part looks whether it should stop."""

MOST_TRIALS = 20_000
"""Of an audit: a report is made of all of their results at once."""

NICENESS = 15
"""Of the threads that audit: whoever answers or scores has the processor first."""

REPORT_NOT_BEGUN = refusal("audit-not-begun")
TABLE_UNKNOWN = refusal("audit-table-unknown")


# Gathering


@dataclass(frozen=True)
class _Work:
    """What the gathering of an audit needs to know, read at its start."""

    audit: Row[Any]
    track: Row[Any]
    version: Row[Any]
    other: Row[Any] | None
    rankings: Mapping[str, str]
    """Blob by submission."""


def prepare_audit(system: "System", claim: Claim) -> None:
    """Do a claimed job: gather the subject of an audit, and queue its parts.

    The parts and the end of the job are one transaction.
    Raises `jobs.LeaseLost` if the job is no longer ours.
    """
    with reading(system.engine) as connection:
        work = _work(connection, claim.payload["audit"])
    if work.audit.cancelled_at is None:
        try:
            found = _modestly(lambda: _gathered(system, work))
        except AuditError as error:
            _refuse(system, claim, work, error)
        else:
            _begin(system, claim, work, *found)
    else:
        _end(system, claim)
    system.metrics.observe_job_wait(queue=claim.queue, waited=system.now() - claim.created_at)


def _work(connection: Connection, id: str) -> _Work:
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
    return _Work(audit, track, known[audit.qrels_id], known.get(audit.other_id), rankings)


def _gathered(system: "System", work: _Work) -> tuple[About, str, int, tuple[range, ...]]:
    """What is known of the subject, the key of its blob, the number of trials, and the parts; AuditError."""
    audit, track = read(work.audit.kind, work.audit.parameters), work.track
    judged = _judgments(system.blobs, work.version)
    other = None if work.other is None else _judgments(system.blobs, work.other)
    seen = [
        (
            name,
            subject_files.see(
                unpack(system.blobs.get(work.rankings[submission])),
                judged.qrels,
                profile=profiles.find(track.profile),
                depth=track.depth,
                top=audit.top(),
                other=None if other is None else other.qrels,
            ),
        )
        for submission, name, _ in work.audit.runs
    ]
    measures = [parse(text) for text in work.audit.measures]
    teams = [team for _, _, team in work.audit.runs]
    subject = subject_files.gather(
        judged, seen, measures, teams=teams, depth=track.depth, top=audit.top(), other=other
    )
    require(audit, subject)
    if (trials := audit.trials(subject)) > MOST_TRIALS:
        raise AuditError(
            [f"it has {trials:,} trials, and at most {MOST_TRIALS:,} are done here: ask for fewer"]
        )
    key = _store(system, subject_files.pack(subject))
    parts = execution.parts(audit, subject, most=work.audit.part_trials)
    return subject.about, key, trials, parts


def _judgments(blobs: Blobs, version: Row[Any]) -> GatheredJudgments:
    return GatheredJudgments(f"qrels {version.number}", evaluations.load_qrels(blobs, version.blob))


def _store(system: "System", content: bytes) -> str:
    with TemporaryDirectory(dir=system.settings.incoming) as folder:
        path = Path(folder) / "subject"
        path.write_bytes(content)
        return system.blobs.put_file(path, sha256(content).hexdigest())


def _begin(
    system: "System", claim: Claim, work: _Work, about: About, key: str, trials: int, parts: tuple[range, ...]
) -> None:
    """Write what was gathered, and the parts; only the end of the job if it was cancelled meanwhile."""
    id, now = work.audit.id, system.now()
    wanted = [
        audit_requests.build_job_request(
            work.track, audit_requests.PART, f"{id}/{number}", {"audit": id, "part": number}
        )
        for number in range(1, len(parts) + 1)
    ]
    gathered = {"about": about.as_data(), "subject_blob": key, "trials": trials}
    here = and_(audit_rows.c.id == id, audit_rows.c.cancelled_at.is_(None))
    with writing(system.engine) as connection:
        jobs.finish(connection, claim, now=now)
        if connection.execute(update(audit_rows).where(here).values(gathered)).rowcount != 1:
            return
        jobs.enqueue(connection, wanted, now=now)
        ids = audit_requests.read_job_ids(connection, [one.key for one in wanted])
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


def _refuse(system: "System", claim: Claim, work: _Work, error: AuditError) -> None:
    """Note why it can't be done: trying again would not help."""
    here = update(audit_rows).where(audit_rows.c.id == work.audit.id)
    with writing(system.engine) as connection:
        jobs.finish(connection, claim, now=system.now())
        connection.execute(here.values(refused=list(error.sentences)))


def _end(system: "System", claim: Claim) -> None:
    with writing(system.engine) as connection:
        jobs.finish(connection, claim, now=system.now())


# Parts


def run_part(system: "System", claim: Claim) -> None:
    """Do a claimed job: the trials of a part that are not done yet, until something else matters more.

    What is done is written when the part ends, and when it is postponed for an urgent job.
    Raises `jobs.LeaseLost` if the job is no longer ours.
    """
    id, number = claim.payload["audit"], claim.payload["part"]
    here = and_(audit_parts.c.audit_id == id, audit_parts.c.number == number)
    with reading(system.engine) as connection:
        part = connection.execute(select(audit_parts).where(here)).one()
        work = _work(connection, id)
    found = unpack_results(part.results)
    left = [trial for trial in range(part.first, part.first + part.trials) if trial not in found]
    found |= _modestly(lambda: dict(_until_disturbed(system, claim, work, left)))
    ended = len(found) == part.trials or _is_cancelled(system, id)
    with writing(system.engine) as connection:
        if ended:
            jobs.finish(connection, claim, now=system.now())
        else:
            jobs.postpone(connection, claim)
        kept = {"results": pack_results(found), "done": len(found)}
        connection.execute(update(audit_parts).where(here).values(kept))
    if not ended:
        raise jobs.JobPostponed(claim.id)
    system.metrics.observe_job_wait(queue=claim.queue, waited=system.now() - claim.created_at)
    conclude(system, id)


def _until_disturbed(
    system: "System", claim: Claim, work: _Work, trials: list[int]
) -> Iterator[tuple[int, Any]]:
    """The results of trials, one after another, at least one, until there is a reason to stop."""
    if work.audit.cancelled_at is not None or not trials:
        return
    audit, subject = read(work.audit.kind, work.audit.parameters), _subject(system.blobs, work)
    looked = monotonic()
    for trial, result in execution.work(audit, subject, work.audit.seed, trials):
        yield trial, result
        if monotonic() - looked > LOOK_SECONDS:
            if jobs.should_postpone(system, claim) or _is_cancelled(system, work.audit.id):
                return
            looked = monotonic()


def _is_cancelled(system: "System", id: str) -> bool:
    query = select(audit_rows.c.id).where(audit_rows.c.id == id, audit_rows.c.cancelled_at.is_not(None))
    with reading(system.engine) as connection:
        return connection.execute(query).first() is not None


def _subject(blobs: Blobs, work: _Work) -> AuditSubject:
    other = None if work.other is None else work.other.blob
    return _unpacked(blobs, work.audit.subject_blob, work.version.blob, other)


@lru_cache(maxsize=1)
def _unpacked(blobs: Blobs, key: str, version: str, other: str | None) -> AuditSubject:
    """The subject that was worked on last: the parts of an audit come one after another."""
    compared = None if other is None else evaluations.load_qrels(blobs, other)
    return subject_files.unpack(blobs.get(key), evaluations.load_qrels(blobs, version), compared)


def pack_results(found: Mapping[int, Any]) -> bytes:
    """Results of trials as a part keeps them."""
    return zlib.compress(json.dumps(found, allow_nan=False).encode(), 1)


def unpack_results(results: bytes | None) -> dict[int, Any]:
    """What `pack_results` was given."""
    told = {} if results is None else json.loads(zlib.decompress(results))
    return {int(trial): result for trial, result in told.items()}


def _modestly(call: Callable[[], T]) -> T:
    """What `call` returns, done by a thread that leaves the processor to others."""
    with ThreadPoolExecutor(1, initializer=_step_back) as one:
        return one.submit(call).result()


def _step_back() -> None:
    with suppress(OSError):  # where threads have no niceness of their own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


# Reporting


@dataclass(frozen=True)
class Provenance:
    """Where a result comes from; none of it is part of the result."""

    audit: str
    track: str
    qrels: int
    qrels_digest: str
    scoring_version: int
    created_at: datetime
    concluded_at: datetime | None


def read_report(system: "System", principal: Principal, id: str) -> tuple[Result, Provenance]:
    """What the trials that are done say; NotFound while there are none."""
    with reading(system.engine) as connection:
        row = audit_requests.find_visible(connection, principal, id)
        found = _found(connection, row)
    if row.refused:
        raise REPORT_NOT_BEGUN(f"{id} came to nothing: {'; '.join(row.refused)}")
    if not found:
        raise REPORT_NOT_BEGUN(f"no trial of {id} is done yet")
    origin = Provenance(
        row.id,
        row.track,
        row.version,
        row.version_digest,
        SCORING_VERSION,
        row.created_at,
        row.concluded_at,
    )
    return _result(row, found), origin


def _found(connection: Connection, audit: Row[Any]) -> dict[int, Any]:
    """The results of the trials that are done."""
    rows = connection.execute(select(audit_parts.c.results).where(audit_parts.c.audit_id == audit.id))
    return {trial: one for row in rows for trial, one in unpack_results(row.results).items()}


def _result(audit: Row[Any], found: Mapping[int, Any]) -> Result:
    kind: Audit = read(audit.kind, audit.parameters)
    return execution.result(kind, About.of(audit.about), audit.seed, audit.trials, found)


FIRST = "points"
"""What may be said for the first table of any report."""


def export_table(result: Result, name: str) -> str:
    """A table of a report as CSV; NotFound if there is none of the name."""
    assert result.report is not None
    tables = {one.name: one for one in result.report.tables}
    chosen = next(iter(tables)) if name == FIRST and name not in tables else name
    if chosen not in tables:
        raise TABLE_UNKNOWN(f"there is no table {chosen!r}; there are {', '.join(tables)}")
    return tables[chosen].as_csv()


def conclude(system: "System", id: str) -> bool:
    """Note what an audit came to, if all its parts are done; returns whether it is new.

    Called after anything that may have been the last thing to wait for; whatever was missed, the tick finds.
    Where the report itself fails, that is what it came to: whoever waits is told, and the tick goes on.
    """
    with reading(system.engine) as connection:
        row = connection.execute(_due().where(audit_rows.c.id == id)).first()
        found = {} if row is None else _found(connection, row)
    if row is None or not found:
        return False
    now = system.now()
    try:
        told = _told(_result(row, found)) | {"concluded_at": now}
    except Exception as error:
        log.exception("the report of %s failed", id)
        told = {"refused": [f"its report could not be made ({type(error).__name__}: {error})"]}
    here = and_(
        audit_rows.c.id == id, audit_rows.c.concluded_at.is_(None), audit_rows.c.cancelled_at.is_(None)
    )
    with writing(system.engine) as connection:
        concluded = connection.execute(update(audit_rows).where(here).values(told)).rowcount == 1
        audit_alerts.check_track(connection, row.track_id, now)
        return concluded


def _told(result: Result) -> dict[str, Any]:
    """What is kept of a whole result."""
    assert result.report is not None
    return {
        "digest": result.as_data()["digest"],
        "verdict": list(result.report.verdict),
        "numbers": dict(result.report.numbers),
    }


def conclude_all(system: "System") -> int:
    """`conclude` every audit that is due: a worker may have died before it could."""
    with reading(system.engine) as connection:
        ids = [row.id for row in connection.execute(_due())]
    return sum(conclude(system, id) for id in ids)


def _due() -> Any:
    """Audits whose parts are all done, and that are not concluded."""
    of_it = exists().where(
        audit_parts.c.audit_id == audit_rows.c.id,
        job_rows.c.id == audit_parts.c.job_id,
        ~JOB_STATES["done"],
    )
    return select(audit_rows).where(
        audit_rows.c.trials.is_not(None),
        audit_rows.c.concluded_at.is_(None),
        audit_rows.c.cancelled_at.is_(None),
        audit_rows.c.refused.is_(None),
        ~of_it,
    )
