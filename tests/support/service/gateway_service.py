"""A gateway on a free port for tests, with fixed users and a check of every problem response."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from cupel_backend import access, job_execution
from cupel_backend.infrastructure.settings import QUEUES, Settings
from cupel_backend.infrastructure.system import System
from cupel_backend.job_handlers import HANDLERS
from cupel_backend.scores.board_analyses import ANALYSE
from cupel_gateway.app import create_app
from cupel_gateway.request_middleware import RequestMiddleware
from support.backend_cast import end
from support.patience import seconds
from support.service.shared_checkers import open_lasting

USERS = {
    "admin": ("operators", "admin"),
    "organiser": ("organisers", "organiser"),
    "other organiser": ("rivals", "organiser"),
    "participant": ("alice", "participant"),
    "other participant": ("bob", "participant"),
}
STRANGER = "stranger"
ALL_USERS = (*USERS, STRANGER)

ASPECTS = {"relevance": {"labels": [0, 1, 2]}, "credibility": {"labels": ["low", "high"]}}
COLLECTION = b"""
qrels:
  - {file: qrels/relevance.txt, aspect: relevance}
  - {file: qrels/credibility.txt, aspect: credibility}
"""
RELEVANCE = b"t1 0 a 2\nt1 0 b 1\nt1 0 c 0\nt2 0 a 0\nt2 0 b 2\n"
CREDIBILITY = b"t1 0 a high\nt1 0 b low\nt1 0 c low\nt2 0 a low\nt2 0 b high\n"
CORRECTED = b"t1 0 a 0\nt1 0 b 1\nt1 0 c 2\nt2 0 a 2\nt2 0 b 0\n"
PLAN = ["nDCG@10", "AP", "TOMA(of=nDCG@10)"]

names = (f"track-{number}" for number in count(1))


def run_file(*rankings: tuple[str, str], tag: str = "run") -> bytes:
    """Return a run file from (topic, ranking) pairs with one-letter documents, such as ("t1", "abc")."""
    lines = [
        f"{topic} Q0 {document} {rank} {10 - rank} {tag}\n"
        for topic, documents in rankings or (("t1", "abc"), ("t2", "bac"))
        for rank, document in enumerate(documents, 1)
    ]
    return "".join(lines).encode()


@dataclass(kw_only=True)
class Service:
    """A running gateway with its system and an HTTP client."""

    system: System
    app: FastAPI
    url: str
    tokens: dict[str, str] = field(default_factory=dict)
    problems: set[tuple[str, str]] = field(default_factory=set)
    """(operation, code) of every problem response so far."""

    def __post_init__(self) -> None:
        self.http = httpx.Client(
            base_url=self.url,
            timeout=seconds(60),
            limits=httpx.Limits(keepalive_expiry=1.0),  # the server closes idle connections after 5 s
            event_hooks={"response": [self._check]},
        )
        for who, (team, scope) in USERS.items():
            self.tokens[who], _ = access.issue(self.system, access.OPERATOR, team=team, scope=scope)
        self.openapi = self.http.get("/openapi.json").json()

    def request(self, who: str, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request as one of USERS, or without a token as STRANGER."""
        headers = {**self.auth_headers(who), **options.pop("headers", {})}
        return self.http.request(method, path, headers=headers, **options)

    def auth_headers(self, who: str) -> dict[str, str]:
        return {} if who == STRANGER else {"Authorization": f"Bearer {self.tokens[who]}"}

    def get(self, who: str, path: str, **options: Any) -> Any:
        """Return the JSON of a GET request that must succeed."""
        answer = self.request(who, "GET", path, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def create_track(self, **changes: Any) -> str:
        """Create a track of the organiser's team and return its name."""
        name = next(names)
        body = {"name": name, "title": "Answers", "aspects": ASPECTS, "measures": PLAN} | changes
        answer = self.request("organiser", "POST", "/v1/tracks", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["name"])

    def upload(
        self, track: str, *, relevance: bytes = RELEVANCE, who: str = "organiser", **changes: Any
    ) -> httpx.Response:
        """Upload judgments as a draft and return the response."""
        parts = [
            ("collection", ("collection.yaml", changes.get("collection", COLLECTION))),
            ("files", ("qrels/relevance.txt", relevance)),
            ("files", ("qrels/credibility.txt", CREDIBILITY)),
        ]
        return self.request(who, "POST", f"/v1/tracks/{track}/qrels", files=changes.get("parts", parts))

    def publish(self, track: str, *, relevance: bytes = RELEVANCE) -> int:
        """Upload and publish judgments, run all jobs, and return the version number."""
        answer = self.upload(track, relevance=relevance)
        assert answer.status_code == 201, answer.text
        number = int(answer.json()["number"])
        assert (
            self.request("organiser", "POST", f"/v1/tracks/{track}/qrels/{number}/publish").status_code == 202
        )
        self.run_jobs()
        return number

    def submit(
        self, track: str, content: bytes | Iterator[bytes] = b"", *, who: str = "participant", **options: Any
    ) -> httpx.Response:
        """Submit a run and return the response."""
        return self.request(
            who, "POST", f"/v1/tracks/{track}/submissions", content=content or run_file(), **options
        )

    def accepted_submission(
        self, track: str, content: bytes = b"", *, who: str = "participant", name: str = ""
    ) -> Any:
        """Submit a run that must be accepted, and return the submission."""
        answer = self.submit(track, content, who=who, params={"name": name})
        assert answer.status_code == 202, answer.text
        return answer.json()

    def run_jobs(self, *queues: str, with_analyses: bool = False) -> None:
        """Run all jobs of the queues (default: of every queue); skip board analyses unless requested."""
        handlers = HANDLERS if with_analyses else {**HANDLERS, ANALYSE: end}
        for queue in queues or QUEUES:
            while job_execution.run_jobs(self.system, queue, handlers):
                pass

    def operation(self, method: str, path: str) -> tuple[str, dict[str, Any]] | None:
        """Return the path template and the OpenAPI operation of a request, or None."""
        for template, operations in self.openapi["paths"].items():
            rest = "measures/.+" if template.startswith("/v1/measures/") else "[^/]+"
            pattern = re.sub(r"\{[^}]+\}", rest, template).replace("measures/measures/", "measures/")
            if re.fullmatch(pattern, path) and method.lower() in operations:
                return template, operations[method.lower()]
        return None

    def _check(self, answer: httpx.Response) -> None:
        """Check that an error response is a problem document that OpenAPI lists for its operation."""
        if answer.status_code < 400 or not hasattr(self, "openapi"):
            return
        answer.read()
        assert answer.headers["content-type"] == "application/problem+json", answer.text
        problem = answer.json()
        assert {"type", "title", "status", "detail", "instance", "code", "request_id"} <= problem.keys()
        assert problem["status"] == answer.status_code
        assert problem["request_id"] == answer.headers["x-request-id"]
        assert "Traceback" not in answer.text
        path = answer.request.url.path  # decoded, as the routes receive it
        match = self.operation(answer.request.method, path)
        if match is None:
            assert problem["code"] in {"path-unknown", "method-not-allowed"}, problem
            return
        listed = match[1]["responses"][str(answer.status_code)]["content"]["application/problem+json"]
        assert problem["code"] in listed["examples"], (match[1]["operationId"], problem["code"])
        self.problems.add((match[1]["operationId"], problem["code"]))


@contextmanager
def serve_gateway(system: System, *, grace: int = 5, **watching: float) -> Iterator[tuple[FastAPI, str]]:
    """Serve `system` from a thread, and yield the application and its URL."""
    app = create_app(system)
    for middleware in app.user_middleware:
        if middleware.cls is RequestMiddleware:
            middleware.kwargs.update(watching)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=grace))
    app.state.stopping = lambda: server.should_exit
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the gateway did not start"
    port = server.servers[0].sockets[0].getsockname()[1]
    yield app, f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@contextmanager
def run_service(
    data: Path, *, watching: dict[str, float] | None = None, **settings: Any
) -> Iterator[Service]:
    """Run a service with its data in a folder, and stop it at the end."""
    system = open_lasting(Settings(data=data, **settings))
    system.migrate()
    with serve_gateway(system, **(watching or {})) as (app, url):
        service = Service(system=system, app=app, url=url)
        yield service
        service.http.close()
