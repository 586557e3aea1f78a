"""Submissions: hand in a run, follow it, read its scores."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from cupel_backend import submissions
from cupel_backend.submissions import Upload
from cupel_contract.resource_base import ResourceList
from cupel_contract.submission_resources import SubmissionResource
from cupel_gateway import resource_builders
from cupel_gateway.dependencies import Asked, Caller, IfNoneMatch, Key, Sys, Text, in_thread
from cupel_gateway.event_streams import EVENTS, events
from cupel_gateway.openapi_description import sends
from cupel_gateway.problem_responses import TYPE_UNSUPPORTED, refuses
from cupel_gateway.responses import paged, tagged

router = APIRouter(prefix="/v1", tags=["submissions"])

BLOCK = 1 << 18  # bytes gathered before they are written: a thread's turn costs more than a small write
NOT_A_RUN = ("multipart/", "application/json")

RAW = {
    "requestBody": {
        "required": True,
        "description": "the run file itself, plain or compressed (gzip, bzip2, zstd, zip of one file)",
        "content": {"application/octet-stream": {}},
    }
}


@router.post(
    "/tracks/{track}/submissions",
    status_code=202,
    response_model=SubmissionResource,
    openapi_extra=RAW,
    responses=refuses(
        "track-unknown",
        "track-closed",
        "run-invalid",
        "upload-too-large",
        "too-many-open",
        "key-invalid",
        "key-reused",
        "content-type-unsupported",
        "check-ended",
        "checkers-busy",
        "storage-failed",
        "content-missing",
        "content-damaged",
    )
    | {202: sends("Location")},
)
async def submit_run(
    request: Request,
    track: Text,
    system: Sys,
    caller: Caller,
    name: Annotated[
        str, Query(max_length=1000, description="the file's name, for people", examples=["bm25.gz"])
    ] = "",
    key: Key = None,
) -> Response:
    """Hand in a run. The answer holds the verdict on the file; scoring follows, see `links.events`."""
    if request.headers.get("content-type", "").lower().startswith(NOT_A_RUN):
        raise TYPE_UNSUPPORTED("send the file itself as the body, for example `curl --data-binary @run.gz`")
    length = int(request.headers["content-length"]) if "content-length" in request.headers else None
    upload = await in_thread(partial(submissions.begin, system, caller, track, length=length, key=key))
    try:
        await _receive(request, upload, limit=(system.settings.upload_megabytes << 20) + 4 * BLOCK)
        call = partial(submissions.receive, system, caller, upload, name=name, key=key)
        submission = await in_thread(call, request.app.state.checks)
    finally:
        upload.discard()
    headers = {"Location": f"/v1/submissions/{submission.id}"}
    return Response(
        resource_builders.submission(submission).model_dump_json(), 202, headers, "application/json"
    )


async def _receive(request: Request, upload: Upload, *, limit: int) -> None:
    """Write the body to the upload as it comes. `limit` is a second fence: the upload has its own."""
    request.scope["cupel.body"].limit = limit
    gathered = bytearray()
    async for chunk in request.stream():
        gathered += chunk
        if len(gathered) >= BLOCK:
            await in_thread(partial(upload.write, bytes(gathered)))
            gathered.clear()
    await in_thread(partial(upload.write, bytes(gathered)))


@router.get("/tracks/{track}/submissions", responses=refuses("track-unknown", "cursor-unknown"))
def list_submissions(
    request: Request, response: Response, track: Text, system: Sys, caller: Caller, window: Asked
) -> ResourceList[SubmissionResource]:
    """The team's submissions, newest first; organisers of the track see all."""
    page = submissions.list_(system, caller, track, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, resource_builders.submission)


@router.get(
    "/submissions/{submission}",
    response_model=SubmissionResource,
    responses=refuses("submission-unknown", "submission-forbidden"),
)
def show_submission(
    submission: Text, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None
) -> Response:
    """A submission: its run, what was found in the file, its jobs."""
    return tagged(resource_builders.submission(submissions.get(system, caller, submission)), if_none_match)


@router.delete("/submissions/{submission}", responses=refuses("submission-unknown", "submission-forbidden"))
def withdraw_submission(submission: Text, system: Sys, caller: Caller) -> SubmissionResource:
    """Take a submission off the boards. It is kept, as withdrawn."""
    return resource_builders.submission(submissions.withdraw(system, caller, submission))


@router.get(
    "/submissions/{submission}/events",
    responses=refuses("submission-unknown", "submission-forbidden") | EVENTS,
)
async def watch_submission(request: Request, submission: Text, system: Sys, caller: Caller) -> Response:
    """The submission as server-sent events, until nothing is left to score."""

    def look() -> SubmissionResource:
        return resource_builders.submission(submissions.get(system, caller, submission))

    return await events(request, look, lambda view: all(job.state in {"done", "dead"} for job in view.jobs))
