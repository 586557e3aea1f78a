"""Alerts: rules on the numbers of audits' reports."""

from fastapi import APIRouter, Request, Response
from pydantic import Field

from cupel_backend.audits import audit_alerts
from cupel_gateway import audit_response_models as models
from cupel_gateway.dependencies import Asked, Caller, ListQuery, Sys, Text
from cupel_gateway.problem_responses import JSON_BODY, refuses
from cupel_gateway.response_models import ListOf
from cupel_gateway.responses import paged

router = APIRouter(tags=["audits"])

OF_TRACK = "/v1/tracks/{track}/alerts"


class AlertWanted(ListQuery):
    """An alert to be raised when a number is below or above a bound."""

    kind: str = Field(max_length=200, examples=["downsampling"])
    number: str = Field(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f]+$", examples=["tau(AP)@50"])
    below: float | None = Field(None, allow_inf_nan=False)
    above: float | None = Field(None, allow_inf_nan=False)


@router.post(
    OF_TRACK,
    status_code=201,
    responses=refuses("track-unknown", "audit-forbidden", "alert-invalid", *JSON_BODY),
)
def add_alert(track: Text, wanted: AlertWanted, system: Sys, caller: Caller) -> models.Alert:
    """Be alerted when a number of a report is out of bounds. Needs the track's organiser."""
    return models.Alert.model_validate(audit_alerts.add(system, caller, track, **wanted.model_dump()))


@router.get(OF_TRACK, responses=refuses("track-unknown", "audit-forbidden", "cursor-unknown"))
def list_alerts(
    request: Request, response: Response, track: Text, system: Sys, caller: Caller, window: Asked
) -> ListOf[models.Alert]:
    """The track's alerts, newest first. Needs its organiser."""
    page = audit_alerts.list_(system, caller, track, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, models.Alert.model_validate)


@router.delete("/v1/alerts/{alert}", status_code=204, responses=refuses("alert-unknown"))
def remove_alert(alert: Text, system: Sys, caller: Caller) -> None:
    """End an alert."""
    audit_alerts.remove(system, caller, alert)
