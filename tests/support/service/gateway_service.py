"""A real gateway on a free port over a real system, a fixed cast, and a watch on every problem."""

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

CAST = {
    "admin": ("house", "admin"),
    "organiser": ("organisers", "organiser"),
    "other organiser": ("rivals", "organiser"),
    "participant": ("alice", "participant"),
    "other participant": ("bob", "participant"),
}
STRANGER = "stranger"
EVERYBODY = (*CAST, STRANGER)

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
    """A run that ranks one-letter documents: ("t1", "abc")."""
    lines = [
        f"{topic} Q0 {document} {rank} {10 - rank} {tag}\n"
        for topic, documents in rankings or (("t1", "abc"), ("t2", "bac"))
        for rank, document in enumerate(documents, 1)
    ]
    return "".join(lines).encode()


@dataclass
class Service:
    """A running gateway, and its system behind it."""

    system: System
    app: FastAPI
    url: str
    tokens: dict[str, str] = field(default_factory=dict)
    problems: set[tuple[str, str]] = field(default_factory=set)
    """(operation, code) of every problem that was answered."""

    def __post_init__(self) -> None:
        self.http = httpx.Client(
            base_url=self.url, timeout=seconds(60), event_hooks={"response": [self._check]}
        )
        for who, (team, scope) in CAST.items():
            self.tokens[who], _ = access.issue(self.system, access.OPERATOR, team=team, scope=scope)
        self.openapi = self.http.get("/openapi.json").json()

    def ask(self, who: str, method: str, path: str, **options: Any) -> httpx.Response:
        """Ask as one of the cast; a stranger has no token."""
        headers = {**self.signed(who), **options.pop("headers", {})}
        return self.http.request(method, path, headers=headers, **options)

    def signed(self, who: str) -> dict[str, str]:
        return {} if who == STRANGER else {"Authorization": f"Bearer {self.tokens[who]}"}

    def get(self, who: str, path: str, **options: Any) -> Any:
        """The JSON of a GET that has to work."""
        answer = self.ask(who, "GET", path, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def track(self, **changes: Any) -> str:
        """A new track of the organiser's team."""
        name = next(names)
        wanted = {"name": name, "title": "Answers", "aspects": ASPECTS, "measures": PLAN} | changes
        answer = self.ask("organiser", "POST", "/v1/tracks", json=wanted)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["name"])

    def upload(
        self, track: str, *, relevance: bytes = RELEVANCE, who: str = "organiser", **changes: Any
    ) -> httpx.Response:
        """Upload judgments as a draft."""
        parts = [
            ("collection", ("collection.yaml", changes.get("collection", COLLECTION))),
            ("files", ("qrels/relevance.txt", relevance)),
            ("files", ("qrels/credibility.txt", CREDIBILITY)),
        ]
        return self.ask(who, "POST", f"/v1/tracks/{track}/qrels", files=changes.get("parts", parts))

    def publish(self, track: str, *, relevance: bytes = RELEVANCE) -> int:
        """Upload judgments, and publish and score them."""
        answer = self.upload(track, relevance=relevance)
        assert answer.status_code == 201, answer.text
        number = int(answer.json()["number"])
        assert self.ask("organiser", "POST", f"/v1/tracks/{track}/qrels/{number}/publish").status_code == 202
        self.work()
        return number

    def submit(
        self, track: str, content: bytes | Iterator[bytes] = b"", *, who: str = "participant", **options: Any
    ) -> httpx.Response:
        """Hand in a run."""
        return self.ask(
            who, "POST", f"/v1/tracks/{track}/submissions", content=content or run_file(), **options
        )

    def submitted(self, track: str, content: bytes = b"", *, who: str = "participant", name: str = "") -> Any:
        """Hand in a run that has to be accepted."""
        answer = self.submit(track, content, who=who, params={"name": name})
        assert answer.status_code == 202, answer.text
        return answer.json()

    def work(self, *queues: str, analysing: bool = False) -> None:
        """Do all queued jobs (of some queues), as a worker would; analyses only end, unless asked."""
        handlers = HANDLERS if analysing else {**HANDLERS, ANALYSE: end}
        for queue in queues or QUEUES:
            while job_execution.run_jobs(self.system, queue, handlers):
                pass

    def operation(self, method: str, path: str) -> tuple[str, dict[str, Any]] | None:
        """The operation that a request meets, as OpenAPI describes it."""
        for template, operations in self.openapi["paths"].items():
            rest = "measures/.+" if template.startswith("/v1/measures/") else "[^/]+"
            pattern = re.sub(r"\{[^}]+\}", rest, template).replace("measures/measures/", "measures/")
            if re.fullmatch(pattern, path) and method.lower() in operations:
                return template, operations[method.lower()]
        return None

    def _check(self, answer: httpx.Response) -> None:
        """Every problem is a problem, and listed for its operation; nothing is a surprise."""
        if answer.status_code < 400 or not hasattr(self, "openapi"):
            return
        answer.read()
        assert answer.headers["content-type"] == "application/problem+json", answer.text
        problem = answer.json()
        assert {"type", "title", "status", "detail", "instance", "code", "request_id"} <= problem.keys()
        assert problem["status"] == answer.status_code
        assert problem["request_id"] == answer.headers["x-request-id"]
        assert "Traceback" not in answer.text
        path = answer.request.url.path  # decoded, as routes see it
        found = self.operation(answer.request.method, path)
        if found is None:
            assert problem["code"] in {"path-unknown", "method-not-allowed"}, problem
            return
        listed = found[1]["responses"][str(answer.status_code)]["content"]["application/problem+json"]
        assert problem["code"] in listed["examples"], (found[1]["operationId"], problem["code"])
        self.problems.add((found[1]["operationId"], problem["code"]))


@contextmanager
def serving(system: System, *, grace: int = 5, **watching: float) -> Iterator[tuple[FastAPI, str]]:
    """Serve `system` from a thread; gives the application and its URL."""
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
def running(data: Path, *, watching: dict[str, float] | None = None, **settings: Any) -> Iterator[Service]:
    """A service with its data in a folder."""
    system = open_lasting(Settings(data=data, **settings))
    system.migrate()
    with serving(system, **(watching or {})) as (app, url):
        service = Service(system, app, url)
        yield service
        service.http.close()
