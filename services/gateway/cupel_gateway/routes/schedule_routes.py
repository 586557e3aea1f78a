"""Schedules: audits that are made again and again."""

from fastapi import APIRouter, Request, Response

from cupel_backend.audits import audit_schedules
from cupel_contract.audit_rule_resources import ScheduleChange, ScheduleCreate, ScheduleResource
from cupel_contract.resource_base import ResourceList
from cupel_gateway.dependencies import Asked, Caller, Sys, Text
from cupel_gateway.problem_responses import JSON_BODY, refuses
from cupel_gateway.responses import paged

router = APIRouter(tags=["audits"])

OF_TRACK = "/v1/tracks/{track}/schedules"
ONE = "/v1/schedules/{schedule}"


@router.post(
    OF_TRACK,
    status_code=201,
    responses=refuses(
        "track-unknown", "audit-forbidden", "audit-invalid", "measure-invalid", "schedule-invalid", *JSON_BODY
    ),
)
def add_schedule(track: Text, wanted: ScheduleCreate, system: Sys, caller: Caller) -> ScheduleResource:
    """Have the track audited again and again. Needs its organiser."""
    request = wanted.request.model_dump(exclude_unset=True)
    rule = wanted.model_dump(exclude={"request"})
    return ScheduleResource.model_validate(
        audit_schedules.add(system, caller, track, request=request, **rule)
    )


@router.get(OF_TRACK, responses=refuses("track-unknown", "audit-forbidden", "cursor-unknown"))
def list_schedules(
    request: Request, response: Response, track: Text, system: Sys, caller: Caller, window: Asked
) -> ResourceList[ScheduleResource]:
    """The track's schedules, newest first. Needs its organiser."""
    page = audit_schedules.list_(system, caller, track, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, ScheduleResource.model_validate)


@router.patch(ONE, responses=refuses("schedule-unknown", *JSON_BODY))
def change_schedule(schedule: Text, change: ScheduleChange, system: Sys, caller: Caller) -> ScheduleResource:
    """Pause a schedule, or let it go on: what it missed meanwhile is passed over."""
    return ScheduleResource.model_validate(
        audit_schedules.change(system, caller, schedule, paused=change.paused)
    )


@router.delete(ONE, status_code=204, responses=refuses("schedule-unknown"))
def remove_schedule(schedule: Text, system: Sys, caller: Caller) -> None:
    """End a schedule; the audits that it made stay."""
    audit_schedules.remove(system, caller, schedule)
