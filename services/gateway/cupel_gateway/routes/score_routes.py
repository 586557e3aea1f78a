"""Routes of the scores of a submission and their explanations."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from cupel_backend.scores import evaluations, score_explanations
from cupel_contract.score_resources import (
    ExplanationCreate,
    ExplanationList,
    PendingExplanations,
    ScoreResource,
    SubmissionScores,
    TopicScoresResource,
)
from cupel_gateway import resource_builders
from cupel_gateway.dependencies import (
    Caller,
    IfNoneMatch,
    Measures,
    PathText,
    QrelsNumber,
    Sys,
)
from cupel_gateway.openapi_description import sends
from cupel_gateway.problem_responses import JSON_BODY, refuses
from cupel_gateway.responses import tagged

router = APIRouter(prefix="/v1/submissions/{submission}", tags=["scores"])


@router.get(
    "/scores",
    response_model=SubmissionScores,
    responses=refuses("submission-unknown", "submission-forbidden", "qrels-not-published", "measure-invalid"),
)
def show_scores(
    submission: PathText,
    system: Sys,
    caller: Caller,
    measure: Measures = [],  # noqa: B006 (FastAPI copies it)
    qrels: QrelsNumber = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Return the scores over all topics by each `measure` (default: the track's plan)."""
    views = evaluations.read_scores(system, caller, submission, measures=measure, qrels=qrels)
    scores = tuple(ScoreResource.model_validate(view) for view in views)
    return tagged(SubmissionScores(submission=submission, scores=scores), if_none_match)


@router.get(
    "/scores/topics",
    response_model=TopicScoresResource,
    responses=refuses(
        "submission-unknown",
        "submission-forbidden",
        "qrels-not-published",
        "score-unknown",
        "measure-invalid",
    ),
)
def show_topic_scores(
    submission: PathText,
    system: Sys,
    caller: Caller,
    measure: Annotated[str, Query(max_length=1000, pattern=r"^[^\x00-\x1f]+$", examples=["nDCG@10"])],
    qrels: QrelsNumber = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Return the value of `measure` on every topic of the qrels version."""
    view = evaluations.read_topic_scores(system, caller, submission, measure=measure, qrels=qrels)
    return tagged(resource_builders.topic_scores(submission, view), if_none_match)


@router.post(
    "/explanations",
    status_code=202,
    responses=refuses(
        "submission-unknown",
        "submission-forbidden",
        "qrels-not-published",
        "measure-invalid",
        "about-unknown",
        "too-many-explanations",
        *JSON_BODY,
    )
    | {202: sends("Location")},
)
def explain_scores(
    submission: PathText, body: ExplanationCreate, response: Response, system: Sys, caller: Caller
) -> PendingExplanations:
    """Request explanations of scores.

    Jobs compute them once; repeating the request changes nothing.
    """
    view = score_explanations.request(system, caller, submission, **body.model_dump())
    pending = resource_builders.pending_explanations(view)
    response.headers["Location"] = pending.links["explanations"]
    return pending


@router.get(
    "/explanations",
    response_model=ExplanationList,
    responses=refuses("submission-unknown", "submission-forbidden", "qrels-not-published", "measure-invalid"),
)
def show_explanations(
    submission: PathText,
    system: Sys,
    caller: Caller,
    measure: Measures = [],  # noqa: B006 (FastAPI copies it)
    qrels: QrelsNumber = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Return the stored explanations of each `measure` (default: all measures)."""
    view = score_explanations.read_explanations(system, caller, submission, measures=measure, qrels=qrels)
    return tagged(ExplanationList.model_validate(view), if_none_match)
