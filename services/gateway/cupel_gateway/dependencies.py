"""Dependencies of the routes.

They are the service, the caller, and parameters that many routes share.
"""

from collections.abc import Callable
from typing import Annotated, TypeVar

import anyio.to_thread
from fastapi import Depends, Header, Path, Query, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from cupel_backend import access
from cupel_backend.access import Principal
from cupel_backend.idempotency_keys import MAX_LENGTH
from cupel_backend.infrastructure.database import LARGEST_PAGE
from cupel_backend.infrastructure.system import System
from cupel_backend.tracks import MAX_MEASURES
from cupel_contract.resource_base import LARGEST_INTEGER

T = TypeVar("T")

bearer = HTTPBearer(
    auto_error=False, scheme_name="token", description="a token (`cupel_...`) from `POST /v1/tokens`"
)


def _system(request: Request) -> System:
    system: System = request.app.state.system
    return system


Sys = Annotated[System, Depends(_system)]


def _caller(
    request: Request, system: Sys, sent: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]
) -> Principal:
    principal = access.authenticate(system, sent.credentials if sent else "")
    request.scope["cupel.principal"] = principal
    return principal


Caller = Annotated[Principal, Depends(_caller)]

PathText = Annotated[str, Path(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")]
VersionNumber = Annotated[int, Path(ge=1, le=LARGEST_INTEGER)]
MeasureText = Annotated[str | None, Query(max_length=1000, pattern=r"^[^\x00-\x1f]+$", examples=["nDCG@10"])]
Measures = Annotated[list[str], Query(max_length=MAX_MEASURES, examples=[["nDCG@10", "AP"]])]
QrelsNumber = Annotated[
    int | None,
    Query(ge=1, le=LARGEST_INTEGER, description="number of a qrels version; default: the current one"),
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="a repeated request with the same key and content returns the first response and "
        f"changes nothing; 1 to {MAX_LENGTH} printable characters",
    ),
]
IfNoneMatch = Annotated[
    str | None,
    Header(
        max_length=2000,
        description="ETags of cached responses; the response is 304 if one of them is current",
    ),
]


class ListQuery:
    """The page of a list that a request asks for."""

    def __init__(
        self,
        limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="number of items per page")] = 50,
        cursor: Annotated[
            str | None,
            Query(
                pattern=r"^[\x21-\x7e]{1,200}$",
                description="cursor of the page, from `next` of the previous page",
            ),
        ] = None,
    ) -> None:
        self.limit = limit
        self.cursor = cursor


Window = Annotated[ListQuery, Depends()]


async def in_thread(call: Callable[[], T], limiter: anyio.CapacityLimiter | None = None) -> T:
    """Run a blocking call into the backend in a worker thread."""
    return await anyio.to_thread.run_sync(call, limiter=limiter)
