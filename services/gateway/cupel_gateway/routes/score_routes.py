"""Scores of a submission, and what explains them."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from cupel_backend.scores import evaluations, score_explanations
from cupel_gateway import response_models
from cupel_gateway.dependencies import (
    LARGEST_NUMBER,
    Caller,
    IfNoneMatch,
    ListQuery,
    Measures,
    QrelsNumber,
    Sys,
    Text,
)
from cupel_gateway.openapi_description import sends
from cupel_gateway.problem_responses import JSON_BODY, refuses
from cupel_gateway.responses import tagged
from cupel_measures.explaining import ABOUT

router = APIRouter(prefix="/v1/submissions/{submission}", tags=["scores"])


@router.get(
    "/scores",
    response_model=response_models.Scores,
    responses=refuses("submission-unknown", "submission-forbidden", "qrels-not-published", "measure-invalid"),
)
def show_scores(
    submission: Text,
    system: Sys,
    caller: Caller,
    measure: Measures = [],  # noqa: B006 (FastAPI copies it)
    qrels: QrelsNumber = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Scores over all topics by each `measure` (default: the track's plan) under a qrels version."""
    found = evaluations.read_scores(system, caller, submission, measures=measure, qrels=qrels)
    scores = [response_models.Score.model_validate(one) for one in found]
    return tagged(response_models.Scores(submission=submission, scores=scores), if_none_match)


@router.get(
    "/scores/topics",
    response_model=response_models.TopicScores,
    responses=refuses(
        "submission-unknown",
        "submission-forbidden",
        "qrels-not-published",
        "score-unknown",
        "measure-invalid",
    ),
)
def show_topic_scores(
    submission: Text,
    system: Sys,
    caller: Caller,
    measure: Annotated[str, Query(max_length=1000, pattern=r"^[^\x00-\x1f]+$", examples=["nDCG@10"])],
    qrels: QrelsNumber = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """The value of `measure` on every topic of the qrels version."""
    found = evaluations.read_topic_scores(system, caller, submission, measure=measure, qrels=qrels)
    return tagged(response_models.TopicScores.of(submission, found), if_none_match)


class ExplanationsAsked(ListQuery):
    """Scores to explain."""

    measures: list[Annotated[str, Field(max_length=1000)]] = Field(
        [], max_length=100, description="default: the track's plan", examples=[["nDCG@10", "AP"]]
    )
    about: list[Annotated[str, Field(max_length=200)]] = Field(
        [],
        max_length=100,
        description=f"default: all of {', '.join(ABOUT)}",
        examples=[["ties", "judgments"]],
    )
    qrels: int | None = Field(
        None, ge=1, le=LARGEST_NUMBER, description="a published version; default: the current one"
    )


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
    submission: Text, wanted: ExplanationsAsked, response: Response, system: Sys, caller: Caller
) -> response_models.ExplanationsWanted:
    """Have scores explained: by jobs, whose results are kept. Asking again changes nothing."""
    requested = score_explanations.request(system, caller, submission, **wanted.model_dump())
    body = response_models.ExplanationsWanted.of(requested)
    response.headers["Location"] = body.links["explanations"]
    return body


@router.get(
    "/explanations",
    response_model=response_models.Explanations,
    responses=refuses("submission-unknown", "submission-forbidden", "qrels-not-published", "measure-invalid"),
)
def show_explanations(
    submission: Text,
    system: Sys,
    caller: Caller,
    measure: Measures = [],  # noqa: B006 (FastAPI copies it)
    qrels: QrelsNumber = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """What has been computed for each `measure` (default: all) under a qrels version."""
    found = score_explanations.read_explanations(system, caller, submission, measures=measure, qrels=qrels)
    return tagged(response_models.Explanations.model_validate(found), if_none_match)
