"""What the service is, what it measures, what its codes mean, and whether it is well."""

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from cupel_backend.infrastructure import errors
from cupel_gateway import __version__, response_models
from cupel_gateway.dependencies import Caller, IfNoneMatch, Sys
from cupel_gateway.problem_responses import refuses
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
def show_service(system: Sys) -> response_models.Service:
    """Version, profiles, limits, and where things are. Needs no token."""
    settings = system.settings
    return response_models.Service(
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
def show_caller(caller: Caller) -> response_models.Caller:
    """The team and scope that the token stands for."""
    return response_models.Caller.model_validate(caller)


@public.get("/errors", response_model=response_models.ListOf[response_models.ErrorKind], responses=refuses())
def list_errors(if_none_match: IfNoneMatch = None) -> Response:
    """Every code of problems and findings: what it means, what would be right. Needs no token."""
    problems = [response_models.ErrorKind.of(code) for code in errors.CODES.values()]
    findings = [response_models.ErrorKind.of(kind) for kind in KINDS.values()]
    items = sorted(problems + findings, key=lambda one: one.code)
    return tagged(response_models.ListOf[response_models.ErrorKind](items=items), if_none_match)


@public.get("/measures", response_model=response_models.ListOf[response_models.Measure], responses=refuses())
def list_measures(if_none_match: IfNoneMatch = None) -> Response:
    """Every declared measure with its parameters. Needs no token."""
    items = [response_models.Measure.of(declared) for _, declared in sorted(DECLARATIONS.items())]
    return tagged(response_models.ListOf[response_models.Measure](items=items), if_none_match)


@public.get("/measures/{text:path}", responses=refuses("measure-invalid"))
def read_measure(text: str) -> response_models.ReadMeasure:
    """A measure's text as understood here: its canonical form and documentation. Needs no token."""
    try:
        return response_models.ReadMeasure.of(parser.parse(text))
    except MeasureError as problem:
        raise errors.CODES["measure-invalid"](str(problem)) from None


@health.get("/healthz", response_class=PlainTextResponse)
async def healthz() -> str:
    """Whether this process answers: waits for no thread and no database."""
    return "ok\n"


@health.get("/readyz", response_class=PlainTextResponse, responses=refuses())
def readyz(system: Sys) -> str:
    """Whether the database and the blobs can be used."""
    system.ready()
    return "ready\n"


@health.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def metrics(system: Sys) -> Response:
    """Prometheus metrics of all processes that share the data folder."""
    return Response(system.metrics.exposition(system), media_type=system.metrics.content_type)
