"""What `cupel serve` does: one data folder, one port, and the processes that make up the service."""

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cupel_backend.infrastructure.settings import Settings
from cupel_standalone.supervisor import Child, Supervisor

Say = Callable[[str, str], None]


class CannotServe(Exception):
    """The service can't be started here; the message says why and what to do."""


def serve(settings: Settings, *, host: str, port: int, say: Say, ready: Callable[[str], None]) -> None:
    """Serve `settings.data` at host:port until SIGTERM or SIGINT.

    port: 0 takes a free one. say: shows a line of the log, (who, text). ready: called once with the URL, when
    the service answers. Raises WrongSetting, CannotServe, or GaveUp when a child can't be kept alive.
    """
    os.umask(0o077)  # judgments may be secret: the data folder is its owner's alone
    settings.prepare()
    with only_server(settings.data) as claim, listening(host, port) as listener:
        url = url_of(listener)
        note(claim, url)
        prepare(settings)
        kept = children(settings, listener)

        def answered() -> None:
            kept[0].came_up = True  # the gateway
            ready(url)

        Supervisor(kept, say).run(Readiness(listener, answered).look)


@contextmanager
def only_server(data: Path) -> Iterator[IO[str]]:
    """Hold the data folder, so that no second service starts on it; the kernel lets go when we are gone."""
    with open(data / "serve.lock", "a+") as claim:
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            claim.seek(0)
            other = json.loads(claim.read() or "{}")
            where = f" at {other['url']}" if "url" in other else ""
            raise CannotServe(
                f"{data} is already being served{where} by process {other.get('pid', 'unknown')}: "
                "use that service, stop it, or choose another folder with --data"
            ) from None
        yield claim


def note(claim: IO[str], url: str) -> None:
    """Tell whoever finds the folder held who holds it."""
    claim.truncate(0)
    claim.write(json.dumps({"pid": os.getpid(), "url": url}))
    claim.flush()


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """The one port. The supervisor holds it open, so callers wait, not fail, while a gateway restarts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise CannotServe(
                f"port {port} of {host} can't be used ({error.strerror}): choose another with --port, "
                "or let --port 0 find one"
            ) from None
        listener.listen(512)
        yield listener


def token_file(data: Path) -> Path:
    """Where the first token of a data folder is kept until its owner takes it away."""
    return data / "admin-token"


def url_of(listener: socket.socket) -> str:
    """The address that people type."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def prepare(settings: Settings) -> None:
    """Tables and the first token, in a process that goes away again."""
    done = subprocess.run(
        [sys.executable, "-m", "cupel_standalone.data_folder"],
        env=settings.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise CannotServe(f"{settings.data} can't be prepared:\n{done.stdout.strip()}")


def children(settings: Settings, listener: socket.socket) -> list[Child]:
    """The processes of the service. They find everything but the port in their environment."""
    environment = settings.environment()
    python = (sys.executable, "-m")
    return [
        Child(
            "gateway",
            (*python, "cupel_gateway", "--fd", str(listener.fileno())),
            environment,
            inherited=(listener.fileno(),),
        ),
        Child("worker", (*python, "cupel_worker", "worker"), environment),
        Child("scheduler", (*python, "cupel_worker", "scheduler"), environment),
    ]


class Readiness:
    """Asks the service whether it is ready, without ever waiting for the answer, and tells once."""

    def __init__(self, listener: socket.socket, tell: Callable[[], None]) -> None:
        self._address = listener.getsockname()[:2]
        self._tell = tell
        self._told = False
        self._question: socket.socket | None = None

    def look(self) -> None:
        """Ask, or see whether the answer has come."""
        if not self._told and self._answered():
            self._told = True
            self._tell()

    def _answered(self) -> bool:
        if self._question is None:
            # The supervisor itself holds the port, so the kernel accepts at once.
            self._question = socket.create_connection(self._address, timeout=1.0)
            self._question.sendall(b"GET /readyz HTTP/1.1\r\nHost: cupel\r\nConnection: close\r\n\r\n")
            self._question.setblocking(False)
        try:
            answer = self._question.recv(64)
        except BlockingIOError:
            return False
        except OSError:
            answer = b""
        self._question.close()
        self._question = None
        return answer.startswith(b"HTTP/1.1 200 ")
