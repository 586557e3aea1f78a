"""The service of `cupel serve`.

It has one data folder, one port, and three supervised processes.
"""

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

WriteLog = Callable[[str, str], None]
"""Writes a line to the log. Arguments: name of the process, text."""


class CannotServe(Exception):
    """The service cannot be started; the message says why and what to do."""


def serve(
    settings: Settings, *, host: str, port: int, write_log: WriteLog, on_ready: Callable[[str], None]
) -> None:
    """Serve `settings.data` at host:port until SIGTERM or SIGINT.

    port: 0 takes a free port.
    on_ready: called once with the URL when the service is ready.
    Raises WrongSetting, CannotServe, or ChildFailed if a child process fails repeatedly.
    """
    os.umask(0o077)  # Judgments may be secret, so only the owner may read the data folder.
    settings.prepare()
    with lock_data_folder(settings.data) as lock_file, open_listener(host, port) as listener:
        url = url_of(listener)
        write_lock_owner(lock_file, url)
        prepare_data_folder(settings)
        children = make_children(settings, listener)

        def report_ready() -> None:
            children[0].has_come_up = True  # The gateway is the first child.
            on_ready(url)

        Supervisor(children, write_log).run(ReadinessProbe(listener, report_ready).check)


@contextmanager
def lock_data_folder(data: Path) -> Iterator[IO[str]]:
    """Lock the data folder; yield the lock file.

    The lock prevents a second service from starting on the folder.

    The kernel releases the lock when this process ends, even by SIGKILL.
    """
    with open(data / "serve.lock", "a+") as lock_file:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock_file.seek(0)
            other = json.loads(lock_file.read() or "{}")
            where = f" at {other['url']}" if "url" in other else ""
            raise CannotServe(
                f"{data} is already being served{where} by process {other.get('pid', 'unknown')}: "
                "use that service, stop it, or choose another folder with --data"
            ) from None
        yield lock_file


def write_lock_owner(lock_file: IO[str], url: str) -> None:
    """Write the id and URL of this process to the lock file.

    A second `cupel serve` reports them.
    """
    lock_file.truncate(0)
    lock_file.write(json.dumps({"pid": os.getpid(), "url": url}))
    lock_file.flush()


@contextmanager
def open_listener(host: str, port: int) -> Iterator[socket.socket]:
    """Listen on host:port.

    The supervisor keeps the socket open, so clients wait while a gateway restarts.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise CannotServe(
                f"cannot listen on port {port} of {host} ({error.strerror}): choose another port "
                "with --port, or a free one with --port 0"
            ) from None
        listener.listen(512)
        yield listener


def token_file(data: Path) -> Path:
    """Return the path of the file with the first admin token of a data folder."""
    return data / "admin-token"


def url_of(listener: socket.socket) -> str:
    """Return the URL at which the listener can be reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def prepare_data_folder(settings: Settings) -> None:
    """Migrate the database and issue the first token, in a short-lived process."""
    completed = subprocess.run(
        [sys.executable, "-m", "cupel_standalone.data_folder"],
        env=settings.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if completed.returncode:
        raise CannotServe(f"cannot prepare the data folder {settings.data}:\n{completed.stdout.strip()}")


def make_children(settings: Settings, listener: socket.socket) -> list[Child]:
    """Return the processes of the service: gateway, worker and scheduler.

    They read their settings from the environment; the gateway inherits the listening socket.
    """
    environment = settings.environment()
    python = (sys.executable, "-m")
    return [
        Child(
            name="gateway",
            command=(*python, "cupel_gateway", "--fd", str(listener.fileno())),
            environment=environment,
            inherited=(listener.fileno(),),
        ),
        Child(name="worker", command=(*python, "cupel_worker", "worker"), environment=environment),
        Child(name="scheduler", command=(*python, "cupel_worker", "scheduler"), environment=environment),
    ]


class ReadinessProbe:
    """A probe that polls /readyz without blocking the supervisor.

    on_ready: called once, when the service is ready.
    """

    def __init__(self, listener: socket.socket, on_ready: Callable[[], None]) -> None:
        self._address = listener.getsockname()[:2]
        self._on_ready = on_ready
        self._is_ready = False
        self._connection: socket.socket | None = None

    def check(self) -> None:
        """Send a request, or check whether the response to the last request has arrived."""
        if not self._is_ready and self._receives_ok():
            self._is_ready = True
            self._on_ready()

    def _receives_ok(self) -> bool:
        if self._connection is None:
            # The supervisor itself holds the listening socket, so the kernel accepts the connection at once.
            self._connection = socket.create_connection(self._address, timeout=1.0)
            self._connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: cupel\r\nConnection: close\r\n\r\n")
            self._connection.setblocking(False)
        try:
            response = self._connection.recv(64)
        except BlockingIOError:
            return False
        except OSError:
            response = b""
        self._connection.close()
        self._connection = None
        return response.startswith(b"HTTP/1.1 200 ")
