"""Submissions: who handed in which run to which track, and when.

A file is checked in full, in a process of its own, before anything is kept. Its bytes and its ranking
are stored before the rows that name them; rows and jobs are one transaction; only then a bell rings.
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
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, and_, exists, func, or_, select, update

from cupel_backend import idempotency_keys, jobs, submitted_runs, tracks
from cupel_backend.access import Principal
from cupel_backend.infrastructure.database import ListPage, insert_new, new_id, page, reading, writing
from cupel_backend.infrastructure.errors import (
    refusal,
)
from cupel_backend.infrastructure.object_store import storage
from cupel_backend.infrastructure.settings import MEGABYTE
from cupel_backend.infrastructure.tables import JOB_STATES, qrels, submissions, touch
from cupel_backend.infrastructure.tables import jobs as job_rows
from cupel_backend.infrastructure.tables import runs as run_rows
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_backend.infrastructure.upload_checker import packed, unpacked
from cupel_backend.jobs import Job
from cupel_backend.scores import rescoring
from cupel_backend.submission_states import states
from cupel_backend.submitted_runs import SubmittedRun
from cupel_contract.states import SubmissionState
from cupel_measures.model.findings import Finding, Findings
from cupel_measures.model.findings import declare as declare_finding

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System

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
    "give each run a tag of its own, so that people can tell them apart",
)
CONTENT_REPEATED = declare_finding(
    "run-content-repeated",
    "warning",
    "the team has handed in the same ranking to this track before",
    "nothing, where that is meant: it counts as a submission of its own",
)


@dataclass(frozen=True)
class Submission:
    """A submission as its team and the track's organisers see it."""

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
    """`single_precision` and `rank_column`: count and first `topics` that would be ordered otherwise."""
    jobs: tuple[Job, ...]
    state: SubmissionState


class Upload:
    """A file on its way in: written as its bytes arrive, digested on the way."""

    @storage()
    def __init__(self, system: "System", track: str, team: str) -> None:
        handle, name = tempfile.mkstemp(dir=system.settings.incoming)
        self.track = track
        self.team = team
        self.received_at = system.now()
        self.path = Path(name)
        self.size = 0
        self._limit = system.settings.upload_megabytes * MEGABYTE
        self._digest = sha256()
        self._file = open(handle, "wb")  # noqa: SIM115  (closed by `discard` or `complete`)

    @storage()
    def write(self, chunk: bytes) -> None:
        """Take the next bytes; raises TooLarge past the limit."""
        self.size += len(chunk)
        if self.size > self._limit:
            raise UPLOAD_TOO_LARGE(f"more than {self._limit // MEGABYTE} MB")
        self._digest.update(chunk)
        self._file.write(chunk)

    @storage()
    def complete(self) -> str:
        """No more bytes will come; returns the SHA-256 (hex) of all."""
        self._file.close()
        return self._digest.hexdigest()

    def discard(self) -> None:
        """Remove the file, if it is still there."""
        with suppress(OSError):  # a full disk: what is still in the buffer is not wanted
            self._file.close()
        self.path.unlink(missing_ok=True)


def begin(
    system: "System", principal: Principal, track: str, *, length: int | None = None, key: str | None = None
) -> Upload:
    """Open an upload before its body is read; the caller discards it in the end.

    length: bytes announced, if any. key: an Idempotency-Key; a request that was answered already is let
    through to its answer. Raises NotFound, Conflict (track-closed), TooMany, TooLarge.
    """
    limit = system.settings.upload_megabytes * MEGABYTE
    if length is not None and length > limit:
        raise UPLOAD_TOO_LARGE(f"{length} bytes were announced; at most {limit} are accepted")
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
        if key is not None:
            idempotency_keys.require_valid(key)
        if key is None or not idempotency_keys.answered(connection, principal.team, key):
            _require_open(row, system.now())
            _require_room(system, connection, row, principal.team)
    return Upload(system, track, principal.team)


def receive(
    system: "System", principal: Principal, upload: Upload, *, name: str = "", key: str | None = None
) -> Submission:
    """Check the whole file and keep it as a submission of the caller's team, to be scored.

    name: the file's name, for people. key: an Idempotency-Key; the same request again gives the same
    submission. Raises Invalid with all findings, and what `begin` raises.
    """
    digest = upload.complete()
    name = "".join(filter(str.isprintable, Path(name).name))[:200]
    asked = _Asked(upload, name, digest, key)
    if key is not None:
        idempotency_keys.require_valid(key)
        with reading(system.engine) as connection:
            earlier = idempotency_keys.earlier(connection, principal.team, key, asked.request)
        if earlier is not None:
            return get(system, principal, earlier)
    with storage():
        verdict, blobs = _checked(system, asked)
    id = _keep(system, principal, asked, verdict=verdict, blobs=blobs)
    system.bell.ring(rescoring.QUEUE)
    return get(system, principal, id)


def get(system: "System", principal: Principal, id: str) -> Submission:
    """The submission `id`, to its team, organisers of its track, and admins."""
    with reading(system.engine) as connection:
        row = visible(connection, principal, id)
        track = connection.execute(select(track_rows).where(track_rows.c.id == row.track_id)).one()
        return _views(connection, track, [row])[0]


def list_(
    system: "System", principal: Principal, track: str, *, limit: int = 50, cursor: str | None = None
) -> ListPage[Submission]:
    """Submissions to a track, newest first: all to its organisers, their own to others."""
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
        query = select(submissions).where(submissions.c.track_id == row.id)
        if not tracks.organises(principal, row):
            query = query.where(submissions.c.team == principal.team)
        found = page(connection, query, submissions.c.id, lambda one: one, limit=limit, cursor=cursor)
        return ListPage(tuple(_views(connection, row, list(found.items))), found.next)


def withdraw(system: "System", principal: Principal, id: str) -> Submission:
    """Take a submission off the boards; it is kept. Withdrawing it again changes nothing."""
    with writing(system.engine) as connection:
        row = visible(connection, principal, id)
        active = update(submissions).where(submissions.c.id == id, submissions.c.withdrawn_at.is_(None))
        if connection.execute(active.values(withdrawn_at=system.now())).rowcount == 1:
            touch(connection, [row.track_id])
    rescoring.settle(system, row.track_id)
    return get(system, principal, id)


def visible(connection: Connection, principal: Principal, id: str) -> Row[Any]:
    """The row of a submission that the caller may see whole; else NotFound or Forbidden."""
    row = connection.execute(select(submissions).where(submissions.c.id == id)).first()
    if row is None:
        raise SUBMISSION_UNKNOWN(f"there is no submission {id!r}")
    track = connection.execute(select(track_rows).where(track_rows.c.id == row.track_id)).one()
    if row.team != principal.team and not tracks.organises(principal, track):
        raise SUBMISSION_FORBIDDEN(f"{id} was handed in by another team")
    return row


def _require_open(track: Row[Any], at: datetime) -> None:
    """What counts is the server's time when the request began."""
    if track.closed_at is not None and track.closed_at <= at:
        raise TRACK_CLOSED(f"the track {track.name!r} was closed at {track.closed_at:%Y-%m-%d %H:%M:%S} UTC")


def _require_room(system: "System", connection: Connection, track: Row[Any], team: str) -> None:
    """A submission waits until something came of it: failures of the system are never charged."""
    ended = and_(job_rows.c.kind == rescoring.EVALUATE, or_(JOB_STATES["done"], JOB_STATES["dead"]))
    waiting = select(func.count()).where(
        submissions.c.track_id == track.id,
        submissions.c.team == team,
        submissions.c.withdrawn_at.is_(None),
        ~exists().where(job_rows.c.submission_id == submissions.c.id, ended),
    )
    if connection.execute(waiting).scalar_one() >= system.settings.open_submissions:
        most = system.settings.open_submissions
        raise TOO_MANY_OPEN(f"{most} submissions of {team} to {track.name!r} are waiting", retry_after=30)


# Checking and keeping


@dataclass(frozen=True)
class _Asked:
    """What was asked for: to keep a whole upload, whose SHA-256 is `digest`, under a name."""

    upload: Upload
    name: str
    digest: str
    key: str | None

    @property
    def request(self) -> str:
        """A digest by which the same request is known again."""
        return sha256("\n".join([self.upload.track, self.name, self.digest]).encode()).hexdigest()


@dataclass(frozen=True)
class _Blobs:
    raw: str
    ranking: str


def _checked(system: "System", asked: _Asked) -> tuple[dict[str, Any], _Blobs]:
    """The verdict on the file, which was accepted, and where its bytes and its ranking are kept."""
    folder = Path(tempfile.mkdtemp(dir=system.settings.incoming))
    try:
        verdict = _verdict(system, _request(system, asked, folder))
        ranking = folder / "ranking"
        with ranking.open("rb") as file:
            packed_digest = file_digest(file, "sha256").hexdigest()
        with ThreadPoolExecutor(2) as pool:  # a bucket takes its time over each
            keys = pool.map(
                system.blobs.put_file, (asked.upload.path, ranking), (asked.digest, packed_digest)
            )
            return verdict, _Blobs(*keys)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _request(system: "System", asked: _Asked, folder: Path) -> dict[str, Any]:
    """What the checker has to know: the file, the limits, and the track's newest judgments, if any."""
    with reading(system.engine) as connection:
        track = tracks.find(connection, asked.upload.track)
        newest = rescoring.newest_published(track.id).scalar_subquery()
        judged = select(qrels.c.blob).where(qrels.c.track_id == track.id, qrels.c.number == newest)
        blob = connection.execute(judged).scalar()
    if blob is not None:
        system.blobs.bring(blob, folder / "qrels")
    return {
        "kind": "run",
        "file": str(asked.upload.path),
        "name": asked.name,
        "ranking": str(folder / "ranking"),
        "limits": system.settings.limits(),
        "depth": track.depth,
        "qrels": str(folder / "qrels") if blob is not None else None,
    }


def _verdict(system: "System", request: Mapping[str, Any]) -> dict[str, Any]:
    began = monotonic()
    outcome = "ended"
    try:
        verdict = system.checkers.check(request)
        outcome = "refused" if "refused" in verdict else "accepted"
    finally:
        system.metrics.check(kind="run", verdict=outcome, seconds=monotonic() - began)
    if "refused" in verdict:
        raise RUN_INVALID("the run can't be used", findings=unpacked(verdict["findings"]))
    return verdict


def _keep(
    system: "System", principal: Principal, asked: _Asked, *, verdict: Mapping[str, Any], blobs: _Blobs
) -> str:
    """Write run, submission, jobs and key in one transaction; returns the submission's id.

    What decides is decided here, under the track's lock, whatever was true when the upload began.
    """
    now = system.now()
    team, upload = principal.team, asked.upload
    id = new_id("sub")
    with writing(system.engine) as connection:
        track = tracks.find(connection, upload.track, lock=True)  # so publishing sees all or none of this
        if asked.key is not None:
            earlier = idempotency_keys.earlier(connection, team, asked.key, asked.request)
            if earlier is not None:
                return earlier
        _require_open(track, upload.received_at)
        _require_room(system, connection, track, team)
        findings = unpacked(verdict["findings"])
        findings.extend(_repetitions(connection, track.id, team, verdict))
        row = {
            "id": id,
            "track_id": track.id,
            "run_id": _keep_run(connection, team, asked, verdict=verdict, blobs=blobs, now=now),
            "team": team,
            "name": asked.name,
            "received_at": upload.received_at,
            "completed_at": now,
            "findings": packed(findings),
            "profile_effects": verdict["profile_effects"],
        }
        connection.execute(submissions.insert().values(row))
        rescoring.request(
            connection,
            now=now,
            track_id=track.id,
            tenant=team,
            qrels_ids=rescoring.versions_to_score(connection, track),
            submission_ids=[id],
            measures=track.measures,
        )
        if asked.key is not None:
            idempotency_keys.keep(
                connection, team, asked.key, request=asked.request, submission_id=id, now=now
            )
        touch(connection, [track.id])
    return id


def _keep_run(
    connection: Connection,
    team: str,
    asked: _Asked,
    *,
    verdict: Mapping[str, Any],
    blobs: _Blobs,
    now: datetime,
) -> str:
    """The id of the team's run of these bytes, made if it is new."""
    row = {name: verdict[name] for name in ("tag", "digest", "topics", "documents", "metadata")}
    row |= {
        "id": new_id("run"),
        "team": team,
        "raw_digest": asked.digest,
        "raw_blob": blobs.raw,
        "ranking_blob": blobs.ranking,
        "bytes": asked.upload.size,
        "created_at": now,
    }
    insert_new(connection, run_rows, [row])
    same = select(run_rows.c.id).where(run_rows.c.team == team, run_rows.c.raw_digest == asked.digest)
    return str(connection.execute(same).scalar_one())


def _repetitions(connection: Connection, track_id: int, team: str, verdict: Mapping[str, Any]) -> Findings:
    """Warnings about earlier submissions of the same team to the same track."""
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
        findings.add(Finding(CONTENT_REPEATED, f"the same ranking was handed in as {same.id}"))
    tagged = next(
        (row for row in rows if row.tag == verdict["tag"] and row.digest != verdict["digest"]), None
    )
    if tagged is not None:
        message = f"the tag {tagged.tag!r} is that of another run, handed in as {tagged.id}"
        findings.add(Finding(TAG_REPEATED, message, sample=tagged.tag))
    return findings


def _views(connection: Connection, track: Row[Any], rows: list[Row[Any]]) -> list[Submission]:
    """Submissions to the track, as people see them."""
    of_jobs = jobs.of_submissions(connection, [row.id for row in rows], rescoring.EVALUATE)
    of_states = states(connection, track, rows)
    found_runs = connection.execute(
        select(run_rows).where(run_rows.c.id.in_({row.run_id for row in rows}))
    ).all()
    by_id = {row.id: submitted_runs.view(row) for row in found_runs}
    return [
        Submission(
            row.id,
            track.name,
            row.team,
            by_id[row.run_id],
            row.name,
            row.received_at,
            row.completed_at,
            row.withdrawn_at,
            unpacked(row.findings),
            row.profile_effects,
            of_jobs[row.id],
            of_states[row.id],
        )
        for row in rows
    ]
