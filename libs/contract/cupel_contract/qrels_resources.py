"""Qrels versions of a track, and the difference between two of them."""

from datetime import datetime
from typing import Any

from pydantic import Field

from cupel_contract.problem_resources import FileWarnings
from cupel_contract.resource_base import Resource
from cupel_contract.states import QrelsState


class PublishingProgress(Resource):
    """Progress of publishing a qrels version, as numbers of submissions."""

    total: int
    scored: int
    dead: int = Field(description="number of submissions that could not be scored")

    EXAMPLE = {"total": 30, "scored": 30, "dead": 0}


class QrelsResource(Resource):
    """A qrels version: all judgments of a track under one number."""

    track: str
    number: int
    digest: str = Field(description="SHA-256 of the judgments, in hexadecimal digits")
    state: QrelsState
    counts: dict[str, Any] = Field(
        description="numbers of judged topics, documents and judgments; ids of topics without judgments"
    )
    progress: PublishingProgress
    findings: FileWarnings
    created_at: datetime
    published_at: datetime | None = None
    current_since: datetime | None = None

    EXAMPLE = {
        "track": "health-2026",
        "number": 1,
        "digest": "9f2c51",
        "state": "current",
        "counts": {"topics": 50, "unjudged_topics": ["150"], "documents": 4210, "judgments": 9805},
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

    submission: str
    team: str
    name: str
    tag: str
    old_score: float | None = None
    new_score: float | None = None
    old_rank: int | None = None
    new_rank: int | None = None

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

    track: str
    measure: str
    base: int
    number: int
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
