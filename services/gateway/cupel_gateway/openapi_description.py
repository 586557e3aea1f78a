"""The OpenAPI description: what FastAPI says, completed by what follows from the shape of an operation."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from cupel_contract.problem_resources import ProblemDocument

HEADERS = {
    "ETag": "the name of this state, for If-None-Match and If-Match",
    "Link": '`<address>; rel="next"`, where more items follow',
    "Location": "the address of what was made, or is being made",
    "Retry-After": "seconds after which the same request may succeed, where waiting helps",
}


def sends(*names: str) -> dict[str, Any]:
    """What `responses=` of a route says about an answer that carries these headers."""
    return {"headers": {name: _header(name) for name in names}}


def described(app: FastAPI) -> dict[str, Any]:
    """The description of `app`, made once."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            openapi_version=app.openapi_version,
            description=app.description,
            routes=app.routes,
        )
        model = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas = schema["components"]["schemas"]
        schemas.update(model.pop("$defs"))
        schemas["ProblemDocument"] = model
        for operation in [one for path in schema["paths"].values() for one in path.values()]:
            _complete(operation)
        app.openapi_schema = schema
    return app.openapi_schema


def _complete(operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    taken = {one["name"].lower() for one in operation.get("parameters", ())}
    if "security" not in operation:
        responses.pop("401", None)
    if "requestBody" not in operation:
        for status in ("408", "413"):
            responses.pop(status, None)
    if "if-none-match" in taken:
        _tell(responses["200"], "ETag")
        responses["304"] = {"description": "the caller has this state already", **sends("ETag")}
    if "cursor" in taken:
        _tell(responses["200"], "Link")
    for status in {"429", "503"} & responses.keys():
        _tell(responses[status], "Retry-After")


def _tell(response: dict[str, Any], name: str) -> None:
    response.setdefault("headers", {})[name] = _header(name)


def _header(name: str) -> dict[str, Any]:
    return {"description": HEADERS[name], "schema": {"type": "string"}}
