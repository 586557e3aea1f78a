"""Routes of audits and their reports."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from cupel_audits import KINDS
from cupel_backend.audits import audit_parts, audit_requests
from cupel_backend.infrastructure.errors import refusal
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
from cupel_contract.states import FINAL_AUDIT_STATES
from cupel_gateway import resource_builders
from cupel_gateway.dependencies import Caller, IfNoneMatch, PathText, Sys, Window
from cupel_gateway.event_streams import EVENTS, event_stream
from cupel_gateway.openapi_description import sends
from cupel_gateway.problem_responses import JSON_BODY, STORED, refuses
from cupel_gateway.responses import paged, tagged, tagged_text
from cupel_reports import missing_packages, page, policy

public = APIRouter(prefix="/v1/audits", tags=["audits"])
track_router = APIRouter(prefix="/v1/tracks/{track}/audits", tags=["audits"])
router = APIRouter(prefix="/v1/audits/{audit}", tags=["audits"])

PAGE_UNAVAILABLE = refusal("audit-page-unavailable")

Word = Annotated[str, Field(max_length=1000)]
Id = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f]*$")]
Name = Annotated[str, Query(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f]+$")]
KindName = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00-\x1f]+$", examples=["downsampling"])]


@public.get("/kinds", response_model=ResourceList[AuditKindResource], responses=refuses())
def list_audit_kinds(if_none_match: IfNoneMatch = None) -> Response:
    """List the audit kinds with their questions and parameters. Requires no token."""
    items = [resource_builders.audit_kind(kind) for kind in KINDS.values()]
    return tagged(ResourceList[AuditKindResource](items=items), if_none_match)


@track_router.post(
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
    track: PathText, body: AuditRequest, response: Response, system: Sys, caller: Caller
) -> AuditDetailResource:
    """Request an audit of a track.

    Jobs compute it. Requires an organiser of the track.
    """
    view = audit_requests.request(system, caller, track, **body.model_dump())
    audit = resource_builders.audit_detail(view)
    response.headers["Location"] = audit.links["self"]
    return audit


@track_router.get("", responses=refuses("track-unknown", "cursor-unknown"))
def list_audits(
    request: Request,
    response: Response,
    track: PathText,
    system: Sys,
    caller: Caller,
    window: Window,
    kind: KindName = None,
) -> ResourceList[AuditResource]:
    """List the audits of a track, newest first, optionally of one kind."""
    page = audit_requests.list_(system, caller, track, kind=kind, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, resource_builders.audit)


@track_router.get("/history", response_model=AuditHistoryResource, responses=refuses("track-unknown"))
def show_audit_history(
    track: PathText, kind: Name, number: Name, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None
) -> Response:
    """Return the values of a number in the newest 500 audits of a kind, oldest first."""
    views = audit_requests.read_history(system, caller, track, kind=kind, number=number)
    points = tuple(AuditHistoryPoint.model_validate(view) for view in views)
    history = AuditHistoryResource(track=track, kind=kind, number=number, points=points)
    return tagged(history, if_none_match)


@router.get("", response_model=AuditDetailResource, responses=refuses("audit-unknown"))
def show_audit(audit: PathText, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None) -> Response:
    """Return an audit: its request, its progress and its result."""
    return tagged(resource_builders.audit_detail(audit_requests.get(system, caller, audit)), if_none_match)


@router.get("/events", response_class=Response, responses=refuses("audit-unknown") | EVENTS)
async def watch_audit(request: Request, audit: PathText, system: Sys, caller: Caller) -> Response:
    """Stream the states of an audit as server-sent events.

    The stream ends when the audit is done, failed or cancelled.
    """

    def read() -> AuditResource:
        return resource_builders.audit(audit_requests.get(system, caller, audit))

    return await event_stream(request, read, lambda audit: audit.state in FINAL_AUDIT_STATES)


@router.post("/cancel", responses=refuses("audit-unknown", "audit-forbidden", "audit-over"))
def cancel_audit(audit: PathText, system: Sys, caller: Caller) -> AuditDetailResource:
    """Cancel an audit. Finished trials are kept. Requires an organiser of the track.

    Repeating the request changes nothing.
    """
    return resource_builders.audit_detail(audit_requests.cancel(system, caller, audit))


@router.post(
    "/parts/{number}/rerun",
    responses=refuses("audit-unknown", "audit-forbidden", "audit-over", "audit-part-unknown", "job-not-dead"),
)
def rerun_audit_part(
    audit: PathText,
    number: Annotated[
        int,
        Path(
            ge=0,
            le=LARGEST_INTEGER,
            description="number of the part; part 0 gathers the runs and judgments",
        ),
    ],
    system: Sys,
    caller: Caller,
) -> AuditDetailResource:
    """Queue a failed part of an audit again. Requires an organiser of the track."""
    return resource_builders.audit_detail(audit_requests.rerun(system, caller, audit, number))


REFUSES = refuses("audit-unknown", "audit-not-begun")


@router.get("/report", response_model=AuditReportResource, responses=REFUSES)
def show_audit_report(
    audit: PathText, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None
) -> Response:
    """Return the report on the finished trials.

    The report is partial until all trials are finished.
    """
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
    audit: PathText,
    system: Sys,
    caller: Caller,
    table: Annotated[
        str,
        Query(
            max_length=200,
            description="name of the table; `points` selects the first table if no table has this name",
        ),
    ] = "points",
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Return a table of the report as CSV."""
    result, _ = audit_parts.read_report(system, caller, audit)
    return tagged_text(audit_parts.export_table(result, table), "text/csv", if_none_match)


@router.get(
    "/report.html",
    response_class=Response,
    responses=refuses("audit-unknown", "audit-not-begun", "audit-page-unavailable")
    | {200: {"content": {"text/html": {}}}},
)
def show_audit_page(
    audit: PathText, system: Sys, caller: Caller, if_none_match: IfNoneMatch = None
) -> Response:
    """Return the report as a self-contained HTML page."""
    report = resource_builders.audit_report(*audit_parts.read_report(system, caller, audit))
    if missing := missing_packages():
        raise PAGE_UNAVAILABLE(f"the page needs {' and '.join(missing)}; operators: run `make setup`")
    html = page(report.model_dump(mode="json"))
    policies = {"Content-Security-Policy": policy(html)}
    return tagged_text(html, "text/html", if_none_match, **policies)
