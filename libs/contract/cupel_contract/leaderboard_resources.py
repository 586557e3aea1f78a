"""Leaderboards: ranked submissions, and the significance analysis of their order."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from cupel_contract.resource_base import Resource
from cupel_contract.score_resources import ExactScore, ScaleResource
from cupel_contract.states import AnalysisState

Bounds = Annotated[tuple[float, ...] | None, Field(min_length=2, max_length=2)]
RankBounds = Annotated[tuple[int, ...] | None, Field(min_length=2, max_length=2)]


class LeaderboardRowResource(Resource):
    """A ranked submission. Equal scores share a rank.

    The last four fields come from the significance analysis. They are null or empty before it is done.
    """

    rank: int = Field(description="rank, from 1: one more than the number of submissions with a better score")
    submission: str = Field(description="id of the submission")
    team: str = Field(description="team that submitted the run")
    name: str = Field(description="name of the file")
    tag: str = Field(description="tag of the run in its file, without control characters")
    score: float = Field(description="aggregate of the measure over the judged topics")
    received_at: datetime = Field(description="time at which the upload began")
    missing_topics: int = Field(
        description="number of judged topics without documents in the run; they count as empty rankings"
    )
    exact: ExactScore = None
    interval: Bounds = Field(None, description="lower and upper bound of the score's confidence interval")
    rank_interval: RankBounds = Field(
        None,
        description="simultaneous confidence interval of the rank: from 1 + the number of significantly "
        "better submissions to the number of submissions that are not significantly worse, including this "
        "one",
    )
    groups: tuple[str, ...] = Field(
        (),
        description="names of groups; two submissions share a group unless they differ significantly",
    )
    in_best_set: bool | None = Field(
        None, description="whether the submission is not significantly worse than the best"
    )

    EXAMPLE = {
        "rank": 1,
        "submission": "sub_0192f0c5",
        "team": "aster",
        "name": "bm25.run.gz",
        "tag": "aster-bm25",
        "score": 0.4127,
        "received_at": "2026-03-09T17:05:12Z",
        "missing_topics": 0,
        "exact": None,
        "interval": [0.3618, 0.4655],
        "rank_interval": [1, 3],
        "groups": ["a", "b"],
        "in_best_set": True,
    }


class UnscoredSubmissionResource(Resource):
    """A submission without a score, and the reason."""

    submission: str = Field(description="id of the submission")
    team: str = Field(description="team that submitted the run")
    reason: str = Field(description="why the submission has no score")

    EXAMPLE = {"submission": "sub_0192f0d1", "team": "borage", "reason": "not scored yet"}


class LeaderboardAnalysis(Resource):
    """The significance analysis of a whole leaderboard.

    Its results are null while `state` is pending.
    """

    state: AnalysisState = Field(
        description="`pending` until the analysis is done; it runs soon after all submissions are scored"
    )
    undefined: str | None = Field(
        None, description="reason why no test was possible; null if tests were possible"
    )
    method: str = Field(
        description="name and version of the method. `max-t/2` consists of the studentised step-down max-T "
        "test of all pairs, the best set by multiple comparisons with the best, rank intervals from the "
        "pairs that differ significantly, and t intervals of the scores"
    )
    submissions: int = Field(description="number of ranked submissions")
    in_best_set: int | None = Field(
        None,
        description="number of submissions that are not significantly worse than the best, including the "
        "best",
    )
    separable: int | None = Field(
        None, description="number of pairs of adjacent submissions that differ significantly"
    )
    neighbours: int | None = Field(None, description="number of pairs of adjacent submissions")
    smallest_difference: float | None = Field(
        None,
        description="smallest true difference that a paired t-test at level `alpha` detects with power 0.8 "
        "on `topics` topics; null if it is undefined, and for geometric means",
    )
    topics: int | None = Field(None, description="number of analysed topics; null if there is no analysis")
    alpha: float | None = Field(None, description="level of the test; intervals have confidence 1 - alpha")
    replicates: int | None = Field(None, description="number of random assignments of signs to the topics")
    seed: int | None = Field(
        None,
        description="random seed. The runs are sorted by digest before the analysis, so the result does not "
        "depend on the order of submission",
    )
    warnings: tuple[str, ...] = Field(
        (),
        description="warnings, if the scale of the measure does not permit the analysis or there are too few "
        "topics",
    )
    computed_at: datetime | None = Field(None, description="time of the analysis; null if there is none")

    EXAMPLE = {
        "state": "done",
        "undefined": None,
        "method": "max-t/2",
        "submissions": 30,
        "in_best_set": 4,
        "separable": 6,
        "neighbours": 29,
        "smallest_difference": 0.031,
        "topics": 50,
        "alpha": 0.05,
        "replicates": 10000,
        "seed": 0,
        "warnings": [],
        "computed_at": "2026-03-09T17:05:20Z",
    }


class LeaderboardResource(Resource):
    """Submissions of a track ordered by one measure, or a page of them.

    The scores that determine the order are those under one qrels version.
    """

    track: str = Field(description="name of the track")
    measure: str = Field(description="canonical text of the measure")
    scale: ScaleResource = Field(description="measurement scale of the measure")
    qrels: int | None = Field(
        None, description="number of the qrels version; null before judgments are published"
    )
    qrels_digest: str | None = Field(
        None,
        description="SHA-256 of the judgments, in hexadecimal digits; null before judgments are published",
    )
    profile: str = Field(description="rules for reading and ordering runs")
    scoring_version: int = Field(
        description="version of the scoring rules; another version may give another score"
    )
    analysis: LeaderboardAnalysis = Field(description="significance analysis of the whole leaderboard")
    rows: tuple[LeaderboardRowResource, ...] = Field(
        description="ranked submissions of this page, best first"
    )
    unscored: tuple[UnscoredSubmissionResource, ...] = Field(
        description="submissions without a score; only on the first page"
    )
    next: str | None = Field(None, description="address of the following page")

    EXAMPLE = {
        "track": "health-2026",
        "measure": "nDCG@10",
        "scale": ScaleResource.EXAMPLE,
        "qrels": 1,
        "qrels_digest": "9f2c51",
        "profile": "cupel",
        "scoring_version": 1,
        "analysis": LeaderboardAnalysis.EXAMPLE,
        "rows": [LeaderboardRowResource.EXAMPLE],
        "unscored": [UnscoredSubmissionResource.EXAMPLE],
        "next": None,
    }
