"""What a request brings: the service, the caller, and the parameters that many routes share."""

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
    auto_error=False, scheme_name="token", description="`cupel_...`, as `POST /v1/tokens` gives it"
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

Text = Annotated[str, Path(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")]
Number = Annotated[int, Path(ge=1, le=LARGEST_INTEGER)]
MeasureText = Annotated[str | None, Query(max_length=1000, pattern=r"^[^\x00-\x1f]+$", examples=["nDCG@10"])]
Measures = Annotated[list[str], Query(max_length=MAX_MEASURES, examples=[["nDCG@10", "AP"]])]
QrelsNumber = Annotated[
    int | None, Query(ge=1, le=LARGEST_INTEGER, description="default: the current version")
]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="the same key with the same content returns the earlier answer and changes nothing; "
        f"1 to {MAX_LENGTH} printable characters",
    ),
]
IfNoneMatch = Annotated[str | None, Header(max_length=2000)]


class ListQuery:
    """Which part of a list is asked for."""

    def __init__(
        self,
        limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE)] = 50,
        cursor: Annotated[str | None, Query(pattern=r"^[\x21-\x7e]{1,200}$")] = None,
    ) -> None:
        self.limit = limit
        self.cursor = cursor


Asked = Annotated[ListQuery, Depends()]


async def in_thread(call: Callable[[], T], limiter: anyio.CapacityLimiter | None = None) -> T:
    """Run a call into the backend, which is all sync, off the event loop."""
    return await anyio.to_thread.run_sync(call, limiter=limiter)
