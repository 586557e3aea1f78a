"""Evaluations: scoring of one submission against one qrels version.

This module also reads the scores of a submission. A score exists once per (submission, qrels version,
measure, profile, scoring version). Its per-topic values are stored as one packed vector in the version's
topic order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, Select, and_, select

from cupel_backend import jobs, submissions, tracks
from cupel_backend.access import Principal
from cupel_backend.infrastructure.database import insert_new, reading, writing
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.object_store import Blobs
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import VECTOR, bump_revision, runs
from cupel_backend.infrastructure.tables import qrels as qrels_rows
from cupel_backend.infrastructure.tables import scores as score_rows
from cupel_backend.infrastructure.tables import submissions as submission_rows
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_backend.jobs import Claim
from cupel_backend.scores import board_analyses, rescoring
from cupel_measures.catalogue.parser import Measure, parse
from cupel_measures.explaining.scale_notes import ScaleNote, scale_of
from cupel_measures.model import Aspect, Floats, Joined, Qrels, profiles
from cupel_measures.reading.qrels_files import unpack_qrels
from cupel_measures.reading.run_files import join, unpack
from cupel_measures.scoring import evaluator
from cupel_measures.scoring.evaluator import SCORING_VERSION, aggregate
from cupel_measures.scoring.exact import sort_key, to_text

SCORE_UNKNOWN = refusal("score-unknown")
VERSION_NOT_PUBLISHED = refusal("qrels-not-published")


@dataclass(frozen=True, kw_only=True)
class ScoreView:
    """The score of a submission by a measure, with everything that it depends on.

    value: None if the aggregate is undefined. exact: the unrounded value as p/q, if it is stored. scale:
    scale type of the measure, and the operations that it permits. topics: number of topics of the version.
    missing_topics: number of topics that the run lacks; each has the measure's value for an empty ranking.
    """

    measure: str
    value: float | None
    exact: str | None
    scale: ScaleNote
    qrels: int
    qrels_digest: str
    run_digest: str
    profile: str
    scoring_version: int
    topics: int
    missing_topics: int
    scored_at: datetime


@dataclass(frozen=True)
class TopicScores:
    """A score with its per-topic values, in the order of `topics`.

    unjudged_topics: topics of the collection without judgments, which have no value.
    """

    score: ScoreView
    topics: tuple[str, ...]
    values: list[float]
    unjudged_topics: tuple[str, ...] = ()


# Reading


def read_scores(
    system: System,
    principal: Principal,
    submission: str,
    *,
    measures: Sequence[str] = (),
    qrels: int | None = None,
) -> tuple[ScoreView, ...]:
    """Return a submission's scores by `measures` under a qrels version.

    By default these are the measures of the plan, and the current version. Scores that are not computed yet
    are omitted.
    """
    with reading(system.engine) as connection:
        track, version = find_track_and_version(connection, principal, submission, qrels)
        if version is None:
            return ()
        texts = [tracks.parse_measure(text, track) for text in measures] or list(track.measures)
        rows = connection.execute(_select_scores(submission, version, track.profile, texts)).all()
    aspects = tracks.parse_aspects(track)
    views = {row.measure: _build_view(row, version, aspects) for row in rows}
    return tuple(views[text] for text in dict.fromkeys(texts) if text in views)


def read_topic_scores(
    system: System, principal: Principal, submission: str, *, measure: str, qrels: int | None = None
) -> TopicScores:
    """Return a submission's per-topic values.

    Raises NotFound if there is no such score.
    """
    with reading(system.engine) as connection:
        track, version = find_track_and_version(connection, principal, submission, qrels)
        text = tracks.parse_measure(measure, track)
        row = (
            version and connection.execute(_select_scores(submission, version, track.profile, [text])).first()
        )
        if version is None or row is None:
            raise SCORE_UNKNOWN(f"submission {submission} has no score by {text} yet")
    return TopicScores(
        _build_view(row, version, tracks.parse_aspects(track)),
        tuple(version.topics),
        np.frombuffer(row.vector, VECTOR).tolist(),
        tuple(version.counts.get("unjudged_topics", ())),
    )


def find_version(
    connection: Connection, principal: Principal, track: Row[Any], number: int | None
) -> Row[Any] | None:
    """Return the published version `number` of the track (default: the current one).

    Returns None if `number` is None and no version is current. Raises NotFound for an unknown version.
    Versions that were never current are visible to organisers only.
    """
    if number is None and track.current is None:
        return None
    matches = and_(qrels_rows.c.track_id == track.id, qrels_rows.c.number == (number or track.current))
    row = connection.execute(
        select(qrels_rows).where(matches, qrels_rows.c.published_at.is_not(None))
    ).first()
    if row is None or (row.current_since is None and not tracks.is_organiser(principal, track)):
        raise VERSION_NOT_PUBLISHED(
            f"published qrels version {number} of the track {track.name!r} not found, or not visible to you"
        )
    return row


def find_track_and_version(
    connection: Connection, principal: Principal, submission: str, number: int | None
) -> tuple[Row[Any], Row[Any] | None]:
    """Return the track of a submission, and the result of `find_version`.

    The submission is one that the caller may see in full.
    """
    row = submissions.find_visible(connection, principal, submission)
    track = connection.execute(select(track_rows).where(track_rows.c.id == row.track_id)).one()
    return track, find_version(connection, principal, track, number)


def _select_scores(submission: str, version: Row[Any], profile: str, texts: Sequence[str]) -> Select[Any]:
    return (
        select(score_rows, runs.c.digest.label("run_digest"))
        .join(submission_rows, submission_rows.c.id == score_rows.c.submission_id)
        .join(runs, runs.c.id == submission_rows.c.run_id)
        .where(
            score_rows.c.submission_id == submission,
            score_rows.c.qrels_id == version.id,
            score_rows.c.profile == profile,
            score_rows.c.scoring_version == SCORING_VERSION,
            score_rows.c.measure.in_(texts),
        )
    )


@lru_cache(maxsize=4096)
def describe_scale(measure: str, aspects: tuple[Aspect, ...]) -> ScaleNote:
    """Return the scale of a measure on a track with `aspects`.

    The measure is given by its canonical text.
    """
    return scale_of(parse(measure), aspects)


def _build_view(row: Row[Any], version: Row[Any], aspects: tuple[Aspect, ...]) -> ScoreView:
    return ScoreView(
        measure=row.measure,
        value=row.value,
        exact=row.exact,
        scale=describe_scale(row.measure, aspects),
        qrels=version.number,
        qrels_digest=version.digest,
        run_digest=row.run_digest,
        profile=row.profile,
        scoring_version=row.scoring_version,
        topics=len(version.topics),
        missing_topics=row.missing_topics,
        scored_at=row.scored_at,
    )


# Scoring


@dataclass(frozen=True, kw_only=True)
class _EvaluationInput:
    """The input of an evaluation job, read at its start."""

    submission: Row[Any]
    run: Row[Any]
    version: Row[Any]
    track: Row[Any]
    measures: tuple[Measure, ...]


def evaluate(system: System, claim: Claim) -> None:
    """Handle a claimed job: score its submission by its measures.

    Measures that already have a score are skipped. Nothing is scored if the submission is withdrawn, or if a
    newer qrels version is published and this version was never current. Scores are written and the job is
    finished in one transaction. Afterwards, the version being published becomes current if all its
    evaluations have ended, and the analyses that are due are queued. Raises `jobs.LeaseLost` if the
    lease has expired and another worker may have the job; then no score is written.
    """
    with reading(system.engine) as connection:
        inputs = _read_input(connection, claim.payload)
    rows = _compute_rows(system, inputs) if inputs.measures else []
    now = system.now()
    with writing(system.engine) as connection:
        insert_new(connection, score_rows, [row | {"scored_at": now} for row in rows])
        jobs.finish(connection, claim, now=now)
        if inputs.submission.withdrawn_at is None:
            bump_revision(connection, [inputs.track.id])
    system.metrics.observe_job_wait(queue=claim.queue, waited=now - claim.created_at)
    rescoring.switch_version(system, inputs.track.id)
    board_analyses.request(system, inputs.track.id)


def _read_input(connection: Connection, payload: Mapping[str, Any]) -> _EvaluationInput:
    submission = connection.execute(
        select(submission_rows).where(submission_rows.c.id == payload["submission"])
    ).one()
    version = connection.execute(select(qrels_rows).where(qrels_rows.c.id == payload["qrels"])).one()
    track = connection.execute(select(track_rows).where(track_rows.c.id == version.track_id)).one()
    run = connection.execute(select(runs).where(runs.c.id == submission.run_id)).one()
    known = _select_scores(submission.id, version, track.profile, payload["measures"])
    there = {row.measure for row in connection.execute(known)}
    missing = [parse(text) for text in payload["measures"] if text not in there]
    newest = connection.execute(rescoring.select_newest_published(track.id)).scalar_one()
    overtaken = version.number < newest and version.current_since is None
    nothing_to_do = submission.withdrawn_at is not None or overtaken
    measures = () if nothing_to_do else tuple(missing)
    return _EvaluationInput(submission=submission, run=run, version=version, track=track, measures=measures)


def _compute_rows(system: System, inputs: _EvaluationInput) -> list[dict[str, Any]]:
    """Return a row of the table `scores` for each measure of `inputs`."""
    profile = profiles.find(inputs.track.profile)
    judged = load_qrels(system.blobs, inputs.version.blob)
    ranking = unpack(system.blobs.get(inputs.run.ranking_blob))
    joined = join(ranking, judged, profile=profile, depth=inputs.track.depth)
    result = evaluator.evaluate(judged, joined, inputs.measures)
    exact = evaluator.exact_means(judged, joined, inputs.measures, depth=inputs.track.depth)
    keys = {
        "submission_id": inputs.submission.id,
        "qrels_id": inputs.version.id,
        "profile": profile.name,
        "scoring_version": SCORING_VERSION,
        "missing_topics": _count_missing_topics(joined),
    }
    return [
        keys | _score_columns(measure, values, exact.get(measure))
        for measure, values in result.values.items()
    ]


@lru_cache(maxsize=4)
def load_qrels(blobs: Blobs, key: str) -> Qrels:
    """Return the qrels stored at `key`.

    They are cached together with the tables that measures derive from them.
    """
    return unpack_qrels(blobs.get(key))


def _count_missing_topics(joined: Joined) -> int:
    return int(np.count_nonzero(joined.retrieved == 0))


def _score_columns(measure: Measure, values: Floats, exact: Fraction | None) -> dict[str, Any]:
    value = aggregate(measure, values)
    return {
        "measure": str(measure),
        "value": value if np.isfinite(value) else None,
        "exact": None if exact is None else to_text(exact),
        "exact_key": None if exact is None else sort_key(exact),
        "vector": np.asarray(values, dtype=VECTOR).tobytes(),
    }
