"""Routes of alerts on the numbers of audit reports."""

from fastapi import APIRouter, Request, Response

from cupel_backend.audits import audit_alerts
from cupel_contract.audit_rule_resources import AlertCreate, AlertResource
from cupel_contract.resource_base import ResourceList
from cupel_gateway.dependencies import Caller, PathText, Sys, Window
from cupel_gateway.problem_responses import JSON_BODY, refuses
from cupel_gateway.responses import paged

router = APIRouter(tags=["audits"])

TRACK_PATH = "/v1/tracks/{track}/alerts"


@router.post(
    TRACK_PATH,
    status_code=201,
    responses=refuses("track-unknown", "audit-forbidden", "alert-invalid", *JSON_BODY),
)
def add_alert(track: PathText, body: AlertCreate, system: Sys, caller: Caller) -> AlertResource:
    """Add an alert that is raised when a number of an audit report is out of bounds.

    Requires an organiser of the track.
    """
    return AlertResource.model_validate(audit_alerts.add(system, caller, track, **body.model_dump()))


@router.get(TRACK_PATH, responses=refuses("track-unknown", "audit-forbidden", "cursor-unknown"))
def list_alerts(
    request: Request, response: Response, track: PathText, system: Sys, caller: Caller, window: Window
) -> ResourceList[AlertResource]:
    """List the alerts of a track, newest first. Requires an organiser of the track."""
    page = audit_alerts.list_(system, caller, track, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, AlertResource.model_validate)


@router.delete("/v1/alerts/{alert}", status_code=204, responses=refuses("alert-unknown"))
def remove_alert(alert: PathText, system: Sys, caller: Caller) -> None:
    """Remove an alert. Requires an organiser of the track."""
    audit_alerts.remove(system, caller, alert)
