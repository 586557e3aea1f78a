"""Scores of a submission, and what explains them."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from cupel_backend import evaluations, explanations
from cupel_gateway import models
from cupel_gateway.answering import tagged
from cupel_gateway.asking import LARGEST_NUMBER, Caller, IfNoneMatch, Measures, QrelsNumber, Sys, Text, Wanted
from cupel_gateway.describing import sends
from cupel_gateway.problems import JSON_BODY, refuses
from cupel_measures.explaining import ABOUT

router = APIRouter(prefix="/v1/submissions/{submission}", tags=["scores"])


@router.get(
    "/scores",
    response_model=models.Scores,
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
    found = evaluations.scores(system, caller, submission, measures=measure, qrels=qrels)
    scores = [models.Score.model_validate(one) for one in found]
    return tagged(models.Scores(submission=submission, scores=scores), if_none_match)


@router.get(
    "/scores/topics",
    response_model=models.TopicScores,
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
    found = evaluations.topic_scores(system, caller, submission, measure=measure, qrels=qrels)
    return tagged(models.TopicScores.of(submission, found), if_none_match)


class ExplanationsAsked(Wanted):
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
) -> models.ExplanationsWanted:
    """Have scores explained: by jobs, whose results are kept. Asking again changes nothing."""
    requested = explanations.request(system, caller, submission, **wanted.model_dump())
    body = models.ExplanationsWanted.of(requested)
    response.headers["Location"] = body.links["explanations"]
    return body


@router.get(
    "/explanations",
    response_model=models.Explanations,
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
    found = explanations.explanations(system, caller, submission, measures=measure, qrels=qrels)
    return tagged(models.Explanations.model_validate(found), if_none_match)
