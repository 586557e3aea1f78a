"""Server-sent events about the state of a resource.

The state is sent whenever it changes, until it is final.
"""

import json
from collections.abc import AsyncIterator, Callable
from time import monotonic
from typing import Any, TypeVar

import anyio
from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from cupel_backend.infrastructure.errors import Problem
from cupel_gateway.dependencies import in_thread
from cupel_gateway.problem_responses import status_of
from cupel_gateway.responses import digest

# Polling is fast at first, because most submissions are scored immediately, and slower later.
FIRST_POLL_SECONDS = 0.1
MAX_POLL_SECONDS = 1.0
# Clients reconnect by themselves. The service then checks their tokens again.
MAX_STREAM_SECONDS = 600.0
RETRY_MILLISECONDS = 1000

EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "an event `change` for every new state, then `end` for the final state; "
        "the data of an event is the whole resource",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    204: {"description": "the caller has already seen the final state (`Last-Event-ID`)"},
}
"""Description of an event stream, for `responses=` of a route."""

S = TypeVar("S", bound=BaseModel)


async def event_stream(request: Request, read: Callable[[], S], is_final: Callable[[S], bool]) -> Response:
    """Stream the states that `read` returns.

    An event `change` is sent for each new state, then `end`.

    The id of an event is the digest of its data. A client that reconnects with Last-Event-ID gets only
    newer states. If it has seen the final state, the status is 204, so that it stops reconnecting. A problem
    of the first read is an ordinary response; a problem of a later read is an event `problem`.
    """
    first = await in_thread(read)
    seen = request.headers.get("last-event-id", "")
    if is_final(first) and seen == digest(first):
        return Response(status_code=204)
    stream = _states(request, first, read, is_final, seen)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def _states(
    request: Request, state: S, read: Callable[[], S], is_final: Callable[[S], bool], seen: str
) -> AsyncIterator[str]:
    started = last_sent = monotonic()
    pause = FIRST_POLL_SECONDS
    yield f"retry: {RETRY_MILLISECONDS}\n\n"
    while True:
        if (current := digest(state)) != seen:
            yield _event("end" if is_final(state) else "change", state.model_dump_json(), current)
            seen, last_sent, pause = current, monotonic(), FIRST_POLL_SECONDS
        is_over = monotonic() - started > MAX_STREAM_SECONDS or request.app.state.stopping()
        if is_final(state) or is_over:
            return
        if monotonic() - last_sent > request.app.state.heartbeat_seconds:
            yield ": heartbeat\n\n"
            last_sent = monotonic()
        await anyio.sleep(pause)
        pause = min(1.3 * pause, MAX_POLL_SECONDS)
        try:
            state = await in_thread(read)
        except Problem as problem:
            data = {"code": problem.code, "detail": problem.detail, "status": status_of(problem)}
            yield _event("problem", json.dumps(data))
            return


def _event(name: str, data: str, identity: str | None = None) -> str:
    return f"event: {name}\n" + (f"id: {identity}\n" if identity else "") + f"data: {data}\n\n"
