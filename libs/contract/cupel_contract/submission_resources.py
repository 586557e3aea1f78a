"""Submissions, their runs, and the jobs that score them."""

from datetime import datetime
from typing import Any

from pydantic import Field

from cupel_contract.problem_resources import FileWarnings
from cupel_contract.resource_base import Resource
from cupel_contract.states import JobState, SubmissionState


class JobResource(Resource):
    """A queued job."""

    id: str = Field(description="id of the job")
    kind: str = Field(description="kind of the work")
    queue: str = Field(description="queue of the job")
    state: JobState = Field(description="state of the job")
    attempts: int = Field(description="number of attempts so far; a running attempt counts")
    error: str | None = Field(None, description="error of the last failed attempt")
    submission: str | None = Field(
        None, description="id of the submission that the job works on; null if it works on none"
    )
    created_at: datetime = Field(description="time at which the job was queued")
    claimed_at: datetime | None = Field(None, description="when a worker last took the job")
    finished_at: datetime | None = Field(
        None, description="time at which the job was done; null until then, and for dead jobs"
    )

    EXAMPLE = {
        "id": "job_0192f0c6",
        "kind": "evaluate",
        "queue": "score",
        "state": "done",
        "attempts": 1,
        "error": None,
        "submission": "sub_0192f0c5",
        "created_at": "2026-03-09T17:05:13Z",
        "claimed_at": "2026-03-09T17:05:13Z",
        "finished_at": "2026-03-09T17:05:14Z",
    }


class RunResource(Resource):
    """A run: one ranked list per topic by one system. Runs never change."""

    id: str = Field(description="id of the run")
    team: str = Field(description="team that submitted the run")
    tag: str = Field(description="tag of the run in its file, without control characters")
    digest: str = Field(description="SHA-256 of the ranking, in hexadecimal digits")
    raw_digest: str = Field(description="SHA-256 of the file as sent, in hexadecimal digits")
    topics: int = Field(description="number of topics in the file")
    documents: int = Field(description="number of ranked documents over all topics")
    bytes: int = Field(description="size of the file as sent")
    metadata: dict[str, Any] | None = Field(None, description="the ir_metadata block of the file")

    EXAMPLE = {
        "id": "run_0192f0c4",
        "team": "aster",
        "tag": "aster-bm25",
        "digest": "5d01ab",
        "raw_digest": "c3a97e",
        "topics": 50,
        "documents": 50000,
        "bytes": 412877,
        "metadata": None,
    }


class ProfileEffect(Resource):
    """The topics on which another rule would order the documents of a run differently.

    The rule is `single_precision` or `rank_column` (see `SubmissionResource.profile_effects`).
    """

    count: int = Field(
        description="number of topics on which another rule would order the documents differently"
    )
    topics: tuple[str, ...] = Field(
        description="ids of the first topics on which another rule would order the documents differently"
    )

    EXAMPLE = {"count": 1, "topics": ["117"]}


class SubmissionResource(Resource):
    """A submission of a run to a track."""

    id: str = Field(description="id of the submission")
    track: str = Field(description="name of the track")
    team: str = Field(description="team that submitted the run")
    run: RunResource = Field(description="the submitted run")
    name: str = Field(description="name of the file")
    received_at: datetime = Field(description="time at which the upload began")
    completed_at: datetime = Field(description="time at which the complete file was accepted")
    withdrawn_at: datetime | None = Field(
        None, description="time of the withdrawal; null if the submission was not withdrawn"
    )
    state: SubmissionState = Field(description="state of the submission")
    findings: FileWarnings = Field(description="warnings about the file")
    profile_effects: dict[str, ProfileEffect] = Field(
        {},
        description="topics on which another rule would order the documents differently, by rule: "
        "`single_precision` (scores as 32-bit floats) or `rank_column` (order by rank instead of score)",
    )
    jobs: tuple[JobResource, ...] = Field(description="jobs that score the submission")
    links: dict[str, str] = Field(
        description="addresses of this submission, its scores, events, run, file and leaderboard"
    )

    EXAMPLE = {
        "id": "sub_0192f0c5",
        "track": "health-2026",
        "team": "aster",
        "run": RunResource.EXAMPLE,
        "name": "bm25.run.gz",
        "received_at": "2026-03-09T17:05:12Z",
        "completed_at": "2026-03-09T17:05:13Z",
        "withdrawn_at": None,
        "state": "scored",
        "findings": FileWarnings.EXAMPLE,
        "profile_effects": {"single_precision": ProfileEffect.EXAMPLE},
        "jobs": [JobResource.EXAMPLE],
        "links": {
            "self": "/v1/submissions/sub_0192f0c5",
            "scores": "/v1/submissions/sub_0192f0c5/scores",
            "events": "/v1/submissions/sub_0192f0c5/events",
            "run": "/v1/runs/run_0192f0c4",
            "file": "/v1/runs/run_0192f0c4/file",
            "leaderboard": "/v1/tracks/health-2026/leaderboard",
        },
    }
