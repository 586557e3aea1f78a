"""Responses with strong ETags, and pages of lists with links to the next page."""

from collections.abc import Callable
from hashlib import sha256
from typing import TypeVar
from urllib.parse import urlencode

from fastapi import Request, Response
from pydantic import BaseModel

from cupel_backend.infrastructure.database import ListPage
from cupel_contract.resource_base import Resource, ResourceList

V = TypeVar("V", bound=Resource)
T = TypeVar("T")


def next_address(request: Request, cursor: str | None) -> str | None:
    """Return the address of the next page.

    It is relative to the host so that it works behind any proxy.
    """
    if cursor is None:
        return None
    others = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    return f"{request.url.path}?{urlencode([*others, ('cursor', cursor)])}"


def paged(
    request: Request, response: Response, page: ListPage[T], build: Callable[[T], V]
) -> ResourceList[V]:
    """Build a page of resources.

    The address of the next page is in the body and in the Link header.
    """
    next_page = next_address(request, page.next)
    if next_page is not None:
        response.headers["Link"] = f'<{next_page}>; rel="next"'  # RFC 8288
    return ResourceList(items=tuple(build(item) for item in page.items), next=next_page)


def matches(header: str | None, etag: str) -> bool:
    """Return whether an If-None-Match header names `etag`.

    etag: without quotes. The comparison is weak (RFC 9110).
    """
    named = [tag.strip().removeprefix("W/").strip('"') for tag in (header or "").split(",")]
    return etag in named or "*" in named


def etags_of(header: str | None) -> frozenset[str] | None:
    """Return the ETags that an If-Match header allows, or None if it allows any.

    The ETags have no quotes.

    The comparison is strong (RFC 9110): a weak tag keeps its `W/`, so it equals no ETag of the service.
    """
    named = {tag.strip() for tag in (header or "*").split(",")}
    return None if "*" in named else frozenset(tag.removeprefix('"').removesuffix('"') for tag in named)


def tagged(
    body: BaseModel, if_none_match: str | None, *, etag: str | None = None, next_page: str | None = None
) -> Response:
    """Respond with `body` and its strong ETag, or with 304 if the caller has it.

    etag: the default is the digest of `body`.
    """
    etag = etag or digest(body)
    if matches(if_none_match, etag):
        return unchanged(etag)
    headers = _tags(etag)
    if next_page is not None:
        headers["Link"] = f'<{next_page}>; rel="next"'
    return Response(body.model_dump_json(), headers=headers, media_type="application/json")


def tagged_text(text: str, media_type: str, if_none_match: str | None, **headers: str) -> Response:
    """Respond with `text` and its strong ETag, or with 304 if the caller has it."""
    etag = sha256(text.encode()).hexdigest()[:24]
    if matches(if_none_match, etag):
        return unchanged(etag)
    return Response(text, headers=_tags(etag) | headers, media_type=media_type)


def unchanged(etag: str) -> Response:
    """Respond with 304, because the caller already has the state with this ETag."""
    return Response(status_code=304, headers=_tags(etag))


def _tags(etag: str) -> dict[str, str]:
    return {"ETag": f'"{etag}"', "Cache-Control": "private, no-cache", "Vary": "Authorization"}


def digest(body: BaseModel) -> str:
    """Return the digest of a resource.

    It is the first 24 hexadecimal digits of the SHA-256 of its JSON.
    """
    return sha256(body.model_dump_json().encode()).hexdigest()[:24]
