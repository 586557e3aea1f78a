"""Routes of schedules, which repeat audits."""

from fastapi import APIRouter, Request, Response

from cupel_backend.audits import audit_schedules
from cupel_contract.audit_rule_resources import ScheduleChange, ScheduleCreate, ScheduleResource
from cupel_contract.resource_base import ResourceList
from cupel_gateway.dependencies import Caller, PathText, Sys, Window
from cupel_gateway.problem_responses import JSON_BODY, refuses
from cupel_gateway.responses import paged

router = APIRouter(tags=["audits"])

TRACK_PATH = "/v1/tracks/{track}/schedules"
SCHEDULE_PATH = "/v1/schedules/{schedule}"


@router.post(
    TRACK_PATH,
    status_code=201,
    responses=refuses(
        "track-unknown", "audit-forbidden", "audit-invalid", "measure-invalid", "schedule-invalid", *JSON_BODY
    ),
)
def add_schedule(track: PathText, body: ScheduleCreate, system: Sys, caller: Caller) -> ScheduleResource:
    """Add a schedule that repeats an audit. Requires an organiser of the track."""
    request = body.request.model_dump(exclude_unset=True)
    rule = body.model_dump(exclude={"request"})
    return ScheduleResource.model_validate(
        audit_schedules.add(system, caller, track, request=request, **rule)
    )


@router.get(TRACK_PATH, responses=refuses("track-unknown", "audit-forbidden", "cursor-unknown"))
def list_schedules(
    request: Request, response: Response, track: PathText, system: Sys, caller: Caller, window: Window
) -> ResourceList[ScheduleResource]:
    """List the schedules of a track, newest first. Requires an organiser of the track."""
    page = audit_schedules.list_(system, caller, track, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, ScheduleResource.model_validate)


@router.patch(SCHEDULE_PATH, responses=refuses("schedule-unknown", *JSON_BODY))
def change_schedule(
    schedule: PathText, change: ScheduleChange, system: Sys, caller: Caller
) -> ScheduleResource:
    """Pause or resume a schedule. Audits that were due during the pause are skipped."""
    return ScheduleResource.model_validate(
        audit_schedules.change(system, caller, schedule, paused=change.paused)
    )


@router.delete(SCHEDULE_PATH, status_code=204, responses=refuses("schedule-unknown"))
def remove_schedule(schedule: PathText, system: Sys, caller: Caller) -> None:
    """Remove a schedule. The audits that it requested remain."""
    audit_schedules.remove(system, caller, schedule)
