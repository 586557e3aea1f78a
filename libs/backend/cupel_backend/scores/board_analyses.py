"""Board analyses: intervals, groups and the best set of every leaderboard.

They are computed by one job per board. A board is the leaderboard of one measure under one qrels version. Its
analysis is valid only for the runs and scores from which it was computed (its `basis`). If the board now
ranks other runs or scores, its analysis is pending, so groups never appear next to an order that they do not
belong to.

Each board has one job. It is queued again when the board has changed and no evaluation of its track is open,
so a burst of submissions costs one analysis. A track with a constant stream of submissions is still analysed
from time to time. A changed board is analysed at most once every `analysis_seconds`; a board without any
analysis does not wait.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import groupby
from typing import Any

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from cupel_backend import jobs, tracks
from cupel_backend.infrastructure.database import reading, writing
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import VECTOR, qrels, runs, scores, submissions
from cupel_backend.infrastructure.tables import analyses as analysis_rows
from cupel_backend.infrastructure.tables import jobs as job_rows
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_backend.jobs import Claim, JobRequest
from cupel_backend.scores import rescoring
from cupel_contract.states import AnalysisState
from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing import board_analysis
from cupel_measures.comparing.corrections import letters
from cupel_measures.comparing.resampling import Interval
from cupel_measures.comparing.topic_sets.detectable_differences import clip_mean, range_of_means
from cupel_measures.explaining.scale_notes import scale_of
from cupel_measures.grammar.registry import Aggregate
from cupel_measures.model import Floats
from cupel_measures.scoring.evaluator import SCORING_VERSION

ANALYSE = "analyse"
QUEUE = "audit"
"""Analyses and evaluations have separate queues, because scores must never wait for an analysis."""

MAX_SUBMISSIONS = 1000
"""Maximum number of submissions of an analysed board; 1,000 submissions have half a million pairs."""

ONE_SUBMISSION = "only one submission is ranked"

METHOD_PREFIX = f"{board_analysis.METHOD}:"
"""Prefix of the basis of every analysis by the current method. Earlier releases use other prefixes."""

Board = tuple[int, str]
"""Id of a qrels version, and the canonical text of a measure."""


@dataclass(frozen=True)
class RankInformation:
    """Uncertainty of a submission's score and rank.

    interval: confidence interval of the score; None if undefined. rank_interval: confidence interval of the
    rank; None if undefined. groups: letters of groups, where a is the best group; two submissions share a
    letter if and only if they are not significantly different. in_best_set: whether the submission is not
    significantly worse than the best. If nothing was tested, groups is empty and in_best_set is None.
    """

    interval: tuple[float, float] | None = None
    rank_interval: tuple[int, int] | None = None
    groups: tuple[str, ...] = ()
    in_best_set: bool | None = None


@dataclass(frozen=True, kw_only=True)
class StoredAnalysis:
    """Significance analysis of a whole board. Values that are not known yet are None.

    undefined: reason why nothing was tested, or None. method: name and version of the method;
    analyses by other methods are computed again. in_best_set: number of submissions in the best set.
    neighbours: number of pairs of adjacent submissions. separable: number of these pairs that are
    significantly different. smallest_difference: smallest true difference that is detected with power 0.8 at
    level `alpha` on the same number of topics; None if undefined, or for geometric means.
    """

    state: AnalysisState
    undefined: str | None = None
    method: str = board_analysis.METHOD
    submissions: int = 0
    in_best_set: int | None = None
    separable: int | None = None
    neighbours: int | None = None
    smallest_difference: float | None = None
    topics: int | None = None
    alpha: float | None = None
    replicates: int | None = None
    seed: int | None = None
    warnings: tuple[str, ...] = ()
    computed_at: datetime | None = None


# Reading


def read_analysis(
    connection: Connection, track: Row[Any], version: Row[Any] | None, measure: str
) -> tuple[StoredAnalysis, dict[str, RankInformation]]:
    """Return the current analysis of a board, and rank information by submission id."""
    if version is None:
        return StoredAnalysis(state=AnalysisState.UNDEFINED, undefined="no submission is ranked yet"), {}
    ranked = _sort_canonically(connection.execute(_select_ranked(track, _is_board(version, measure))))
    if not ranked:
        return StoredAnalysis(state=AnalysisState.UNDEFINED, undefined="no submission is ranked yet"), {}
    stored = connection.execute(_select_stored(track, _is_board(version, measure, analysis_rows))).first()
    if stored is None or stored.basis != _compute_basis(ranked):
        return _describe_missing(connection, version, measure, ranked), {}
    data = dict(stored.data)
    information = [_unpack_information(fields) for fields in data.pop("standings")]
    analysis = StoredAnalysis(
        **data | {"warnings": tuple(data["warnings"])},
        state=AnalysisState.DONE if data["undefined"] is None else AnalysisState.UNDEFINED,
        submissions=len(ranked),
        computed_at=stored.analysed_at,
    )
    return analysis, {row.id: entry for row, entry in zip(ranked, information, strict=True)}


def _describe_missing(
    connection: Connection, version: Row[Any], measure: str, ranked: Sequence[Row[Any]]
) -> StoredAnalysis:
    job = connection.execute(_select_jobs([_job_key((version.id, measure))])).first()
    if job is not None and _has_failed(job, _compute_basis(ranked)):
        reason = "the analysis failed; the organisers can see the error"
        return StoredAnalysis(state=AnalysisState.UNDEFINED, undefined=reason, submissions=len(ranked))
    return StoredAnalysis(state=AnalysisState.PENDING, submissions=len(ranked))


def _unpack_information(data: Mapping[str, Any]) -> RankInformation:
    # JSON turned the tuples into lists.
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
    }
    return RankInformation(**fields)


def _is_board(version: Row[Any], measure: str, table: Any = scores) -> ColumnElement[bool]:
    return and_(table.c.qrels_id == version.id, table.c.measure == measure)


def _select_ranked(track: Row[Any], boards: ColumnElement[bool], *columns: Any) -> Select[Any]:
    """Select the ranked submissions of a track's boards, grouped by board."""
    return (
        select(scores.c.qrels_id, scores.c.measure, submissions.c.id, runs.c.digest, scores.c.value, *columns)
        .join(submissions, submissions.c.id == scores.c.submission_id)
        .join(runs, runs.c.id == submissions.c.run_id)
        .where(
            boards,
            submissions.c.track_id == track.id,
            submissions.c.withdrawn_at.is_(None),
            scores.c.profile == track.profile,
            scores.c.scoring_version == SCORING_VERSION,
            scores.c.value.is_not(None),
        )
        .order_by(scores.c.qrels_id, scores.c.measure)
    )


def _select_stored(track: Row[Any], boards: ColumnElement[bool]) -> Select[Any]:
    return select(analysis_rows).where(
        boards,
        analysis_rows.c.profile == track.profile,
        analysis_rows.c.scoring_version == SCORING_VERSION,
    )


def _sort_canonically(rows: Any) -> list[Row[Any]]:
    """Sort by content, so that analyses do not depend on the order of submission."""
    return sorted(rows, key=lambda row: (row.digest, row.value, row.id))


def _compute_basis(ranked: Sequence[Row[Any]]) -> str:
    """Return the basis of an analysis: its method and a digest.

    The digest is that of the sorted rows that the analysis is valid for.
    """
    return METHOD_PREFIX + sha256(repr([(row.digest, row.value) for row in ranked]).encode()).hexdigest()


# Planning


def request(system: System, track_id: int) -> int:
    """Queue an analysis of each due board of the track.

    Returns the number of queued jobs. Call it after every event that may make a board due. The scheduler
    calls it again for waiting boards.
    """
    _delete_outdated(system, track_id)
    cutoff = system.now() - timedelta(seconds=system.settings.analysis_seconds)
    with reading(system.engine) as connection:
        track = connection.execute(select(track_rows).where(track_rows.c.id == track_id)).one()
        scope = _find_scope(connection, track, cutoff) if track.analysed != track.revision else None
        if scope is None:
            return 0
        due = _find_due_boards(connection, track, scope.boards)
    with writing(system.engine) as connection:
        is_track = track_rows.c.id == track_id
        connection.execute(select(track_rows.c.id).where(is_track).with_for_update())
        existing = {
            row.key: row for row in connection.execute(_select_jobs([_job_key(board) for board in due]))
        }
        job_requests = [
            _build_job_request(track, board, basis)
            for board, basis in due.items()
            if _needs_job(existing.get(_job_key(board)), basis)
        ]
        queued = jobs.requeue(connection, job_requests, now=system.now())
        # A running job may have read the board before it changed, so the track is checked again afterwards.
        if scope.is_complete and not any(jobs.state_of(row) == "running" for row in existing.values()):
            connection.execute(update(track_rows).where(is_track).values(analysed=track.revision))
    if queued:
        system.wake_ups.send(QUEUE)  # wakes one worker only, so that the others stay free for scoring
    return queued


def request_all(system: System) -> int:
    """Call `request` for every track with boards that changed.

    These boards changed since they were last checked. Tracks with analyses by another method count as
    changed. During an upgrade, workers of the old release may still write such analyses.
    """
    changed = or_(track_rows.c.analysed.is_(None), track_rows.c.analysed != track_rows.c.revision)
    outdated = select(qrels.c.track_id).join(analysis_rows).where(_is_outdated())
    with reading(system.engine) as connection:
        condition = or_(changed, track_rows.c.id.in_(outdated))
        ids = list(connection.execute(select(track_rows.c.id).where(condition)).scalars())
    return sum(request(system, id) for id in ids)


def _is_outdated() -> ColumnElement[bool]:
    return ~analysis_rows.c.basis.startswith(METHOD_PREFIX, autoescape=True)


def _delete_outdated(system: System, track_id: int) -> None:
    """Delete the track's analyses by other methods, and mark its boards as unchecked."""
    versions = select(qrels.c.id).where(qrels.c.track_id == track_id)
    condition = and_(analysis_rows.c.qrels_id.in_(versions), _is_outdated())
    with reading(system.engine) as connection:
        if connection.execute(select(analysis_rows.c.qrels_id).where(condition)).first() is None:
            return
    with writing(system.engine) as connection:
        connection.execute(delete(analysis_rows).where(condition))
        connection.execute(update(track_rows).where(track_rows.c.id == track_id).values(analysed=None))


@dataclass(frozen=True)
class _Scope:
    """The boards of a track that may be due.

    boards: condition on rows of `scores` that selects the boards. is_complete: whether these are all boards.
    """

    boards: ColumnElement[bool]
    is_complete: bool


def _find_scope(connection: Connection, track: Row[Any], cutoff: datetime) -> _Scope | None:
    """Return the boards that may be due, or None if all boards have to wait.

    If no evaluation is open, all boards may be due. But if the last analysis is newer than `cutoff`, only
    boards without any analysis may be due.

    If an evaluation is open, only boards of the current version may be due, because some tracks never stop
    scoring. Also, the last analysis and the first evaluation after this analysis must be older than `cutoff`.
    """
    versions = _select_versions(track)
    newest = select(func.max(analysis_rows.c.analysed_at)).where(analysis_rows.c.qrels_id.in_(versions))
    last = connection.execute(newest).scalar()
    is_recent = last is not None and last > cutoff
    if not rescoring.is_scoring(connection, track.id):
        in_track = scores.c.qrels_id.in_(versions)
        return _Scope(and_(in_track, ~_has_analysis(track)), False) if is_recent else _Scope(in_track, True)
    current = versions.where(qrels.c.number == track.current)
    changed = None if is_recent else rescoring.read_first_finished(connection, current, after=last)
    return None if changed is None or changed >= cutoff else _Scope(scores.c.qrels_id.in_(current), False)


def _select_versions(track: Row[Any]) -> Select[Any]:
    return select(qrels.c.id).where(qrels.c.track_id == track.id)


def _has_analysis(track: Row[Any]) -> ColumnElement[bool]:
    """Return the condition that the board of a score has an analysis, outdated or not."""
    same_board = and_(
        analysis_rows.c.qrels_id == scores.c.qrels_id,
        analysis_rows.c.measure == scores.c.measure,
    )
    return _select_stored(track, same_board).exists()


def _find_due_boards(
    connection: Connection, track: Row[Any], boards: ColumnElement[bool]
) -> dict[Board, str]:
    """Return the current basis of each board that has no analysis for this basis."""
    stored = connection.execute(_select_stored(track, analysis_rows.c.qrels_id.in_(_select_versions(track))))
    analysed = {(row.qrels_id, row.measure): row.basis for row in stored}
    rows = connection.execute(_select_ranked(track, boards))
    bases = {
        board: _compute_basis(_sort_canonically(ranked))
        for board, ranked in groupby(rows, lambda row: (row.qrels_id, row.measure))
    }
    return {board: basis for board, basis in bases.items() if analysed.get(board) != basis}


def _needs_job(job: Row[Any] | None, basis: str) -> bool:
    """Return whether to queue a board's job.

    It is not queued if it is open, nor if it died on the same basis.
    """
    return job is None or (jobs.state_of(job) not in ("queued", "running") and not _has_failed(job, basis))


def _has_failed(job: Row[Any], basis: str) -> bool:
    return jobs.state_of(job) == "dead" and job.payload["basis"] == basis


def _job_key(board: Board) -> str:
    version, measure = board
    return f"{ANALYSE}/{version}/{SCORING_VERSION}/{sha256(measure.encode()).hexdigest()[:32]}"


def _select_jobs(keys: Sequence[str]) -> Select[Any]:
    return select(job_rows).where(job_rows.c.key.in_(keys))


def _build_job_request(track: Row[Any], board: Board, basis: str) -> JobRequest:
    version, measure = board
    return JobRequest(
        key=_job_key(board),
        kind=ANALYSE,
        queue=QUEUE,
        tenant=f"track {track.name}",
        payload={"qrels": version, "measure": measure, "basis": basis},
        track_id=track.id,
        # No qrels_id: an analysis does not count as scoring, and no version waits for it.
    )


# Computing


def compute(system: System, claim: Claim) -> None:
    """Handle a claimed job: analyse the current state of its board.

    Nothing is computed if the board has no ranked submission or an analysis of its current state exists. The
    analysis replaces the stored one, and the job is finished, in one transaction. Afterwards, the
    analyses of the track that are due are queued. Raises `jobs.LeaseLost` if the
    lease has expired and another worker may have the job; then nothing is written.
    """
    text = claim.payload["measure"]
    with reading(system.engine) as connection:
        version = connection.execute(select(qrels).where(qrels.c.id == claim.payload["qrels"])).one()
        track = connection.execute(select(track_rows).where(track_rows.c.id == version.track_id)).one()
        rows = connection.execute(_select_ranked(track, _is_board(version, text), scores.c.vector))
        ranked = _sort_canonically(rows)
        stored = connection.execute(_select_stored(track, _is_board(version, text, analysis_rows))).first()
    basis = _compute_basis(ranked)
    is_done = not ranked or (stored is not None and stored.basis == basis)
    data = {} if is_done else _analyse(ranked, version, track, text)
    now = system.now()
    with writing(system.engine) as connection:
        jobs.finish(connection, claim, now=now)
        if not is_done:
            _store(connection, track, version, text, {"basis": basis, "data": data, "analysed_at": now})
    system.metrics.observe_job_wait(queue=claim.queue, waited=now - claim.created_at)
    request(system, track.id)


def _store(
    connection: Connection, track: Row[Any], version: Row[Any], measure: str, values: Mapping[str, Any]
) -> None:
    """Replace the stored analysis of the board.

    The track's revision is incremented to change its etags.
    """
    keys = {"profile": track.profile, "scoring_version": SCORING_VERSION}
    same = and_(*(analysis_rows.c[name] == value for name, value in keys.items()))
    connection.execute(delete(analysis_rows).where(_is_board(version, measure, analysis_rows), same))
    row = {"qrels_id": version.id, "measure": measure, **keys, **values}
    connection.execute(insert(analysis_rows).values(row))
    revision = track_rows.c.revision + 1
    # If all boards are checked, they remain so, because the analysis is the only change.
    is_checked = track_rows.c.analysed == track_rows.c.revision
    statement = update(track_rows).where(track_rows.c.id == track.id)
    connection.execute(
        statement.values(
            revision=revision, analysed=case((is_checked, revision), else_=track_rows.c.analysed)
        )
    )


def derive_seed(digest: str) -> int:
    """Return the random seed of all analyses under the qrels version with this digest."""
    return int(sha256(digest.encode()).hexdigest()[:8], 16)


def _analyse(ranked: Sequence[Row[Any]], version: Row[Any], track: Row[Any], text: str) -> dict[str, Any]:
    """Return the analysis and the rank information of a board in their stored form."""
    if len(ranked) > MAX_SUBMISSIONS:
        reason = f"the leaderboard has more than {MAX_SUBMISSIONS:,} submissions"
        return _pack(
            StoredAnalysis(state=AnalysisState.UNDEFINED, undefined=reason), [RankInformation()] * len(ranked)
        )
    measure = parse(text)
    aggregate = measure.declaration.aggregate
    values = _unpack_vectors([row.vector for row in ranked], aggregate)
    scale = scale_of(measure, tracks.parse_aspects(track)).type
    [result] = board_analysis.analyse([values], scales=[scale], seed=derive_seed(version.digest))
    convert = _find_conversion(aggregate, len(values))
    smallest = None if aggregate == "geometric mean" else result.smallest_difference
    is_tested = result.undefined is None
    analysis = StoredAnalysis(
        state=AnalysisState.DONE,
        undefined=ONE_SUBMISSION if len(ranked) == 1 else result.undefined,
        in_best_set=sum(system.in_best_set for system in result.standings) if is_tested else None,
        separable=result.separable if is_tested else None,
        neighbours=result.neighbours,
        smallest_difference=None if smallest is None else convert(smallest),
        topics=len(values),
        alpha=result.alpha,
        replicates=result.replicates,
        seed=result.seed,
        warnings=result.warnings,
    )
    bounds = range_of_means(text)
    standings = [replace(entry, mean=clip_mean(entry.mean, bounds)) for entry in result.standings]
    return _pack(analysis, [_describe_rank(entry, convert, is_tested) for entry in standings])


def _pack(analysis: StoredAnalysis, information: Sequence[RankInformation]) -> dict[str, Any]:
    data = asdict(analysis) | {"standings": [asdict(entry) for entry in information]}
    return {
        name: value for name, value in data.items() if name not in ("state", "submissions", "computed_at")
    }


def _unpack_vectors(vectors: Sequence[bytes], aggregate: Aggregate) -> Floats:
    """Unpack float64[topics, submissions], as logarithms for a geometric mean."""
    values = np.stack([np.frombuffer(vector, VECTOR) for vector in vectors], axis=1).astype(np.float64)
    if aggregate == "geometric mean":
        return np.array([[math.log(value) for value in topic] for topic in values.tolist()])
    return values


def _find_conversion(aggregate: Aggregate, topics: int) -> Callable[[float], float]:
    """Return the function that converts a mean of unpacked values to a board score."""
    conversions: dict[Aggregate, Callable[[float], float]] = {
        "mean": lambda value: value,
        "sum": lambda value: value * topics,
        "geometric mean": math.exp,
    }
    return conversions[aggregate]


def _describe_rank(
    ranked: board_analysis.RankedSystem, convert: Callable[[float], float], is_tested: bool
) -> RankInformation:
    return RankInformation(
        interval=_convert_interval(ranked.mean, convert),
        rank_interval=_whole_ranks(ranked.rank),
        groups=tuple(map(letters, ranked.groups)) if is_tested else (),
        in_best_set=ranked.in_best_set if is_tested else None,
    )


def _whole_ranks(interval: Interval) -> tuple[int, int] | None:
    return None if interval.low is None or interval.high is None else (int(interval.low), int(interval.high))


def _convert_interval(interval: Interval, convert: Callable[[float], float]) -> tuple[float, float] | None:
    if interval.low is None or interval.high is None:
        return None
    return convert(interval.low), convert(interval.high)
