"""Routes of tracks and their leaderboards."""

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
    Caller,
    IfNoneMatch,
    MeasureText,
    PathText,
    QrelsNumber,
    Sys,
    Window,
)
from cupel_gateway.openapi_description import sends
from cupel_gateway.problem_responses import JSON_BODY, STORED, refuses
from cupel_gateway.responses import etags_of, next_address, paged, tagged, unchanged

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
def create_track(body: TrackCreate, response: Response, system: Sys, caller: Caller) -> TrackResource:
    """Create a track, owned by the caller's team. Requires the scope organiser."""
    track = tracks.create(system, caller, **body.model_dump())
    response.headers["Location"] = f"/v1/tracks/{track.name}"
    response.headers["ETag"] = f'"{track.etag}"'
    return TrackResource.model_validate(track)


@router.get("", responses=refuses("cursor-unknown"))
def list_tracks(
    request: Request, response: Response, system: Sys, caller: Caller, window: Window
) -> ResourceList[TrackResource]:
    """List all tracks, newest first."""
    page = tracks.list_(system, caller, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, TrackResource.model_validate)


@router.get("/{track}", response_model=TrackResource, responses=refuses("track-unknown"))
def show_track(track: PathText, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None) -> Response:
    """Return a track.

    To avoid lost updates, send its ETag in the If-Match header of a change.
    """
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
    track: PathText,
    change: TrackChange,
    response: Response,
    system: Sys,
    caller: Caller,
    if_match: Annotated[
        str | None,
        Header(
            max_length=2000,
            description="ETags of the track; the change is refused if none of them is current",
        ),
    ] = None,
) -> TrackResource:
    """Change the title, the plan of measures, or whether the track is closed."""
    changes: dict[str, Any] = change.model_dump(exclude_unset=True)
    view = tracks.change(system, caller, track, changes=changes, expected=etags_of(if_match))
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
    track: PathText,
    system: Sys,
    caller: Caller,
    window: Window,
    measure: MeasureText = None,
    qrels: QrelsNumber = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Return the leaderboard by a measure under a qrels version.

    The default measure is the first of the plan.
    """
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
    next_page = next_address(request, board.next)
    return tagged(
        resource_builders.leaderboard(board, next_page), if_none_match, etag=board.etag, next_page=next_page
    )
