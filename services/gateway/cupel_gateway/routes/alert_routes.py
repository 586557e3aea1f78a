"""Alerts: rules on the numbers of audits' reports."""

from fastapi import APIRouter, Request, Response

from cupel_backend.audits import audit_alerts
from cupel_contract.audit_rule_resources import AlertCreate, AlertResource
from cupel_contract.resource_base import ResourceList
from cupel_gateway.dependencies import Asked, Caller, Sys, Text
from cupel_gateway.problem_responses import JSON_BODY, refuses
from cupel_gateway.responses import paged

router = APIRouter(tags=["audits"])

OF_TRACK = "/v1/tracks/{track}/alerts"


@router.post(
    OF_TRACK,
    status_code=201,
    responses=refuses("track-unknown", "audit-forbidden", "alert-invalid", *JSON_BODY),
)
def add_alert(track: Text, wanted: AlertCreate, system: Sys, caller: Caller) -> AlertResource:
    """Be alerted when a number of a report is out of bounds. Needs the track's organiser."""
    return AlertResource.model_validate(audit_alerts.add(system, caller, track, **wanted.model_dump()))


@router.get(OF_TRACK, responses=refuses("track-unknown", "audit-forbidden", "cursor-unknown"))
def list_alerts(
    request: Request, response: Response, track: Text, system: Sys, caller: Caller, window: Asked
) -> ResourceList[AlertResource]:
    """The track's alerts, newest first. Needs its organiser."""
    page = audit_alerts.list_(system, caller, track, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, AlertResource.model_validate)


@router.delete("/v1/alerts/{alert}", status_code=204, responses=refuses("alert-unknown"))
def remove_alert(alert: Text, system: Sys, caller: Caller) -> None:
    """End an alert."""
    audit_alerts.remove(system, caller, alert)
