"""Refusals as problem+json (RFC 9457): one table from kinds of error to statuses, one place that answers.

The codes of the backend and of the readers are declared beside what raises them; declared here are
only those of HTTP itself.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException as AnyHTTPException

from cupel_backend.infrastructure import errors
from cupel_backend.infrastructure.errors import Code, declare
from cupel_measures.findings import Finding, Findings

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"


class Unsupported(errors.Problem): ...


class NotAllowed(errors.Problem): ...


class Slow(errors.Problem): ...


class Internal(errors.Problem): ...


class Malformed(errors.Problem): ...


STATUS: dict[type[errors.Problem], int] = {
    Malformed: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    NotAllowed: 405,
    Slow: 408,
    errors.Conflict: 409,
    errors.Stale: 412,
    errors.TooLarge: 413,
    Unsupported: 415,
    errors.Invalid: 422,
    errors.TooMany: 429,
    Internal: 500,
    errors.Unavailable: 503,
}

BODY_MALFORMED = declare(
    "body-malformed",
    Malformed,
    "the body of the request can't be parsed",
    "check its syntax and its Content-Type",
)
PATH_UNKNOWN = declare(
    "path-unknown", errors.NotFound, "there is nothing at this address", "see the paths in /openapi.json"
)
METHOD_NOT_ALLOWED = declare(
    "method-not-allowed",
    NotAllowed,
    "this address does not know the method",
    "use one named in the Allow header",
)
BODY_SLOW = declare(
    "body-slow", Slow, "the body of the request stopped arriving", "send it again over a better connection"
)
BODY_TOO_LARGE = declare(
    "body-too-large",
    errors.TooLarge,
    "the body of the request is larger than this address takes",
    "send less",
)
TYPE_UNSUPPORTED = declare(
    "content-type-unsupported",
    Unsupported,
    "the body has a type that is not read here",
    "send the type it names",
)
FORM_INVALID = declare(
    "form-invalid",
    errors.Invalid,
    "the form lacks a part, or has one twice",
    "send the parts that the detail names",
)
REQUEST_INVALID = declare(
    "request-invalid",
    errors.Invalid,
    "fields of the request can't be used",
    "correct the fields that `errors` lists",
)
FIELD_MISSING = declare("field-missing", errors.Invalid, "a required field is missing", "give it")
FIELD_UNKNOWN = declare(
    "field-unknown", errors.Invalid, "there is no such field", "leave it out, or check its name"
)
FIELD_INVALID = declare(
    "field-invalid",
    errors.Invalid,
    "a field has a value that can't be used",
    "see its schema in /openapi.json",
)
INTERNAL_ERROR = declare(
    "internal-error",
    Internal,
    "the service failed; it is not your fault",
    "report the `request_id` to the operator",
)

OF_HTTP = {400: BODY_MALFORMED, 404: PATH_UNKNOWN, 405: METHOD_NOT_ALLOWED, 413: BODY_TOO_LARGE}
OF_FIELDS = {"missing": FIELD_MISSING, "extra_forbidden": FIELD_UNKNOWN}


class ErrorItem(BaseModel):
    """One thing wrong, and where: a place in a file, or a field of the request."""

    code: str
    message: str
    remedy: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    topic: str | None = None
    field: str | None = None
    sample: str | None = None


class Problem(BaseModel):
    """A refusal (RFC 9457). `code` is stable; GET /v1/errors says what each means."""

    type: str = Field(description="reference to the code's entry in GET /v1/errors")
    title: str
    status: int
    detail: str
    instance: str = Field(description="the path that was asked for")
    code: str
    remedy: str = Field(description="what would be right")
    request_id: str = Field(description="as in X-Request-Id and in the log of the service")
    errors: list[ErrorItem] = Field(default=[], description="at most 100 of a code; `totals` counts all")
    totals: dict[str, int] = {}


class Interrupted(HTTPException):
    """A problem met while the body is read; an HTTPException because FastAPI hides any other one there."""

    def __init__(self, problem: errors.Problem) -> None:
        super().__init__(status_of(problem))
        self.problem = problem


def status_of(problem: errors.Problem) -> int:
    """The HTTP status of a problem, by the nearest kind that the table knows."""
    return status_of_kind(type(problem))


def status_of_kind(kind: type[errors.Problem]) -> int:
    """The HTTP status of a kind of problem."""
    return next((STATUS[one] for one in kind.__mro__ if one in STATUS), 500)


def described(finding: Finding) -> ErrorItem:
    """A finding of a reader as an item of a problem, or of a verdict."""
    places = {name: getattr(finding, name) for name in ("file", "line", "column", "topic", "sample")}
    return ErrorItem(code=finding.code, message=finding.message, remedy=finding.remedy, **places)


def answer(request: Request, problem: errors.Problem, items: Iterable[ErrorItem] = ()) -> JSONResponse:
    """`problem` as a response."""
    listed = [*map(described, _errors_first(problem.findings)), *items]
    body = Problem(
        type=f"/v1/errors#{problem.code}",
        title=problem.declared.meaning,
        status=status_of(problem),
        detail=problem.detail,
        instance=request.url.path,
        code=problem.code,
        remedy=problem.declared.remedy,
        request_id=request_id(request),
        errors=listed,
        totals=problem.findings.totals,
    )
    content = body.model_dump(exclude_none=True)
    return JSONResponse(printable(content), body.status, _headers(problem), MEDIA_TYPE)


def _errors_first(findings: Findings) -> list[Finding]:
    return findings.errors or findings.listed


def _headers(problem: errors.Problem) -> dict[str, str]:
    headers = {"Cache-Control": "no-store"}
    if isinstance(problem, errors.Unauthenticated):
        headers["WWW-Authenticate"] = 'Bearer realm="cupel"'
    if problem.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(problem.retry_after)))
    return headers


def printable(value: Any) -> Any:
    """`value` with every lone surrogate replaced: hostile input is quoted back, and must encode."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {key: printable(one) for key, one in value.items()}
    if isinstance(value, list):
        return [printable(one) for one in value]
    return value


def request_id(request: Request) -> str:
    """The id of this request, as the log and the `X-Request-Id` header have it."""
    return str(request.scope.get("cupel.request_id", ""))


def install(app: FastAPI) -> None:
    """Let every refusal of `app` be answered by this module."""
    app.add_exception_handler(errors.Problem, _of_problem)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(AnyHTTPException, _of_http)


async def _of_problem(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, errors.Problem)
    return answer(request, problem)


async def _of_http(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, AnyHTTPException)
    if isinstance(problem, Interrupted):
        return answer(request, problem.problem)
    code = OF_HTTP.get(problem.status_code, INTERNAL_ERROR)
    about = (
        problem.detail if code is BODY_MALFORMED else f"{request.method} {request.url.path}: {code.meaning}"
    )
    response = answer(request, code(about))
    response.headers.update(problem.headers or {})
    return response


async def _of_validation(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, RequestValidationError)
    found = problem.errors()
    if any(tuple(one["loc"]) == ("body",) and isinstance(one.get("input"), bytes) for one in found):
        return answer(request, TYPE_UNSUPPORTED("send JSON, with Content-Type: application/json"))
    if any(one["type"] == "json_invalid" for one in found):
        place = found[0]["loc"][-1]
        return answer(
            request, BODY_MALFORMED(f"the body is not JSON: {found[0]['ctx']['error']} at character {place}")
        )
    items = [_of_field(one) for one in found]
    count = f"{len(items)} field{'s' * (len(items) != 1)} of the request can't be used"
    return answer(
        request, REQUEST_INVALID(f"{count}: {'; '.join(f'{i.field}: {i.message}' for i in items[:3])}"), items
    )


def _of_field(one: Mapping[str, Any]) -> ErrorItem:
    code = OF_FIELDS.get(one["type"], FIELD_INVALID)
    sample = None if code is FIELD_MISSING else ascii(one.get("input"))[:80]
    field = ".".join(str(part) for part in one["loc"])
    return ErrorItem(code=code.code, message=one["msg"], remedy=code.remedy, field=field, sample=sample)


JSON_BODY = ("body-malformed", "content-type-unsupported")
"""What a route that reads a JSON body may answer with too."""

STORED = ("storage-failed", "content-missing", "content-damaged")
"""What a route that reads a stored file may answer with too."""

EVERYWHERE = (
    "internal-error",
    "not-ready",
    "database-busy",
    "request-invalid",
    "token-refused",
    "body-too-large",
    "body-slow",
)
"""What any route may answer with."""


def refuses(*codes: str) -> dict[int | str, dict[str, Any]]:
    """What `responses=` of a route says about the problems it may answer with: all, each with an example."""
    responses: dict[int | str, dict[str, Any]] = {}
    for code in (errors.CODES[name] for name in sorted({*EVERYWHERE, *codes})):
        status = status_of_kind(code.kind)
        response = responses.setdefault(status, {"description": "", "content": {MEDIA_TYPE: _content()}})
        response["description"] += f"- `{code.code}`: {code.meaning}\n"
        response["content"][MEDIA_TYPE]["examples"][code.code] = {
            "summary": code.meaning,
            "value": _example(code),
        }
    return responses


def _content() -> dict[str, Any]:
    return {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": {}}


def _example(code: Code) -> dict[str, Any]:
    problem = Problem(
        type=f"/v1/errors#{code.code}",
        title=code.meaning,
        status=status_of_kind(code.kind),
        detail=code.meaning,
        instance="/v1/...",
        code=code.code,
        remedy=code.remedy,
        request_id="01JD3Z7Q",
    )
    return problem.model_dump(exclude_none=True)
