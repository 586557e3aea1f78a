"""Explanations of scores, computed by jobs on request and stored.

A part, one of `explained_parts.ABOUT`, exists once per (submission, qrels version, measure, profile, scoring
version).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Row, Select, func, or_, select, true

from cupel_backend import jobs, tracks
from cupel_backend.access import Principal
from cupel_backend.infrastructure.database import insert_new, reading, writing
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import JOB_STATES, runs
from cupel_backend.infrastructure.tables import explanations as explanation_rows
from cupel_backend.infrastructure.tables import jobs as job_rows
from cupel_backend.infrastructure.tables import qrels as qrels_rows
from cupel_backend.infrastructure.tables import submissions as submission_rows
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_backend.jobs import Claim, Job, JobRequest
from cupel_backend.scores import evaluations
from cupel_measures.catalogue.parser import parse
from cupel_measures.explaining.explained_parts import ABOUT
from cupel_measures.explaining.explanations import explain
from cupel_measures.model import profiles
from cupel_measures.reading.run_files import unpack
from cupel_measures.scoring.evaluator import SCORING_VERSION

EXPLAIN = "explain"
QUEUE = "audit"
"""Explanations and evaluations have separate queues: an explanation may take as long as 1,000 evaluations."""

MAX_OPEN = 1000

ABOUT_UNKNOWN = refusal("about-unknown")
TOO_MANY_EXPLANATIONS = refusal("too-many-explanations")


@dataclass(frozen=True)
class ExplanationView:
    """The explanation of a score.

    parts: name of a part -> data (None if empty), in the order of ABOUT.
    """

    measure: str
    parts: Mapping[str, Any]


@dataclass(frozen=True)
class RequestedExplanations:
    """The explanations that a request asked for.

    qrels: number of the version. measures: canonical texts, with one job each.
    """

    submission: str
    qrels: int
    measures: tuple[str, ...]
    jobs: tuple[Job, ...]


@dataclass(frozen=True, kw_only=True)
class SubmissionExplanations:
    """Explanations of a submission's scores with everything that they depend on.

    qrels, qrels_digest: None while the track has no current version; then there are no explanations. depth:
    rank at which rankings are cut. topics: the order of all lists of per-topic values.
    """

    submission: str
    qrels: int | None
    qrels_digest: str | None
    run_digest: str
    profile: str
    depth: int
    scoring_version: int
    topics: tuple[str, ...]
    explanations: tuple[ExplanationView, ...]


def request(
    system: System,
    principal: Principal,
    submission: str,
    *,
    measures: Sequence[str] = (),
    about: Sequence[str] = (),
    qrels: int | None = None,
) -> RequestedExplanations:
    """Queue a job for the explanation of each measure (default: the plan).

    Repeating this has no effect.

    about: requested parts (default: all). qrels: number of a published version (default: the current one).
    Raises Invalid for an unknown part or a measure that cannot be computed. Raises NotFound for an unknown
    submission or version, and TooMany if the team has too many open requests.
    """
    parts = _validate_parts(about)
    with reading(system.engine) as connection:
        track, version = evaluations.find_track_and_version(connection, principal, submission, qrels)
    if version is None:
        raise evaluations.VERSION_NOT_PUBLISHED(f"the track {track.name!r} has no current qrels version yet")
    declared = tracks.parse_aspects(track), track.label_sets or {}
    texts = tracks.parse_plan(measures, *declared) if measures else track.measures
    if sentences := tracks.find_uncomputable(system.blobs, version.blob, tuple(texts)):
        raise tracks.MEASURE_INVALID(sentences[0])
    job_requests = [
        _build_job_request(principal.team, track, version, submission, text, parts) for text in texts
    ]
    with writing(system.engine) as connection:
        _require_quota(connection, principal.team)
        queued = jobs.enqueue(connection, job_requests, now=system.now())
        requested = jobs.find_by_key(connection, [job.key for job in job_requests])
    if queued:
        system.wake_ups.send(QUEUE, times=queued)
    return RequestedExplanations(submission, version.number, tuple(texts), requested)


def read_explanations(
    system: System,
    principal: Principal,
    submission: str,
    *,
    measures: Sequence[str] = (),
    qrels: int | None = None,
) -> SubmissionExplanations:
    """Read explanations of the scores of a submission under a qrels version.

    `measures` is by default every measure with a stored explanation, and `qrels` the current version.
    """
    with reading(system.engine) as connection:
        track, version = evaluations.find_track_and_version(connection, principal, submission, qrels)
        texts = [tracks.parse_measure(text, track) for text in measures]
        run = connection.execute(_select_run(submission)).one()
        rows = (
            connection.execute(_select_stored(submission, version, track.profile, texts)).all()
            if version
            else ()
        )
    return SubmissionExplanations(
        submission=submission,
        qrels=version and version.number,
        qrels_digest=version and version.digest,
        run_digest=run.digest,
        profile=track.profile,
        depth=track.depth,
        scoring_version=SCORING_VERSION,
        topics=tuple(version.topics) if version else (),
        explanations=_build_views(rows, texts or list(track.measures), every=not measures),
    )


def compute(system: System, claim: Claim) -> None:
    """Handle a claimed job: compute the missing parts of a measure's explanation.

    Parts that are already stored are not computed again.

    Parts are written and the job is finished in one transaction. Raises `jobs.LeaseLost`.
    """
    rows = _compute_rows(system, claim.payload)
    now = system.now()
    with writing(system.engine) as connection:
        insert_new(connection, explanation_rows, [row | {"explained_at": now} for row in rows])
        jobs.finish(connection, claim, now=now)
    system.metrics.observe_job_wait(queue=claim.queue, waited=now - claim.created_at)


def _validate_parts(about: Sequence[str]) -> list[str]:
    if unknown := [name for name in about if name not in ABOUT]:
        raise ABOUT_UNKNOWN(f"unknown part {unknown[0]!r}")
    return [name for name in ABOUT if name in about or not about]


def _build_job_request(
    tenant: str, track: Row[Any], version: Row[Any], submission: str, measure: str, parts: Sequence[str]
) -> JobRequest:
    name = sha256(" ".join([measure, *parts]).encode()).hexdigest()[:32]
    return JobRequest(
        key=f"{EXPLAIN}/{submission}/{version.id}/{SCORING_VERSION}/{name}",
        kind=EXPLAIN,
        queue=QUEUE,
        tenant=tenant,
        payload={"submission": submission, "qrels": version.id, "measure": measure, "about": parts},
        track_id=track.id,
        submission_id=submission,
        # No qrels_id: an explanation does not count as scoring, and no version waits for it.
    )


def _require_quota(connection: Connection, team: str) -> None:
    is_open = or_(JOB_STATES["queued"], JOB_STATES["running"])
    waiting = select(func.count()).where(
        job_rows.c.queue == QUEUE, job_rows.c.tenant == team, job_rows.c.kind == EXPLAIN, is_open
    )
    if connection.execute(waiting).scalar_one() >= MAX_OPEN:
        raise TOO_MANY_EXPLANATIONS(
            f"team {team} has {MAX_OPEN} open requests for explanations", retry_after=30
        )


def _select_run(submission: str) -> Select[Any]:
    query = select(runs).join(submission_rows, submission_rows.c.run_id == runs.c.id)
    return query.where(submission_rows.c.id == submission)


def _select_stored(submission: str, version: Row[Any], profile: str, measures: Sequence[str]) -> Select[Any]:
    """Select the stored parts of these measures, or of all measures."""
    is_requested = explanation_rows.c.measure.in_(measures) if measures else true()
    return select(explanation_rows).where(
        is_requested,
        explanation_rows.c.submission_id == submission,
        explanation_rows.c.qrels_id == version.id,
        explanation_rows.c.profile == profile,
        explanation_rows.c.scoring_version == SCORING_VERSION,
    )


def _build_views(
    rows: Sequence[Row[Any]], texts: Sequence[str], *, every: bool
) -> tuple[ExplanationView, ...]:
    """Build views in the order of `texts`.

    If `every`, append the views of all other stored measures.
    """
    stored: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in sorted(rows, key=lambda row: row.measure):
        stored[row.measure][row.about] = row.data
    shown = dict.fromkeys([*texts, *(stored if every else ())])
    return tuple(
        ExplanationView(text, {name: stored[text][name] for name in ABOUT if name in stored[text]})
        for text in shown
        if text in stored
    )


def _compute_rows(system: System, payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row of the table `explanations` for each part that is not stored yet."""
    submission, text = payload["submission"], payload["measure"]
    with reading(system.engine) as connection:
        version = connection.execute(select(qrels_rows).where(qrels_rows.c.id == payload["qrels"])).one()
        track = connection.execute(select(track_rows).where(track_rows.c.id == version.track_id)).one()
        run = connection.execute(_select_run(submission)).one()
        stored = connection.execute(_select_stored(submission, version, track.profile, [text])).all()
    existing = {row.about for row in stored}
    parts = [name for name in payload["about"] if name not in existing]
    profile, measure = profiles.find(track.profile), parse(text)
    judged = evaluations.load_qrels(system.blobs, version.blob)
    ranking = unpack(system.blobs.get(run.ranking_blob))
    explanations = explain(judged, ranking, [measure], profile=profile, depth=track.depth, about=parts)
    keys = {
        "submission_id": submission,
        "qrels_id": version.id,
        "measure": text,
        "profile": profile.name,
        "scoring_version": SCORING_VERSION,
    }
    return [keys | {"about": name, "data": data} for name, data in explanations[measure].as_data().items()]
