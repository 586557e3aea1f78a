"""Tracks: shared tasks with aspects and a plan of measures."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from pydantic import Field, JsonValue

from cupel_backend import tracks
from cupel_backend.scores import leaderboards
from cupel_gateway import response_models
from cupel_gateway.dependencies import (
    Asked,
    Caller,
    IfNoneMatch,
    ListQuery,
    MeasureText,
    QrelsNumber,
    Sys,
    Text,
)
from cupel_gateway.openapi_description import sends
from cupel_gateway.problem_responses import JSON_BODY, STORED, refuses
from cupel_gateway.responses import demanded, next_address, paged, tagged, unchanged

router = APIRouter(prefix="/v1/tracks", tags=["tracks"])

Texts = Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=1000)]


class TrackWanted(ListQuery):
    """A track to make. Aspects and label sets are written as in a collection file."""

    name: str = Field(max_length=200, examples=["health-2026"])
    title: str = Field(max_length=1000, examples=["Health answers 2026"])
    aspects: dict[str, JsonValue] = Field(
        examples=[{"relevance": {"labels": [0, 1, 2]}, "credibility": {"labels": ["poor", "fair", "good"]}}]
    )
    label_sets: dict[str, JsonValue] | None = None
    profile: str = Field("cupel", max_length=200)
    measures: Texts = Field(examples=[["nDCG@10", "TOMA(of=nDCG@10)"]])
    depth: int = Field(1000, ge=1, description="rankings are cut here")


class TrackChange(ListQuery):
    """A merge patch (RFC 7396): what is absent stays as it is."""

    title: str = Field("", max_length=1000)
    measures: Texts = Field([])
    closed: bool = False


@router.post(
    "",
    status_code=201,
    responses=refuses(
        "track-forbidden",
        "track-exists",
        "track-invalid",
        "aspects-invalid",
        "measure-invalid",
        "profile-unknown",
        *JSON_BODY,
    )
    | {201: sends("Location", "ETag")},
)
def create_track(
    wanted: TrackWanted, response: Response, system: Sys, caller: Caller
) -> response_models.Track:
    """Make a track, owned by the caller's team. Needs the scope organiser."""
    track = tracks.create(system, caller, **wanted.model_dump())
    response.headers["Location"] = f"/v1/tracks/{track.name}"
    response.headers["ETag"] = f'"{track.etag}"'
    return response_models.Track.model_validate(track)


@router.get("", responses=refuses("cursor-unknown"))
def list_tracks(
    request: Request, response: Response, system: Sys, caller: Caller, window: Asked
) -> response_models.ListOf[response_models.Track]:
    """All tracks, newest first."""
    page = tracks.list_(system, caller, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, response_models.Track.model_validate)


@router.get("/{track}", response_model=response_models.Track, responses=refuses("track-unknown"))
def show_track(track: Text, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None) -> Response:
    """A track. Its ETag is what a change may name in If-Match."""
    view = tracks.get(system, caller, track)
    return tagged(response_models.Track.model_validate(view), if_none_match, etag=view.etag)


@router.patch(
    "/{track}",
    responses=refuses(
        "track-unknown",
        "track-forbidden",
        "track-invalid",
        "measure-invalid",
        "track-changed",
        *STORED,
        *JSON_BODY,
    )
    | {200: sends("ETag")},
)
def change_track(
    track: Text,
    change: TrackChange,
    response: Response,
    system: Sys,
    caller: Caller,
    if_match: Annotated[
        str | None, Header(max_length=2000, description="the ETag that the change is based on, or several")
    ] = None,
) -> response_models.Track:
    """Change title, plan of measures, or whether it is closed."""
    changes: dict[str, Any] = change.model_dump(exclude_unset=True)
    view = tracks.change(system, caller, track, changes=changes, expected=demanded(if_match))
    response.headers["ETag"] = f'"{view.etag}"'
    return response_models.Track.model_validate(view)


@router.get(
    "/{track}/leaderboard",
    response_model=response_models.Board,
    tags=["leaderboards"],
    responses=refuses("track-unknown", "qrels-not-published", "measure-invalid", "cursor-unknown"),
)
def show_leaderboard(
    request: Request,
    track: Text,
    system: Sys,
    caller: Caller,
    window: Asked,
    measure: MeasureText = None,
    qrels: QrelsNumber = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Submissions by a measure (default: the first of the plan) under a qrels version."""
    known = (if_none_match or "").strip('"')
    board = leaderboards.read_board(
        system,
        caller,
        track,
        measure=measure,
        qrels=qrels,
        limit=window.limit,
        cursor=window.cursor,
        known=known,
    )
    if board is None:
        return unchanged(known)
    following = next_address(request, board.next)
    return tagged(
        response_models.Board.of(board, following), if_none_match, etag=board.etag, following=following
    )
