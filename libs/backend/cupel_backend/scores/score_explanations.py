"""Explanations: what scores do not tell by themselves, computed by jobs when asked for, and kept.

One exists once per (submission, qrels version, measure, profile, scoring version) and part, of
`explaining.ABOUT`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, Select, func, or_, select, true

from cupel_backend import jobs, tracks
from cupel_backend.access import Principal
from cupel_backend.infrastructure.database import insert_new, reading, writing
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.tables import JOB_STATES, runs
from cupel_backend.infrastructure.tables import explanations as explanation_rows
from cupel_backend.infrastructure.tables import jobs as job_rows
from cupel_backend.infrastructure.tables import qrels as qrels_rows
from cupel_backend.infrastructure.tables import submissions as submission_rows
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_backend.jobs import Claim, Job, JobRequest
from cupel_backend.scores import evaluations
from cupel_measures.catalogue.parser import parse
from cupel_measures.explaining import ABOUT, explain
from cupel_measures.model import profiles
from cupel_measures.reading.run_files import unpack
from cupel_measures.scoring.evaluator import SCORING_VERSION

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System

EXPLAIN = "explain"
QUEUE = "audit"
"""Not that of scores: one explanation may take as long as a thousand of them."""

MOST_OPEN = 1000

ABOUT_UNKNOWN = refusal("about-unknown")
TOO_MANY_EXPLANATIONS = refusal("too-many-explanations")


@dataclass(frozen=True)
class ExplanationView:
    """What is told about a measure's score: by part, in the order of ABOUT, None where there is nothing."""

    measure: str
    told: Mapping[str, Any]


@dataclass(frozen=True)
class RequestedExplanations:
    """Explanations that were asked for: canonical texts, and a job for each, under a version."""

    submission: str
    qrels: int
    measures: tuple[str, ...]
    jobs: tuple[Job, ...]


@dataclass(frozen=True)
class SubmissionExplanations:
    """Explanations of a submission's scores with all that they depend on.

    qrels and its digest are None while the track has no current version; then nothing is explained. depth:
    where rankings are cut. topics: of the version, the order of every list of values by topic.
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
    system: "System",
    principal: Principal,
    submission: str,
    *,
    measures: Sequence[str] = (),
    about: Sequence[str] = (),
    qrels: int | None = None,
) -> RequestedExplanations:
    """Have scores by `measures` (default: the plan) explained, by a job for each, the same if asked again.

    about: the wanted parts (default: all). qrels: a published version (default: the current one). Raises
    Invalid for a measure that the track can't have and for an unknown part, NotFound as scores do, TooMany.
    """
    parts = _parts(about)
    with reading(system.engine) as connection:
        track, version = evaluations.find_track_and_version(connection, principal, submission, qrels)
    if version is None:
        raise evaluations.VERSION_NOT_PUBLISHED(f"the track {track.name!r} has no judgments to go by yet")
    declared = tracks.parse_aspects(track), track.label_sets or {}
    texts = tracks.parse_plan(measures, *declared) if measures else track.measures
    if sentences := tracks.find_uncomputable(system.blobs, version.blob, tuple(texts)):
        raise tracks.MEASURE_INVALID(sentences[0])
    wanted = [_wanted(principal.team, track, version, submission, text, parts) for text in texts]
    with writing(system.engine) as connection:
        _require_room(connection, principal.team)
        queued = jobs.enqueue(connection, wanted, now=system.now())
        found = jobs.find_by_key(connection, [one.key for one in wanted])
    if queued:
        system.wake_ups.send(QUEUE, times=queued)
    return RequestedExplanations(submission, version.number, tuple(texts), found)


def read_explanations(
    system: "System",
    principal: Principal,
    submission: str,
    *,
    measures: Sequence[str] = (),
    qrels: int | None = None,
) -> SubmissionExplanations:
    """What is there for `measures` (default: whatever is) under a version (default: the current one)."""
    with reading(system.engine) as connection:
        track, version = evaluations.find_track_and_version(connection, principal, submission, qrels)
        texts = [tracks.parse_measure(text, track) for text in measures]
        run = connection.execute(_run_of(submission)).one()
        rows = connection.execute(_kept(submission, version, track.profile, texts)).all() if version else ()
    return SubmissionExplanations(
        submission=submission,
        qrels=version and version.number,
        qrels_digest=version and version.digest,
        run_digest=run.digest,
        profile=track.profile,
        depth=track.depth,
        scoring_version=SCORING_VERSION,
        topics=tuple(version.topics) if version else (),
        explanations=_in_order(rows, texts or list(track.measures), every=not measures),
    )


def compute(system: "System", claim: Claim) -> None:
    """Do a claimed job: explain its measure, as far as that is not done yet.

    What is found and the end of the job are one transaction.
    Raises `jobs.LeaseLost` if the job is no longer ours.
    """
    rows = _computed(system, claim.payload)
    now = system.now()
    with writing(system.engine) as connection:
        insert_new(connection, explanation_rows, [row | {"explained_at": now} for row in rows])
        jobs.finish(connection, claim, now=now)
    system.metrics.observe_job_wait(queue=claim.queue, waited=now - claim.created_at)


def _parts(about: Sequence[str]) -> list[str]:
    if unknown := [name for name in about if name not in ABOUT]:
        raise ABOUT_UNKNOWN(f"nothing is told about {unknown[0]!r}")
    return [name for name in ABOUT if name in about or not about]


def _wanted(
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
        # No qrels_id: the version's board does not wait for this, nor is it counted as scoring.
    )


def _require_room(connection: Connection, team: str) -> None:
    is_open = or_(JOB_STATES["queued"], JOB_STATES["running"])
    waiting = select(func.count()).where(
        job_rows.c.queue == QUEUE, job_rows.c.tenant == team, job_rows.c.kind == EXPLAIN, is_open
    )
    if connection.execute(waiting).scalar_one() >= MOST_OPEN:
        raise TOO_MANY_EXPLANATIONS(f"{MOST_OPEN} explanations for {team} are waiting", retry_after=30)


def _run_of(submission: str) -> Select[Any]:
    query = select(runs).join(submission_rows, submission_rows.c.run_id == runs.c.id)
    return query.where(submission_rows.c.id == submission)


def _kept(submission: str, version: Row[Any], profile: str, measures: Sequence[str]) -> Select[Any]:
    """The rows of these measures, or of all."""
    among = explanation_rows.c.measure.in_(measures) if measures else true()
    return select(explanation_rows).where(
        among,
        explanation_rows.c.submission_id == submission,
        explanation_rows.c.qrels_id == version.id,
        explanation_rows.c.profile == profile,
        explanation_rows.c.scoring_version == SCORING_VERSION,
    )


def _in_order(rows: Sequence[Row[Any]], texts: Sequence[str], *, every: bool) -> tuple[ExplanationView, ...]:
    """By measure, in the order of `texts`; behind them, if `every`, whatever else there is."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in sorted(rows, key=lambda row: row.measure):
        found[row.measure][row.about] = row.data
    wanted = dict.fromkeys([*texts, *(found if every else ())])
    return tuple(
        ExplanationView(text, {name: found[text][name] for name in ABOUT if name in found[text]})
        for text in wanted
        if text in found
    )


def _computed(system: "System", payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row of `read_explanations` for each part that is not there yet."""
    submission, text = payload["submission"], payload["measure"]
    with reading(system.engine) as connection:
        version = connection.execute(select(qrels_rows).where(qrels_rows.c.id == payload["qrels"])).one()
        track = connection.execute(select(track_rows).where(track_rows.c.id == version.track_id)).one()
        run = connection.execute(_run_of(submission)).one()
        kept = connection.execute(_kept(submission, version, track.profile, [text])).all()
    there = {row.about for row in kept}
    parts = [name for name in payload["about"] if name not in there]
    profile, measure = profiles.find(track.profile), parse(text)
    judged = evaluations.load_qrels(system.blobs, version.blob)
    ranking = unpack(system.blobs.get(run.ranking_blob))
    found = explain(judged, ranking, [measure], profile=profile, depth=track.depth, about=parts)
    keys = {
        "submission_id": submission,
        "qrels_id": version.id,
        "measure": text,
        "profile": profile.name,
        "scoring_version": SCORING_VERSION,
    }
    return [keys | {"about": name, "data": data} for name, data in found[measure].as_data().items()]
