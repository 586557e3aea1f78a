"""Routes of runs and of their files."""

from collections.abc import Iterator
from typing import BinaryIO

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from cupel_backend import submitted_runs
from cupel_contract.submission_resources import RunResource
from cupel_gateway.dependencies import Caller, IfNoneMatch, PathText, Sys
from cupel_gateway.problem_responses import refuses
from cupel_gateway.responses import matches, tagged

router = APIRouter(prefix="/v1/runs", tags=["runs"])

BLOCK = 1 << 18


@router.get("/{run}", response_model=RunResource, responses=refuses("run-unknown"))
def show_run(run: PathText, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None) -> Response:
    """Return a run: its tag, digests and counts."""
    return tagged(RunResource.model_validate(submitted_runs.get(system, caller, run)), if_none_match)


@router.get(
    "/{run}/file",
    response_class=StreamingResponse,
    responses=refuses("run-unknown", "content-missing", "storage-failed")
    | {200: {"description": "the file as it was sent", "content": {"application/octet-stream": {}}}},
)
def download_run(run: PathText, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None) -> Response:
    """Download the file of a run exactly as it was sent, compressed or not."""
    view = submitted_runs.get(system, caller, run)
    headers = {"ETag": f'"{view.raw_digest}"', "Cache-Control": "private, max-age=31536000, immutable"}
    if matches(if_none_match, view.raw_digest):
        return Response(status_code=304, headers=headers)
    headers |= {"Content-Length": str(view.bytes), "Content-Disposition": f'attachment; filename="{view.id}"'}
    return StreamingResponse(
        _blocks(submitted_runs.open_file(system, caller, run)),
        headers=headers,
        media_type="application/octet-stream",
    )


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while block := file.read(BLOCK):
            yield block
