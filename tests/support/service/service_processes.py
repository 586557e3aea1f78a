"""Real services, started as people start them: `cupel serve`, with a data folder and a port of its own."""

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
    """A running `cupel serve`: where it is, what it keeps, and what it said."""

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
        """The process that the supervisor keeps under `name`, once it is there."""
        word = {"gateway": "cupel_gateway"}.get(name, name)
        return until(lambda: next((child for child in self.children() if word in command_line(child)), None))

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def pool(self) -> list[psutil.Process]:
        """The processes that the worker has for its jobs."""
        return until(self.child("worker").children)

    def family(self) -> list[psutil.Process]:
        """Every process of the service but the supervisor."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> None:
        """End the supervisor as a power cut would; whatever it started must go with it."""
        family = self.family()
        self.process.kill()
        self.process.communicate()
        _, alive = psutil.wait_procs(family, timeout=seconds(30))
        assert not alive, f"outlived the service: {alive}"

    def stop(self) -> int:
        """Stop the service as Ctrl-C would; its exit code."""
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
    """A function that starts services on `folder`, all on the same data; those left at the end are ended.

    at: settings of all of them, such as where a place of service_sizes.py is.
    """
    started: list[Service] = []

    def start(*options: str, **settings: object) -> Service:
        """options: of the command line, default `--port 0`. settings: as in CUPEL_*."""
        started.append(launch(folder, options, at | settings))
        return started[-1]

    try:
        yield start
    finally:
        for service in started:
            if service.process.poll() is None:
                service.kill()


def launch(folder: Path, options: Sequence[str], settings: Mapping[str, object]) -> Service:
    """Start `cupel serve` and wait until it says that it is ready."""
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
