"""Leaderboards: submissions of a track ordered by a measure under a qrels version. A query, never a table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, and_, case, exists, func, or_, select

from cupel_backend import tracks
from cupel_backend.access import Principal
from cupel_backend.infrastructure.database import CURSOR_UNKNOWN, reading
from cupel_backend.infrastructure.tables import JOB_STATES, jobs, runs, scores, submissions
from cupel_backend.scores import board_analyses, evaluations
from cupel_backend.scores.board_analyses import StoredAnalysis
from cupel_measures.explaining.scale_notes import ScaleNote
from cupel_measures.scoring.evaluator import SCORING_VERSION

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System

LARGEST_PAGE = 1000
NONE = board_analyses.RankInformation()


@dataclass(frozen=True)
class LeaderboardRow:
    """A ranked submission. Equal scores share a rank: 1, 2, 2, 4.

    exact: what score is rounded from, as `evaluations.ScoreView` has it. What its place is worth comes with
    the analysis (`board_analyses.RankInformation`); rank_interval in whole ranks, never
    without the rank that is shown: 2 to 3 where two that share rank 2 would share the middle of 2 and 3.
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
    tied_for_first: bool | None = None


@dataclass(frozen=True)
class UnscoredSubmission:
    """A submission that is not ranked, and why."""

    submission: str
    team: str
    reason: str


@dataclass(frozen=True)
class Leaderboard:
    """A page of a leaderboard with all that it depends on.

    analysis: of the whole board, unscored: on the first page only. qrels is None while the track has no
    current version; then nobody is ranked. etag names the state of the database that the page was read from:
    same etag, same page.
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
    system: "System",
    principal: Principal,
    track: str,
    *,
    measure: str | None = None,
    qrels: int | None = None,
    limit: int = 500,
    cursor: str | None = None,
    known: str | None = None,
) -> Leaderboard | None:
    """The board by `measure` (default: the plan's first) under a version (default: the current one).

    known: an etag; if it still holds, None is returned. Raises NotFound for an unknown track or version,
    Invalid for a measure that the track can't have.
    """
    limit = max(1, min(limit, LARGEST_PAGE))
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
        text = tracks.parse_measure(measure, row) if measure is not None else row.measures[0]
        etag = _etag(row, text, qrels, limit, cursor)
        if etag == known:
            return None
        version = evaluations.find_version(connection, principal, row, qrels)
        begin = _position(cursor)
        ranked = _ranked(connection, row, version, text, begin, limit + 1) if version is not None else []
        more = len(ranked) > limit
        analysis, standings = board_analyses.read_analysis(connection, row, version, text)
        rows = tuple(_with_worth(_row(one), standings.get(one.id, NONE)) for one in ranked[:limit])
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
            unscored=_unscored(connection, row, version, text) if begin == 0 else (),
            next=str(begin + len(rows)) if more else None,
            etag=etag,
        )


def read_rows(
    system: "System", principal: Principal, track: str, *, measure: str, qrels: int
) -> tuple[str, dict[str, LeaderboardRow]]:
    """The canonical text of `measure`, and every ranked row under a version, by submission, in order."""
    with reading(system.engine) as connection:
        row = tracks.find(connection, track)
        text = tracks.parse_measure(measure, row)
        version = evaluations.find_version(connection, principal, row, qrels)
        ranked = _ranked(connection, row, version, text, 0, None)
        return text, {one.id: _row(one) for one in ranked}


def _etag(track: Any, *asked: Any) -> str:
    """The track's revision moves with everything that its boards show."""
    state = (str(track.created_at), track.id, track.revision, SCORING_VERSION)
    return sha256(repr((state, asked)).encode()).hexdigest()[:32]


def _position(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9:
        raise CURSOR_UNKNOWN(f"{cursor!r} is not a cursor of a board")
    return int(cursor)


def _scored_by(version: Any, track: Any, measure: str) -> ColumnElement[bool]:
    return and_(
        scores.c.submission_id == submissions.c.id,
        scores.c.qrels_id == version.id,
        scores.c.measure == measure,
        scores.c.profile == track.profile,
        scores.c.scoring_version == SCORING_VERSION,
    )


def _ranked(
    connection: Connection, track: Any, version: Any, measure: str, begin: int, limit: int | None
) -> Sequence[Any]:
    """At most `limit` ranked rows from position `begin` on."""
    best_first = _best_first(connection, track, version, measure)
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
        .join(scores, _scored_by(version, track, measure))
        .where(_listed(track), scores.c.value.is_not(None))
        .order_by(best_first, submissions.c.received_at, submissions.c.id)
        .offset(begin)
        .limit(limit)
    )
    return connection.execute(query).all()


def _best_first(
    connection: Connection, track: Any, version: Any, measure: str
) -> ColumnElement[float] | ColumnElement[str]:
    """By exact scores where all have one, else all by floats: one order of the whole board, never a mixture.

    A score that was computed before exact ones were kept has none; the next qrels version gives it one.
    """
    rounded = select(submissions.c.id).join(scores, _scored_by(version, track, measure))
    rounded = rounded.where(_listed(track), scores.c.value.is_not(None), scores.c.exact_key.is_(None))
    some = connection.execute(select(exists(rounded))).scalar_one()
    return scores.c.value.desc() if some else scores.c.exact_key.desc()


def _row(row: Any) -> LeaderboardRow:
    return LeaderboardRow(
        row.rank,
        row.id,
        row.team,
        row.name,
        row.tag,
        row.value,
        row.exact,
        row.received_at,
        row.missing_topics,
    )


def _with_worth(row: LeaderboardRow, standing: board_analyses.RankInformation) -> LeaderboardRow:
    worth = vars(standing)
    if standing.rank_interval is not None:
        low, high = standing.rank_interval
        worth = worth | {"rank_interval": (min(row.rank, floor(low)), max(row.rank, ceil(high)))}
    return replace(row, **worth)


def _listed(track: Any) -> ColumnElement[bool]:
    return and_(submissions.c.track_id == track.id, submissions.c.withdrawn_at.is_(None))


def _unscored(
    connection: Connection, track: Any, version: Any, measure: str
) -> tuple[UnscoredSubmission, ...]:
    """Submissions without a value, by time of receipt."""
    query = select(submissions.c.id, submissions.c.team).where(_listed(track))
    query = query.order_by(submissions.c.received_at, submissions.c.id)
    if version is None:
        reason = "the track has no current qrels yet"
        return tuple(UnscoredSubmission(row.id, row.team, reason) for row in connection.execute(query))
    of_version = and_(jobs.c.submission_id == submissions.c.id, jobs.c.qrels_id == version.id)
    is_open = or_(JOB_STATES["queued"], JOB_STATES["running"])
    reasons = case(
        (scores.c.measure.is_not(None), "the measure is undefined for this run"),
        (exists().where(of_version, is_open), "waiting to be scored"),
        (exists().where(of_version, JOB_STATES["dead"]), "its evaluation failed; the organisers can see why"),
        else_="not scored by this measure",
    )
    query = query.add_columns(reasons.label("reason"))
    query = query.outerjoin(scores, _scored_by(version, track, measure)).where(scores.c.value.is_(None))
    return tuple(UnscoredSubmission(row.id, row.team, row.reason) for row in connection.execute(query))
