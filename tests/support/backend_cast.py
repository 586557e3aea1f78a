"""Principals, a clock, and builders of small tracks, judgments and runs for the tests of the backend."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cupel_backend import jobs, qrels_versions, submissions, tracks
from cupel_backend.access import Principal
from cupel_backend.infrastructure.database import writing
from cupel_backend.infrastructure.settings import QUEUES
from cupel_backend.infrastructure.system import System
from cupel_backend.job_handlers import HANDLERS
from cupel_backend.scores import board_analyses, rescoring
from cupel_backend.submissions import Submission

ADMIN = Principal("house", "admin")
ORGANISER = Principal("organisers", "organiser")
ALICE = Principal("alice", "participant")
BOB = Principal("bob", "participant")
STRANGER = Principal("strangers", "organiser")

ASPECTS = {"relevance": {"labels": [0, 1, 2]}, "credibility": {"labels": ["low", "high"]}}
COLLECTION = b"""
qrels:
  - {file: relevance.txt, aspect: relevance}
  - {file: credibility.txt, aspect: credibility}
"""
RELEVANCE = b"t1 0 a 2\nt1 0 b 1\nt1 0 c 0\nt2 0 a 0\nt2 0 b 2\n"
CREDIBILITY = b"t1 0 a high\nt1 0 b low\nt1 0 c low\nt2 0 a low\nt2 0 b high\n"
CORRECTED = b"t1 0 a 0\nt1 0 b 1\nt1 0 c 2\nt2 0 a 2\nt2 0 b 0\n"

GOOD = [("t1", "abc"), ("t2", "bac")]
POOR = [("t1", "cba"), ("t2", "acb")]


def run_file(rankings: list[tuple[str, str]] = GOOD, tag: str = "run") -> bytes:
    """Return a run file that ranks one-letter documents, such as [("t1", "abc")]."""
    lines = [
        f"{topic} Q0 {document} {rank} {10 - rank} {tag}"
        for topic, documents in rankings
        for rank, document in enumerate(documents, 1)
    ]
    return ("\n".join(lines) + "\n").encode()


@dataclass
class Clock:
    """A clock that advances only when `forward` is called."""

    now: datetime = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def make_track(system: System, name: str = "track", **changes: Any) -> tracks.Track:
    given: dict[str, Any] = {"title": "A track", "aspects": ASPECTS, "measures": ["nDCG@2", "AP", "P@1"]}
    return tracks.create(system, ORGANISER, name=name, **{**given, **changes})


def upload_qrels(
    system: System, track: str = "track", relevance: bytes = RELEVANCE
) -> qrels_versions.QrelsVersion:
    files = {"relevance.txt": relevance, "credibility.txt": CREDIBILITY}
    return qrels_versions.upload(system, ORGANISER, track, collection=COLLECTION, files=files)


def publish_qrels(
    system: System, track: str = "track", relevance: bytes = RELEVANCE
) -> qrels_versions.QrelsVersion:
    number = upload_qrels(system, track, relevance).number
    return qrels_versions.publish(system, ORGANISER, track, number)


def submit(
    system: System,
    principal: Principal = ALICE,
    content: bytes = run_file(),
    *,
    track: str = "track",
    name: str = "run.txt",
    key: str | None = None,
) -> Submission:
    upload = submissions.begin(system, principal, track, key=key)
    try:
        upload.write(content)
        return submissions.receive(system, principal, upload, name=name, key=key)
    finally:
        upload.discard()


def work_off(system: System, *, analysing: bool = False) -> int:
    """Run every ready job in this process; return the number of attempted evaluations.

    analysing: whether to analyse leaderboards. By default, their jobs are only marked as finished, to save
    time.
    """
    attempts = 0
    for queue in QUEUES:
        while (claim := jobs.claim_next(system, queue)) is not None:
            attempts += queue == rescoring.QUEUE
            try:
                (HANDLERS[claim.kind] if analysing or claim.kind != board_analyses.ANALYSE else end)(
                    system, claim
                )
            except Exception as error:
                jobs.fail(system, claim, str(error))
    return attempts


def end(system: System, claim: jobs.Claim) -> None:
    """Finish a claimed job without running it."""
    with writing(system.engine) as connection:
        jobs.finish(connection, claim, now=system.now())
