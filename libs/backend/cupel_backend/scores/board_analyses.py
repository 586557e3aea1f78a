"""Analyses: what the order of a leaderboard is worth, worked out by a job for every board there is.

A board is a measure under a qrels version; it has one analysis, which holds for exactly the runs and scores
that it was computed from (its `basis`). While the board ranks others, it is pending: groups are never shown
with an order that is not theirs. The job of a board is one row, queued anew when the board has changed and
nothing more of its track is being scored: a burst of submissions costs one analysis, not one each. A track
that is never at rest has its boards analysed all the same, and one that changes all the time no more often
than every `analysis_seconds`; only what was never analysed does not wait.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING, Any

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
from cupel_measures.explaining.scale_notes import scale_of
from cupel_measures.grammar.registry import Aggregate
from cupel_measures.model import Floats
from cupel_measures.scoring.evaluator import SCORING_VERSION

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System

ANALYSE = "analyse"
QUEUE = "audit"
"""Not that of scores, which never wait for it."""

MOST = 1000
"""Submissions that are compared: half a million pairs."""

ALONE = "one submission: nothing to compare with"

METHOD = (
    "groups by randomised Tukey HSD, intervals by bias-corrected accelerated bootstrap over topics, "
    "rank intervals by percentile bootstrap over topics"
)

Board = tuple[int, str]
"""Id of a qrels version, and the text of a measure."""


@dataclass(frozen=True)
class RankInformation:
    """What the place of a submission is worth.

    interval: of its score; rank_interval: of its rank, where equal ones share the middle of theirs (boards
    show the best of them, so `leaderboards.Row` has whole ranks around both); None
    where undefined. groups: a, b, ... from the best on: two submissions share one exactly where the test
    does not tell them apart. tied_for_first: whether it is not told apart from the first one. Both are
    empty where there was no test.
    """

    interval: tuple[float, float] | None = None
    rank_interval: tuple[float, float] | None = None
    groups: tuple[str, ...] = ()
    tied_for_first: bool | None = None


@dataclass(frozen=True)
class StoredAnalysis:
    """What the order of a whole board is worth.

    undefined: why nothing is told apart. separable: how many of the `neighbours` on the board are told
    apart. smallest_difference: the least true difference that so many topics show with chance 0.8 at alpha;
    None where that is undefined, or the score is a geometric mean. What is not known yet is None.
    """

    state: AnalysisState
    undefined: str | None = None
    method: str = METHOD
    submissions: int = 0
    tied_for_first: int | None = None
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
    """The analysis of a board as it is now, and the standing of each submission that it ranks, by id."""
    ranked = _in_order(connection.execute(_ranked(track, _is(version, measure)))) if version else []
    kept = version and connection.execute(_kept(track, _is(version, measure, analysis_rows))).first()
    if not ranked or version is None:
        return StoredAnalysis(AnalysisState.UNDEFINED, "nothing is ranked yet"), {}
    if not kept or kept.basis != _basis(ranked):
        return _not_there(connection, version, measure, ranked), {}
    told = dict(kept.data)
    standings = [_standing(one) for one in told.pop("standings")]
    state = AnalysisState.DONE if told["undefined"] is None else AnalysisState.UNDEFINED
    told["warnings"] = tuple(told["warnings"])
    analysis = StoredAnalysis(state, **told, submissions=len(ranked), computed_at=kept.analysed_at)
    return analysis, {row.id: one for row, one in zip(ranked, standings, strict=True)}


def _not_there(
    connection: Connection, version: Row[Any], measure: str, ranked: Sequence[Row[Any]]
) -> StoredAnalysis:
    row = connection.execute(_jobs_of([_key((version.id, measure))])).first()
    if row is not None and _given_up(row, _basis(ranked)):
        why = "its analysis failed; the organisers can see why"
        return StoredAnalysis(AnalysisState.UNDEFINED, why, submissions=len(ranked))
    return StoredAnalysis(AnalysisState.PENDING, submissions=len(ranked))


def _standing(told: Mapping[str, Any]) -> RankInformation:
    """As it was before JSON made lists of its tuples."""
    fields: dict[str, Any] = {
        name: tuple(one) if isinstance(one, list) else one for name, one in told.items()
    }
    return RankInformation(**fields)


def _is(version: Row[Any], measure: str, table: Any = scores) -> ColumnElement[bool]:
    return and_(table.c.qrels_id == version.id, table.c.measure == measure)


def _ranked(track: Row[Any], which: ColumnElement[bool], *more: Any) -> Select[Any]:
    """What the boards of a track rank, board by board."""
    return (
        select(scores.c.qrels_id, scores.c.measure, submissions.c.id, runs.c.digest, scores.c.value, *more)
        .join(submissions, submissions.c.id == scores.c.submission_id)
        .join(runs, runs.c.id == submissions.c.run_id)
        .where(
            which,
            submissions.c.track_id == track.id,
            submissions.c.withdrawn_at.is_(None),
            scores.c.profile == track.profile,
            scores.c.scoring_version == SCORING_VERSION,
            scores.c.value.is_not(None),
        )
        .order_by(scores.c.qrels_id, scores.c.measure)
    )


def _kept(track: Row[Any], which: ColumnElement[bool]) -> Select[Any]:
    return select(analysis_rows).where(
        which,
        analysis_rows.c.profile == track.profile,
        analysis_rows.c.scoring_version == SCORING_VERSION,
    )


def _in_order(rows: Any) -> list[Row[Any]]:
    """By what the runs are, so that the same ones are analysed to the same bits, whoever sent them when."""
    return sorted(rows, key=lambda row: (row.digest, row.value, row.id))


def _basis(ranked: Sequence[Row[Any]]) -> str:
    """What an analysis of these rows, in order, holds for."""
    return sha256(repr([(row.digest, row.value) for row in ranked]).encode()).hexdigest()


# Planning


def request(system: "System", track_id: int) -> int:
    """Queue an analysis of each board of the track that is due; returns how many.

    To be called after anything that may have been the last thing to wait for; what was missed, or has to wait
    longer, the scheduler finds.
    """
    before = system.now() - timedelta(seconds=system.settings.analysis_seconds)
    with reading(system.engine) as connection:
        track = connection.execute(select(track_rows).where(track_rows.c.id == track_id)).one()
        look = _look(connection, track, before) if track.analysed != track.revision else None
        if look is None:
            return 0
        due = _due(connection, track, look.at)
    with writing(system.engine) as connection:
        here = track_rows.c.id == track_id
        connection.execute(select(track_rows.c.id).where(here).with_for_update())
        there = {row.key: row for row in connection.execute(_jobs_of([_key(board) for board in due]))}
        wanted = [_wanted(track, *one) for one in due.items() if _is_new(there.get(_key(one[0])), one[1])]
        queued = jobs.requeue(connection, wanted, now=system.now())
        # Who is at work may have read what was ranked before: looked at again when that is done.
        if look.at_all and not any(jobs.state_of(row) == "running" for row in there.values()):
            connection.execute(update(track_rows).where(here).values(analysed=track.revision))
    if queued:
        system.wake_ups.send(QUEUE)  # once: one worker for all of them leaves the others to scores
    return queued


def request_all(system: "System") -> int:
    """`request` for every track of which a board may look different than when it was last asked for."""
    changed = or_(track_rows.c.analysed.is_(None), track_rows.c.analysed != track_rows.c.revision)
    with reading(system.engine) as connection:
        ids = list(connection.execute(select(track_rows.c.id).where(changed)).scalars())
    return sum(request(system, id) for id in ids)


@dataclass(frozen=True)
class _Look:
    """Which boards may be due now, as a condition on scores, and whether these are all there are."""

    at: ColumnElement[bool]
    at_all: bool


def _look(connection: Connection, track: Row[Any], before: datetime) -> _Look | None:
    """Where to look for boards that are due; None where all of them wait. before: some time ago.

    While a track rests, which was analysed since then, it is new boards alone. While more is being scored, it
    is those that people see, once one of them changed before that: some tracks never stop.
    """
    versions = _versions(track)
    newest = select(func.max(analysis_rows.c.analysed_at)).where(analysis_rows.c.qrels_id.in_(versions))
    last = connection.execute(newest).scalar()
    rests = last is not None and last > before
    if not rescoring.is_scoring(connection, track.id):
        of_track = scores.c.qrels_id.in_(versions)
        return _Look(and_(of_track, ~_analysed_once(track)), False) if rests else _Look(of_track, True)
    shown = versions.where(qrels.c.number == track.current)
    changed = None if rests else rescoring.read_first_finished(connection, shown, after=last)
    return None if changed is None or changed >= before else _Look(scores.c.qrels_id.in_(shown), False)


def _versions(track: Row[Any]) -> Select[Any]:
    return select(qrels.c.id).where(qrels.c.track_id == track.id)


def _analysed_once(track: Row[Any]) -> ColumnElement[bool]:
    """Whether the board of a score has an analysis, of whatever it ranked."""
    same = and_(
        analysis_rows.c.qrels_id == scores.c.qrels_id,
        analysis_rows.c.measure == scores.c.measure,
    )
    return _kept(track, same).exists()


def _due(connection: Connection, track: Row[Any], which: ColumnElement[bool]) -> dict[Board, str]:
    """The basis of each of these boards that has no analysis of it."""
    kept = connection.execute(_kept(track, analysis_rows.c.qrels_id.in_(_versions(track))))
    known = {(row.qrels_id, row.measure): row.basis for row in kept}
    rows = connection.execute(_ranked(track, which))
    found = {
        board: _basis(_in_order(of_board))
        for board, of_board in groupby(rows, lambda row: (row.qrels_id, row.measure))
    }
    return {board: basis for board, basis in found.items() if known.get(board) != basis}


def _is_new(job: Row[Any] | None, basis: str) -> bool:
    """Whether to queue the board's job: it is not waiting or at work, nor given up on this very basis."""
    return job is None or (jobs.state_of(job) not in ("queued", "running") and not _given_up(job, basis))


def _given_up(job: Row[Any], basis: str) -> bool:
    return jobs.state_of(job) == "dead" and job.payload["basis"] == basis


def _key(board: Board) -> str:
    version, measure = board
    return f"{ANALYSE}/{version}/{SCORING_VERSION}/{sha256(measure.encode()).hexdigest()[:32]}"


def _jobs_of(keys: Sequence[str]) -> Select[Any]:
    return select(job_rows).where(job_rows.c.key.in_(keys))


def _wanted(track: Row[Any], board: Board, basis: str) -> JobRequest:
    version, measure = board
    return JobRequest(
        key=_key(board),
        kind=ANALYSE,
        queue=QUEUE,
        tenant=f"track {track.name}",
        payload={"qrels": version, "measure": measure, "basis": basis},
        track_id=track.id,
        # No qrels_id: no version waits for this, nor is it counted as scoring.
    )


# Working


def compute(system: "System", claim: Claim) -> None:
    """Do a claimed job: analyse its board as it is now, unless that is done already.

    The analysis and the end of the job are one transaction.
    Raises `jobs.LeaseLost` if the job is no longer ours.
    """
    text = claim.payload["measure"]
    with reading(system.engine) as connection:
        version = connection.execute(select(qrels).where(qrels.c.id == claim.payload["qrels"])).one()
        track = connection.execute(select(track_rows).where(track_rows.c.id == version.track_id)).one()
        rows = connection.execute(_ranked(track, _is(version, text), scores.c.vector))
        ranked = _in_order(rows)
        kept = connection.execute(_kept(track, _is(version, text, analysis_rows))).first()
    basis = _basis(ranked)
    is_there = not ranked or (kept is not None and kept.basis == basis)
    data = {} if is_there else _analysed(ranked, version, track, text)
    now = system.now()
    with writing(system.engine) as connection:
        jobs.finish(connection, claim, now=now)
        if not is_there:
            _keep(connection, track, version, text, {"basis": basis, "data": data, "analysed_at": now})
    system.metrics.observe_job_wait(queue=claim.queue, waited=now - claim.created_at)
    request(system, track.id)


def _keep(
    connection: Connection, track: Row[Any], version: Row[Any], measure: str, values: Mapping[str, Any]
) -> None:
    """In the place of the board's earlier one; readers' copies of the board are void."""
    keys = {"profile": track.profile, "scoring_version": SCORING_VERSION}
    same = and_(*(analysis_rows.c[name] == value for name, value in keys.items()))
    connection.execute(delete(analysis_rows).where(_is(version, measure, analysis_rows), same))
    row = {"qrels_id": version.id, "measure": measure, **keys, **values}
    connection.execute(insert(analysis_rows).values(row))
    moved = track_rows.c.revision + 1
    nothing_else = track_rows.c.analysed == track_rows.c.revision
    here = update(track_rows).where(track_rows.c.id == track.id)
    connection.execute(
        here.values(revision=moved, analysed=case((nothing_else, moved), else_=track_rows.c.analysed))
    )


def derive_seed(digest: str) -> int:
    """What the analyses under a qrels version draw from: its digest, so that all of them draw the same."""
    return int(sha256(digest.encode()).hexdigest()[:8], 16)


def _analysed(ranked: Sequence[Row[Any]], version: Row[Any], track: Row[Any], text: str) -> dict[str, Any]:
    """StoredAnalysis and standings as they are kept."""
    if len(ranked) > MOST:
        why = f"more than {MOST:,} submissions are not compared with each other"
        return _data(StoredAnalysis(AnalysisState.UNDEFINED, why), [RankInformation()] * len(ranked))
    measure = parse(text)
    aggregate = measure.declaration.aggregate
    values = _by_topic([row.vector for row in ranked], aggregate)
    scale = scale_of(measure, tracks.parse_aspects(track)).type
    [found] = board_analysis.analyse([values], scales=[scale], seed=derive_seed(version.digest))
    unit = _unit(aggregate, len(values))
    smallest = None if aggregate == "geometric mean" else found.smallest_difference
    tested = found.undefined is None
    analysis = StoredAnalysis(
        AnalysisState.DONE,
        ALONE if len(ranked) == 1 else found.undefined,
        tied_for_first=sum(one.tied_for_first for one in found.standings) if tested else None,
        separable=found.separable if tested else None,
        neighbours=found.neighbours,
        smallest_difference=None if smallest is None else unit(smallest),
        topics=len(values),
        alpha=found.alpha,
        replicates=found.replicates,
        seed=found.seed,
        warnings=found.warnings,
    )
    return _data(analysis, [_placed(one, unit, tested=tested) for one in found.standings])


def _data(analysis: StoredAnalysis, standings: Sequence[RankInformation]) -> dict[str, Any]:
    told = asdict(analysis) | {"standings": [asdict(one) for one in standings]}
    return {
        name: value for name, value in told.items() if name not in ("state", "submissions", "computed_at")
    }


def _by_topic(vectors: Sequence[bytes], aggregate: Aggregate) -> Floats:
    """float64[topics, systems]: values whose means are in the order of the board."""
    found = np.stack([np.frombuffer(one, VECTOR) for one in vectors], axis=1).astype(np.float64)
    if aggregate == "geometric mean":
        return np.array([[math.log(value) for value in topic] for topic in found.tolist()])
    return found


def _unit(aggregate: Aggregate, topics: int) -> Callable[[float], float]:
    """From a mean of `_by_topic` to what the board shows."""
    ways: dict[Aggregate, Callable[[float], float]] = {
        "mean": lambda value: value,
        "sum": lambda value: value * topics,
        "geometric mean": math.exp,
    }
    return ways[aggregate]


def _placed(
    one: board_analysis.RankedSystem, unit: Callable[[float], float], *, tested: bool
) -> RankInformation:
    return RankInformation(
        _bounds(one.mean, unit),
        _bounds(one.rank, float) if tested else None,
        tuple(map(letters, one.groups)) if tested else (),
        one.tied_for_first if tested else None,
    )


def _bounds(interval: Interval, unit: Callable[[float], float]) -> tuple[float, float] | None:
    if interval.low is None or interval.high is None:
        return None
    return unit(interval.low), unit(interval.high)
