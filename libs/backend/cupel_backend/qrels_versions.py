"""Qrels versions of a track: uploaded as drafts, published, never changed.

Publishing queues every submission for scoring; the board switches when nothing is left to score
(planning.settle). A later version supersedes one that has not got there yet; boards of versions that
once were current stay readable.
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
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, func, select, update

from cupel_backend import tracks
from cupel_backend.access import Principal
from cupel_backend.infrastructure.database import ListPage, page, reading, writing
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.object_store import storage
from cupel_backend.infrastructure.tables import qrels
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_backend.infrastructure.upload_checker import lacking, unpacked
from cupel_backend.scores import leaderboards, rescoring
from cupel_backend.scores.rescoring import RescoringProgress
from cupel_contract.states import QrelsState
from cupel_measures.model.findings import Findings

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System


VERSION_UNKNOWN = refusal("qrels-unknown")
QRELS_INVALID = refusal("qrels-invalid")
QRELS_OLDER = refusal("qrels-older")
QRELS_FORBIDDEN = refusal("qrels-forbidden")


@dataclass(frozen=True)
class QrelsVersion:
    """A qrels version as people see it; what was found in its files only organisers do."""

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


@dataclass(frozen=True)
class RankChange:
    """One submission under two versions; None where it has no score."""

    submission: str
    team: str
    name: str
    tag: str
    old_score: float | None
    new_score: float | None
    old_rank: int | None
    new_rank: int | None


@dataclass(frozen=True)
class QrelsDiff:
    """What moved between two versions by one measure, in the order of the new board."""

    track: str
    measure: str
    base: int
    number: int
    rows: tuple[RankChange, ...]


def require_organiser(system: "System", principal: Principal, track: str) -> Row[Any]:
    """The row of the track; raises NotFound, or Forbidden where the caller may not upload judgments."""
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
    if not tracks.organises(principal, row):
        raise QRELS_FORBIDDEN(f"the track {track!r} belongs to the team {row.team}")
    return row


def upload(
    system: "System", principal: Principal, track: str, *, collection: bytes, files: Mapping[str, bytes]
) -> QrelsVersion:
    """Check judgments and keep them as the track's next version, a draft.

    collection: a collection file (YAML or JSON) with `qrels:`, maybe `topics:`; its aspects are the
    track's. files: by the names that it uses. Raises Invalid with every error of every file, and where a
    measure of the track's plan can't be had from them.
    """
    row = require_organiser(system, principal, track)
    with storage(), _incoming(system, collection, files) as folder:
        verdict = _check(system, row, folder, list(files))
        blob = folder / "packed"
        with blob.open("rb") as file:
            key = system.blobs.put_file(blob, file_digest(file, "sha256").hexdigest())
    with writing(system.engine) as connection:
        tracks.owned(connection, principal, track)  # locked, so that numbers are given out one by one
        numbers = select(func.coalesce(func.max(qrels.c.number), 0)).where(qrels.c.track_id == row.id)
        number = connection.execute(numbers).scalar_one() + 1
        values = {name: verdict[name] for name in ("digest", "topics", "counts", "findings")}
        values |= {"track_id": row.id, "number": number, "blob": key, "created_at": system.now()}
        connection.execute(qrels.insert().values(values))
        return _version(connection, principal, row, number)


def publish(system: "System", principal: Principal, track: str, number: int) -> QrelsVersion:
    """Make a version the next one of the board; publishing it again changes nothing.

    It becomes current at once if there is nothing to score. Raises Conflict if a later one was published,
    Invalid where a measure that was added to the plan meanwhile can't be had from it.
    """
    now = system.now()
    with reading(system.engine) as connection:
        row = tracks.owned(connection, principal, track, lock=False)
        key = _find(connection, row.id, number).blob
    tracks.not_to_be_had(system.blobs, key, tuple(row.measures))  # read while no transaction waits for it
    with writing(system.engine) as connection:
        row = tracks.owned(connection, principal, track)
        version = _find(connection, row.id, number)
        newest = connection.execute(rescoring.newest_published(row.id)).scalar() or 0
        if number < newest:
            raise QRELS_OLDER(f"version {newest} was published already")
        queued = 0
        if version.published_at is None:
            if sentences := tracks.not_to_be_had(system.blobs, version.blob, tuple(row.measures)):
                raise QRELS_INVALID("the plan can't be had from these judgments", findings=lacking(sentences))
            connection.execute(update(qrels).where(qrels.c.id == version.id).values(published_at=now))
            queued = rescoring.request(
                connection,
                now=now,
                track_id=row.id,
                tenant=f"track {row.name}",
                qrels_ids=[version.id],
                submission_ids=rescoring.eligible(connection, row.id),
                measures=row.measures,
            )
    if queued:
        system.bell.ring(rescoring.QUEUE, times=queued)
    rescoring.settle(system, row.id)
    return get(system, principal, track, number)


def get(system: "System", principal: Principal, track: str, number: int) -> QrelsVersion:
    """QrelsVersion `number` of the track; drafts are shown to its organisers only."""
    with reading(system.engine) as connection:
        return _version(connection, principal, tracks.find(connection, track), number)


def list_(
    system: "System", principal: Principal, track: str, *, limit: int = 50, cursor: str | None = None
) -> ListPage[QrelsVersion]:
    """The track's versions, newest first."""
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
        query = select(qrels).where(qrels.c.track_id == row.id)
        if not tracks.organises(principal, row):
            query = query.where(qrels.c.published_at.is_not(None))
        found = page(connection, query, qrels.c.number, lambda one: one, limit=limit, cursor=cursor)
        return ListPage(tuple(_views(connection, principal, row, list(found.items))), found.next)


def diff(
    system: "System", principal: Principal, track: str, number: int, *, base: int, measure: str
) -> QrelsDiff:
    """What moved from version `base` to version `number` by `measure`."""
    text, old = leaderboards.rows(system, principal, track, measure=measure, qrels=base)
    _, new = leaderboards.rows(system, principal, track, measure=measure, qrels=number)
    moved = [_moved(old.get(id), new.get(id)) for id in dict.fromkeys([*new, *old])]
    return QrelsDiff(track, text, base, number, tuple(moved))


def _moved(
    old: "leaderboards.LeaderboardRow | None", new: "leaderboards.LeaderboardRow | None"
) -> RankChange:
    known = new or old
    assert known is not None
    return RankChange(
        known.submission,
        known.team,
        known.name,
        known.tag,
        old_score=old.score if old else None,
        new_score=new.score if new else None,
        old_rank=old.rank if old else None,
        new_rank=new.rank if new else None,
    )


@contextmanager
def _incoming(system: "System", collection: bytes, files: Mapping[str, bytes]) -> Iterator[Path]:
    """A folder with `collection` and the files, numbered: their own names are no business of the disk."""
    folder = Path(tempfile.mkdtemp(dir=system.settings.incoming))
    try:
        (folder / "collection").write_bytes(collection)
        for number, content in enumerate(files.values()):
            (folder / str(number)).write_bytes(content)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check(system: "System", track: Row[Any], folder: Path, names: list[str]) -> dict[str, Any]:
    began = monotonic()
    verdict_name = "ended"
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
        verdict_name = "refused" if "refused" in verdict else "accepted"
    finally:
        system.metrics.check(kind="qrels", verdict=verdict_name, seconds=monotonic() - began)
    if "refused" in verdict:
        raise QRELS_INVALID("the judgments can't be used", findings=unpacked(verdict["findings"]))
    return verdict


def _find(connection: Connection, track_id: int, number: int) -> Row[Any]:
    row = connection.execute(
        select(qrels).where(qrels.c.track_id == track_id, qrels.c.number == number)
    ).first()
    if row is None:
        raise VERSION_UNKNOWN(f"the track has no qrels version {number}")
    return row


def _version(connection: Connection, principal: Principal, track: Row[Any], number: int) -> QrelsVersion:
    row = _find(connection, track.id, number)
    if row.published_at is None and not tracks.organises(principal, track):
        raise VERSION_UNKNOWN(f"the track has no qrels version {number}")
    return next(_views(connection, principal, track, [row]))


def _views(
    connection: Connection, principal: Principal, track: Row[Any], rows: list[Row[Any]]
) -> Iterator[QrelsVersion]:
    current = connection.execute(select(track_rows.c.current).where(track_rows.c.id == track.id)).scalar()
    newest = connection.execute(rescoring.newest_published(track.id)).scalar()
    progress = rescoring.progress(connection, [row.id for row in rows])
    for row in rows:
        yield QrelsVersion(
            track.name,
            row.number,
            row.digest,
            _state(row, current, newest),
            row.counts,
            progress[row.id],
            unpacked(row.findings) if tracks.organises(principal, track) else Findings(),
            row.created_at,
            row.published_at,
            row.current_since,
        )


def _state(row: Row[Any], current: int | None, newest: int | None) -> QrelsState:
    if row.published_at is None:
        return QrelsState.DRAFT
    if row.number == current:
        return QrelsState.CURRENT
    return QrelsState.PUBLISHING if row.number == newest else QrelsState.SUPERSEDED
