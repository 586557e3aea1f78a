"""Qrels versions of a track: upload, publish, watch, compare."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.datastructures import FormData, UploadFile

from cupel_backend import qrels_versions
from cupel_contract.qrels_resources import QrelsDiffResource, QrelsResource
from cupel_contract.resource_base import LARGEST_INTEGER, ResourceList
from cupel_gateway import resource_builders
from cupel_gateway.dependencies import (
    Asked,
    Caller,
    IfNoneMatch,
    Number,
    Sys,
    Text,
    in_thread,
)
from cupel_gateway.event_streams import EVENTS, events
from cupel_gateway.openapi_description import sends
from cupel_gateway.problem_responses import FORM_INVALID, STORED, TYPE_UNSUPPORTED, refuses
from cupel_gateway.responses import paged, tagged

router = APIRouter(prefix="/v1/tracks/{track}/qrels", tags=["qrels"])

LARGEST_MEGABYTES = 128  # judgments are held in memory; the largest public collections have 20
MOST_FILES = 100  # the collection among them

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
                            "description": "a collection file (YAML or JSON): `qrels:`, maybe `topics:`",
                        },
                        "files": {
                            "type": "array",
                            "items": {"type": "string", "contentMediaType": "application/octet-stream"},
                            "description": "the files it names, each under the same file name; "
                            f"at most {MOST_FILES} files, the collection among them",
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
    request: Request, response: Response, track: Text, system: Sys, caller: Caller
) -> Response:
    """Check judgments and keep them as the track's next version, a draft. Needs its organiser."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise TYPE_UNSUPPORTED(
            "send multipart/form-data: a part `collection`, and a part `files` for each file"
        )
    await in_thread(
        partial(qrels_versions.require_organiser, system, caller, track)
    )  # before the body is read
    request.scope["cupel.body"].limit = min(system.settings.upload_megabytes, LARGEST_MEGABYTES) << 20
    form = request.form(max_files=MOST_FILES, max_fields=MOST_FILES, max_part_size=1 << 20)
    async with form as parts:
        collection, files = await _read(parts)
    call = partial(qrels_versions.upload, system, caller, track, collection=collection, files=files)
    version = await in_thread(call, request.app.state.checks)
    body = resource_builders.qrels_version(version)
    headers = {"Location": f"/v1/tracks/{track}/qrels/{version.number}"}
    return Response(body.model_dump_json(), 201, headers, "application/json")


async def _read(parts: FormData) -> tuple[bytes, dict[str, bytes]]:
    """The collection, and the files by their names."""
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
    request: Request, response: Response, track: Text, system: Sys, caller: Caller, window: Asked
) -> ResourceList[QrelsResource]:
    """The track's versions, newest first; drafts are shown to its organisers only."""
    page = qrels_versions.list_(system, caller, track, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, resource_builders.qrels_version)


@router.get("/{number}", response_model=QrelsResource, responses=refuses("track-unknown", "qrels-unknown"))
def show_qrels(
    track: Text, number: Number, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None
) -> Response:
    """A version: what it holds, its state, and how far its publishing has come."""
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
    track: Text, number: Number, response: Response, system: Sys, caller: Caller
) -> QrelsResource:
    """Rescore every submission under this version, then switch the board. Repeating it changes nothing."""
    version = qrels_versions.publish(system, caller, track, number)
    response.headers["Location"] = f"/v1/tracks/{track}/qrels/{number}"
    return resource_builders.qrels_version(version)


@router.get("/{number}/events", responses=refuses("track-unknown", "qrels-unknown") | EVENTS)
async def watch_qrels(request: Request, track: Text, number: Number, system: Sys, caller: Caller) -> Response:
    """Progress of publishing as server-sent events, until the version is current or superseded."""

    def look() -> QrelsResource:
        return resource_builders.qrels_version(qrels_versions.get(system, caller, track, number))

    return await events(request, look, lambda version: version.state in {"current", "superseded"})


@router.get(
    "/{number}/diff",
    response_model=QrelsDiffResource,
    responses=refuses("track-unknown", "qrels-not-published", "measure-invalid"),
)
def compare_qrels(
    track: Text,
    number: Number,
    system: Sys,
    caller: Caller,
    base: Annotated[int, Query(alias="from", ge=1, le=LARGEST_INTEGER, description="the earlier version")],
    measure: Annotated[str, Query(max_length=1000, pattern=r"^[^\x00-\x1f]+$", examples=["nDCG@10"])],
    if_none_match: IfNoneMatch = None,
) -> Response:
    """What moved between two versions by a measure: old and new score and rank of each submission."""
    diff = qrels_versions.diff(system, caller, track, number, base=base, measure=measure)
    return tagged(QrelsDiffResource.model_validate(diff), if_none_match)
