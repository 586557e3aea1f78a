"""docker-compose.yml without a container engine.

Each of our services is a local process, with the command, settings, order, health check and restarts that the
file gives it, on private stand-ins for the images of others. What differs from containers is text only:
addresses and ports, /data and /run/secrets. All of it dies with us.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, Self

import boto3
import psutil
import psycopg
import yaml

from cupel_client.api.client import Client
from cupel_standalone.supervisor import die_with_parent
from support.patience import seconds, until
from support.service import components
from support.service.components import free_port
from support.service.store_proxy import Proxy

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent

QUICK = {
    "lease_seconds": 2,
    "renew_seconds": 0.5,
    "sweep_seconds": 0.5,
    "retry_seconds": 0.2,
    "analysis_seconds": 10,
}
"""Settings with which a lost job is known in two seconds, and what boards are worth soon after."""

STARTING = 120.0
"""Seconds for everything to become healthy, on a machine that is busy with other tests."""

STEADY = 10.0
"""Docker starts what died again after 0.1 s, doubled each time unless it lived for so many seconds."""

LOOK = 0.02
"""Seconds between two looks at what has died."""

Described = Mapping[str, Any]


@cache
def described() -> Described:
    """The services of docker-compose.yml, with variables of the file at their defaults."""
    text = (ROOT / "docker-compose.yml").read_text()
    text = re.sub(r"(?<!\$)\$\{\w+:-(.*?)\}", r"\1", text).replace("$$", "$")
    services: Described = yaml.safe_load(text)["services"]
    return services


def ours() -> list[str]:
    """The services built from our Dockerfile, each after those that it depends on."""
    found: list[str] = []

    def add(name: str) -> None:
        for needed in described()[name].get("depends_on", {}):
            add(needed)
        if "build" in described()[name] and name not in found:
            found.append(name)

    for name in described():
        add(name)
    return found


def port_of(service: str) -> str:
    """The port that a service of ours listens on in its container; empty if it has none."""
    published: Sequence[str] = described()[service].get("ports", ())
    if published:
        return published[0].rpartition(":")[2]
    return environment_of(service).get("CUPEL_METRICS_PORT", "")


def environment_of(service: str) -> dict[str, str]:
    return dict(described()[service]["environment"])


def seconds_of(text: str) -> float:
    """A duration of the file: `30s`."""
    assert text.endswith("s"), text
    return float(text.removesuffix("s"))


class Container:
    """One container of a service of ours, as a process that leads a group."""

    def __init__(
        self, service: str, folder: Path, replaced: Mapping[str, str], more: Mapping[str, str]
    ) -> None:
        """folder: of its /data and log. replaced: regular expression -> text, in all that the file says."""
        self.service = service
        self.folder = folder
        self.port = free_port()
        own_port = {rf"\b{port_of(service)}\b": str(self.port)} if port_of(service) else {}
        data = {r"^/data\b": str(folder / "data")}
        self._about = _replaced(described()[service], {**replaced, **own_port, **data})
        self._more = more
        (folder / "data").mkdir(parents=True)
        self.process: subprocess.Popen[bytes] | None = None
        self.wanted = False
        self.ends: list[tuple[float, int]] = []
        """When the process ended by itself or was killed, and with which exit code."""
        self._due = 0.0
        self._pause = 0.0
        self._started = 0.0
        self._lock = threading.RLock()  # so that nobody starts what another one has just stopped

    @property
    def environment(self) -> dict[str, str]:
        """What the image has, and what the file gives; nothing of whoever runs the tests."""
        image = {
            "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder / "data"),
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        return {**image, **self._about["environment"], **self._more}

    @property
    def restarts(self) -> bool:
        return bool(self._about["restart"] != "no")

    @property
    def alive(self) -> bool:
        return self.process is not None and self.code is None

    @property
    def code(self) -> int | None:
        """With what it ended; None while it runs."""
        return None if self.process is None else self.process.poll()

    def start(self) -> None:
        with self._lock, (self.folder / "log").open("ab") as log:
            self.wanted, self._due, self._started = True, 0.0, time.monotonic()
            self.process = subprocess.Popen(
                self._about["command"],
                env=self.environment,
                cwd=self.folder / "data",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                preexec_fn=die_with_parent(),
            )

    def run(self, *command: str) -> str:
        """What a command prints in the container, as by `docker compose exec`."""
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self.folder / "data",
            capture_output=True,
            text=True,
            timeout=seconds(60),
        )
        assert done.returncode == 0, f"{self.service}: {command}: {done.stderr}"
        return done.stdout

    def healthy(self) -> bool:
        """What the health check says; where there is none, whether it runs."""
        check = self._about.get("healthcheck")
        if check is None or not self.alive:
            return self.alive
        kind, *rest = check["test"]
        command = ["sh", "-c", *rest] if kind == "CMD-SHELL" else rest
        with suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                command,
                env=self.environment,
                capture_output=True,
                timeout=seconds(seconds_of(check["timeout"])),
            )
            return done.returncode == 0
        return False

    def completed(self) -> bool:
        """Whether it ended, and well; a failure is an error."""
        assert not self.code, f"{self.service} ended with {self.code}:\n{self.log()[-3000:]}"
        return self.code == 0

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def processes(self) -> list[psutil.Process]:
        """All of its processes, the one that it was started as first."""
        if self.process is None:
            return []
        with suppress(psutil.NoSuchProcess):
            main = psutil.Process(self.process.pid)
            return [main, *main.children(recursive=True)]
        return []

    def pool(self) -> list[psutil.Process]:
        """The processes that a worker has for its jobs: forks of its first one, with its command line."""
        found: list[tuple[psutil.Process, list[str]]] = []
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                found.append((process, process.cmdline()))
        return [process for process, command in found[1:] if command == found[0][1]]

    def kill(self) -> None:
        """Kill all of it at once, as losing its machine would."""
        send(signal.SIGKILL, self.processes())

    def kill_pool(self) -> None:
        """Kill the processes that a worker has for its jobs."""
        send(signal.SIGKILL, self.pool())

    def kill_main(self) -> None:
        """Kill the process that the container was started as; the rest goes as soon as that is noticed."""
        assert self.process is not None
        self.process.kill()

    def pause(self) -> None:
        """Stop all of it, as `docker compose pause` does."""
        send(signal.SIGSTOP, self.processes())

    def resume(self) -> None:
        send(signal.SIGCONT, self.processes())

    def stop(self) -> None:
        """`docker compose stop`: asked to end, given its grace, then killed; not started again."""
        with self._lock:
            self.wanted = False
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds(seconds_of(self._about["stop_grace_period"])))
        self.destroy()

    def destroy(self) -> None:
        """End all of it at once, for good."""
        with self._lock:
            self.wanted = False
        self.kill()
        if self.process is not None:
            self.process.wait()
            self._bury()

    def look(self) -> None:
        """What Docker does all the time: note an end, and start again what is to be started again."""
        with self._lock:
            if self.process is None or not self.wanted or self.alive:
                return
            if not self._due:
                self._note_end()
            elif self.restarts and self._due <= time.monotonic():
                self.start()

    def _note_end(self) -> None:
        assert self.process is not None
        self._bury()
        now = time.monotonic()
        self.ends.append((now, self.process.returncode))
        steady = now - self._started > STEADY
        self._pause = 0.1 if steady or not self._pause else min(2 * self._pause, 60.0)
        self._due = now + self._pause

    def _bury(self) -> None:
        """With the first process of a container go all others: the kernel sees to that, here we do."""
        assert self.process is not None
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)


def send(number: signal.Signals, processes: Sequence[psutil.Process]) -> None:
    """Send a signal to those that are still there."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _replaced(value: Any, replaced: Mapping[str, str]) -> Any:
    """`value`, with the replacements made in every text in it."""
    if isinstance(value, Mapping):
        return {name: _replaced(part, replaced) for name, part in value.items()}
    if isinstance(value, list):
        return [_replaced(part, replaced) for part in value]
    if not isinstance(value, str):
        return value
    for pattern, text in replaced.items():
        value = re.sub(pattern, text.replace("\\", r"\\"), value)
    return value


class Stack:
    """All services of docker-compose.yml.

    settings: given to each of our services over what the file says, as CUPEL_*. Use it from the thread that
    made it: what another thread starts ends with that.
    """

    def __init__(self, **settings: object) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cupel-stack-"))
        self.folder.chmod(0o755)  # PostgreSQL has to run as another user
        self._more = {f"CUPEL_{name.upper()}": str(value) for name, value in settings.items()}
        self._secrets = self.folder / "secrets"
        self.containers: dict[str, Container] = {}
        self._numbers = count(2)
        self._watching = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="docker", daemon=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> Self:
        """`make up`: the secrets, then everything in order, until all of it is healthy."""
        subprocess.run(
            [sys.executable, ROOT / "deploy" / "make_secrets.py", self._secrets],
            check=True,
            capture_output=True,
        )
        self._start_stand_ins()
        for service in ours():
            self.containers[service] = self._container(service)
        self._watcher.start()
        for service in ours():
            self._wait_for_what_it_needs(service)
            self.containers[service].start()
        self.wait_until_healthy()
        return self

    def _start_stand_ins(self) -> None:
        """What deploy/README.md names for the images of others, with the secrets that the file gives them."""
        for kind in (components.Postgres, components.Redis, components.Swift):
            for program in kind.programs:
                components.require(program)
        folder = self.folder
        self.postgres = components.Postgres(folder / "postgres")
        self.redis = components.Redis(folder / "redis")
        self.s3 = components.Swift(folder / "s3")
        self.postgres.password = self._secret("database_password")
        self.postgres.database = "cupel"
        self.redis.password = self._secret("broker_password")
        self.s3.secret = self._secret("s3_secret")
        for server in (self.postgres, self.redis, self.s3):
            server.dying = die_with_parent()
            server.launch()
        for server in (self.postgres, self.redis, self.s3):
            server.wait()
        self.proxy = Proxy(self.s3.port)

    def _secret(self, name: str) -> str:
        return (self._secrets / name).read_text()

    def _container(self, service: str, name: str = "") -> Container:
        """A new container: what is unlike in it is where things are."""
        there = {
            "postgres:5432": self.postgres.port,
            "redis:6379": self.redis.port,
            "s3:8333": self.proxy.port,
        }
        replaced = {rf"\b{address}\b": f"127.0.0.1:{port}" for address, port in there.items()}
        replaced |= {r"^/run/secrets\b": str(self._secrets)}
        # Swift's names of users are made of two parts.
        more = {**self._more, "CUPEL_S3_KEY": self.s3.key}
        return Container(service, self.folder / (name or service), replaced, more)

    @contextmanager
    def one_more(self, service: str) -> Iterator[Container]:
        """Within it there is one more container of a service, as by `--scale`."""
        name = f"{service}-{next(self._numbers)}"
        container = self.containers[name] = self._container(service, name)
        container.start()
        try:
            until(container.healthy, limit=STARTING)
            yield container
        finally:
            container.stop()
            del self.containers[name]

    def _wait_for_what_it_needs(self, service: str) -> None:
        for needed, how in described()[service].get("depends_on", {}).items():
            conditions: dict[str, Callable[[], bool]] = {
                "service_started": lambda: True,
                "service_healthy": partial(self._healthy, needed),
                "service_completed_successfully": partial(self._completed, needed),
            }
            until(conditions[how["condition"]], limit=STARTING)

    def _healthy(self, service: str) -> bool:
        if service in self.containers:
            return self[service].healthy()
        server: components.Server = getattr(self, service)
        return server.answers()

    def _completed(self, service: str) -> bool:
        return self[service].completed()

    def wait_until_healthy(self) -> None:
        """`docker compose up --wait`."""
        for container in self.containers.values():
            until(container.healthy if container.restarts else container.completed, limit=STARTING)

    def _watch(self) -> None:
        while not self._watching.wait(LOOK):
            for container in list(self.containers.values()):
                container.look()

    def close(self) -> None:
        self._watching.set()
        if self._watcher.is_alive():
            self._watcher.join()
        for container in self.containers.values():
            container.destroy()
        for name in ("postgres", "redis", "s3"):
            if hasattr(self, name):
                getattr(self, name).stop(signal.SIGKILL)
        if hasattr(self, "proxy"):
            self.proxy.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # What tests ask

    def __getitem__(self, name: str) -> Container:
        return self.containers[name]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self['gateway'].port}"

    def token(self) -> str:
        """An administrator's token, issued as deploy/README.md says."""
        command = ("cupel", "admin", "token", "--team", "organisers", "--scope", "admin")
        return self["gateway"].run(*command).strip()

    def client(self) -> Client:
        return Client(self.url, self.token(), attempts=10)

    def query(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows straight from the database: what no door of the service could embellish."""
        with psycopg.connect(self.postgres.url, autocommit=True) as connection:
            return connection.execute(text, values).fetchall()

    def blobs(self) -> set[str]:
        """The keys of all objects in the bucket, asked of the store itself."""
        pages = self._s3().get_paginator("list_objects_v2").paginate(Bucket="cupel")
        return {blob["Key"] for page in pages for blob in page.get("Contents", ())}

    def take_blob(self, key: str) -> bytes:
        """Remove a blob from the bucket; what it was."""
        content: bytes = self._s3().get_object(Bucket="cupel", Key=key)["Body"].read()
        self._s3().delete_object(Bucket="cupel", Key=key)
        return content

    def put_blob(self, key: str, content: bytes) -> None:
        self._s3().put_object(Bucket="cupel", Key=key, Body=content)

    def _s3(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.s3.port}",
            region_name="us-east-1",
            aws_access_key_id=self.s3.key,
            aws_secret_access_key=self.s3.secret,
        )

    def last_words(self) -> str:
        """What each container said last."""
        return "\n".join(
            f"--- {name}\n{container.log()[-2000:]}" for name, container in self.containers.items()
        )
