"""Jobs: queued work, and what became of it."""

from fastapi import APIRouter, Request, Response

from cupel_backend import jobs
from cupel_contract.resource_base import ResourceList
from cupel_contract.submission_resources import JobResource
from cupel_gateway.dependencies import Asked, Caller, IfNoneMatch, Sys, Text
from cupel_gateway.event_streams import EVENTS, events
from cupel_gateway.problem_responses import refuses
from cupel_gateway.responses import paged, tagged

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.get("", responses=refuses("job-list-forbidden", "job-state-unknown", "cursor-unknown"))
def list_jobs(
    request: Request, response: Response, system: Sys, caller: Caller, window: Asked, state: str | None = None
) -> ResourceList[JobResource]:
    """Jobs of the caller's tracks; `state` is queued, running, done or dead. Needs an organiser."""
    page = jobs.list_(system, caller, state=state, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, JobResource.model_validate)


@router.get("/{job}", response_model=JobResource, responses=refuses("job-unknown"))
def show_job(job: Text, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None) -> Response:
    """A job."""
    return tagged(JobResource.model_validate(jobs.get(system, caller, job)), if_none_match)


@router.post("/{job}/revive", responses=refuses("job-unknown", "job-not-dead", "job-revival-forbidden"))
def revive_job(job: Text, system: Sys, caller: Caller) -> JobResource:
    """Give a dead job another go. Needs an organiser of its track."""
    return JobResource.model_validate(jobs.revive(system, caller, job))


@router.get("/{job}/events", responses=refuses("job-unknown") | EVENTS)
async def watch_job(request: Request, job: Text, system: Sys, caller: Caller) -> Response:
    """The job as server-sent events, until it is done or dead."""

    def look() -> JobResource:
        return JobResource.model_validate(jobs.get(system, caller, job))

    return await events(request, look, lambda view: view.state in {"done", "dead"})
