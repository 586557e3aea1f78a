"""Rescoring: queuing evaluations, and switching a track to a new qrels version.

Every submission is scored under the track's current version and under the version being published, if any.
A job lists its measures explicitly, so a later change of the plan does not change queued jobs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, exists, func, or_, select, update

from cupel_backend import jobs
from cupel_backend.infrastructure.database import reading, writing
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import JOB_STATES, qrels, scores, submissions, tracks
from cupel_backend.infrastructure.tables import jobs as job_rows
from cupel_measures.scoring.evaluator import SCORING_VERSION

EVALUATE = "evaluate"
QUEUE = "score"


@dataclass(frozen=True)
class RescoringProgress:
    """Numbers of submissions under a qrels version.

    dead: submissions whose evaluation is dead.
    """

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
    """Queue the evaluation of each submission under each version.

    Return the number of new jobs.
    """
    job_requests = (
        build_job_request(tenant, track_id, qrels_id, submission_id, measures)
        for qrels_id in qrels_ids
        for submission_id in submission_ids
    )
    return jobs.enqueue(connection, job_requests, now=now)


def build_job_request(
    tenant: str, track_id: int, qrels_id: int, submission_id: str, measures: Sequence[str]
) -> jobs.JobRequest:
    """Build the request to evaluate a submission under a version by `measures`."""
    plan = sorted(measures)
    name = sha256(" ".join(plan).encode()).hexdigest()[:16]
    return jobs.JobRequest(
        key=f"{EVALUATE}/{submission_id}/{qrels_id}/{SCORING_VERSION}/{name}",
        kind=EVALUATE,
        queue=QUEUE,
        tenant=tenant,
        payload={"submission": submission_id, "qrels": qrels_id, "measures": plan},
        track_id=track_id,
        submission_id=submission_id,
        qrels_id=qrels_id,
    )


def select_newest_published(track_id: Any) -> Select[Any]:
    """Select the number of the track's newest published version."""
    return select(func.max(qrels.c.number)).where(
        qrels.c.track_id == track_id, qrels.c.published_at.is_not(None)
    )


def read_newest_published(connection: Connection, track_ids: Sequence[int]) -> dict[int, int]:
    """Return the number of the newest published version of each track that has one."""
    query = select(qrels.c.track_id, func.max(qrels.c.number).label("newest")).group_by(qrels.c.track_id)
    query = query.where(qrels.c.track_id.in_(track_ids), qrels.c.published_at.is_not(None))
    return {row.track_id: row.newest for row in connection.execute(query)}


def read_versions_to_score(connection: Connection, track: Row[Any]) -> list[int]:
    """Return the ids of the current qrels version and of the version being published."""
    is_scored = or_(
        qrels.c.number == (track.current or 0),
        qrels.c.number == select_newest_published(track.id).scalar_subquery(),
    )
    query = select(qrels.c.id).where(qrels.c.track_id == track.id, is_scored).order_by(qrels.c.number)
    return list(connection.execute(query).scalars())


def read_eligible_submissions(connection: Connection, track_id: int) -> list[str]:
    """Return the ids of the track's submissions that are not withdrawn."""
    query = select(submissions.c.id).where(
        submissions.c.track_id == track_id, submissions.c.withdrawn_at.is_(None)
    )
    return list(connection.execute(query.order_by(submissions.c.id)).scalars())


def switch_version(system: System, track_id: int) -> bool:
    """Make the version being published current if all its evaluations have ended.

    Return whether it became current.

    Call it after the commit of every transaction that may end the last evaluation.
    """
    with reading(system.engine) as connection:
        track = connection.execute(select(tracks).where(tracks.c.id == track_id)).one()
        number = connection.execute(select_newest_published(track_id)).scalar()
    if number is None or number == track.current:
        return False
    with writing(system.engine) as connection:
        # Lock first, because an UPDATE that waits for the row lock still sees an old snapshot of the jobs.
        connection.execute(select(tracks.c.id).where(tracks.c.id == track_id).with_for_update())
        if connection.execute(_switch_statement(track_id, number)).rowcount != 1:
            return False
        became_current = update(qrels).where(qrels.c.track_id == track_id, qrels.c.number == number)
        connection.execute(became_current.values(current_since=system.now()))
    return True


def switch_all_versions(system: System) -> int:
    """Call `switch_version` for tracks whose newest published version is not current.

    The scheduler calls this in case a worker died before its call. Return the number of switched tracks.
    """
    with reading(system.engine) as connection:
        newest = select_newest_published(tracks.c.id).scalar_subquery()
        behind = or_(tracks.c.current.is_(None), tracks.c.current != newest)
        waiting = list(connection.execute(select(tracks.c.id).where(newest.is_not(None), behind)).scalars())
    return sum(switch_version(system, track_id) for track_id in waiting)


def is_scoring(connection: Connection, track_id: int) -> bool:
    """Return whether a submission that is not withdrawn waits for an evaluation."""
    versions = select(qrels.c.id).where(qrels.c.track_id == track_id)
    listed = and_(submissions.c.id == job_rows.c.submission_id, submissions.c.withdrawn_at.is_(None))
    is_open = or_(JOB_STATES["queued"], JOB_STATES["running"])
    waiting = exists().where(job_rows.c.qrels_id.in_(versions), job_rows.c.kind == EVALUATE, is_open, listed)
    return bool(connection.execute(select(waiting)).scalar_one())


def read_first_finished(
    connection: Connection, versions: Select[Any], *, after: datetime | None
) -> datetime | None:
    """Return when the first evaluation under `versions` finished.

    Only evaluations that finished later than `after` count.
    """
    done = [job_rows.c.qrels_id.in_(versions), job_rows.c.kind == EVALUATE]
    if after is not None:
        done.append(job_rows.c.finished_at > after)
    return connection.execute(select(func.min(job_rows.c.finished_at)).where(*done)).scalar()


def _switch_statement(track_id: int, number: int) -> Any:
    """Build the conditional UPDATE of a track's current version."""
    is_open = and_(
        job_rows.c.qrels_id == qrels.c.id,
        or_(JOB_STATES["queued"], JOB_STATES["running"]),
        submissions.c.id == job_rows.c.submission_id,
        submissions.c.withdrawn_at.is_(None),
    )
    is_version = and_(qrels.c.track_id == track_id, qrels.c.number == number)
    return (
        update(tracks)
        .where(
            tracks.c.id == track_id,
            or_(tracks.c.current.is_(None), tracks.c.current < number),
            select_newest_published(track_id).scalar_subquery() == number,
            ~exists().where(is_version, is_open),
        )
        .values(current=number, revision=tracks.c.revision + 1)
    )


def read_progress(connection: Connection, qrels_ids: Sequence[int]) -> dict[int, RescoringProgress]:
    """Return qrels id -> progress."""
    open_ = or_(JOB_STATES["queued"], JOB_STATES["running"])
    by_submission = (
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
    scored = exists().where(  # a job for a superseded version finishes without a score
        scores.c.submission_id == by_submission.c.submission_id,
        scores.c.qrels_id == by_submission.c.qrels_id,
        scores.c.scoring_version == SCORING_VERSION,
    )
    totals = select(
        by_submission.c.qrels_id,
        func.count().label("total"),
        func.count().filter(by_submission.c.open == 0, by_submission.c.dead == 0, scored).label("scored"),
        func.count().filter(by_submission.c.dead > 0).label("dead"),
    ).group_by(by_submission.c.qrels_id)
    counts = {
        row.qrels_id: RescoringProgress(row.total, row.scored, row.dead) for row in connection.execute(totals)
    }
    return {id: counts.get(id, RescoringProgress(0, 0, 0)) for id in qrels_ids}
