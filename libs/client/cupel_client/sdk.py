"""A client of the Cupel service: typed, patient with networks, safe to repeat.

with Client("https://cupel.example.org", token="cupel_...") as cupel:
    submission = cupel.submit("health-2026", Path("bm25.run.gz"))
    for state in cupel.watch_submission(submission.id):
        print(state.state)
    print(cupel.leaderboard("health-2026", measure="nDCG@10").rows)
"""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx

from cupel_client import __version__
from cupel_client.replies import (
    Board,
    Caller,
    Diff,
    Explanations,
    ExplanationsWanted,
    Item,
    Job,
    Run,
    Score,
    Submission,
    Token,
    TopicScores,
    Track,
    Version,
    read,
)
from cupel_client.sending import Body, no_progress, streamed

T = TypeVar("T")

PASSING = (429, 503)
LONGEST_PAUSE = 60.0
CHECKING_SECONDS = 300.0  # the answer to an upload holds the verdict on the whole file
QUIET_SECONDS = 45.0  # an event stream says something every 15 s


class ServiceError(Exception):
    """The service refused or failed. `code` is stable (GET /v1/errors explains all); `errors` say where."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.code = str(problem.get("code", "unknown"))
        self.detail = str(problem.get("detail") or problem.get("title") or f"HTTP status {status}")
        self.remedy = str(problem.get("remedy") or "")
        self.request_id = problem.get("request_id")
        self.errors = tuple(read(Item, one) for one in problem.get("errors", ()))
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


class Client:
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

    # The service

    def service(self) -> dict[str, Any]:
        """Version, profiles and limits of the service."""
        return dict(self._json("GET", "/v1"))

    def me(self) -> Caller:
        """The team and scope that the token stands for."""
        return read(Caller, self._json("GET", "/v1/me"))

    def measures(self) -> list[dict[str, Any]]:
        """Every measure the service has."""
        return list(self._json("GET", "/v1/measures")["items"])

    # Tokens

    def issue_token(self, team: str, scope: str, *, label: str = "", expires_at: str | None = None) -> Token:
        """Make a token; its text is in the answer's `token`, this once."""
        body = {"team": team, "scope": scope, "label": label, "expires_at": expires_at}
        return read(Token, self._json("POST", "/v1/tokens", json=body))

    def tokens(self) -> Iterator[Token]:
        """The team's tokens; all of them to an admin."""
        return self._all(Token, "/v1/tokens")

    def revoke_token(self, prefix: str) -> None:
        """End a token for good."""
        self._send("DELETE", f"/v1/tokens/{_part(prefix)}")

    # Tracks

    def create_track(self, name: str, **description: Any) -> Track:
        """Make a track; description: title, aspects, measures, and label_sets, profile, depth if wanted."""
        return read(Track, self._json("POST", "/v1/tracks", json={"name": name, **description}))

    def track(self, name: str) -> Track:
        return read(Track, self._json("GET", f"/v1/tracks/{_part(name)}"))

    def tracks(self) -> Iterator[Track]:
        """All tracks, newest first."""
        return self._all(Track, "/v1/tracks")

    def change_track(self, name: str, **changes: Any) -> Track:
        """Change title, measures or closed; refused if somebody changes the track at the same moment."""
        path = f"/v1/tracks/{_part(name)}"
        etag = self._send("GET", path).headers["ETag"]
        return read(Track, self._json("PATCH", path, json=changes, headers={"If-Match": etag}))

    # Qrels

    def upload_qrels(self, track: str, collection: bytes, files: Mapping[str, bytes]) -> Version:
        """Upload judgments as a draft; collection: a collection file that names `files`."""
        parts = [("collection", ("collection", collection)), *(("files", item) for item in files.items())]
        path = f"/v1/tracks/{_part(track)}/qrels"
        return read(Version, self._json("POST", path, files=parts, timeout=CHECKING_SECONDS))

    def publish_qrels(self, track: str, number: int) -> Version:
        """Start publishing a version; `watch_qrels` tells when it is current."""
        return read(Version, self._json("POST", f"{_qrels(track, number)}/publish", repeatable=True))

    def qrels_version(self, track: str, number: int) -> Version:
        return read(Version, self._json("GET", _qrels(track, number)))

    def qrels_versions(self, track: str) -> Iterator[Version]:
        """The track's versions, newest first."""
        return self._all(Version, f"/v1/tracks/{_part(track)}/qrels")

    def qrels_diff(self, track: str, number: int, *, base: int, measure: str) -> Diff:
        """What moved from version `base` to version `number`."""
        asked = {"from": base, "measure": measure}
        return read(Diff, self._json("GET", f"{_qrels(track, number)}/diff", params=asked))

    # Submissions and runs

    def submit(
        self,
        track: str,
        run: Path | bytes | BinaryIO,
        *,
        name: str | None = None,
        key: str | None = None,
        progress: Callable[[int], None] = no_progress,
    ) -> Submission:
        """Hand in a run file, plain or compressed; a large plain one is compressed on the way.

        name: default, the file's. key: an Idempotency-Key (default: a new one, so that repeating
        after a network failure can't hand in twice). progress: told the bytes read, as they go.
        """
        body = streamed(run, progress)
        asked = {"name": name if name is not None else body.name}
        headers = {"Idempotency-Key": key or uuid4().hex, "Content-Type": "application/octet-stream"}
        path = f"/v1/tracks/{_part(track)}/submissions"
        answer = self._json("POST", path, params=asked, headers=headers, body=body, timeout=CHECKING_SECONDS)
        return read(Submission, answer)

    def submission(self, id: str) -> Submission:
        return read(Submission, self._json("GET", f"/v1/submissions/{_part(id)}"))

    def submissions(self, track: str) -> Iterator[Submission]:
        """One's own submissions to the track, newest first; all of them to its organisers."""
        return self._all(Submission, f"/v1/tracks/{_part(track)}/submissions")

    def withdraw(self, id: str) -> Submission:
        """Take a submission off the boards."""
        return read(Submission, self._json("DELETE", f"/v1/submissions/{_part(id)}"))

    def run(self, id: str) -> Run:
        return read(Run, self._json("GET", f"/v1/runs/{_part(id)}"))

    def download(self, run: str, to: BinaryIO) -> None:
        """Write a run's file, as it was sent, to `to`."""
        with self._streaming(f"/v1/runs/{_part(run)}/file") as answer:
            for block in answer.iter_bytes():
                to.write(block)

    # Scores

    def scores(
        self, submission: str, *, measures: Sequence[str] = (), qrels: int | None = None
    ) -> list[Score]:
        """Scores by `measures` (default: the plan) under a qrels version (default: the current one)."""
        asked = {"measure": list(measures), "qrels": qrels}
        answer = self._json("GET", f"/v1/submissions/{_part(submission)}/scores", params=asked)
        return [read(Score, one) for one in answer["scores"]]

    def topic_scores(self, submission: str, measure: str, *, qrels: int | None = None) -> TopicScores:
        """The value of `measure` on every topic."""
        asked = {"measure": measure, "qrels": qrels}
        return read(
            TopicScores, self._json("GET", f"/v1/submissions/{_part(submission)}/scores/topics", params=asked)
        )

    def explain(
        self,
        submission: str,
        *,
        measures: Sequence[str] = (),
        about: Sequence[str] = (),
        qrels: int | None = None,
    ) -> ExplanationsWanted:
        """Have scores by `measures` (default: the plan) explained, by jobs: `watch_job` tells of each.

        about: some of ties, judgments, scale, parts, profiles (default: all). Asking again changes nothing.
        """
        body = {"measures": list(measures), "about": list(about), "qrels": qrels}
        path = f"/v1/submissions/{_part(submission)}/explanations"
        return read(ExplanationsWanted, self._json("POST", path, json=body, repeatable=True))

    def explanations(
        self, submission: str, *, measures: Sequence[str] = (), qrels: int | None = None
    ) -> Explanations:
        """What is there for `measures` (default: whatever is) under a version (default: the current one)."""
        asked = {"measure": list(measures), "qrels": qrels}
        answer = self._json("GET", f"/v1/submissions/{_part(submission)}/explanations", params=asked)
        return read(Explanations, answer)

    def leaderboard(self, track: str, *, measure: str | None = None, qrels: int | None = None) -> Board:
        """The whole board: measure default, the plan's first; qrels default, the current version."""
        asked = {"measure": measure, "qrels": qrels, "limit": 500}
        pages = [self._json("GET", f"/v1/tracks/{_part(track)}/leaderboard", params=asked)]
        while following := pages[-1]["next"]:
            pages.append(self._json("GET", following))
        if len({(page.get("analysis") or {}).get("computed_at") for page in pages}) > 1:
            return self.leaderboard(track, measure=measure, qrels=qrels)  # the analysis came in between
        rows = [row for page in pages for row in page["rows"]]
        return read(Board, pages[0] | {"rows": rows, "next": None})

    # Jobs

    def job(self, id: str) -> Job:
        return read(Job, self._json("GET", f"/v1/jobs/{_part(id)}"))

    def jobs(self, *, state: str | None = None) -> Iterator[Job]:
        """Jobs of one's own tracks (all to an admin), maybe only those in one state."""
        return self._all(Job, "/v1/jobs", state=state)

    def revive_job(self, id: str) -> Job:
        """Give a dead job another go."""
        return read(Job, self._json("POST", f"/v1/jobs/{_part(id)}/revive"))

    # Watching

    def watch_submission(self, id: str) -> Iterator[Submission]:
        """Every state of a submission until nothing is left to score, the last one included."""
        return self.watch(Submission, f"/v1/submissions/{_part(id)}/events")

    def watch_qrels(self, track: str, number: int) -> Iterator[Version]:
        """Every state of a version until it is current or superseded."""
        return self.watch(Version, f"{_qrels(track, number)}/events")

    def watch_job(self, id: str) -> Iterator[Job]:
        """Every state of a job until it is done or dead."""
        return self.watch(Job, f"/v1/jobs/{_part(id)}/events")

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
                    yield read(kind, data)
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

    # Sending

    def _all(self, kind: type[T], path: str, **params: Any) -> Iterator[T]:
        """Every item of a list, page after page."""
        page = self._json("GET", path, params=params)
        while True:
            for item in page["items"]:
                yield read(kind, item)
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


def _part(text: str) -> str:
    """`text` as one part of a path."""
    return quote(text, safe="")


def _qrels(track: str, number: int) -> str:
    return f"/v1/tracks/{_part(track)}/qrels/{number}"


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
