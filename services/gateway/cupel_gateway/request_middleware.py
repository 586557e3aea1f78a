"""Middleware that handles every request.

It provides request ids, limits on request bodies, metrics, and one log line per request.
"""

import asyncio
import json
import logging
import re
from time import perf_counter
from typing import Any
from uuid import uuid4

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cupel_backend.infrastructure.system import NOT_READY, System
from cupel_gateway.problem_responses import (
    BODY_SLOW,
    BODY_TOO_LARGE,
    INTERNAL_ERROR,
    Interrupted,
    problem_response,
)

log = logging.getLogger("cupel.gateway")

SAFE_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}")
SMALL = 1 << 20
IDLE_SECONDS = 30.0
RESTART_SECONDS = 5.0
STREAMS = ("/events", "/file")  # long responses, which HEAD does not support
CLIENT_GONE = 499  # nginx's status for a client that disconnected before the response


class Body:
    """The body of a request as it arrives.

    It is refused if it exceeds `limit` bytes, or if nothing arrives for `idle_seconds`. The limit is 1 MB;
    routes that accept files raise it before they read the body.
    """

    def __init__(self, receive: Receive, idle_seconds: float) -> None:
        self.limit = SMALL
        self._receive = receive
        self._idle_seconds = idle_seconds
        self._size = 0
        self._complete = False

    async def receive(self) -> Message:
        if self._complete:
            return await self._receive()  # only a disconnect can follow
        message = await self._next()
        self._size += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        if self._size > self.limit:
            raise Interrupted(BODY_TOO_LARGE(f"the request body exceeds the limit of {self.limit:,} bytes"))
        return message

    async def _next(self) -> Message:
        try:
            async with asyncio.timeout(self._idle_seconds):
                return await self._receive()
        except TimeoutError:
            detail = f"nothing arrived for {self._idle_seconds:g} seconds, after {self._size:,} bytes"
            raise Interrupted(BODY_SLOW(detail)) from None


class RequestMiddleware:
    """The outermost layer of the application: it measures and logs every request."""

    def __init__(self, app: ASGIApp, system: System, idle_seconds: float = IDLE_SECONDS) -> None:
        self.app = app
        self.system = system
        self.idle_seconds = idle_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD" and not scope["path"].endswith(STREAMS):
            scope = {**scope, "method": "GET"}  # the server omits the body
        started = perf_counter()
        request = Request(scope)
        scope["cupel.request_id"] = _id_for(request)
        scope["cupel.body"] = body = Body(receive, self.idle_seconds)
        status, failure = await self._respond(request, body.receive, send)
        self._record(request, status, perf_counter() - started, failure)

    async def _respond(self, request: Request, receive: Receive, send: Send) -> tuple[int, str | None]:
        """Run the application; return the status of its response and its failure.

        The failure is a name, or None.
        """
        status = 0

        async def send_noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_common_headers(request)]
            await send(message)

        try:
            await self.app(request.scope, receive, send_noting_status)
        except ClientDisconnect:
            return CLIENT_GONE, None
        except asyncio.CancelledError:  # the service is stopping, and this request took too long
            if not status:
                refused = NOT_READY("the service is stopping", retry_after=RESTART_SECONDS)
                await problem_response(request, refused)(request.scope, receive, send_noting_status)
            return status, "cancelled"
        except Exception as problem:
            log.exception("request failed", extra={"request_id": request.scope["cupel.request_id"]})
            if not status:
                failed = INTERNAL_ERROR(
                    "unexpected error; the log of the service has details under this request_id"
                )
                await problem_response(request, failed)(request.scope, receive, send_noting_status)
            return status, type(problem).__name__
        return status or CLIENT_GONE, None

    def _record(self, request: Request, status: int, seconds: float, failure: str | None) -> None:
        template = getattr(request.scope.get("route"), "path", "(none)")
        self.system.metrics.count_request(
            method=_method_label(request.method), route=template, status=status, seconds=seconds
        )
        principal = request.scope.get("cupel.principal")
        fields: dict[str, Any] = {
            "request_id": request.scope["cupel.request_id"],
            "method": request.method,
            "path": request.url.path,
            "route": template,
            "status": status,
            "ms": round(seconds * 1000, 1),
        }
        if principal is not None:
            fields |= {"team": principal.team, "token": principal.prefix}
        if failure:
            fields["failure"] = failure
        log.info("request", extra=fields)


def _id_for(request: Request) -> str:
    """Return the caller's X-Request-Id if it is safe to log, otherwise a new id."""
    offered = request.headers.get("x-request-id", "")
    return offered if SAFE_ID.fullmatch(offered) else uuid4().hex


def _common_headers(request: Request) -> list[tuple[bytes, bytes]]:
    return [
        (b"x-request-id", request.scope["cupel.request_id"].encode()),
        (b"x-content-type-options", b"nosniff"),
    ]


def _method_label(method: str) -> str:
    """Return the method as a metric label.

    All unknown methods share one label and so one time series.
    """
    return method if method in {"GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS"} else "other"


STANDARD_FIELDS = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}
"""Attributes of every log record. All other attributes were passed as `extra`."""


class JsonLines(logging.Formatter):
    """Format each log record as one line of JSON, with the traceback as one string."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in STANDARD_FIELDS},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
