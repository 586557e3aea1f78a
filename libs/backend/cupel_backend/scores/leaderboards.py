"""Leaderboards: submissions of a track ordered by a measure.

A query computes the order under a qrels version.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, case, exists, func, or_, select

from cupel_backend import tracks
from cupel_backend.access import Principal
from cupel_backend.infrastructure.database import CURSOR_UNKNOWN, reading
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import JOB_STATES, jobs, runs, scores, submissions
from cupel_backend.scores import board_analyses, evaluations
from cupel_backend.scores.board_analyses import METHOD_PREFIX, StoredAnalysis
from cupel_measures.explaining.scale_notes import ScaleNote
from cupel_measures.scoring.evaluator import SCORING_VERSION

MAX_PAGE = 1000
NO_INFORMATION = board_analyses.RankInformation()


@dataclass(frozen=True, kw_only=True)
class LeaderboardRow:
    """A ranked submission. Equal scores share a rank: 1, 2, 2, 4.

    exact: the unrounded score, as in `evaluations.ScoreView`. The fields with defaults come from the analysis
    (`board_analyses.RankInformation`). rank_interval: always contains `rank`.
    """

    rank: int
    submission: str
    team: str
    name: str
    tag: str
    score: float
    exact: str | None
    received_at: datetime
    missing_topics: int
    interval: tuple[float, float] | None = None
    rank_interval: tuple[int, int] | None = None
    groups: tuple[str, ...] = ()
    in_best_set: bool | None = None


@dataclass(frozen=True)
class UnscoredSubmission:
    """A submission without a score, and the reason."""

    submission: str
    team: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Leaderboard:
    """A page of a leaderboard with everything that it depends on.

    analysis: analysis of the whole board. unscored: submissions without a score; empty on later pages. qrels:
    None while the track has no current version; then `rows` is empty. etag: changes with the content.
    """

    track: str
    measure: str
    scale: ScaleNote
    qrels: int | None
    qrels_digest: str | None
    profile: str
    scoring_version: int
    analysis: StoredAnalysis
    rows: tuple[LeaderboardRow, ...]
    unscored: tuple[UnscoredSubmission, ...]
    next: str | None
    etag: str


def read_board(
    system: System,
    principal: Principal,
    track: str,
    *,
    measure: str | None = None,
    qrels: int | None = None,
    limit: int = 500,
    cursor: str | None = None,
    known: str | None = None,
) -> Leaderboard | None:
    """Read the leaderboard of a track by a measure under a qrels version.

    `measure` is the plan's first by default; `qrels` is the current version by default.

    known: etag of a page that the caller has; if the page is unchanged, return None. Raises NotFound for an
    unknown track or version, and Invalid for a measure that the track does not support.
    """
    limit = max(1, min(limit, MAX_PAGE))
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
        text = tracks.parse_measure(measure, row) if measure is not None else row.measures[0]
        etag = _compute_etag(row, text, qrels, limit, cursor)
        if etag == known:
            return None
        version = evaluations.find_version(connection, principal, row, qrels)
        begin = _parse_cursor(cursor)
        ranked = _read_ranked(connection, row, version, text, begin, limit + 1) if version is not None else []
        more = len(ranked) > limit
        analysis, information = board_analyses.read_analysis(connection, row, version, text)
        rows = tuple(
            replace(_build_row(entry), **vars(information.get(entry.id, NO_INFORMATION)))
            for entry in ranked[:limit]
        )
        return Leaderboard(
            track=row.name,
            measure=text,
            scale=evaluations.describe_scale(text, tracks.parse_aspects(row)),
            qrels=version and version.number,
            qrels_digest=version and version.digest,
            profile=row.profile,
            scoring_version=SCORING_VERSION,
            analysis=analysis,
            rows=rows,
            unscored=_read_unscored(connection, row, version, text) if begin == 0 else (),
            next=str(begin + len(rows)) if more else None,
            etag=etag,
        )


def read_rows(
    system: System, principal: Principal, track: str, *, measure: str, qrels: int
) -> tuple[str, dict[str, LeaderboardRow]]:
    """Return the canonical text of `measure` and the rows of the leaderboard.

    The rows are a mapping from submission ids to rows in ranking order.
    """
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
        text = tracks.parse_measure(measure, row)
        version = evaluations.find_version(connection, principal, row, qrels)
        ranked = _read_ranked(connection, row, version, text, 0, None)
        return text, {entry.id: _build_row(entry) for entry in ranked}


def _compute_etag(track: Any, *query: Any) -> str:
    # The revision of the track covers everything that its leaderboards show, except the method of analysis.
    state = (str(track.created_at), track.id, track.revision, SCORING_VERSION, METHOD_PREFIX)
    return sha256(repr((state, query)).encode()).hexdigest()[:32]


def _parse_cursor(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9:
        raise CURSOR_UNKNOWN(f"invalid cursor {cursor!r}")
    return int(cursor)


def _has_score(version: Any, track: Any, measure: str) -> ColumnElement[bool]:
    return and_(
        scores.c.submission_id == submissions.c.id,
        scores.c.qrels_id == version.id,
        scores.c.measure == measure,
        scores.c.profile == track.profile,
        scores.c.scoring_version == SCORING_VERSION,
    )


def _read_ranked(
    connection: Connection, track: Any, version: Any, measure: str, begin: int, limit: int | None
) -> Sequence[Any]:
    """Read at most `limit` ranked rows, starting at position `begin`."""
    best_first = _select_ranking_order(connection, track, version, measure)
    query = (
        select(
            submissions.c.id,
            submissions.c.team,
            submissions.c.name,
            submissions.c.received_at,
            runs.c.tag,
            scores.c.value,
            scores.c.exact,
            scores.c.missing_topics,
            func.rank().over(order_by=best_first).label("rank"),
        )
        .join(runs, runs.c.id == submissions.c.run_id)
        .join(scores, _has_score(version, track, measure))
        .where(_is_listed(track), scores.c.value.is_not(None))
        .order_by(best_first, submissions.c.received_at, submissions.c.id)
        .offset(begin)
        .limit(limit)
    )
    return connection.execute(query).all()


def _select_ranking_order(
    connection: Connection, track: Any, version: Any, measure: str
) -> ColumnElement[float] | ColumnElement[str]:
    """Return the sort key of the board.

    It is the exact scores if all rows have one, otherwise the floats.

    All rows must be sorted by the same key. Scores of old releases have no exact value.
    """
    inexact = select(submissions.c.id).join(scores, _has_score(version, track, measure))
    inexact = inexact.where(_is_listed(track), scores.c.value.is_not(None), scores.c.exact_key.is_(None))
    has_inexact = connection.execute(select(exists(inexact))).scalar_one()
    return scores.c.value.desc() if has_inexact else scores.c.exact_key.desc()


def _build_row(row: Any) -> LeaderboardRow:
    return LeaderboardRow(
        rank=row.rank,
        submission=row.id,
        team=row.team,
        name=row.name,
        tag=row.tag,
        score=row.value,
        exact=row.exact,
        received_at=row.received_at,
        missing_topics=row.missing_topics,
    )


def _is_listed(track: Any) -> ColumnElement[bool]:
    return and_(submissions.c.track_id == track.id, submissions.c.withdrawn_at.is_(None))


def _read_unscored(
    connection: Connection, track: Any, version: Any, measure: str
) -> tuple[UnscoredSubmission, ...]:
    """Read the submissions without a value on the board, in order of receipt.

    Each has the reason.
    """
    query = select(submissions.c.id, submissions.c.team).where(_is_listed(track))
    query = query.order_by(submissions.c.received_at, submissions.c.id)
    if version is None:
        reason = "the track has no current qrels version yet"
        return tuple(UnscoredSubmission(row.id, row.team, reason) for row in connection.execute(query))
    of_version = and_(jobs.c.submission_id == submissions.c.id, jobs.c.qrels_id == version.id)
    is_open = or_(JOB_STATES["queued"], JOB_STATES["running"])
    reasons = case(
        (scores.c.measure.is_not(None), "the measure is undefined for this run"),
        (exists().where(of_version, is_open), "waiting to be scored"),
        (
            exists().where(of_version, JOB_STATES["dead"]),
            "the evaluation failed; the organisers can see the error",
        ),
        else_="not scored by this measure",
    )
    query = query.add_columns(reasons.label("reason"))
    query = query.outerjoin(scores, _has_score(version, track, measure)).where(scores.c.value.is_(None))
    return tuple(UnscoredSubmission(row.id, row.team, row.reason) for row in connection.execute(query))
