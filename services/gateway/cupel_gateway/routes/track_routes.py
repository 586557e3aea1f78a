"""Tracks: shared tasks with aspects and a plan of measures."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from pydantic import Field

from cupel_backend import tracks
from cupel_backend.scores import leaderboards
from cupel_contract.leaderboard_resources import LeaderboardResource
from cupel_contract.resource_base import ResourceList
from cupel_contract.track_resources import TrackChange, TrackCreate, TrackResource
from cupel_gateway import resource_builders
from cupel_gateway.dependencies import (
    Asked,
    Caller,
    IfNoneMatch,
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
def create_track(wanted: TrackCreate, response: Response, system: Sys, caller: Caller) -> TrackResource:
    """Make a track, owned by the caller's team. Needs the scope organiser."""
    track = tracks.create(system, caller, **wanted.model_dump())
    response.headers["Location"] = f"/v1/tracks/{track.name}"
    response.headers["ETag"] = f'"{track.etag}"'
    return TrackResource.model_validate(track)


@router.get("", responses=refuses("cursor-unknown"))
def list_tracks(
    request: Request, response: Response, system: Sys, caller: Caller, window: Asked
) -> ResourceList[TrackResource]:
    """All tracks, newest first."""
    page = tracks.list_(system, caller, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, TrackResource.model_validate)


@router.get("/{track}", response_model=TrackResource, responses=refuses("track-unknown"))
def show_track(track: Text, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None) -> Response:
    """A track. Its ETag is what a change may name in If-Match."""
    view = tracks.get(system, caller, track)
    return tagged(TrackResource.model_validate(view), if_none_match, etag=view.etag)


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
) -> TrackResource:
    """Change title, plan of measures, or whether it is closed."""
    changes: dict[str, Any] = change.model_dump(exclude_unset=True)
    view = tracks.change(system, caller, track, changes=changes, expected=demanded(if_match))
    response.headers["ETag"] = f'"{view.etag}"'
    return TrackResource.model_validate(view)


@router.get(
    "/{track}/leaderboard",
    response_model=LeaderboardResource,
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
        resource_builders.leaderboard(board, following), if_none_match, etag=board.etag, following=following
    )
