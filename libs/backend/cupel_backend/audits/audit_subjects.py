"""Subjects of audits: the audited submissions of a track and their report names."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, exists, select

from cupel_backend.infrastructure.tables import runs, scores, submissions
from cupel_measures.reading.compression import plain_name
from cupel_measures.scoring.evaluator import SCORING_VERSION

MAX_RUNS = 1000
"""Maximum number of distinct runs of an audit, over all teams together."""


@dataclass(frozen=True)
class AuditedSubmission:
    """A submission that is audited, with its name in reports."""

    submission: str
    name: str
    team: str


def select_submissions(
    connection: Connection, track: Row[Any], version: Row[Any], ids: Sequence[str]
) -> tuple[list[AuditedSubmission], list[str]]:
    """Return the submissions to audit under `version`, and the problems.

    The submissions are ordered by name. There is a sentence for each problem; the audit is possible only if
    there is none. More than MAX_RUNS runs are a problem. ids: submission ids (if empty: all submissions that
    are scored and not withdrawn). A run that was submitted several times is audited once, as its
    first submission.
    """
    query = (
        select(submissions.c.id, submissions.c.run_id, submissions.c.team, submissions.c.name, runs.c.tag)
        .join(runs, runs.c.id == submissions.c.run_id)
        .where(submissions.c.track_id == track.id, submissions.c.withdrawn_at.is_(None))
        .order_by(submissions.c.id)
    )
    is_selected = submissions.c.id.in_(ids) if ids else _is_scored(track, version)
    rows = connection.execute(query.where(is_selected)).all()
    missing = sorted(set(ids) - {row.id for row in rows})
    sentences = [f"submission {id!r} is withdrawn, or is not a submission to the track" for id in missing]
    unique_runs = list({row.run_id: row for row in reversed(rows)}.values())
    if not unique_runs and not ids:
        sentences.append(f"no submission is scored under qrels version {version.number} yet")
    if len(unique_runs) > MAX_RUNS:
        sentences.append(
            f"{len(unique_runs):,} runs exceed the limit of {MAX_RUNS:,} per audit; list fewer submissions"
        )
    return _assign_names(unique_runs), sentences


def _is_scored(track: Row[Any], version: Row[Any]) -> Any:
    return exists().where(
        scores.c.submission_id == submissions.c.id,
        scores.c.qrels_id == version.id,
        scores.c.profile == track.profile,
        scores.c.scoring_version == SCORING_VERSION,
    )


def _assign_names(rows: Sequence[Row[Any]]) -> list[AuditedSubmission]:
    """Name each submission after its file, as the command line does for local files.

    The team is added to equal names, and then the id to names that are still equal.
    """
    short = {row.id: plain_name(row.name) or row.tag for row in rows}
    counts = Counter(short.values())
    full = {
        row.id: f"{row.team}/{short[row.id]}" if counts[short[row.id]] > 1 else short[row.id] for row in rows
    }
    counts = Counter(full.values())
    names = {id: f"{name} ({id})" if counts[name] > 1 else name for id, name in full.items()}
    return sorted(
        (AuditedSubmission(row.id, names[row.id], row.team) for row in rows), key=lambda audited: audited.name
    )
