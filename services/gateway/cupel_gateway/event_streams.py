"""Server-sent events: the state of one thing, again whenever it changes, until it is final."""

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

FIRST_LOOK_SECONDS = 0.1  # most submissions are scored at once, and a long wait need not cost many looks
LONGEST_LOOK_SECONDS = 1.0
# A client reconnects by itself and goes on where it was; a token that was revoked meanwhile is noticed then.
LONGEST_SECONDS = 600.0
RETRY_MILLISECONDS = 1000

EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "events `change`, the last one `end`, with the whole state as data",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    204: {"description": "Last-Event-ID was the end: there is nothing more to come"},
}
"""What `responses=` of a route says about its stream."""

S = TypeVar("S", bound=BaseModel)


async def events(request: Request, look: Callable[[], S], final: Callable[[S], bool]) -> Response:
    """Answer with a stream of `look()`: one event `change` per new state, the last one called `end`.

    An event's id is the digest of its data. A client that comes back with Last-Event-ID is sent
    nothing that it has; one that has seen the end gets 204, which tells it to stay away. Problems of
    the first look are ordinary answers; later ones are an event `problem`.
    """
    first = await in_thread(look)
    seen = request.headers.get("last-event-id", "")
    if final(first) and seen == digest(first):
        return Response(status_code=204)
    stream = _stream(request, first, look, final, seen)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def _stream(
    request: Request, state: S, look: Callable[[], S], final: Callable[[S], bool], seen: str
) -> AsyncIterator[str]:
    began = spoke = monotonic()
    pause = FIRST_LOOK_SECONDS
    yield f"retry: {RETRY_MILLISECONDS}\n\n"
    while True:
        if (current := digest(state)) != seen:
            yield _event("end" if final(state) else "change", state.model_dump_json(), current)
            seen, spoke, pause = current, monotonic(), FIRST_LOOK_SECONDS
        if final(state) or monotonic() - began > LONGEST_SECONDS or request.app.state.stopping():
            return
        if monotonic() - spoke > request.app.state.heartbeat_seconds:
            yield ": still here\n\n"
            spoke = monotonic()
        await anyio.sleep(pause)
        pause = min(1.3 * pause, LONGEST_LOOK_SECONDS)
        try:
            state = await in_thread(look)
        except Problem as problem:
            said = {"code": problem.code, "detail": problem.detail, "status": status_of(problem)}
            yield _event("problem", json.dumps(said))
            return


def _event(name: str, data: str, identity: str | None = None) -> str:
    return f"event: {name}\n" + (f"id: {identity}\n" if identity else "") + f"data: {data}\n\n"
