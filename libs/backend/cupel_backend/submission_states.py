"""States of submissions under a qrels version.

It is the current version or, if there is none, the newest published one.

Jobs and scores of other versions do not affect the state.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, or_, select

from cupel_backend.infrastructure.tables import JOB_STATES, jobs, qrels, scores
from cupel_backend.scores.rescoring import select_newest_published
from cupel_contract.states import SubmissionState
from cupel_measures.scoring.evaluator import SCORING_VERSION


def read_states(
    connection: Connection, track: Row[Any], submissions: Sequence[Row[Any]]
) -> dict[str, SubmissionState]:
    """Return submission id -> state for rows of the table `submissions`.

    waiting: no qrels version is published yet. queued: no measure of the plan is scored yet. partly: some
    measures of the plan are scored. scored: all measures of the plan are scored. dead: no measure is scored,
    and the evaluation failed on every attempt. withdrawn: the submission was withdrawn.
    """
    number = track.current or select_newest_published(track.id).scalar_subquery()
    version_id = select(qrels.c.id).where(qrels.c.track_id == track.id, qrels.c.number == number)
    version = connection.execute(version_id).scalar()
    ids = [row.id for row in submissions]
    scored = _count_scored_measures(connection, track, version, ids)
    in_progress = _with_job_in(connection, version, ids, "queued", "running")
    dead = _with_job_in(connection, version, ids, "dead") - in_progress

    def state(row: Row[Any]) -> SubmissionState:
        if row.withdrawn_at is not None:
            return SubmissionState.WITHDRAWN
        if version is None:
            return SubmissionState.WAITING
        if row.id in scored:
            done = scored[row.id] == len(track.measures)
            return SubmissionState.SCORED if done else SubmissionState.PARTLY
        return SubmissionState.DEAD if row.id in dead else SubmissionState.QUEUED

    return {row.id: state(row) for row in submissions}


def _count_scored_measures(
    connection: Connection, track: Row[Any], version: int | None, ids: Sequence[str]
) -> dict[str, int]:
    """Return the number of scored measures of the plan by submission id.

    Submissions without any are absent.
    """
    query = select(scores.c.submission_id, func.count().label("measures")).where(
        scores.c.submission_id.in_(ids),
        scores.c.qrels_id == version,
        scores.c.profile == track.profile,
        scores.c.scoring_version == SCORING_VERSION,
        scores.c.measure.in_(track.measures),
    )
    counts = connection.execute(query.group_by(scores.c.submission_id))
    return {row.submission_id: row.measures for row in counts}


def _with_job_in(
    connection: Connection, version: int | None, ids: Sequence[str], *job_states: str
) -> set[str]:
    """Return the ids of submissions with a job for the version in given states.

    The job is in one of `job_states`.
    """
    query = select(jobs.c.submission_id).where(
        jobs.c.submission_id.in_(ids),
        jobs.c.qrels_id == version,
        or_(*(JOB_STATES[state] for state in job_states)),
    )
    return set(connection.execute(query).scalars())
