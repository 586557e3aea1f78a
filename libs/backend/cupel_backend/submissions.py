"""Submissions: which team submitted which run to which track, and when.

A separate process checks the whole file before anything is stored. The raw file and its ranking are stored
before the rows that refer to them. Rows and jobs are written in one transaction; then a wake-up is sent.
"""

import shutil
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import file_digest, sha256
from pathlib import Path
from time import monotonic
from typing import Any

from sqlalchemy import Connection, Row, and_, exists, func, or_, select, update

from cupel_backend import idempotency_keys, jobs, submitted_runs, tracks
from cupel_backend.access import Principal
from cupel_backend.infrastructure.database import ListPage, fetch_page, insert_new, new_id, reading, writing
from cupel_backend.infrastructure.errors import (
    refusal,
)
from cupel_backend.infrastructure.object_store import storage_errors
from cupel_backend.infrastructure.settings import MEGABYTE
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import JOB_STATES, bump_revision, qrels, submissions
from cupel_backend.infrastructure.tables import jobs as job_rows
from cupel_backend.infrastructure.tables import runs as run_rows
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_backend.infrastructure.upload_checker import findings_from_json, findings_to_json
from cupel_backend.jobs import Job
from cupel_backend.scores import rescoring
from cupel_backend.submission_states import read_states
from cupel_backend.submitted_runs import SubmittedRun
from cupel_contract.states import SubmissionState
from cupel_measures.findings import Finding, Findings
from cupel_measures.findings import declare as declare_finding

SUBMISSION_UNKNOWN = refusal("submission-unknown")
SUBMISSION_FORBIDDEN = refusal("submission-forbidden")
TRACK_CLOSED = refusal("track-closed")
RUN_INVALID = refusal("run-invalid")
UPLOAD_TOO_LARGE = refusal("upload-too-large")
TOO_MANY_OPEN = refusal("too-many-open")
TAG_REPEATED = declare_finding(
    "run-tag-repeated",
    "warning",
    "another run of the team in this track has the same tag",
    "give each run a unique tag, so that readers can distinguish the runs",
)
CONTENT_REPEATED = declare_finding(
    "run-content-repeated",
    "warning",
    "the team has already submitted the same ranking to this track",
    "no action is needed if this is intended; the new run counts as a separate submission",
)


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A submission as shown to its team and to the track's organisers."""

    id: str
    track: str
    team: str
    run: SubmittedRun
    name: str
    received_at: datetime
    completed_at: datetime
    withdrawn_at: datetime | None
    findings: Findings
    profile_effects: Mapping[str, Any]
    """`single_precision`, `rank_column` -> `count` and the first `topics` whose order would change."""
    jobs: tuple[Job, ...]
    state: SubmissionState


class Upload:
    """A file that is being received.

    Its bytes are written to disk and hashed as they arrive.
    """

    @storage_errors()
    def __init__(self, system: System, track: str, team: str) -> None:
        handle, name = tempfile.mkstemp(dir=system.settings.incoming)
        self.track = track
        self.team = team
        self.received_at = system.now()
        self.path = Path(name)
        self.size = 0
        self._limit = system.settings.upload_megabytes * MEGABYTE
        self._digest = sha256()
        self._file = open(handle, "wb")  # noqa: SIM115  (closed by `discard` or `complete`)

    @storage_errors()
    def write(self, chunk: bytes) -> None:
        """Append the next bytes; raise TooLarge if the file exceeds the limit."""
        self.size += len(chunk)
        if self.size > self._limit:
            raise UPLOAD_TOO_LARGE(f"the file exceeds the limit of {self._limit // MEGABYTE} MB")
        self._digest.update(chunk)
        self._file.write(chunk)

    @storage_errors()
    def complete(self) -> str:
        """Close the file and return the SHA-256 (hex) of its content."""
        self._file.close()
        return self._digest.hexdigest()

    def discard(self) -> None:
        """Remove the file if it still exists."""
        with suppress(OSError):  # flushing fails on a full disk, and the file is removed anyway
            self._file.close()
        self.path.unlink(missing_ok=True)


def begin(
    system: System, principal: Principal, track: str, *, length: int | None = None, key: str | None = None
) -> Upload:
    """Open an upload before the request body is read.

    The caller must call `discard` on the upload in the end, whether or not it was received.

    length: the Content-Length in bytes, if known. key: an Idempotency-Key; if it was used, deadline and
    quota are not checked, because `receive` returns the first submission. Raises NotFound, Conflict, TooMany
    and TooLarge.
    """
    limit = system.settings.upload_megabytes * MEGABYTE
    if length is not None and length > limit:
        raise UPLOAD_TOO_LARGE(f"the Content-Length is {length} bytes; the limit is {limit}")
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
        if key is not None:
            idempotency_keys.require_valid(key)
        if key is None or not idempotency_keys.is_used(connection, principal.team, key):
            _require_open(row, system.now())
            _require_quota(system, connection, row, principal.team)
    return Upload(system, track, principal.team)


def receive(
    system: System, principal: Principal, upload: Upload, *, name: str = "", key: str | None = None
) -> Submission:
    """Check the whole file, store it as a submission and queue its evaluation.

    The submission belongs to the caller's team.

    name: the file's name, shown to users. key: an Idempotency-Key; repeating the request returns the same
    submission. Raises Invalid with all findings, and the errors of `begin`.
    """
    digest = upload.complete()
    name = "".join(filter(str.isprintable, Path(name).name))[:200]
    received = _ReceivedFile(upload, name, digest, key)
    if key is not None:
        idempotency_keys.require_valid(key)
        with reading(system.engine) as connection:
            earlier = idempotency_keys.find_submission(connection, principal.team, key, received.fingerprint)
        if earlier is not None:
            return get(system, principal, earlier)
    with storage_errors():
        verdict, blobs = _check_and_store(system, received)
    id = _insert_submission(system, principal, received, verdict=verdict, blobs=blobs)
    system.wake_ups.send(rescoring.QUEUE)
    return get(system, principal, id)


def get(system: System, principal: Principal, id: str) -> Submission:
    """Return the submission `id`.

    It is visible to its team, organisers of its track, and admins.
    """
    with reading(system.engine) as connection:
        row = find_visible(connection, principal, id)
        track = connection.execute(select(track_rows).where(track_rows.c.id == row.track_id)).one()
        return _build_views(connection, track, [row])[0]


def list_(
    system: System, principal: Principal, track: str, *, limit: int = 50, cursor: str | None = None
) -> ListPage[Submission]:
    """List submissions to a track, newest first.

    Organisers of the track see all submissions, other callers those of their team.
    """
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
        query = select(submissions).where(submissions.c.track_id == row.id)
        if not tracks.is_organiser(principal, row):
            query = query.where(submissions.c.team == principal.team)
        rows = fetch_page(connection, query, submissions.c.id, lambda row: row, limit=limit, cursor=cursor)
        return ListPage(tuple(_build_views(connection, row, list(rows.items))), rows.next)


def withdraw(system: System, principal: Principal, id: str) -> Submission:
    """Withdraw a submission.

    Leaderboards omit it, but its data is kept. Repeating this has no effect.
    """
    with writing(system.engine) as connection:
        row = find_visible(connection, principal, id)
        active = update(submissions).where(submissions.c.id == id, submissions.c.withdrawn_at.is_(None))
        if connection.execute(active.values(withdrawn_at=system.now())).rowcount == 1:
            bump_revision(connection, [row.track_id])
    rescoring.switch_version(system, row.track_id)
    return get(system, principal, id)


def find_visible(connection: Connection, principal: Principal, id: str) -> Row[Any]:
    """Return the row of a submission that the caller may see in full.

    Raises NotFound or Forbidden.
    """
    row = connection.execute(select(submissions).where(submissions.c.id == id)).first()
    if row is None:
        raise SUBMISSION_UNKNOWN(f"submission {id!r} not found")
    track = connection.execute(select(track_rows).where(track_rows.c.id == row.track_id)).one()
    if row.team != principal.team and not tracks.is_organiser(principal, track):
        raise SUBMISSION_FORBIDDEN(f"submission {id} belongs to another team")
    return row


def _require_open(track: Row[Any], at: datetime) -> None:
    """Raise Conflict if the track was closed when the request began.

    at: the server's time when the request began.
    """
    if track.closed_at is not None and track.closed_at <= at:
        raise TRACK_CLOSED(f"the track {track.name!r} was closed at {track.closed_at:%Y-%m-%d %H:%M:%S} UTC")


def _require_quota(system: System, connection: Connection, track: Row[Any], team: str) -> None:
    """Raise TooMany if the team has too many submissions in evaluation.

    They are the submissions whose evaluation is neither done nor dead.

    Submissions with a dead evaluation do not count, because failures of the service must not reduce a team's
    quota.
    """
    ended = and_(job_rows.c.kind == rescoring.EVALUATE, or_(JOB_STATES["done"], JOB_STATES["dead"]))
    waiting = select(func.count()).where(
        submissions.c.track_id == track.id,
        submissions.c.team == team,
        submissions.c.withdrawn_at.is_(None),
        ~exists().where(job_rows.c.submission_id == submissions.c.id, ended),
    )
    if connection.execute(waiting).scalar_one() >= system.settings.open_submissions:
        most = system.settings.open_submissions
        raise TOO_MANY_OPEN(f"team {team} has {most} unscored submissions to {track.name!r}", retry_after=30)


# Checking and storing


@dataclass(frozen=True)
class _ReceivedFile:
    """A completely received file, with its SHA-256 (hex), name and Idempotency-Key."""

    upload: Upload
    name: str
    digest: str
    key: str | None

    @property
    def fingerprint(self) -> str:
        """Return a digest of track, name and content.

        It is equal for repetitions of a request.
        """
        return sha256("\n".join([self.upload.track, self.name, self.digest]).encode()).hexdigest()


@dataclass(frozen=True)
class _BlobKeys:
    raw: str
    ranking: str


def _check_and_store(system: System, received: _ReceivedFile) -> tuple[dict[str, Any], _BlobKeys]:
    """Check the file, and store it and its ranking.

    Return the verdict and the blob keys.
    """
    folder = Path(tempfile.mkdtemp(dir=system.settings.incoming))
    try:
        verdict = _run_check(system, _build_check_request(system, received, folder))
        ranking = folder / "ranking"
        with ranking.open("rb") as file:
            packed_digest = file_digest(file, "sha256").hexdigest()
        with ThreadPoolExecutor(2) as pool:  # concurrently, because storing a blob may be slow
            keys = pool.map(
                system.blobs.put_file, (received.upload.path, ranking), (received.digest, packed_digest)
            )
            return verdict, _BlobKeys(*keys)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _build_check_request(system: System, received: _ReceivedFile, folder: Path) -> dict[str, Any]:
    """Build the request to a check process.

    It names the file, the limits, and the newest published qrels, if any.
    """
    with reading(system.engine) as connection:
        track = tracks.find(connection, received.upload.track)
        newest = rescoring.select_newest_published(track.id).scalar_subquery()
        judged = select(qrels.c.blob).where(qrels.c.track_id == track.id, qrels.c.number == newest)
        blob = connection.execute(judged).scalar()
    if blob is not None:
        system.blobs.copy_to(blob, folder / "qrels")
    return {
        "kind": "run",
        "file": str(received.upload.path),
        "name": received.name,
        "ranking": str(folder / "ranking"),
        "limits": system.settings.limits(),
        "depth": track.depth,
        "qrels": str(folder / "qrels") if blob is not None else None,
    }


def _run_check(system: System, request: Mapping[str, Any]) -> dict[str, Any]:
    began = monotonic()
    outcome = "ended"
    try:
        verdict = system.checkers.check(request)
        outcome = "refused" if "refused" in verdict else "accepted"
    finally:
        system.metrics.count_check(kind="run", verdict=outcome, seconds=monotonic() - began)
    if "refused" in verdict:
        raise RUN_INVALID("invalid run; see `errors`", findings=findings_from_json(verdict["findings"]))
    return verdict


def _insert_submission(
    system: System,
    principal: Principal,
    received: _ReceivedFile,
    *,
    verdict: Mapping[str, Any],
    blobs: _BlobKeys,
) -> str:
    """Write run, submission, jobs and key in one transaction.

    Returns the submission's id.

    Deadline and quota are checked again here, under the track's lock, because they may have changed since
    the upload began.
    """
    now = system.now()
    team, upload = principal.team, received.upload
    id = new_id("sub")
    with writing(system.engine) as connection:
        # The lock makes the publishing of a version see all or none of these rows.
        track = tracks.find(connection, upload.track, lock=True)
        if received.key is not None:
            earlier = idempotency_keys.find_submission(connection, team, received.key, received.fingerprint)
            if earlier is not None:
                return earlier
        _require_open(track, upload.received_at)
        _require_quota(system, connection, track, team)
        findings = findings_from_json(verdict["findings"])
        findings.extend(_find_repetitions(connection, track.id, team, verdict))
        row = {
            "id": id,
            "track_id": track.id,
            "run_id": _insert_run(connection, team, received, verdict=verdict, blobs=blobs, now=now),
            "team": team,
            "name": received.name,
            "received_at": upload.received_at,
            "completed_at": now,
            "findings": findings_to_json(findings),
            "profile_effects": verdict["profile_effects"],
        }
        connection.execute(submissions.insert().values(row))
        rescoring.request(
            connection,
            now=now,
            track_id=track.id,
            tenant=team,
            qrels_ids=rescoring.read_versions_to_score(connection, track),
            submission_ids=[id],
            measures=track.measures,
        )
        if received.key is not None:
            idempotency_keys.record_use(
                connection, team, received.key, request=received.fingerprint, submission_id=id, now=now
            )
        bump_revision(connection, [track.id])
    return id


def _insert_run(
    connection: Connection,
    team: str,
    received: _ReceivedFile,
    *,
    verdict: Mapping[str, Any],
    blobs: _BlobKeys,
    now: datetime,
) -> str:
    """Return the id of the team's run with these bytes, inserted if it is new."""
    row = {name: verdict[name] for name in ("tag", "digest", "topics", "documents", "metadata")}
    row |= {
        "id": new_id("run"),
        "team": team,
        "raw_digest": received.digest,
        "raw_blob": blobs.raw,
        "ranking_blob": blobs.ranking,
        "bytes": received.upload.size,
        "created_at": now,
    }
    insert_new(connection, run_rows, [row])
    same = select(run_rows.c.id).where(run_rows.c.team == team, run_rows.c.raw_digest == received.digest)
    return str(connection.execute(same).scalar_one())


def _find_repetitions(
    connection: Connection, track_id: int, team: str, verdict: Mapping[str, Any]
) -> Findings:
    """Return warnings about earlier submissions of the same team to the same track."""
    earlier = (
        select(submissions.c.id, run_rows.c.tag, run_rows.c.digest)
        .join(run_rows, run_rows.c.id == submissions.c.run_id)
        .where(
            submissions.c.track_id == track_id,
            submissions.c.team == team,
            submissions.c.withdrawn_at.is_(None),
        )
        .order_by(submissions.c.id)
    )
    findings = Findings()
    rows = connection.execute(earlier).all()
    same = next((row for row in rows if row.digest == verdict["digest"]), None)
    if same is not None:
        findings.add(
            Finding(code=CONTENT_REPEATED, message=f"the same ranking was already submitted as {same.id}")
        )
    tagged = next(
        (row for row in rows if row.tag == verdict["tag"] and row.digest != verdict["digest"]), None
    )
    if tagged is not None:
        message = f"another run with the tag {tagged.tag!r} was submitted as {tagged.id}"
        findings.add(Finding(code=TAG_REPEATED, message=message, sample=tagged.tag))
    return findings


def _build_views(connection: Connection, track: Row[Any], rows: list[Row[Any]]) -> list[Submission]:
    """Return submissions to the track as shown to users."""
    jobs_by_id = jobs.find_by_submission(connection, [row.id for row in rows], rescoring.EVALUATE)
    states_by_id = read_states(connection, track, rows)
    run_list = connection.execute(
        select(run_rows).where(run_rows.c.id.in_({row.run_id for row in rows}))
    ).all()
    runs_by_id = {row.id: submitted_runs.build_view(row) for row in run_list}
    return [
        Submission(
            id=row.id,
            track=track.name,
            team=row.team,
            run=runs_by_id[row.run_id],
            name=row.name,
            received_at=row.received_at,
            completed_at=row.completed_at,
            withdrawn_at=row.withdrawn_at,
            findings=findings_from_json(row.findings),
            profile_effects=row.profile_effects,
            jobs=jobs_by_id[row.id],
            state=states_by_id[row.id],
        )
        for row in rows
    ]
