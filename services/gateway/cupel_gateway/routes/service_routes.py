"""Routes of the service: version, error codes, measures, health and metrics."""

from operator import attrgetter

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from cupel_backend.tracks import MEASURE_INVALID
from cupel_contract.error_codes import ERROR_CODES
from cupel_contract.measure_resources import MeasureResource, ParsedMeasureResource
from cupel_contract.problem_resources import ErrorCodeResource
from cupel_contract.resource_base import ResourceList
from cupel_contract.service_resources import CallerResource, ServiceResource
from cupel_gateway import __version__, resource_builders
from cupel_gateway.dependencies import Caller, IfNoneMatch, Sys
from cupel_gateway.problem_responses import HTTP_STATUS, refuses
from cupel_gateway.responses import tagged
from cupel_measures.catalogue import parser
from cupel_measures.findings import KINDS
from cupel_measures.grammar.registry import DECLARATIONS
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model.profiles import PROFILES
from cupel_measures.scoring.evaluator import SCORING_VERSION

public = APIRouter(prefix="/v1", tags=["service"])
health = APIRouter(tags=["health"])


@public.get("", responses=refuses())
def show_service(system: Sys) -> ServiceResource:
    """Return version, profiles, limits and links of the service. Requires no token."""
    settings = system.settings
    return ServiceResource(
        version=__version__,
        scoring_version=SCORING_VERSION,
        profiles={profile.name: profile.meaning for profile in PROFILES.values()},
        limits={
            "upload_bytes": settings.upload_megabytes << 20,
            "expanded_bytes": settings.expanded_megabytes << 20,
            "open_submissions": settings.open_submissions,
        },
        links={
            "tracks": "/v1/tracks",
            "measures": "/v1/measures",
            "errors": "/v1/errors",
            "openapi": "/openapi.json",
        },
    )


@public.get("/me", responses=refuses())
def show_caller(caller: Caller) -> CallerResource:
    """Return the team and scope of the token."""
    return CallerResource.model_validate(caller)


@public.get("/errors", response_model=ResourceList[ErrorCodeResource], responses=refuses())
def list_errors(if_none_match: IfNoneMatch = None) -> Response:
    """List every error code with its meaning and remedy. Requires no token."""
    problems = [
        resource_builders.problem_code(declared, HTTP_STATUS[declared.kind])
        for declared in ERROR_CODES.values()
    ]
    findings = [resource_builders.finding_code(declared) for declared in KINDS.values()]
    items = sorted(problems + findings, key=attrgetter("code"))
    return tagged(ResourceList[ErrorCodeResource](items=tuple(items)), if_none_match)


@public.get("/measures", response_model=ResourceList[MeasureResource], responses=refuses())
def list_measures(if_none_match: IfNoneMatch = None) -> Response:
    """List every measure with its parameters. Requires no token."""
    items = [resource_builders.measure(declared) for _, declared in sorted(DECLARATIONS.items())]
    return tagged(ResourceList[MeasureResource](items=items), if_none_match)


@public.get("/measures/{text:path}", responses=refuses("measure-invalid"))
def read_measure(text: str) -> ParsedMeasureResource:
    """Parse the text of a measure; return its canonical form and documentation.

    Requires no token.
    """
    try:
        return resource_builders.parsed_measure(parser.parse(text))
    except MeasureError as problem:
        raise MEASURE_INVALID(str(problem)) from None


@health.get("/healthz", response_class=PlainTextResponse)
async def healthz() -> str:
    """Check that the process responds.

    The check waits for neither a thread nor the database.
    """
    return "ok\n"


@health.get("/readyz", response_class=PlainTextResponse, responses=refuses())
def readyz(system: Sys) -> str:
    """Check that the database and the object store are usable."""
    system.ready()
    return "ready\n"


@health.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def metrics(system: Sys) -> Response:
    """Return Prometheus metrics of all processes that share the data folder."""
    return Response(system.metrics.exposition(system), media_type=system.metrics.content_type)
