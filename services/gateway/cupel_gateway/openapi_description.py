"""The OpenAPI description of the service.

FastAPI generates it; headers, examples and enumerations are added.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from cupel_audits import KINDS
from cupel_backend.infrastructure.settings import QUEUES
from cupel_backend.job_handlers import HANDLERS
from cupel_contract.problem_resources import ProblemDocument
from cupel_contract.resource_base import RequestBody, Resource
from cupel_contract.states import JobState
from cupel_measures.explaining.explained_parts import ABOUT
from cupel_measures.model.profiles import PROFILES

HEADERS = {
    "ETag": "tag of this state, for If-None-Match and If-Match",
    "Link": '`<address>; rel="next"` if there are more items',
    "Location": "address of the new resource",
    "Retry-After": "seconds after which the same request may succeed",
}

TEXT_EXAMPLES = {
    "healthz": "ok\n",
    "readyz": "ready\n",
    "metrics": 'cupel_requests_total{method="GET",route="/v1/tracks",status="200"} 42.0\n',
    "download_run": "101 Q0 doc-17 1 12.5 aster-bm25\n",
    "show_audit_table": "measure,ratio,tau\nAP,50,0.84\n",
    "show_audit_page": "<!doctype html>\n<title>Downsampling of judgments</title>\n...\n",
}
"""Examples of responses that are not JSON, by operation."""

EVENTS_EXAMPLE = 'retry: 1000\n\nevent: end\nid: 5f0c2a\ndata: {"id": "...", "state": "done", ...}\n\n'

AUDIT_KIND_SCHEMAS = (
    "AlertCreate",
    "AlertResource",
    "AuditDetailResource",
    "AuditHistoryResource",
    "AuditReportResource",
    "AuditRequest",
    "AuditResource",
)
"""Schemas whose field `kind` is an audit kind."""


def sends(*names: str) -> dict[str, Any]:
    """Describe a response with these headers, for `responses=` of a route."""
    return {"headers": {name: _header(name) for name in names}}


def openapi_description(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description of `app`; it is computed once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            openapi_version=app.openapi_version,
            description=app.description,
            routes=app.routes,
        )
        schemas = document["components"]["schemas"]
        problem = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(problem.pop("$defs"))
        schemas["ProblemDocument"] = problem
        _add_enumerations(schemas)
        examples = _schema_examples(schemas)
        for operation in [operation for path in document["paths"].values() for operation in path.values()]:
            _complete(operation)
            _add_parameter_enumerations(operation)
            _add_examples(operation, examples)
        app.openapi_schema = document
    return app.openapi_schema


# Headers and statuses


def _complete(operation: dict[str, Any]) -> None:
    """Add the statuses and headers that follow from the parameters of an operation."""
    responses = operation["responses"]
    parameters = {parameter["name"].lower() for parameter in operation.get("parameters", ())}
    if "security" not in operation:
        responses.pop("401", None)
    if "requestBody" not in operation:
        for status in ("408", "413"):
            responses.pop(status, None)
    if "if-none-match" in parameters:
        _add_header(responses["200"], "ETag")
        responses["304"] = {"description": "the caller already has this state", **sends("ETag")}
    if "cursor" in parameters:
        _add_header(responses["200"], "Link")
    for status in {"429", "503"} & responses.keys():
        _add_header(responses[status], "Retry-After")


def _add_header(response: dict[str, Any], name: str) -> None:
    response.setdefault("headers", {})[name] = _header(name)


def _header(name: str) -> dict[str, Any]:
    return {"description": HEADERS[name], "schema": {"type": "string"}}


# Enumerations that the libraries declare


def _add_enumerations(schemas: dict[str, Any]) -> None:
    """Enumerate the allowed values of fields in the schemas.

    The fields are the profiles, audit kinds, job kinds, queues and parts of explanations.
    """
    for schema in schemas.values():
        if "profile" in schema.get("properties", {}):
            _enumerate(schema["properties"]["profile"], PROFILES)
    for name in AUDIT_KIND_SCHEMAS:
        _enumerate(schemas[name]["properties"]["kind"], KINDS)
    _enumerate(schemas["AuditKindResource"]["properties"]["name"], KINDS)
    _enumerate(schemas["JobResource"]["properties"]["kind"], HANDLERS)
    _enumerate(schemas["JobResource"]["properties"]["queue"], QUEUES)
    _enumerate(schemas["ExplanationCreate"]["properties"]["about"]["items"], ABOUT)


def _add_parameter_enumerations(operation: dict[str, Any]) -> None:
    """Enumerate the values of query parameters that name a job state or an audit kind."""
    words: dict[str, Iterable[str]] = {"state": JobState, "kind": KINDS}
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query" and parameter["name"] in words:
            _enumerate(parameter["schema"], words[parameter["name"]])


def _enumerate(schema: dict[str, Any], words: Iterable[str]) -> None:
    """Set the allowed values of a text schema.

    If the schema may be null, the values are set in its text alternative.
    """
    text = next(option for option in schema.get("anyOf", [schema]) if option.get("type") == "string")
    text["enum"] = [str(word) for word in words]


# Examples


def _subclasses(base: type[BaseModel]) -> Iterator[Any]:
    for subclass in base.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _schema_examples(schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the example of every schema of the contract by the name of the schema."""
    examples = {
        model.__name__: model.EXAMPLE
        for base in (Resource, RequestBody)
        for model in _subclasses(base)
        if hasattr(model, "EXAMPLE")
    }
    for name in schemas:
        if match := re.fullmatch(r"ResourceList_(\w+)_", name):
            examples[name] = {"items": [examples[match[1]]], "next": None}
    return examples


def _add_examples(operation: dict[str, Any], examples: dict[str, Any]) -> None:
    """Add an example of the request body and of every successful response."""
    bodies = [operation.get("requestBody", {})]
    bodies += [response for status, response in operation["responses"].items() if status.startswith("2")]
    for body in bodies:
        for media_type, content in body.get("content", {}).items():
            schema = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            if schema in examples:
                content["example"] = examples[schema]
            elif media_type == "text/event-stream":
                content["example"] = EVENTS_EXAMPLE
            elif operation["operationId"] in TEXT_EXAMPLES:
                content["example"] = TEXT_EXAMPLES[operation["operationId"]]
