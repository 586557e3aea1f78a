"""Services started with the command `cupel serve`, each on a free port."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from cupel_client.api.client import Client
from support.patience import seconds, until

CUPEL = str(Path(sys.executable).parent / "cupel")


@dataclass
class Service:
    """A running `cupel serve` with its process, data folder and URL."""

    process: subprocess.Popen[str]
    data: Path
    url: str

    @property
    def token(self) -> str:
        return (self.data / "admin-token").read_text().strip()

    def client(self) -> Client:
        return Client(self.url, self.token, attempts=10)

    def log(self) -> str:
        return (self.data.parent / "service.log").read_text()

    def child(self, name: str) -> psutil.Process:
        """Return the child process `name` of the supervisor; wait until it has started."""
        word = {"gateway": "cupel_gateway"}.get(name, name)
        return until(lambda: next((child for child in self.children() if word in command_line(child)), None))

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def pool(self) -> list[psutil.Process]:
        """Return the pool processes of the worker."""
        return until(self.child("worker").children)

    def family(self) -> list[psutil.Process]:
        """Return all processes of the service except the supervisor."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> None:
        """Kill the supervisor, and check that all other processes end with it."""
        family = self.family()
        self.process.kill()
        self.process.communicate()
        _, alive = psutil.wait_procs(family, timeout=seconds(30))
        assert not alive, f"outlived the service: {alive}"

    def stop(self) -> int:
        """Stop the service with SIGINT, as Ctrl-C does, and return its exit code."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=seconds(60))
        return self.process.returncode


def command_line(process: psutil.Process) -> list[str]:
    """Return the command line of a process, or nothing if the process has ended."""
    with suppress(psutil.NoSuchProcess):
        return list(process.cmdline())
    return []


def command(data: Path, *options: str) -> list[str]:
    return [CUPEL, "serve", "--data", str(data), *(options or ("--port", "0"))]


Serve = Callable[..., Service]


@contextmanager
def services(folder: Path, **at: object) -> Iterator[Serve]:
    """Yield a function that starts services on one data folder; at the end, kill those that still run.

    at: settings of all services, such as the database, broker and bucket of `service_sizes.place`.
    """
    started: list[Service] = []

    def start(*options: str, **settings: object) -> Service:
        """Start a service. options: command-line options of `cupel serve` (default: --port 0). settings:
        values of CUPEL_* variables."""
        started.append(launch(folder, options, at | settings))
        return started[-1]

    try:
        yield start
    finally:
        for service in started:
            if service.process.poll() is None:
                service.kill()


def launch(folder: Path, options: Sequence[str], settings: Mapping[str, object]) -> Service:
    """Start `cupel serve` and wait until it reports that it is ready."""
    chosen = {f"CUPEL_{name.upper()}": str(value) for name, value in settings.items()}
    with (folder / "service.log").open("a") as log:
        process = subprocess.Popen(
            command(folder / "data", *options),
            env={**os.environ, **chosen},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            process_group=0,
        )
    assert process.stdout is not None
    for line in process.stdout:
        if match := re.search(r"ready at (\S+)", line):
            return Service(process, folder / "data", match.group(1))
    raise AssertionError(f"ended before it was ready:\n{(folder / 'service.log').read_text()}")
