"""Audits: asked for, watched, read, cancelled."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from cupel_audits import KINDS
from cupel_backend.audits import audit_parts, audit_requests
from cupel_contract.audit_resources import (
    AuditDetailResource,
    AuditHistoryPoint,
    AuditHistoryResource,
    AuditKindResource,
    AuditReportResource,
    AuditRequest,
    AuditResource,
)
from cupel_contract.resource_base import LARGEST_INTEGER, ResourceList
from cupel_gateway import resource_builders
from cupel_gateway.dependencies import Asked, Caller, IfNoneMatch, Sys, Text
from cupel_gateway.event_streams import EVENTS, events
from cupel_gateway.openapi_description import sends
from cupel_gateway.problem_responses import JSON_BODY, STORED, refuses
from cupel_gateway.responses import paged, tagged, tagged_text
from cupel_reports import page, policy

public = APIRouter(prefix="/v1/audits", tags=["audits"])
of_track = APIRouter(prefix="/v1/tracks/{track}/audits", tags=["audits"])
router = APIRouter(prefix="/v1/audits/{audit}", tags=["audits"])

FINAL = {"done", "failed", "cancelled"}

Word = Annotated[str, Field(max_length=1000)]
Id = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f]*$")]
Name = Annotated[str, Query(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f]+$")]
KindName = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00-\x1f]+$", examples=["downsampling"])]


@public.get("/kinds", response_model=ResourceList[AuditKindResource], responses=refuses())
def list_audit_kinds(if_none_match: IfNoneMatch = None) -> Response:
    """Every kind of audit: what it answers, and its parameters. Needs no token."""
    items = [resource_builders.audit_kind(kind) for kind in KINDS.values()]
    return tagged(ResourceList[AuditKindResource](items=items), if_none_match)


@of_track.post(
    "",
    status_code=202,
    responses=refuses(
        "track-unknown",
        "audit-forbidden",
        "audit-invalid",
        "qrels-not-published",
        "too-many-audits",
        *STORED,
        *JSON_BODY,
    )
    | {202: sends("Location")},
)
def request_audit(
    track: Text, wanted: AuditRequest, response: Response, system: Sys, caller: Caller
) -> AuditDetailResource:
    """Have the track audited, by jobs. Needs its organiser."""
    body = resource_builders.audit_detail(
        audit_requests.request(system, caller, track, **wanted.model_dump())
    )
    response.headers["Location"] = body.links["self"]
    return body


@of_track.get("", responses=refuses("track-unknown", "cursor-unknown"))
def list_audits(
    request: Request,
    response: Response,
    track: Text,
    system: Sys,
    caller: Caller,
    window: Asked,
    kind: KindName = None,
) -> ResourceList[AuditResource]:
    """The track's audits (of a kind), newest first."""
    page = audit_requests.list_(system, caller, track, kind=kind, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, resource_builders.audit)


@of_track.get("/history", response_model=AuditHistoryResource, responses=refuses("track-unknown"))
def show_audit_history(
    track: Text, kind: Name, number: Name, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None
) -> Response:
    """A number of the reports of one kind over time and qrels versions, of the newest 500 audits."""
    points = audit_requests.read_history(system, caller, track, kind=kind, number=number)
    told = [AuditHistoryPoint.model_validate(one) for one in points]
    body = AuditHistoryResource(track=track, kind=kind, number=number, points=told)
    return tagged(body, if_none_match)


@router.get("", response_model=AuditDetailResource, responses=refuses("audit-unknown"))
def show_audit(audit: Text, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None) -> Response:
    """An audit: what was asked for, how far it is, and what it came to."""
    return tagged(resource_builders.audit_detail(audit_requests.get(system, caller, audit)), if_none_match)


@router.get("/events", responses=refuses("audit-unknown") | EVENTS)
async def watch_audit(request: Request, audit: Text, system: Sys, caller: Caller) -> Response:
    """Progress as server-sent events, until the audit is done, failed or cancelled."""

    def look() -> AuditResource:
        return resource_builders.audit(audit_requests.get(system, caller, audit))

    return await events(request, look, lambda view: view.state in FINAL)


@router.post("/cancel", responses=refuses("audit-unknown", "audit-forbidden", "audit-over"))
def cancel_audit(audit: Text, system: Sys, caller: Caller) -> AuditDetailResource:
    """Stop an audit; what is done stays. Needs an organiser of the track. Repeating it changes nothing."""
    return resource_builders.audit_detail(audit_requests.cancel(system, caller, audit))


@router.post(
    "/parts/{number}/rerun",
    responses=refuses("audit-unknown", "audit-forbidden", "audit-over", "audit-part-unknown", "job-not-dead"),
)
def rerun_audit_part(
    audit: Text,
    number: Annotated[int, Path(ge=0, le=LARGEST_INTEGER, description="0: the gathering of the subject")],
    system: Sys,
    caller: Caller,
) -> AuditDetailResource:
    """Try a part again that was given up. Needs an organiser of the track."""
    return resource_builders.audit_detail(audit_requests.rerun(system, caller, audit, number))


REFUSES = refuses("audit-unknown", "audit-not-begun")


@router.get("/report", response_model=AuditReportResource, responses=REFUSES)
def show_audit_report(
    audit: Text, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None
) -> Response:
    """What the trials that are done say: a partial report, while some are not."""
    return tagged(
        resource_builders.audit_report(*audit_parts.read_report(system, caller, audit)), if_none_match
    )


@router.get(
    "/report.csv",
    response_class=Response,
    responses=refuses("audit-unknown", "audit-not-begun", "audit-table-unknown")
    | {200: {"content": {"text/csv": {}}}},
)
def show_audit_table(
    audit: Text,
    system: Sys,
    caller: Caller,
    table: Annotated[
        str, Query(max_length=200, description="its name; `points` is the first one, whatever its name")
    ] = "points",
    if_none_match: IfNoneMatch = None,
) -> Response:
    """A table of the report as CSV."""
    result, _ = audit_parts.read_report(system, caller, audit)
    return tagged_text(audit_parts.export_table(result, table), "text/csv", if_none_match)


@router.get(
    "/report.html", response_class=Response, responses=REFUSES | {200: {"content": {"text/html": {}}}}
)
def show_audit_page(audit: Text, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None) -> Response:
    """The report as one self-contained page for people."""
    told = resource_builders.audit_report(*audit_parts.read_report(system, caller, audit)).model_dump(
        mode="json"
    )
    drawn = page(told)
    policies = {"Content-Security-Policy": policy(drawn)}
    return tagged_text(drawn, "text/html", if_none_match, **policies)
