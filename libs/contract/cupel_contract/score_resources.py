"""Scores of a submission, and the explanations of scores."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from cupel_contract.resource_base import LARGEST_INTEGER, RequestBody, Resource
from cupel_contract.states import MeasurementScale
from cupel_contract.submission_resources import JobResource

ExactScore = Annotated[
    str | None,
    Field(
        description="the score before rounding, as a decimal or as a fraction `p/q`. It determines the order "
        "of the submissions. Null if the measure has no exact values, or if they were not stored"
    ),
]


class ScaleResource(Resource):
    """The measurement scale of a measure, with the labels of the track's aspects."""

    type: MeasurementScale = Field(description="measurement scale of the values")
    operations: tuple[str, ...] = Field(description="operations that the scale permits")
    aggregate: str = Field(description="how the values of all topics become one number")
    warning: str | None = Field(None, description="warning if the scale does not permit the aggregate")

    EXAMPLE = {
        "type": "ordinal",
        "operations": ["median", "rank"],
        "aggregate": "mean",
        "warning": "a mean needs an interval scale",
    }


class ScoreResource(Resource):
    """The score of a submission by one measure.

    It covers only the topics that are judged in a qrels version.
    """

    measure: str = Field(description="canonical text of the measure")
    value: float | None = Field(None, description="aggregate over topics; null if it is undefined")
    exact: ExactScore = None
    scale: ScaleResource = Field(description="measurement scale of the measure")
    qrels: int = Field(description="number of the qrels version")
    qrels_digest: str = Field(description="SHA-256 of the judgments, in hexadecimal digits")
    run_digest: str = Field(description="SHA-256 of the ranking, in hexadecimal digits")
    profile: str = Field(description="rules for reading and ordering runs")
    scoring_version: int = Field(
        description="version of the scoring rules; another version may give another score"
    )
    topics: int = Field(description="number of judged topics")
    missing_topics: int = Field(
        description="number of judged topics without documents in the run; they count as empty rankings"
    )
    scored_at: datetime = Field(description="time of the evaluation")

    EXAMPLE = {
        "measure": "nDCG@10",
        "value": 0.4127,
        "exact": None,
        "scale": ScaleResource.EXAMPLE,
        "qrels": 1,
        "qrels_digest": "9f2c51",
        "run_digest": "5d01ab",
        "profile": "cupel",
        "scoring_version": 1,
        "topics": 50,
        "missing_topics": 0,
        "scored_at": "2026-03-09T17:05:14Z",
    }


class SubmissionScores(Resource):
    """The scores of one submission."""

    submission: str = Field(description="id of the submission")
    scores: tuple[ScoreResource, ...] = Field(
        description="a score for each measure; measures that are not computed yet are omitted"
    )

    EXAMPLE = {"submission": "sub_0192f0c5", "scores": [ScoreResource.EXAMPLE]}


class TopicScore(Resource):
    """The value of a measure on one topic."""

    topic: str = Field(description="id of the topic")
    value: float = Field(description="value of the measure on the topic")

    EXAMPLE = {"topic": "101", "value": 0.5714}


class TopicScoresResource(Resource):
    """A score, and the value of its measure on each topic."""

    submission: str = Field(description="id of the submission")
    score: ScoreResource = Field(description="the aggregate score")
    topics: tuple[TopicScore, ...] = Field(description="values on the judged topics")
    unjudged_topics: tuple[str, ...] = Field(
        (),
        description="topics of the collection without judgments, which have no value and enter no aggregate",
    )

    EXAMPLE = {
        "submission": "sub_0192f0c5",
        "score": ScoreResource.EXAMPLE,
        "topics": [TopicScore.EXAMPLE],
        "unjudged_topics": ["150"],
    }


class ExplanationResource(Resource):
    """The explanation of the score by one measure."""

    measure: str = Field(description="canonical text of the measure")
    parts: dict[str, dict[str, Any] | None] = Field(
        description="the computed parts by name; a part is null if it has nothing to explain"
    )

    EXAMPLE = {"measure": "AP", "parts": {"judgments": {"as_lowest": 0.3102}, "ties": None}}


class ExplanationList(Resource):
    """The explanations of a submission's scores, and everything that they depend on."""

    submission: str = Field(description="id of the submission")
    qrels: int | None = Field(
        None, description="number of the qrels version; null before judgments are published"
    )
    qrels_digest: str | None = Field(
        None,
        description="SHA-256 of the judgments, in hexadecimal digits; null before judgments are published",
    )
    run_digest: str = Field(description="SHA-256 of the ranking, in hexadecimal digits")
    profile: str = Field(description="rules for reading and ordering runs")
    depth: int = Field(description="rankings are cut at this depth")
    scoring_version: int = Field(
        description="version of the scoring rules; another version may give another score"
    )
    topics: tuple[str, ...] = Field(
        description="ids of the topics; every list of values by topic has this order"
    )
    explanations: tuple[ExplanationResource, ...] = Field(description="an explanation for each measure")

    EXAMPLE = {
        "submission": "sub_0192f0c5",
        "qrels": 1,
        "qrels_digest": "9f2c51",
        "run_digest": "5d01ab",
        "profile": "cupel",
        "depth": 1000,
        "scoring_version": 1,
        "topics": ["101", "102"],
        "explanations": [ExplanationResource.EXAMPLE],
    }


class PendingExplanations(Resource):
    """Explanations that are being computed, with one job for each measure."""

    submission: str = Field(description="id of the submission")
    qrels: int = Field(description="number of the qrels version")
    measures: tuple[str, ...] = Field(description="canonical texts of the measures")
    jobs: tuple[JobResource, ...] = Field(description="a job for each measure")
    links: dict[str, str] = Field(description="address of the explanations")

    EXAMPLE = {
        "submission": "sub_0192f0c5",
        "qrels": 1,
        "measures": ["AP"],
        "jobs": [JobResource.EXAMPLE | {"kind": "explain", "queue": "audit", "state": "queued"}],
        "links": {"explanations": "/v1/submissions/sub_0192f0c5/explanations?qrels=1"},
    }


class ExplanationCreate(RequestBody):
    """Scores to explain."""

    measures: list[Annotated[str, Field(max_length=1000)]] = Field(
        [], max_length=100, description="measures to explain; default: the track's plan"
    )
    about: list[Annotated[str, Field(max_length=200)]] = Field(
        [], max_length=100, description="parts of the explanation; default: all"
    )
    qrels: int | None = Field(
        None, ge=1, le=LARGEST_INTEGER, description="a published version; default: the current one"
    )

    EXAMPLE = {"measures": ["nDCG@10", "AP"], "about": ["ties", "judgments"]}
