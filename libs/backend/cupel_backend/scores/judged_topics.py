"""Recomputation of scores that were averaged over unjudged topics too.

Unjudged topics are listed in the collection file but have no judgments. Earlier releases scored them and
included them in the means. Now, vectors of scores contain the judged topics only. All
stored values under a qrels version with such topics are therefore deleted, and its submissions are evaluated
again. The values under other versions are kept.
"""

from collections import defaultdict
from typing import Any

from sqlalchemy import Connection, Row, delete, select, update

from cupel_backend import jobs
from cupel_backend.infrastructure.database import reading, writing
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import analyses, bump_revision, explanations, qrels, scores
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_backend.scores import evaluations, rescoring
from cupel_measures.model import Qrels

UNJUDGED_TOPICS = "unjudged_topics"
"""Key of the ids of topics without judgments in the counts of a qrels version. May be missing."""


def recompute_versions(system: System) -> int:
    """Recompute the scores under qrels versions with unjudged topics.

    This concerns every such version that an earlier release stored. Return the number of queued evaluations.
    Repeating this has no effect.
    """
    with reading(system.engine) as connection:
        rows = connection.execute(select(qrels.c.id, qrels.c.blob, qrels.c.counts)).all()
    earlier = [row for row in rows if UNJUDGED_TOPICS not in row.counts]
    return sum(_recompute(system, row.id, evaluations.load_qrels(system.blobs, row.blob)) for row in earlier)


def _recompute(system: System, version_id: int, judged: Qrels) -> int:
    queued = 0
    with writing(system.engine) as connection:
        version = connection.execute(select(qrels).where(qrels.c.id == version_id).with_for_update()).one()
        counts = version.counts | {
            "topics": len(judged.topics),
            UNJUDGED_TOPICS: list(judged.unjudged_topics),
        }
        values = {"topics": list(judged.topics), "counts": counts}
        connection.execute(update(qrels).where(qrels.c.id == version_id).values(values))
        if list(version.topics) != list(judged.topics):
            queued = jobs.requeue(connection, _build_job_requests(connection, version), now=system.now())
            for table in (scores, explanations, analyses):
                connection.execute(delete(table).where(table.c.qrels_id == version_id))
            bump_revision(connection, [version.track_id])
    if queued:
        system.wake_ups.send(rescoring.QUEUE, times=queued)
    return queued


def _build_job_requests(connection: Connection, version: Row[Any]) -> list[jobs.JobRequest]:
    """Build the requests to evaluate each scored submission again.

    The measures are those of its stored scores.
    """
    track = connection.execute(select(track_rows).where(track_rows.c.id == version.track_id)).one()
    measures: dict[str, list[str]] = defaultdict(list)
    stored = select(scores.c.submission_id, scores.c.measure).where(scores.c.qrels_id == version.id)
    for row in connection.execute(stored.distinct()):
        measures[row.submission_id].append(row.measure)
    return [
        rescoring.build_job_request(f"track {track.name}", track.id, version.id, submission, names)
        for submission, names in sorted(measures.items())
    ]
