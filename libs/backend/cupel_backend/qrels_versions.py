"""Qrels versions of a track: uploaded as drafts, published, never modified.

Publishing queues an evaluation for every submission. The version becomes current once all evaluations have
ended (`rescoring.switch_version`). If another version is published before, it supersedes this one. The
leaderboards of all versions that were ever current stay readable.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import file_digest
from pathlib import Path
from time import monotonic
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from cupel_backend import tracks
from cupel_backend.access import Principal
from cupel_backend.infrastructure.database import ListPage, fetch_page, reading, writing
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.object_store import storage_errors
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import qrels
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_backend.infrastructure.upload_checker import findings_from_json, measure_findings
from cupel_backend.scores import leaderboards, rescoring
from cupel_backend.scores.rescoring import RescoringProgress
from cupel_contract.states import QrelsState
from cupel_measures.findings import Findings

VERSION_UNKNOWN = refusal("qrels-unknown")
QRELS_INVALID = refusal("qrels-invalid")
QRELS_OLDER = refusal("qrels-older")
QRELS_FORBIDDEN = refusal("qrels-forbidden")


@dataclass(frozen=True, kw_only=True)
class QrelsVersion:
    """A qrels version as shown to users.

    `findings` is empty for everyone but organisers.
    """

    track: str
    number: int
    digest: str
    state: QrelsState
    counts: Mapping[str, Any]
    progress: RescoringProgress
    findings: Findings
    created_at: datetime
    published_at: datetime | None
    current_since: datetime | None


@dataclass(frozen=True, kw_only=True)
class RankChange:
    """Score and rank of one submission under two versions.

    They are None under a version without a score.
    """

    submission: str
    team: str
    name: str
    tag: str
    old_score: float | None
    new_score: float | None
    old_rank: int | None
    new_rank: int | None


@dataclass(frozen=True, kw_only=True)
class QrelsDiff:
    """Changes of scores and ranks by a measure between two versions.

    The rows are in the order of the new leaderboard.
    """

    track: str
    measure: str
    base: int
    number: int
    rows: tuple[RankChange, ...]


def require_organiser(system: System, principal: Principal, track: str) -> Row[Any]:
    """Return the row of the track.

    Raises NotFound, or Forbidden if the caller may not manage its qrels.
    """
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
    if not tracks.is_organiser(principal, row):
        raise QRELS_FORBIDDEN(f"the track {track!r} belongs to team {row.team}")
    return row


def upload(
    system: System, principal: Principal, track: str, *, collection: bytes, files: Mapping[str, bytes]
) -> QrelsVersion:
    """Check judgments and store them as the track's next version, a draft.

    collection: a collection file (YAML or JSON) with `qrels:` and optionally `topics:`. The aspects are those
    of the track. files: name in the collection file -> content. Raises Invalid with the errors of all files,
    or if a measure of the track's plan cannot be computed from the judgments.
    """
    row = require_organiser(system, principal, track)
    with storage_errors(), _temporary_folder(system, collection, files) as folder:
        verdict = _run_check(system, row, folder, list(files))
        blob = folder / "packed"
        with blob.open("rb") as file:
            key = system.blobs.put_file(blob, file_digest(file, "sha256").hexdigest())
    with writing(system.engine) as connection:
        # Lock the track, so that numbers are assigned one after another.
        tracks.find_for_organiser(connection, principal, track)
        numbers = select(func.coalesce(func.max(qrels.c.number), 0)).where(qrels.c.track_id == row.id)
        number = connection.execute(numbers).scalar_one() + 1
        values = {name: verdict[name] for name in ("digest", "topics", "counts", "findings")}
        values |= {"track_id": row.id, "number": number, "blob": key, "created_at": system.now()}
        connection.execute(qrels.insert().values(values))
        return _read_version(connection, principal, row, number)


def publish(system: System, principal: Principal, track: str, number: int) -> QrelsVersion:
    """Publish a version and queue the evaluations that it needs.

    Repeating this has no effect. The version becomes current at once if there is nothing to score. Raises
    Conflict if a later version is published. Raises Invalid if a measure that was added to the plan after the
    upload cannot be computed from the judgments.
    """
    now = system.now()
    with reading(system.engine) as connection:
        row = tracks.find_for_organiser(connection, principal, track, lock=False)
        key = _find(connection, row.id, number).blob
    tracks.find_uncomputable(system.blobs, key, tuple(row.measures))  # cached for the transaction
    with writing(system.engine) as connection:
        row = tracks.find_for_organiser(connection, principal, track)
        version = _find(connection, row.id, number)
        newest = connection.execute(rescoring.select_newest_published(row.id)).scalar() or 0
        if number < newest:
            raise QRELS_OLDER(f"version {newest} is already published")
        queued = 0
        if version.published_at is None:
            if sentences := tracks.find_uncomputable(system.blobs, version.blob, tuple(row.measures)):
                raise QRELS_INVALID(
                    "a measure of the plan cannot be computed from these judgments",
                    findings=measure_findings(sentences),
                )
            connection.execute(update(qrels).where(qrels.c.id == version.id).values(published_at=now))
            queued = rescoring.request(
                connection,
                now=now,
                track_id=row.id,
                tenant=f"track {row.name}",
                qrels_ids=[version.id],
                submission_ids=rescoring.read_eligible_submissions(connection, row.id),
                measures=row.measures,
            )
    if queued:
        system.wake_ups.send(rescoring.QUEUE, times=queued)
    rescoring.switch_version(system, row.id)
    return get(system, principal, track, number)


def get(system: System, principal: Principal, track: str, number: int) -> QrelsVersion:
    """Return version `number` of the track; drafts are visible to its organisers only."""
    with reading(system.engine) as connection:
        return _read_version(connection, principal, tracks.find(connection, track), number)


def list_(
    system: System, principal: Principal, track: str, *, limit: int = 50, cursor: str | None = None
) -> ListPage[QrelsVersion]:
    """List the track's versions, newest first."""
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
        query = select(qrels).where(qrels.c.track_id == row.id)
        if not tracks.is_organiser(principal, row):
            query = query.where(qrels.c.published_at.is_not(None))
        rows = fetch_page(connection, query, qrels.c.number, lambda row: row, limit=limit, cursor=cursor)
        return ListPage(tuple(_build_views(connection, principal, row, list(rows.items))), rows.next)


def diff(
    system: System, principal: Principal, track: str, number: int, *, base: int, measure: str
) -> QrelsDiff:
    """Compare scores and ranks by `measure` under versions `base` and `number`."""
    text, old = leaderboards.read_rows(system, principal, track, measure=measure, qrels=base)
    _, new = leaderboards.read_rows(system, principal, track, measure=measure, qrels=number)
    changes = [_compare_rows(old.get(id), new.get(id)) for id in dict.fromkeys([*new, *old])]
    return QrelsDiff(track=track, measure=text, base=base, number=number, rows=tuple(changes))


def _compare_rows(
    old: leaderboards.LeaderboardRow | None, new: leaderboards.LeaderboardRow | None
) -> RankChange:
    known = new or old
    assert known is not None
    return RankChange(
        submission=known.submission,
        team=known.team,
        name=known.name,
        tag=known.tag,
        old_score=old.score if old else None,
        new_score=new.score if new else None,
        old_rank=old.rank if old else None,
        new_rank=new.rank if new else None,
    )


@contextmanager
def _temporary_folder(system: System, collection: bytes, files: Mapping[str, bytes]) -> Iterator[Path]:
    """Yield a temporary folder with `collection` and the numbered files.

    The files are numbered, because names given by users must not reach the file system.
    """
    folder = Path(tempfile.mkdtemp(dir=system.settings.incoming))
    try:
        (folder / "collection").write_bytes(collection)
        for number, content in enumerate(files.values()):
            (folder / str(number)).write_bytes(content)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_check(system: System, track: Row[Any], folder: Path, names: list[str]) -> dict[str, Any]:
    began = monotonic()
    outcome = "ended"
    try:
        verdict = system.checkers.check(
            {
                "kind": "qrels",
                "folder": str(folder),
                "files": {name: str(folder / str(number)) for number, name in enumerate(names)},
                "declared": {"aspects": track.aspects, "label_sets": track.label_sets or {}},
                "measures": track.measures,
                "limits": system.settings.limits(),
            }
        )
        outcome = "refused" if "refused" in verdict else "accepted"
    finally:
        system.metrics.count_check(kind="qrels", verdict=outcome, seconds=monotonic() - began)
    if "refused" in verdict:
        raise QRELS_INVALID(
            "invalid judgments; see `errors`", findings=findings_from_json(verdict["findings"])
        )
    return verdict


def _find(connection: Connection, track_id: int, number: int) -> Row[Any]:
    row = connection.execute(
        select(qrels).where(qrels.c.track_id == track_id, qrels.c.number == number)
    ).first()
    if row is None:
        raise VERSION_UNKNOWN(f"qrels version {number} not found")
    return row


def _read_version(connection: Connection, principal: Principal, track: Row[Any], number: int) -> QrelsVersion:
    row = _find(connection, track.id, number)
    if row.published_at is None and not tracks.is_organiser(principal, track):
        raise VERSION_UNKNOWN(f"qrels version {number} not found")
    return next(_build_views(connection, principal, track, [row]))


def _build_views(
    connection: Connection, principal: Principal, track: Row[Any], rows: list[Row[Any]]
) -> Iterator[QrelsVersion]:
    current = connection.execute(select(track_rows.c.current).where(track_rows.c.id == track.id)).scalar()
    newest = connection.execute(rescoring.select_newest_published(track.id)).scalar()
    progress = rescoring.read_progress(connection, [row.id for row in rows])
    for row in rows:
        yield QrelsVersion(
            track=track.name,
            number=row.number,
            digest=row.digest,
            state=_derive_state(row, current, newest),
            counts=row.counts,
            progress=progress[row.id],
            findings=findings_from_json(row.findings)
            if tracks.is_organiser(principal, track)
            else Findings(),
            created_at=row.created_at,
            published_at=row.published_at,
            current_since=row.current_since,
        )


def _derive_state(row: Row[Any], current: int | None, newest: int | None) -> QrelsState:
    if row.published_at is None:
        return QrelsState.DRAFT
    if row.number == current:
        return QrelsState.CURRENT
    return QrelsState.PUBLISHING if row.number == newest else QrelsState.SUPERSEDED
