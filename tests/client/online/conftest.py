"""Fixtures with a gateway process, a worker thread, and the `cupel` command."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pytest
from click.testing import CliRunner, Result

from cupel_backend import access, job_execution
from cupel_backend.infrastructure.settings import QUEUES, Settings
from cupel_backend.infrastructure.system import System, open_system
from cupel_backend.job_handlers import HANDLERS
from cupel_client.api.client import Client
from cupel_client.main import cli
from support.audit_priority import usual_priority as usual_priority
from support.patience import seconds
from support.service.service_sizes import SizeName, place

RELEVANCE = "".join(f"t{t} 0 d{d} {(d * t) % 3}\n" for t in range(1, 6) for d in range(20))
QUALITY = "".join(f"t{t} 0 d{d} {'good' if (d + t) % 2 else 'bad'}\n" for t in range(1, 6) for d in range(20))
COLLECTION = """
aspects:
  relevance: {labels: [0, 1, 2], gains: {0: 0, 1: 1, 2: 3}}
  quality: {labels: [bad, good]}
qrels:
  - {file: qrels/relevance.txt, aspect: relevance}
  - {file: qrels/quality.txt, aspect: quality}
measures: [nDCG@10, AP, "CAM(of=nDCG@10)"]
"""


def run_text(step: int, *, tag: str = "run", topics: int = 5) -> str:
    """Return a run of 20 documents per topic; the order depends on `step`."""
    return "".join(
        f"t{t} Q0 d{(d * step + t) % 20} {d + 1} {20 - d} {tag}\n"
        for t in range(1, topics + 1)
        for d in range(20)
    )


@dataclass
class Server:
    """A gateway process whose port stays the same after a restart."""

    system: System
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    log: IO[bytes] = field(default_factory=TemporaryFile)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def start(self) -> None:
        number = self.listener.fileno()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cupel_gateway", "--fd", str(number)],
            env=self.system.settings.environment() | {"PYTHONPATH": os.pathsep.join(sys.path)},
            pass_fds=[number],
            stderr=self.log,
        )

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Stop the process with a signal and return its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(timeout=seconds(60))

    def logged(self) -> str:
        """Return the log of all processes started so far."""
        self.log.seek(0)
        return self.log.read().decode()

    def token(self, team: str, scope: str = "participant") -> str:
        return access.issue(self.system, access.OPERATOR, team=team, scope=scope)[0]

    def client(self, team: str, scope: str = "participant") -> Client:
        return Client(self.url, self.token(team, scope))


@pytest.fixture(scope="session")
def server(size: SizeName, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a running gateway."""
    with place(size) as at:
        # Analyses are not delayed, because no scheduler runs here to start delayed ones.
        yield from serve(Settings(data=tmp_path_factory.mktemp("service"), analysis_seconds=0, **at))


def serve(settings: Settings) -> Iterator[Server]:
    system = open_system(settings)
    system.migrate()
    server = Server(system)
    server.start()
    yield server
    code = server.stop()
    system.close()
    server.listener.close()
    assert code == 0, server.logged()
    assert all(json.loads(line) for line in server.logged().splitlines())
    server.log.close()


@pytest.fixture
def worker(server: Server) -> Iterator[None]:
    """Run queued jobs in a thread."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.02):
            for queue in QUEUES:
                job_execution.run_jobs(server.system, queue, HANDLERS)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stop.set()
    thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a collection, its judgments, three runs and a broken run."""
    folder = tmp_path / "work"
    (folder / "qrels").mkdir(parents=True)
    (folder / "collection.yaml").write_text(COLLECTION)
    (folder / "qrels" / "relevance.txt").write_text(RELEVANCE)
    (folder / "qrels" / "quality.txt").write_text(QUALITY)
    for step in (1, 3, 7):
        (folder / f"step{step}.run").write_text(run_text(step, tag=f"step{step}.run"))
    (folder / "broken.run").write_text("t1 Q0 d1 1 2.0 broken.run\nt1 Q0 d2 2\nt1 Q0 d3 3 high broken.run\n")
    return folder


Cupel = Callable[..., Result]


@pytest.fixture
def cupel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cupel:
    """Return a function that runs `cupel` with an empty home folder, so without a stored login."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("CUPEL_URL", raising=False)
    monkeypatch.delenv("CUPEL_TOKEN", raising=False)

    def run(*arguments: object, stdin: str | None = None, **env: str) -> Result:
        result = CliRunner(env=env).invoke(cli, [str(argument) for argument in arguments], input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run


@pytest.fixture
def organiser(server: Server, cupel: Cupel) -> Cupel:
    """Return the function `cupel` after a login as an organiser."""
    assert cupel("login", server.url, "--token", server.token("house", "organiser")).exit_code == 0
    return cupel
