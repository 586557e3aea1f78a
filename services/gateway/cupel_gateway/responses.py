"""How answers are shaped: pages with the way to the next one, strong ETags."""

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
    """This list's address with `cursor` in place: relative, so that it holds behind any proxy."""
    if cursor is None:
        return None
    others = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    return f"{request.url.path}?{urlencode([*others, ('cursor', cursor)])}"


def paged(
    request: Request, response: Response, page: ListPage[T], shape: Callable[[T], V]
) -> ResourceList[V]:
    """A page of a list, each item shaped, with the way to the next page."""
    following = next_address(request, page.next)
    if following is not None:
        response.headers["Link"] = f'<{following}>; rel="next"'  # RFC 8288
    return ResourceList(items=tuple(shape(item) for item in page.items), next=following)


def matches(header: str | None, etag: str) -> bool:
    """Whether an If-None-Match header names `etag` (given without quotes), by weak comparison (RFC 9110)."""
    named = [one.strip().removeprefix("W/").strip('"') for one in (header or "").split(",")]
    return etag in named or "*" in named


def demanded(header: str | None) -> frozenset[str] | None:
    """The ETags that an If-Match header allows, without quotes; None where any will do.

    The comparison is strong (RFC 9110): a weak tag keeps its `W/`, and so is equal to none of ours.
    """
    named = {one.strip() for one in (header or "*").split(",")}
    return None if "*" in named else frozenset(one.removeprefix('"').removesuffix('"') for one in named)


def tagged(
    body: BaseModel, wanted: str | None, *, etag: str | None = None, following: str | None = None
) -> Response:
    """`body` under its strong ETag (default: its digest), or 304 where the caller has it already."""
    etag = etag or digest(body)
    if matches(wanted, etag):
        return unchanged(etag)
    headers = _tags(etag)
    if following is not None:
        headers["Link"] = f'<{following}>; rel="next"'
    return Response(body.model_dump_json(), headers=headers, media_type="application/json")


def tagged_text(text: str, kind: str, wanted: str | None, **headers: str) -> Response:
    """`text` of a media type under its strong ETag, or 304 where the caller has it already."""
    etag = sha256(text.encode()).hexdigest()[:24]
    if matches(wanted, etag):
        return unchanged(etag)
    return Response(text, headers=_tags(etag) | headers, media_type=kind)


def unchanged(etag: str) -> Response:
    """304: the caller has the state called `etag`."""
    return Response(status_code=304, headers=_tags(etag))


def _tags(etag: str) -> dict[str, str]:
    return {"ETag": f'"{etag}"', "Cache-Control": "private, no-cache", "Vary": "Authorization"}


def digest(body: BaseModel) -> str:
    """A short name of the state that `body` shows: equal for equal states only."""
    return sha256(body.model_dump_json().encode()).hexdigest()[:24]
