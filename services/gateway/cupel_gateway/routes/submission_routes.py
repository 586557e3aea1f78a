"""Routes of submissions."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from cupel_backend import submissions
from cupel_backend.submissions import Upload
from cupel_contract.resource_base import ResourceList
from cupel_contract.states import FINAL_JOB_STATES
from cupel_contract.submission_resources import SubmissionResource
from cupel_gateway import resource_builders
from cupel_gateway.dependencies import Caller, IdempotencyKey, IfNoneMatch, PathText, Sys, Window, in_thread
from cupel_gateway.event_streams import EVENTS, event_stream
from cupel_gateway.openapi_description import sends
from cupel_gateway.problem_responses import TYPE_UNSUPPORTED, refuses
from cupel_gateway.responses import paged, tagged
from cupel_measures.reading.compression import COMPRESSIONS

router = APIRouter(prefix="/v1", tags=["submissions"])

BLOCK = 1 << 18  # bytes per write, because a thread switch costs more than a small write
NOT_A_RUN = ("multipart/", "application/json")

FORMATS = ", ".join(compression.name for compression in COMPRESSIONS)
RAW = {
    "requestBody": {
        "required": True,
        "description": f"the run file, plain or compressed ({FORMATS}; a zip archive must contain one file)",
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
    track: PathText,
    system: Sys,
    caller: Caller,
    name: Annotated[
        str, Query(max_length=1000, description="name of the file, shown to users", examples=["bm25.gz"])
    ] = "",
    key: IdempotencyKey = None,
) -> Response:
    """Submit a run.

    The response contains warnings about the file; `links.events` streams the scoring.
    """
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


def _is_scored(submission: SubmissionResource) -> bool:
    return all(job.state in FINAL_JOB_STATES for job in submission.jobs)


async def _receive(request: Request, upload: Upload, *, limit: int) -> None:
    """Write the body to the upload as it arrives.

    limit: limit on the body in bytes; `Upload.write` enforces the limit on files.
    """
    request.scope["cupel.body"].limit = limit
    buffer = bytearray()
    async for chunk in request.stream():
        buffer += chunk
        if len(buffer) >= BLOCK:
            await in_thread(partial(upload.write, bytes(buffer)))
            buffer.clear()
    await in_thread(partial(upload.write, bytes(buffer)))


@router.get("/tracks/{track}/submissions", responses=refuses("track-unknown", "cursor-unknown"))
def list_submissions(
    request: Request, response: Response, track: PathText, system: Sys, caller: Caller, window: Window
) -> ResourceList[SubmissionResource]:
    """List the submissions of the caller's team, newest first.

    Organisers of the track see all.
    """
    page = submissions.list_(system, caller, track, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, resource_builders.submission)


@router.get(
    "/submissions/{submission}",
    response_model=SubmissionResource,
    responses=refuses("submission-unknown", "submission-forbidden"),
)
def show_submission(
    submission: PathText, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None
) -> Response:
    """Return a submission: its run, the warnings about its file, and its jobs."""
    return tagged(resource_builders.submission(submissions.get(system, caller, submission)), if_none_match)


@router.delete("/submissions/{submission}", responses=refuses("submission-unknown", "submission-forbidden"))
def withdraw_submission(submission: PathText, system: Sys, caller: Caller) -> SubmissionResource:
    """Withdraw a submission from the leaderboards. The submission itself is kept."""
    return resource_builders.submission(submissions.withdraw(system, caller, submission))


@router.get(
    "/submissions/{submission}/events",
    response_class=Response,
    responses=refuses("submission-unknown", "submission-forbidden") | EVENTS,
)
async def watch_submission(request: Request, submission: PathText, system: Sys, caller: Caller) -> Response:
    """Stream the states of a submission as server-sent events.

    The stream ends when the scoring of the submission has ended.
    """

    def read() -> SubmissionResource:
        return resource_builders.submission(submissions.get(system, caller, submission))

    return await event_stream(request, read, _is_scored)
