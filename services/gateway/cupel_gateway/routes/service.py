"""What the service is, what it measures, what its codes mean, and whether it is well."""

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from cupel_backend import errors
from cupel_gateway import __version__, models
from cupel_gateway.answering import tagged
from cupel_gateway.asking import Caller, IfNoneMatch, Sys
from cupel_gateway.problems import refuses
from cupel_measures import grammar
from cupel_measures.evaluating import SCORING_VERSION
from cupel_measures.findings import KINDS
from cupel_measures.profiles import PROFILES
from cupel_measures.registry import DECLARATIONS
from cupel_measures.syntax import MeasureError

public = APIRouter(prefix="/v1", tags=["service"])
health = APIRouter(tags=["health"])


@public.get("", responses=refuses())
def show_service(system: Sys) -> models.Service:
    """Version, profiles, limits, and where things are. Needs no token."""
    settings = system.settings
    return models.Service(
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
def show_caller(caller: Caller) -> models.Caller:
    """The team and scope that the token stands for."""
    return models.Caller.model_validate(caller)


@public.get("/errors", response_model=models.ListOf[models.ErrorKind], responses=refuses())
def list_errors(if_none_match: IfNoneMatch = None) -> Response:
    """Every code of problems and findings: what it means, what would be right. Needs no token."""
    problems = [models.ErrorKind.of(code) for code in errors.CODES.values()]
    findings = [models.ErrorKind.of(kind) for kind in KINDS.values()]
    items = sorted(problems + findings, key=lambda one: one.code)
    return tagged(models.ListOf[models.ErrorKind](items=items), if_none_match)


@public.get("/measures", response_model=models.ListOf[models.Measure], responses=refuses())
def list_measures(if_none_match: IfNoneMatch = None) -> Response:
    """Every declared measure with its parameters. Needs no token."""
    items = [models.Measure.of(declared) for _, declared in sorted(DECLARATIONS.items())]
    return tagged(models.ListOf[models.Measure](items=items), if_none_match)


@public.get("/measures/{text:path}", responses=refuses("measure-invalid"))
def read_measure(text: str) -> models.ReadMeasure:
    """A measure's text as understood here: its canonical form and documentation. Needs no token."""
    try:
        return models.ReadMeasure.of(grammar.parse(text))
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
