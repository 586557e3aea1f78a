"""How far a submission is, under the one qrels version that counts: the board's, or else the first one
on its way there. What became of other versions, or of jobs for them, does not matter.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, or_, select

from cupel_backend.infrastructure.tables import JOB_STATES, jobs, qrels, scores
from cupel_backend.scores.rescoring import newest_published
from cupel_contract.states import SubmissionState
from cupel_measures.scoring.evaluator import SCORING_VERSION


def states(
    connection: Connection, track: Row[Any], submissions: Sequence[Row[Any]]
) -> dict[str, SubmissionState]:
    """The state of each of these rows of `submissions` to the track, by id.

    waiting: for judgments, of which none are published. scored: by the whole plan; partly: by some of it.
    dead: by nothing, and nothing more is tried.
    """
    number = track.current or newest_published(track.id).scalar_subquery()
    counting = select(qrels.c.id).where(qrels.c.track_id == track.id, qrels.c.number == number)
    version = connection.execute(counting).scalar()
    ids = [row.id for row in submissions]
    scored = _scored(connection, track, version, ids)
    trying = _having(connection, version, ids, "queued", "running")
    dead = _having(connection, version, ids, "dead") - trying

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


def _scored(
    connection: Connection, track: Row[Any], version: int | None, ids: Sequence[str]
) -> dict[str, int]:
    """How many measures of the plan each submission is scored by, where it is by any."""
    query = select(scores.c.submission_id, func.count().label("measures")).where(
        scores.c.submission_id.in_(ids),
        scores.c.qrels_id == version,
        scores.c.profile == track.profile,
        scores.c.scoring_version == SCORING_VERSION,
        scores.c.measure.in_(track.measures),
    )
    found = connection.execute(query.group_by(scores.c.submission_id))
    return {row.submission_id: row.measures for row in found}


def _having(connection: Connection, version: int | None, ids: Sequence[str], *job_states: str) -> set[str]:
    """The submissions that have a job for the version in one of these states."""
    query = select(jobs.c.submission_id).where(
        jobs.c.submission_id.in_(ids),
        jobs.c.qrels_id == version,
        or_(*(JOB_STATES[one] for one in job_states)),
    )
    return set(connection.execute(query).scalars())
