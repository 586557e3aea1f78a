"""What is to be scored, and when a new qrels version takes over the board.

Every submission is scored under the track's current version, and under the one being published, if
any. A job asks for measures explicitly, so what it has to do never changes after it was queued.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, Select, and_, exists, func, or_, select, update

from cupel_backend import jobs
from cupel_backend.infrastructure.database import reading, writing
from cupel_backend.infrastructure.tables import JOB_STATES, qrels, scores, submissions, tracks
from cupel_backend.infrastructure.tables import jobs as job_rows
from cupel_measures.scoring.evaluator import SCORING_VERSION

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System

EVALUATE = "evaluate"
QUEUE = "score"


@dataclass(frozen=True)
class RescoringProgress:
    """How far the submissions of a track are scored under a qrels version."""

    total: int
    scored: int
    dead: int


def request(
    connection: Connection,
    *,
    now: datetime,
    track_id: int,
    tenant: str,
    qrels_ids: Iterable[int],
    submission_ids: Sequence[str],
    measures: Sequence[str],
) -> int:
    """Queue the evaluation of each submission under each version; returns how many jobs are new."""
    plan = sorted(measures)
    name = sha256(" ".join(plan).encode()).hexdigest()[:16]
    wanted = (
        jobs.JobRequest(
            key=f"{EVALUATE}/{submission_id}/{qrels_id}/{SCORING_VERSION}/{name}",
            kind=EVALUATE,
            queue=QUEUE,
            tenant=tenant,
            payload={"submission": submission_id, "qrels": qrels_id, "measures": plan},
            track_id=track_id,
            submission_id=submission_id,
            qrels_id=qrels_id,
        )
        for qrels_id in qrels_ids
        for submission_id in submission_ids
    )
    return jobs.enqueue(connection, wanted, now=now)


def select_newest_published(track_id: Any) -> Select[Any]:
    """The number of the track's version that was published last."""
    return select(func.max(qrels.c.number)).where(
        qrels.c.track_id == track_id, qrels.c.published_at.is_not(None)
    )


def read_newest_published(connection: Connection, track_ids: Sequence[int]) -> dict[int, int]:
    """The number of the version published last, for each track that has one."""
    query = select(qrels.c.track_id, func.max(qrels.c.number).label("newest")).group_by(qrels.c.track_id)
    query = query.where(qrels.c.track_id.in_(track_ids), qrels.c.published_at.is_not(None))
    return {row.track_id: row.newest for row in connection.execute(query)}


def read_versions_to_score(connection: Connection, track: Row[Any]) -> list[int]:
    """Ids of the current qrels version and of the one being published."""
    wanted = or_(
        qrels.c.number == (track.current or 0),
        qrels.c.number == select_newest_published(track.id).scalar_subquery(),
    )
    query = select(qrels.c.id).where(qrels.c.track_id == track.id, wanted).order_by(qrels.c.number)
    return list(connection.execute(query).scalars())


def read_eligible_submissions(connection: Connection, track_id: int) -> list[str]:
    """Ids of the submissions that the track's boards list."""
    query = select(submissions.c.id).where(
        submissions.c.track_id == track_id, submissions.c.withdrawn_at.is_(None)
    )
    return list(connection.execute(query.order_by(submissions.c.id)).scalars())


def switch_version(system: "System", track_id: int) -> bool:
    """Switch the board to the version being published, once nothing is left to score; returns whether it did.

    Called after anything that may have been the last thing to wait for, in a transaction that sees it.
    """
    with reading(system.engine) as connection:
        track = connection.execute(select(tracks).where(tracks.c.id == track_id)).one()
        number = connection.execute(select_newest_published(track_id)).scalar()
    if number is None or number == track.current:
        return False
    with writing(system.engine) as connection:
        # Locked first: an UPDATE that waits for a row sees it as it is then, but jobs as they were before.
        connection.execute(select(tracks.c.id).where(tracks.c.id == track_id).with_for_update())
        if connection.execute(_switch(track_id, number)).rowcount != 1:
            return False
        arrived = update(qrels).where(qrels.c.track_id == track_id, qrels.c.number == number)
        connection.execute(arrived.values(current_since=system.now()))
    return True


def switch_all_versions(system: "System") -> int:
    """Settle every track: whatever switch was missed (a worker died, the last job did) happens now."""
    with reading(system.engine) as connection:
        newest = select_newest_published(tracks.c.id).scalar_subquery()
        behind = or_(tracks.c.current.is_(None), tracks.c.current != newest)
        waiting = list(connection.execute(select(tracks.c.id).where(newest.is_not(None), behind)).scalars())
    return sum(switch_version(system, track_id) for track_id in waiting)


def is_scoring(connection: Connection, track_id: int) -> bool:
    """Whether anything is still to be scored that the track's boards are to list."""
    versions = select(qrels.c.id).where(qrels.c.track_id == track_id)
    listed = and_(submissions.c.id == job_rows.c.submission_id, submissions.c.withdrawn_at.is_(None))
    is_open = or_(JOB_STATES["queued"], JOB_STATES["running"])
    waiting = exists().where(job_rows.c.qrels_id.in_(versions), job_rows.c.kind == EVALUATE, is_open, listed)
    return bool(connection.execute(select(waiting)).scalar_one())


def read_first_finished(
    connection: Connection, versions: Select[Any], *, after: datetime | None
) -> datetime | None:
    """When an evaluation under one of these qrels versions ended first, of those after a moment."""
    done = [job_rows.c.qrels_id.in_(versions), job_rows.c.kind == EVALUATE]
    if after is not None:
        done.append(job_rows.c.finished_at > after)
    return connection.execute(select(func.min(job_rows.c.finished_at)).where(*done)).scalar()


def _switch(track_id: int, number: int) -> Any:
    """The one conditional UPDATE of a track's current version."""
    unsettled = and_(
        job_rows.c.qrels_id == qrels.c.id,
        or_(JOB_STATES["queued"], JOB_STATES["running"]),
        submissions.c.id == job_rows.c.submission_id,
        submissions.c.withdrawn_at.is_(None),
    )
    here = and_(qrels.c.track_id == track_id, qrels.c.number == number)
    return (
        update(tracks)
        .where(
            tracks.c.id == track_id,
            or_(tracks.c.current.is_(None), tracks.c.current < number),
            select_newest_published(track_id).scalar_subquery() == number,
            ~exists().where(here, unsettled),
        )
        .values(current=number, revision=tracks.c.revision + 1)
    )


def read_progress(connection: Connection, qrels_ids: Sequence[int]) -> dict[int, RescoringProgress]:
    """How far each version is: submissions that are to be scored, that are, and that can't be."""
    open_ = or_(JOB_STATES["queued"], JOB_STATES["running"])
    each = (
        select(
            job_rows.c.qrels_id,
            job_rows.c.submission_id,
            func.count().filter(open_).label("open"),
            func.count().filter(JOB_STATES["dead"]).label("dead"),
        )
        .join(submissions, submissions.c.id == job_rows.c.submission_id)
        .where(job_rows.c.qrels_id.in_(qrels_ids), submissions.c.withdrawn_at.is_(None))
        .group_by(job_rows.c.qrels_id, job_rows.c.submission_id)
        .subquery()
    )
    scored = exists().where(  # a job for a version that was overtaken ends without a score
        scores.c.submission_id == each.c.submission_id,
        scores.c.qrels_id == each.c.qrels_id,
        scores.c.scoring_version == SCORING_VERSION,
    )
    totals = select(
        each.c.qrels_id,
        func.count().label("total"),
        func.count().filter(each.c.open == 0, each.c.dead == 0, scored).label("scored"),
        func.count().filter(each.c.dead > 0).label("dead"),
    ).group_by(each.c.qrels_id)
    found = {
        row.qrels_id: RescoringProgress(row.total, row.scored, row.dead) for row in connection.execute(totals)
    }
    return {id: found.get(id, RescoringProgress(0, 0, 0)) for id in qrels_ids}
