"""Schedules, which repeat audits, and alerts on the numbers of audit reports."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from cupel_contract.audit_resources import AuditRequest
from cupel_contract.resource_base import LARGEST_INTEGER, RequestBody, Resource


class ScheduleResource(Resource):
    """A schedule that repeats an audit.

    It has a cron expression or a number of new runs. With neither, it repeats the audit for every new
    current qrels version.
    """

    id: str = Field(description="id of the schedule")
    track: str = Field(description="name of the track")
    request: dict[str, Any] = Field(description="body of POST /v1/tracks/{track}/audits")
    cron: str | None = Field(
        None, description="cron expression: minute, hour, day, month and weekday; null: none"
    )
    zone: str | None = Field(None, description="time zone of the cron expression")
    runs: int | None = Field(None, description="repeat after this many new runs are scored")
    due_at: datetime | None = Field(None, description="next time of the cron expression")
    problem: str | None = Field(None, description="why the schedule requested no audit when it was last due")
    team: str = Field(description="team that created the schedule")
    created_at: datetime = Field(description="time at which the schedule was created")
    paused_at: datetime | None = Field(
        None, description="time at which the schedule was paused; null if it is active"
    )

    EXAMPLE = {
        "id": "sch_0192f0f1",
        "track": "health-2026",
        "request": AuditRequest.EXAMPLE,
        "cron": "0 3 * * 1",
        "zone": "Europe/Berlin",
        "runs": None,
        "due_at": "2026-03-16T02:00:00Z",
        "problem": None,
        "team": "organisers",
        "created_at": "2026-03-10T08:10:00Z",
        "paused_at": None,
    }


class ScheduleCreate(RequestBody):
    """A schedule to create.

    It has `cron`, or `runs`, or neither for every new qrels version.
    """

    request: AuditRequest = Field(
        description="audit to request each time, as for POST /v1/tracks/{track}/audits"
    )
    cron: Annotated[str, Field(max_length=200)] | None = Field(
        None, description="cron expression: minute, hour, day, month and weekday"
    )
    zone: Annotated[str, Field(max_length=200)] | None = Field(
        None, description="time zone of the cron expression; default: UTC"
    )
    runs: int | None = Field(
        None, ge=1, le=LARGEST_INTEGER, description="repeat after this many new runs are scored"
    )

    EXAMPLE = {"request": AuditRequest.EXAMPLE, "cron": "0 3 * * 1", "zone": "Europe/Berlin"}


class ScheduleChange(RequestBody):
    """A change of a schedule."""

    paused: bool = Field(
        description="whether the schedule is paused; occasions missed during a pause are skipped"
    )

    EXAMPLE = {"paused": True}


class AlertResource(Resource):
    """An alert on a number in the reports of an audit kind.

    It has the value of the number in the newest of them.
    """

    id: str = Field(description="id of the alert")
    track: str = Field(description="name of the track")
    kind: str = Field(description="audit kind whose reports are checked")
    number: str = Field(description="name of the checked number in the reports")
    below: float | None = Field(
        None, description="lower bound: smaller values raise the alert; null: no lower bound"
    )
    above: float | None = Field(
        None, description="upper bound: greater values raise the alert; null: no upper bound"
    )
    raised: bool | None = Field(
        None, description="whether the value is out of bounds; null before the first audit"
    )
    value: float | None = Field(
        None,
        description="value of the number in the newest audit; null if there is no such audit or number, or "
        "if it is undefined",
    )
    audit: str | None = Field(None, description="id of the newest audit")
    judged_at: datetime | None = Field(
        None, description="time of the last check; null before the first audit"
    )
    team: str = Field(description="team that created the alert")
    created_at: datetime = Field(description="time at which the alert was created")

    EXAMPLE = {
        "id": "alt_0192f0f0",
        "track": "health-2026",
        "kind": "downsampling",
        "number": "tau(AP)@50",
        "below": 0.9,
        "above": None,
        "raised": True,
        "value": 0.84,
        "audit": "aud_0192f0e5",
        "judged_at": "2026-03-10T08:01:40Z",
        "team": "organisers",
        "created_at": "2026-03-10T08:12:00Z",
    }


class AlertCreate(RequestBody):
    """An alert to create: raised when the number is below or above a bound."""

    kind: str = Field(max_length=200, description="audit kind whose reports are checked")
    number: str = Field(
        min_length=1,
        max_length=1000,
        pattern=r"^[^\x00-\x1f]+$",
        description="name of the number to check in the reports",
    )
    below: float | None = Field(
        None,
        allow_inf_nan=False,
        description="lower bound: smaller values raise the alert; at least one bound is required",
    )
    above: float | None = Field(
        None,
        allow_inf_nan=False,
        description="upper bound: greater values raise the alert; at least one bound is required",
    )

    EXAMPLE = {"kind": "downsampling", "number": "tau(AP)@50", "below": 0.9}
