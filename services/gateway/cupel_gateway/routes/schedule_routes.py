"""Schedules: audits that are made again and again."""

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field

from cupel_backend.audits import audit_schedules
from cupel_gateway import audit_response_models as models
from cupel_gateway.dependencies import LARGEST_NUMBER, Asked, Caller, ListQuery, Sys, Text
from cupel_gateway.problem_responses import JSON_BODY, refuses
from cupel_gateway.response_models import ListOf
from cupel_gateway.responses import paged
from cupel_gateway.routes.audit_routes import AuditWanted

router = APIRouter(tags=["audits"])

OF_TRACK = "/v1/tracks/{track}/schedules"
ONE = "/v1/schedules/{schedule}"


class ScheduleWanted(ListQuery):
    """A schedule to make: by cron expression, or with so many new runs, or else with every new version."""

    request: AuditWanted
    cron: Annotated[str, Field(max_length=200)] | None = Field(None, examples=["0 3 * * 1"])
    zone: Annotated[str, Field(max_length=200)] | None = Field(
        None, description="of the cron expression; default: UTC", examples=["Europe/Berlin"]
    )
    runs: int | None = Field(None, ge=1, le=LARGEST_NUMBER)


class ScheduleChange(ListQuery):
    """Whether it is paused."""

    paused: bool


@router.post(
    OF_TRACK,
    status_code=201,
    responses=refuses(
        "track-unknown", "audit-forbidden", "audit-invalid", "measure-invalid", "schedule-invalid", *JSON_BODY
    ),
)
def add_schedule(track: Text, wanted: ScheduleWanted, system: Sys, caller: Caller) -> models.Schedule:
    """Have the track audited again and again. Needs its organiser."""
    request = wanted.request.model_dump(exclude_unset=True)
    rule = wanted.model_dump(exclude={"request"})
    return models.Schedule.model_validate(audit_schedules.add(system, caller, track, request=request, **rule))


@router.get(OF_TRACK, responses=refuses("track-unknown", "audit-forbidden", "cursor-unknown"))
def list_schedules(
    request: Request, response: Response, track: Text, system: Sys, caller: Caller, window: Asked
) -> ListOf[models.Schedule]:
    """The track's schedules, newest first. Needs its organiser."""
    page = audit_schedules.list_(system, caller, track, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, models.Schedule.model_validate)


@router.patch(ONE, responses=refuses("schedule-unknown", *JSON_BODY))
def change_schedule(schedule: Text, change: ScheduleChange, system: Sys, caller: Caller) -> models.Schedule:
    """Pause a schedule, or let it go on: what it missed meanwhile is passed over."""
    return models.Schedule.model_validate(
        audit_schedules.change(system, caller, schedule, paused=change.paused)
    )


@router.delete(ONE, status_code=204, responses=refuses("schedule-unknown"))
def remove_schedule(schedule: Text, system: Sys, caller: Caller) -> None:
    """End a schedule; the audits that it made stay."""
    audit_schedules.remove(system, caller, schedule)
