"""Routes of the qrels versions of a track."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.datastructures import FormData, UploadFile

from cupel_backend import qrels_versions
from cupel_contract.qrels_resources import QrelsDiffResource, QrelsResource
from cupel_contract.resource_base import LARGEST_INTEGER, ResourceList
from cupel_contract.states import FINAL_QRELS_STATES
from cupel_gateway import resource_builders
from cupel_gateway.dependencies import (
    Caller,
    IfNoneMatch,
    PathText,
    Sys,
    VersionNumber,
    Window,
    in_thread,
)
from cupel_gateway.event_streams import EVENTS, event_stream
from cupel_gateway.openapi_description import sends
from cupel_gateway.problem_responses import FORM_INVALID, STORED, TYPE_UNSUPPORTED, refuses
from cupel_gateway.responses import paged, tagged

router = APIRouter(prefix="/v1/tracks/{track}/qrels", tags=["qrels"])

MAX_MEGABYTES = 128  # judgments are held in memory; the largest public collections have about 20 MB
MAX_FILES = 100  # including the collection file

FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["collection", "files"],
                    "properties": {
                        "collection": {
                            "type": "string",
                            "description": "collection file (YAML or JSON) with the key `qrels` and "
                            "optionally `topics`",
                        },
                        "files": {
                            "type": "array",
                            "items": {"type": "string", "contentMediaType": "application/octet-stream"},
                            "description": "the files that the collection names, with the same names; "
                            f"at most {MAX_FILES} files, including the collection file",
                        },
                    },
                }
            }
        },
    }
}


@router.post(
    "",
    status_code=201,
    response_model=QrelsResource,
    openapi_extra=FORM,
    responses=refuses(
        "track-unknown",
        "track-forbidden",
        "qrels-forbidden",
        "qrels-invalid",
        "form-invalid",
        "body-malformed",
        "content-type-unsupported",
        "check-ended",
        "storage-failed",
        "checkers-busy",
    )
    | {201: sends("Location")},
)
async def upload_qrels(
    request: Request, response: Response, track: PathText, system: Sys, caller: Caller
) -> Response:
    """Upload judgments as a new qrels version of a track, a draft.

    Requires an organiser of the track.
    """
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise TYPE_UNSUPPORTED(
            "send multipart/form-data with a part `collection` and a part `files` for each file"
        )
    # Refuse other callers before the body is read.
    await in_thread(partial(qrels_versions.require_organiser, system, caller, track))
    request.scope["cupel.body"].limit = min(system.settings.upload_megabytes, MAX_MEGABYTES) << 20
    form = request.form(max_files=MAX_FILES, max_fields=MAX_FILES, max_part_size=1 << 20)
    async with form as parts:
        collection, files = await _read(parts)
    call = partial(qrels_versions.upload, system, caller, track, collection=collection, files=files)
    version = await in_thread(call, request.app.state.checks)
    body = resource_builders.qrels_version(version)
    headers = {"Location": f"/v1/tracks/{track}/qrels/{version.number}"}
    return Response(body.model_dump_json(), 201, headers, "application/json")


async def _read(parts: FormData) -> tuple[bytes, dict[str, bytes]]:
    """Return the collection file, and the other files by their names."""
    collection = await _content(parts.get("collection"), "collection")
    files: dict[str, bytes] = {}
    for part in parts.getlist("files"):
        name = part.filename or "" if isinstance(part, UploadFile) else ""
        if name in files:
            raise FORM_INVALID(f"two parts `files` have the file name {name!r}")
        files[name] = await _content(part, "files")
    return collection, files


async def _content(part: UploadFile | str | None, name: str) -> bytes:
    if part is None:
        raise FORM_INVALID(f"the form has no part `{name}`")
    return part.encode() if isinstance(part, str) else await part.read()


@router.get("", responses=refuses("track-unknown", "cursor-unknown"))
def list_qrels(
    request: Request, response: Response, track: PathText, system: Sys, caller: Caller, window: Window
) -> ResourceList[QrelsResource]:
    """List the qrels versions of a track, newest first.

    Only its organisers see drafts.
    """
    page = qrels_versions.list_(system, caller, track, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, resource_builders.qrels_version)


@router.get("/{number}", response_model=QrelsResource, responses=refuses("track-unknown", "qrels-unknown"))
def show_qrels(
    track: PathText, number: VersionNumber, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None
) -> Response:
    """Return a qrels version.

    The response has its counts, its state, and the progress of its publishing.
    """
    return tagged(
        resource_builders.qrels_version(qrels_versions.get(system, caller, track, number)), if_none_match
    )


@router.post(
    "/{number}/publish",
    status_code=202,
    responses=refuses(
        "track-unknown", "qrels-unknown", "track-forbidden", "qrels-older", "qrels-invalid", *STORED
    )
    | {202: sends("Location")},
)
def publish_qrels(
    track: PathText, number: VersionNumber, response: Response, system: Sys, caller: Caller
) -> QrelsResource:
    """Publish a qrels version: rescore every submission, then switch the leaderboard.

    Repeating the request changes nothing.
    """
    version = qrels_versions.publish(system, caller, track, number)
    response.headers["Location"] = f"/v1/tracks/{track}/qrels/{number}"
    return resource_builders.qrels_version(version)


@router.get(
    "/{number}/events", response_class=Response, responses=refuses("track-unknown", "qrels-unknown") | EVENTS
)
async def watch_qrels(
    request: Request, track: PathText, number: VersionNumber, system: Sys, caller: Caller
) -> Response:
    """Stream the states of a qrels version as server-sent events.

    The stream ends when the version is current or superseded.
    """

    def read() -> QrelsResource:
        return resource_builders.qrels_version(qrels_versions.get(system, caller, track, number))

    return await event_stream(request, read, lambda version: version.state in FINAL_QRELS_STATES)


@router.get(
    "/{number}/diff",
    response_model=QrelsDiffResource,
    responses=refuses("track-unknown", "qrels-not-published", "measure-invalid"),
)
def compare_qrels(
    track: PathText,
    number: VersionNumber,
    system: Sys,
    caller: Caller,
    base: Annotated[
        int, Query(alias="from", ge=1, le=LARGEST_INTEGER, description="number of the earlier version")
    ],
    measure: Annotated[str, Query(max_length=1000, pattern=r"^[^\x00-\x1f]+$", examples=["nDCG@10"])],
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Compare two qrels versions by a measure.

    The response has the old and new score and rank of each submission.
    """
    diff = qrels_versions.diff(system, caller, track, number, base=base, measure=measure)
    return tagged(QrelsDiffResource.model_validate(diff), if_none_match)
