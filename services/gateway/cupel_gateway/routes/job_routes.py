"""Routes of queued jobs."""

from fastapi import APIRouter, Request, Response

from cupel_backend import jobs
from cupel_contract.resource_base import ResourceList
from cupel_contract.states import FINAL_JOB_STATES
from cupel_contract.submission_resources import JobResource
from cupel_gateway.dependencies import Caller, IfNoneMatch, PathText, Sys, Window
from cupel_gateway.event_streams import EVENTS, event_stream
from cupel_gateway.problem_responses import refuses
from cupel_gateway.responses import paged, tagged

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.get("", responses=refuses("job-list-forbidden", "job-state-unknown", "cursor-unknown"))
def list_jobs(
    request: Request,
    response: Response,
    system: Sys,
    caller: Caller,
    window: Window,
    state: str | None = None,
) -> ResourceList[JobResource]:
    """List the jobs of the caller's tracks, newest first.

    Requires an organiser; an admin sees all jobs.
    """
    page = jobs.list_(system, caller, state=state, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, JobResource.model_validate)


@router.get("/{job}", response_model=JobResource, responses=refuses("job-unknown"))
def show_job(job: PathText, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None) -> Response:
    """Return a job."""
    return tagged(JobResource.model_validate(jobs.get(system, caller, job)), if_none_match)


@router.post("/{job}/revive", responses=refuses("job-unknown", "job-not-dead", "job-revival-forbidden"))
def revive_job(job: PathText, system: Sys, caller: Caller) -> JobResource:
    """Queue a dead job again. Requires an organiser of its track."""
    return JobResource.model_validate(jobs.revive(system, caller, job))


@router.get("/{job}/events", response_class=Response, responses=refuses("job-unknown") | EVENTS)
async def watch_job(request: Request, job: PathText, system: Sys, caller: Caller) -> Response:
    """Stream the states of a job as server-sent events until it is done or dead."""

    def read() -> JobResource:
        return JobResource.model_validate(jobs.get(system, caller, job))

    return await event_stream(request, read, lambda job: job.state in FINAL_JOB_STATES)
