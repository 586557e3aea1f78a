"""Responses to refused and failed requests, and their OpenAPI description.

The responses are problem+json (RFC 9457).
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as AnyHTTPException

from cupel_backend.infrastructure.errors import Problem, Unauthenticated, refusal
from cupel_contract.error_codes import ERROR_CODES, ErrorCode, ProblemKind
from cupel_contract.problem_resources import ErrorItem, ProblemDocument
from cupel_gateway.resource_builders import error_item
from cupel_measures.findings import Finding, Findings

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

HTTP_STATUS = {
    ProblemKind.MALFORMED: 400,
    ProblemKind.UNAUTHENTICATED: 401,
    ProblemKind.FORBIDDEN: 403,
    ProblemKind.NOT_FOUND: 404,
    ProblemKind.METHOD_NOT_ALLOWED: 405,
    ProblemKind.TIMED_OUT: 408,
    ProblemKind.CONFLICT: 409,
    ProblemKind.STALE: 412,
    ProblemKind.TOO_LARGE: 413,
    ProblemKind.UNSUPPORTED: 415,
    ProblemKind.INVALID: 422,
    ProblemKind.TOO_MANY: 429,
    ProblemKind.INTERNAL: 500,
    ProblemKind.UNAVAILABLE: 503,
}

BODY_MALFORMED = refusal("body-malformed")
PATH_UNKNOWN = refusal("path-unknown")
METHOD_NOT_ALLOWED = refusal("method-not-allowed")
BODY_SLOW = refusal("body-slow")
BODY_TOO_LARGE = refusal("body-too-large")
TYPE_UNSUPPORTED = refusal("content-type-unsupported")
FORM_INVALID = refusal("form-invalid")
REQUEST_INVALID = refusal("request-invalid")
INTERNAL_ERROR = refusal("internal-error")

REFUSAL_OF_STATUS = {400: BODY_MALFORMED, 404: PATH_UNKNOWN, 405: METHOD_NOT_ALLOWED, 413: BODY_TOO_LARGE}
FIELD_CODES = {"missing": "field-missing", "extra_forbidden": "field-unknown"}
"""Pydantic's error type -> error code. All other types have the code `field-invalid`."""


class Interrupted(HTTPException):
    """A problem while the body is read.

    FastAPI hides all exceptions from reading except HTTPException.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(status_of(problem))
        self.problem = problem


def status_of(problem: Problem) -> int:
    """Return the HTTP status of a problem."""
    return HTTP_STATUS[problem.declared.kind]


def problem_response(request: Request, problem: Problem, items: Iterable[ErrorItem] = ()) -> JSONResponse:
    """Build the response to a refused request.

    items: errors to list after the findings of the problem.
    """
    document = ProblemDocument(
        type=f"/v1/errors#{problem.code}",
        title=problem.declared.meaning,
        status=status_of(problem),
        detail=problem.detail,
        instance=request.url.path,
        code=problem.code,
        remedy=problem.declared.remedy,
        request_id=request_id(request),
        errors=[*map(error_item, _errors_or_all(problem.findings)), *items],
        totals=problem.findings.totals,
    )
    content = document.model_dump(exclude_none=True)
    return JSONResponse(encodable(content), document.status, _headers(problem), MEDIA_TYPE)


def _errors_or_all(findings: Findings) -> list[Finding]:
    return findings.errors or findings.listed


def _headers(problem: Problem) -> dict[str, str]:
    headers = {"Cache-Control": "no-store"}
    if isinstance(problem, Unauthenticated):
        headers["WWW-Authenticate"] = 'Bearer realm="cupel"'
    if problem.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(problem.retry_after)))
    return headers


def encodable(value: Any) -> Any:
    """Replace lone surrogates in `value`.

    Problems quote any input, and UTF-8 cannot encode surrogates.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {key: encodable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [encodable(item) for item in value]
    return value


def request_id(request: Request) -> str:
    """Return the id of a request, as in the log and in the `X-Request-Id` header."""
    return str(request.scope.get("cupel.request_id", ""))


def install(app: FastAPI) -> None:
    """Register the exception handlers of this module."""
    app.add_exception_handler(Problem, _handle_problem)
    app.add_exception_handler(RequestValidationError, _handle_invalid_request)
    app.add_exception_handler(AnyHTTPException, _handle_http_exception)


async def _handle_problem(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, Problem)
    return problem_response(request, problem)


async def _handle_http_exception(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, AnyHTTPException)
    if isinstance(problem, Interrupted):
        return problem_response(request, problem.problem)
    refuse = REFUSAL_OF_STATUS.get(problem.status_code, INTERNAL_ERROR)
    detail = f"{request.method} {request.url.path}: {refuse.declared.meaning}"
    response = problem_response(request, refuse(problem.detail if refuse is BODY_MALFORMED else detail))
    response.headers.update(problem.headers or {})
    return response


async def _handle_invalid_request(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, RequestValidationError)
    errors = problem.errors()
    if any(tuple(error["loc"]) == ("body",) and isinstance(error.get("input"), bytes) for error in errors):
        return problem_response(request, TYPE_UNSUPPORTED("send JSON, with Content-Type: application/json"))
    if any(error["type"] == "json_invalid" for error in errors):
        reason, position = errors[0]["ctx"]["error"], errors[0]["loc"][-1]
        detail = f"the body is not JSON: {reason} at character {position}"
        return problem_response(request, BODY_MALFORMED(detail))
    items = [_field_item(error) for error in errors]
    count = f"{len(items)} invalid field{'s' * (len(items) != 1)}"
    first = "; ".join(f"{item.field}: {item.message}" for item in items[:3])
    return problem_response(request, REQUEST_INVALID(f"{count}: {first}"), items)


def _field_item(error: Mapping[str, Any]) -> ErrorItem:
    declared = ERROR_CODES[FIELD_CODES.get(error["type"], "field-invalid")]
    sample = None if declared.code == "field-missing" else ascii(error.get("input"))[:80]
    field = ".".join(map(str, error["loc"]))
    return ErrorItem(
        code=declared.code, message=error["msg"], remedy=declared.remedy, field=field, sample=sample
    )


JSON_BODY = ("body-malformed", "content-type-unsupported")
"""Error codes of operations that read a JSON body."""

STORED = ("storage-failed", "content-missing", "content-damaged")
"""Error codes of operations that read a stored file."""

EVERYWHERE = (
    "internal-error",
    "not-ready",
    "database-busy",
    "request-invalid",
    "token-refused",
    "body-too-large",
    "body-slow",
)
"""Error codes of every operation."""


def refuses(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Describe the problems of an operation for its `responses=`.

    The description has an example of each code.
    """
    responses: dict[int | str, dict[str, Any]] = {}
    for declared in (ERROR_CODES[code] for code in sorted({*EVERYWHERE, *codes})):
        status = HTTP_STATUS[declared.kind]
        response = responses.setdefault(status, {"description": "", "content": {MEDIA_TYPE: _content()}})
        response["description"] += f"- `{declared.code}`: {declared.meaning}\n"
        example = {"summary": declared.meaning, "value": _example(declared)}
        response["content"][MEDIA_TYPE]["examples"][declared.code] = example
    return responses


def _content() -> dict[str, Any]:
    return {"schema": {"$ref": "#/components/schemas/ProblemDocument"}, "examples": {}}


def _example(declared: ErrorCode) -> dict[str, Any]:
    document = ProblemDocument(
        type=f"/v1/errors#{declared.code}",
        title=declared.meaning,
        status=HTTP_STATUS[declared.kind],
        detail=declared.meaning,
        instance="/v1/...",
        code=declared.code,
        remedy=declared.remedy,
        request_id="01JD3Z7Q",
    )
    return document.model_dump(exclude_none=True)
