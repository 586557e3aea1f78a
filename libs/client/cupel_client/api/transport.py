"""Asking a service: requests that are repeated where that is safe, refusals, event streams, lists."""

import json
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from cupel_client import __version__
from cupel_client.api.uploads import Body
from cupel_contract.problem_resources import ErrorItem

T = TypeVar("T", bound=BaseModel)

PASSING = (429, 503)
LONGEST_PAUSE = 60.0
QUIET_SECONDS = 45.0  # an event stream says something every 15 s


class ServiceError(Exception):
    """The service refused or failed. `code` is stable (GET /v1/errors explains all); `errors` say where."""

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
    def passing(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.status in PASSING or (self.status == 409 and self.retry_after is not None)


class Unreachable(ServiceError):
    """No answer came, however often we asked; `status` is 0."""

    def __init__(self, url: str, reason: Exception) -> None:
        detail = f"{url} can't be reached: {reason or type(reason).__name__}"
        super().__init__(
            0, {"code": "unreachable", "detail": detail, "remedy": "check the address and the network"}
        )


class Transport:
    """A service at `url`, asked with `token`.

    A request that may safely be repeated is sent up to `attempts` times where the network fails or
    the service is busy. All methods raise ServiceError.
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 30.0, attempts: int = 6
    ) -> None:
        self.url = url.rstrip("/")
        self._attempts = attempts
        headers = {"User-Agent": f"cupel-client/{__version__}"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def watch(self, kind: type[T], path: str) -> Iterator[T]:
        """Every state that the event stream at `path` tells, to its end; goes on where a connection broke."""
        last: str | None = None
        failures = 0
        while True:
            try:
                for name, identity, data in self._told(path, last):
                    failures, last = 0, identity or last
                    if name == "gone":
                        return
                    yield parse(kind, data)
                    if name == "end":
                        return
                time.sleep(_pause(0, None))  # the service ends long streams; we go on where it stopped
            except (httpx.TransportError, ServiceError) as reason:
                failures += 1
                if isinstance(reason, ServiceError) and not reason.passing:
                    raise
                if failures >= self._attempts:
                    raise _final(self.url, reason) from reason
                time.sleep(_pause(failures, None))

    def _told(self, path: str, last: str | None) -> Iterator[tuple[str, str | None, Any]]:
        """(name, id, data) of each event of one connection; `gone` where there is nothing after `last`."""
        with self._streaming(path, headers={"Last-Event-ID": last} if last else {}) as answer:
            if answer.status_code == 204:
                yield "gone", None, None
            for name, identity, data in _events(answer.iter_lines()):
                if name == "problem":
                    raise ServiceError(data.get("status", 500), data)
                yield name, identity, data

    def _all(self, kind: type[T], path: str, /, **params: Any) -> Iterator[T]:
        """Every item of a list, page after page."""
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
        body: Body | None = None,
        repeatable: bool | None = None,
        **options: Any,
    ) -> httpx.Response:
        """Send until answered; raises ServiceError for any answer but a good one."""
        headers = dict(headers or {})
        if repeatable is None:
            repeatable = method != "POST" or "Idempotency-Key" in headers
        given = {name: value for name, value in (params or {}).items() if value is not None} or None
        for attempt in range(1, self._attempts + 1):
            content = body.blocks() if body else None
            try:
                answer = self._http.request(
                    method, path, params=given, headers=headers, content=content, **options
                )
            except httpx.TransportError as reason:
                unsent = isinstance(reason, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                if attempt == self._attempts or not (repeatable or unsent):
                    raise Unreachable(self.url, reason) from reason
                time.sleep(_pause(attempt, None))
                continue
            if answer.is_success:
                return answer
            refusal = _refusal(answer)
            if attempt == self._attempts or not refusal.passing:
                raise refusal
            time.sleep(_pause(attempt, refusal.retry_after))
        raise AssertionError("attempts are at least 1")

    @contextmanager
    def _streaming(self, path: str, *, headers: Mapping[str, str] | None = None) -> Iterator[httpx.Response]:
        timeout = httpx.Timeout(self._http.timeout.connect, read=QUIET_SECONDS)
        with self._http.stream("GET", path, headers=dict(headers or {}), timeout=timeout) as answer:
            if not answer.is_success:
                answer.read()
                raise _refusal(answer)
            yield answer


def parse(resource: type[T], value: Any) -> T:
    """Read a resource from JSON; raises ServiceError if a field is missing or has the wrong type."""
    try:
        return resource.model_validate(value)
    except ValidationError as problem:
        detail = f"the response is not a {resource.__name__}: {problem}"
        remedy = "install the client of the service's version"
        raise ServiceError(200, {"code": "response-invalid", "detail": detail, "remedy": remedy}) from None


def body(request: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of a request body; raises ServiceError, as the service would, if a field is invalid."""
    as_json = json.loads(
        json.dumps(values, default=str)
    )  # YAML files may have numbers as keys and dates as values
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
    """`text` as one part of a path."""
    return quote(text, safe="")


def _final(url: str, reason: Exception) -> ServiceError:
    return reason if isinstance(reason, ServiceError) else Unreachable(url, reason)


def _refusal(answer: httpx.Response) -> ServiceError:
    after = answer.headers.get("Retry-After", "")
    try:
        problem = answer.json()
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    return ServiceError(answer.status_code, problem, float(after) if after.isdigit() else None)


def _pause(attempt: int, asked: float | None) -> float:
    """Seconds to wait: what the service asked for, else longer each time, and not in step with others."""
    return min(asked if asked is not None else 0.2 * 2**attempt * random.uniform(0.5, 1.0), LONGEST_PAUSE)


def _events(lines: Iterator[str]) -> Iterator[tuple[str, str | None, Any]]:
    """(name, id, data) of each server-sent event."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            if "data" in fields:
                yield fields.get("event", "message"), fields.get("id"), json.loads(fields["data"])
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
