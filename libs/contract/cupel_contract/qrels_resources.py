"""Qrels versions of a track, and the difference between two of them."""

from datetime import datetime
from typing import Any

from pydantic import Field

from cupel_contract.problem_resources import FileWarnings
from cupel_contract.resource_base import Resource
from cupel_contract.states import QrelsState


class PublishingProgress(Resource):
    """Progress of publishing a qrels version, as numbers of submissions."""

    total: int = Field(description="number of submissions to score with this version, without withdrawn ones")
    scored: int = Field(description="number of scored submissions")
    dead: int = Field(description="number of submissions that could not be scored")

    EXAMPLE = {"total": 30, "scored": 30, "dead": 0}


class QrelsResource(Resource):
    """A qrels version: all judgments of a track under one number."""

    track: str = Field(description="name of the track")
    number: int = Field(description="number of the version in its track, from 1")
    digest: str = Field(description="SHA-256 of the judgments, in hexadecimal digits")
    state: QrelsState = Field(description="state of the version")
    counts: dict[str, Any] = Field(
        description="numbers of judged topics and documents, ids of topics without judgments, and "
        "the number of judgments of each aspect"
    )
    progress: PublishingProgress = Field(
        description="numbers of submissions that are to be scored, and that are scored"
    )
    findings: FileWarnings = Field(
        description="warnings about the uploaded files; empty for callers who are not organisers"
    )
    created_at: datetime = Field(description="time of the upload")
    published_at: datetime | None = Field(
        None, description="time at which the version was published; null for a draft"
    )
    current_since: datetime | None = Field(
        None, description="time at which the version became current; null if it never was"
    )

    EXAMPLE = {
        "track": "health-2026",
        "number": 1,
        "digest": "9f2c51",
        "state": "current",
        "counts": {
            "topics": 50,
            "unjudged_topics": ["150"],
            "documents": 4210,
            "judgments": {"relevance": 9805},
        },
        "progress": PublishingProgress.EXAMPLE,
        "findings": FileWarnings.EXAMPLE,
        "created_at": "2026-03-02T10:00:00Z",
        "published_at": "2026-03-02T10:05:00Z",
        "current_since": "2026-03-02T10:06:30Z",
    }


class RankChangeResource(Resource):
    """Score and rank of a submission under two qrels versions.

    Both are null under a version by which the submission has no score.
    """

    submission: str = Field(description="id of the submission")
    team: str = Field(description="team that submitted the run")
    name: str = Field(description="name of the file")
    tag: str = Field(description="tag of the run in its file, without control characters")
    old_score: float | None = Field(
        None, description="score under qrels version `base`; null if the submission has no such score"
    )
    new_score: float | None = Field(
        None, description="score under qrels version `number`; null if the submission has no such score"
    )
    old_rank: int | None = Field(
        None, description="rank under the version `base`, from 1; null if it has no score"
    )
    new_rank: int | None = Field(
        None, description="rank under the version `number`, from 1; null if it has no score"
    )

    EXAMPLE = {
        "submission": "sub_0192f0c5",
        "team": "aster",
        "name": "bm25.run.gz",
        "tag": "aster-bm25",
        "old_score": 0.4031,
        "new_score": 0.4127,
        "old_rank": 3,
        "new_rank": 2,
    }


class QrelsDiffResource(Resource):
    """Changes on the leaderboard of one measure between two qrels versions.

    The changes are from version `base` to version `number`.
    """

    track: str = Field(description="name of the track")
    measure: str = Field(description="canonical text of the measure")
    base: int = Field(description="number of the old qrels version")
    number: int = Field(description="number of the new qrels version")
    rows: tuple[RankChangeResource, ...] = Field(
        description="submissions, in the order of the leaderboard under version `number`"
    )

    EXAMPLE = {
        "track": "health-2026",
        "measure": "nDCG@10",
        "base": 1,
        "number": 2,
        "rows": [RankChangeResource.EXAMPLE],
    }
