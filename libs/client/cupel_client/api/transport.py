"""HTTP transport of the client: retries, errors, event streams and pages of lists."""

import json
import random
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from cupel_client import __version__
from cupel_client.api.uploads import FileBody
from cupel_contract.problem_resources import ErrorItem

T = TypeVar("T", bound=BaseModel)

TEMPORARY_STATUSES = (429, 503)
MAX_PAUSE_SECONDS = 60.0
MAX_IDLE_SECONDS = 2.0  # the gateway closes idle connections after 5 s
MAX_SILENCE_SECONDS = 45.0  # event streams send a heartbeat every 15 s


class ServiceError(Exception):
    """A refused or failed request.

    `code` is a stable error code, which GET /v1/errors explains. `errors` lists the wrong fields or lines.
    """

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.code = str(problem.get("code", "unknown"))
        self.detail = str(problem.get("detail") or problem.get("title") or f"HTTP status {status}")
        self.remedy = str(problem.get("remedy") or "")
        self.request_id = problem.get("request_id")
        self.errors = tuple(ErrorItem.model_validate(item) for item in problem.get("errors", ()))
        self.totals: dict[str, int] = dict(problem.get("totals", {}))
        self.retry_after = retry_after
        super().__init__(f"{self.detail} ({self.code})")

    @property
    def is_temporary(self) -> bool:
        """Return whether the same request may succeed later."""
        return self.status in TEMPORARY_STATUSES or (self.status == 409 and self.retry_after is not None)


class Unreachable(ServiceError):
    """The service did not respond to any attempt; `status` is 0."""

    def __init__(self, url: str, reason: Exception) -> None:
        detail = f"cannot reach {url}: {reason or type(reason).__name__}"
        super().__init__(
            0, {"code": "unreachable", "detail": detail, "remedy": "check the address and the network"}
        )


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Return the trusted certificates.

    They are cached, because loading takes about 50 ms.
    """
    return httpx.create_ssl_context()


class Transport:
    """HTTP connections to the service at `url`.

    token: sent with every request. timeout: limit of each network operation, in seconds. attempts: maximum
    number of times to send a request that is safe to repeat; it is sent again if the network fails or the
    service is busy. All methods raise ServiceError if a request is refused or fails.
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 30.0, attempts: int = 6
    ) -> None:
        self.url = url.rstrip("/")
        self._attempts = attempts
        headers = {"User-Agent": f"cupel-client/{__version__}"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=timeout,
            verify=_certificates(),
            limits=httpx.Limits(keepalive_expiry=MAX_IDLE_SECONDS),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def watch(self, kind: type[T], path: str) -> Iterator[T]:
        """Iterate over the states that an event stream sends.

        Reconnect if the connection is lost.
        """
        last: str | None = None
        failures = 0
        while True:
            try:
                for name, identity, data in self._stream_events(path, last):
                    failures, last = 0, identity or last
                    if name == "gone":
                        return
                    yield parse(kind, data)
                    if name == "end":
                        return
                time.sleep(_pause(0, None))  # the service ends long streams; continue after the last event
            except (httpx.TransportError, ServiceError) as reason:
                failures += 1
                if isinstance(reason, ServiceError) and not reason.is_temporary:
                    raise
                if failures >= self._attempts:
                    raise _final(self.url, reason) from reason
                time.sleep(_pause(failures, None))

    def _stream_events(self, path: str, last: str | None) -> Iterator[tuple[str, str | None, Any]]:
        """Yield name, id and data of each event of one connection.

        The name is `gone` if the stream has no event after the id `last`.
        """
        with self._streaming(path, headers={"Last-Event-ID": last} if last else {}) as response:
            if response.status_code == 204:
                yield "gone", None, None
            for name, identity, data in _events(response.iter_lines()):
                if name == "problem":
                    raise ServiceError(data.get("status", 500), data)
                yield name, identity, data

    def _all(self, kind: type[T], path: str, /, **params: Any) -> Iterator[T]:
        """Iterate over the items of a list, page by page."""
        page = self._json("GET", path, params=params)
        while True:
            for item in page["items"]:
                yield parse(kind, item)
            if not page["next"]:
                return
            page = self._json("GET", page["next"])

    def _json(self, method: str, path: str, **options: Any) -> Any:
        return self._send(method, path, **options).json()

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        content: FileBody | None = None,
        repeatable: bool | None = None,
        **options: Any,
    ) -> httpx.Response:
        """Send a request, and retry it if that is safe.

        Raise ServiceError if no attempt succeeds.
        """
        headers = dict(headers or {})
        if repeatable is None:
            repeatable = method != "POST" or "Idempotency-Key" in headers
        query = {name: value for name, value in (params or {}).items() if value is not None} or None
        for attempt in range(1, self._attempts + 1):
            try:
                response = self._http.request(
                    method,
                    path,
                    params=query,
                    headers=headers,
                    content=content.blocks() if content else None,
                    **options,
                )
            except httpx.TransportError as reason:
                unsent = isinstance(reason, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                if attempt == self._attempts or not (repeatable or unsent):
                    raise Unreachable(self.url, reason) from reason
                time.sleep(_pause(attempt, None))
                continue
            if response.is_success:
                return response
            refusal = _service_error(response)
            if attempt == self._attempts or not refusal.is_temporary:
                raise refusal
            time.sleep(_pause(attempt, refusal.retry_after))
        raise AssertionError("attempts must be at least 1")

    @contextmanager
    def _streaming(self, path: str, *, headers: Mapping[str, str] | None = None) -> Iterator[httpx.Response]:
        timeout = httpx.Timeout(self._http.timeout.connect, read=MAX_SILENCE_SECONDS)
        with self._http.stream("GET", path, headers=dict(headers or {}), timeout=timeout) as response:
            if not response.is_success:
                response.read()
                raise _service_error(response)
            yield response


def parse(resource: type[T], value: Any) -> T:
    """Read a resource from JSON.

    Raise ServiceError if a field is missing or has the wrong type.
    """
    try:
        return resource.model_validate(value)
    except ValidationError as problem:
        detail = f"the response is not a {resource.__name__}: {problem}"
        remedy = "install the client version that matches the service"
        raise ServiceError(200, {"code": "response-invalid", "detail": detail, "remedy": remedy}) from None


def body(request: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request body as JSON data.

    Raise ServiceError, as the service would, if a field is invalid.
    """
    # YAML allows numbers as keys and dates as values. JSON does not.
    as_json = json.loads(json.dumps(values, default=str))
    try:
        return request.model_validate(as_json).model_dump(mode="json", exclude_unset=True)
    except ValidationError as problem:
        items = [_field_item(error) for error in problem.errors()]
        detail = "; ".join(f"{item['field']}: {item['message']}" for item in items)
        remedy = "correct the fields that the errors name"
        refusal = {"code": "request-invalid", "detail": detail, "remedy": remedy, "errors": items}
        raise ServiceError(422, refusal) from None


def _field_item(error: Any) -> dict[str, Any]:
    field = ".".join(map(str, ("body", *error["loc"])))
    return {"code": "field-invalid", "message": error["msg"], "field": field}


def part(text: str) -> str:
    """Quote `text` as one segment of a path."""
    return quote(text, safe="")


def _final(url: str, reason: Exception) -> ServiceError:
    return reason if isinstance(reason, ServiceError) else Unreachable(url, reason)


def _service_error(response: httpx.Response) -> ServiceError:
    after = response.headers.get("Retry-After", "")
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    return ServiceError(response.status_code, problem, float(after) if after.isdigit() else None)


def _pause(attempt: int, retry_after: float | None) -> float:
    """Return the seconds to wait before the next attempt.

    This is Retry-After if it was sent, otherwise an exponential backoff with jitter. The limit is
    MAX_PAUSE_SECONDS in both cases.
    """
    return min(
        retry_after if retry_after is not None else 0.2 * 2**attempt * random.uniform(0.5, 1.0),
        MAX_PAUSE_SECONDS,
    )


def _events(lines: Iterator[str]) -> Iterator[tuple[str, str | None, Any]]:
    """Yield name, id and data of each server-sent event."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            if "data" in fields:
                yield fields.get("event", "message"), fields.get("id"), json.loads(fields["data"])
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
