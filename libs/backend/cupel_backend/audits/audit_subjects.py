"""What audits are of: which submissions to a track, and under which names reports tell of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, exists, select

from cupel_backend.infrastructure.tables import runs, scores, submissions
from cupel_measures.scoring.evaluator import SCORING_VERSION

MOST_RUNS = 1000
COMPRESSED = (".gz", ".bz2", ".zst", ".zip")


@dataclass(frozen=True)
class AuditedSubmission:
    """A submission that is audited, under the name that reports give it."""

    submission: str
    name: str
    team: str


def select_submissions(
    connection: Connection, track: Row[Any], version: Row[Any], ids: Sequence[str]
) -> tuple[list[AuditedSubmission], list[str]]:
    """What an audit under `version` is of, in the order of the names; what is wrong with it, in sentences.

    ids: of submissions (default: all that are scored and not withdrawn), of which one of each run is taken.
    """
    query = (
        select(submissions.c.id, submissions.c.run_id, submissions.c.team, submissions.c.name, runs.c.tag)
        .join(runs, runs.c.id == submissions.c.run_id)
        .where(submissions.c.track_id == track.id, submissions.c.withdrawn_at.is_(None))
        .order_by(submissions.c.id)
    )
    listed = submissions.c.id.in_(ids) if ids else _is_scored(track, version)
    rows = connection.execute(query.where(listed)).all()
    missing = sorted(set(ids) - {row.id for row in rows})
    sentences = [f"the track has no submission {id!r} that is not withdrawn" for id in missing]
    once = list({row.run_id: row for row in reversed(rows)}.values())
    if not once and not ids:
        sentences.append(
            f"no submission is scored under qrels version {version.number}: there is nothing yet"
        )
    if len(once) > MOST_RUNS:
        sentences.append(f"{len(once):,} runs; at most {MOST_RUNS:,} are audited at once: name submissions")
    return _named(once), sentences


def _is_scored(track: Row[Any], version: Row[Any]) -> Any:
    return exists().where(
        scores.c.submission_id == submissions.c.id,
        scores.c.qrels_id == version.id,
        scores.c.profile == track.profile,
        scores.c.scoring_version == SCORING_VERSION,
    )


def _named(rows: Sequence[Row[Any]]) -> list[AuditedSubmission]:
    """By the names of their files, as offline; where those are equal, with the team, or with the id, too."""
    short = {row.id: _base(row.name) or row.tag for row in rows}
    times = Counter(short.values())
    full = {
        row.id: f"{row.team}/{short[row.id]}" if times[short[row.id]] > 1 else short[row.id] for row in rows
    }
    times = Counter(full.values())
    names = {id: f"{name} ({id})" if times[name] > 1 else name for id, name in full.items()}
    return sorted(
        (AuditedSubmission(row.id, names[row.id], row.team) for row in rows), key=lambda one: one.name
    )


def _base(name: str) -> str:
    ending = next((one for one in COMPRESSED if name.endswith(one)), "")
    return name.removesuffix(ending)
