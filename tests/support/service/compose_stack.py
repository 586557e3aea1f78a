"""The services of docker-compose.yml as local processes, without a container engine.

Each service of Cupel runs with the command, settings, start order, health check and restart policy of the
file. Private local servers replace the third-party images. Only addresses, ports, /data and /run/secrets
are replaced. All processes end with the test process.
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
"""Settings that detect a lost job within two seconds, and analyse leaderboards soon after."""

STARTING = 120.0
"""Seconds within which all services become healthy, on a machine that is busy with other tests."""

STABLE_SECONDS = 10.0
"""Seconds after which a container counts as stable, as for Docker.

The first restart comes after 0.1 s. The delay doubles until a container is stable.
"""

CHECK_SECONDS = 0.02
"""Seconds between two checks for ended processes."""

Services = Mapping[str, Any]


@cache
def read_services() -> Services:
    """Return the services of docker-compose.yml, with the variables of the file at their defaults."""
    text = (ROOT / "docker-compose.yml").read_text()
    text = re.sub(r"(?<!\$)\$\{\w+:-(.*?)\}", r"\1", text).replace("$$", "$")
    services: Services = yaml.safe_load(text)["services"]
    return services


def cupel_services() -> list[str]:
    """Return the services of Cupel (built from its Dockerfile), each after those that it depends on."""
    names: list[str] = []

    def add(name: str) -> None:
        for needed in read_services()[name].get("depends_on", {}):
            add(needed)
        if "build" in read_services()[name] and name not in names:
            names.append(name)

    for name in read_services():
        add(name)
    return names


def port_of(service: str) -> str:
    """Return the port on which one of our services listens in its container, or an empty string."""
    published: Sequence[str] = read_services()[service].get("ports", ())
    if published:
        return published[0].rpartition(":")[2]
    return environment_of(service).get("CUPEL_METRICS_PORT", "")


def environment_of(service: str) -> dict[str, str]:
    return dict(read_services()[service]["environment"])


def parse_seconds(text: str) -> float:
    """Return a duration such as `30s` in seconds."""
    assert text.endswith("s"), text
    return float(text.removesuffix("s"))


class Container:
    """A container of one of our services, as a process that leads a process group."""

    def __init__(
        self, service: str, folder: Path, replaced: Mapping[str, str], more: Mapping[str, str]
    ) -> None:
        """Prepare the container of `service`.

        folder: holds /data and the log. replaced: regular expression -> replacement in each text of the
        service's definition. more: additional environment variables.
        """
        self.service = service
        self.folder = folder
        self.port = free_port()
        own_port = {rf"\b{port_of(service)}\b": str(self.port)} if port_of(service) else {}
        data = {r"^/data\b": str(folder / "data")}
        self._description = _replaced(read_services()[service], {**replaced, **own_port, **data})
        self._extra_settings = more
        (folder / "data").mkdir(parents=True)
        self.process: subprocess.Popen[bytes] | None = None
        self.should_run = False
        self.ends: list[tuple[float, int]] = []
        """The time and the exit code of each end of the process, unless `stop` or `destroy` ended it."""
        self._due = 0.0
        self._pause = 0.0
        self._started = 0.0
        # The lock prevents the watcher from restarting a container that a test has just stopped.
        self._lock = threading.RLock()

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables of the image and of the file, without those of the test process."""
        image = {
            "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder / "data"),
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        return {**image, **self._description["environment"], **self._extra_settings}

    @property
    def restarts(self) -> bool:
        return bool(self._description["restart"] != "no")

    @property
    def alive(self) -> bool:
        return self.process is not None and self.code is None

    @property
    def code(self) -> int | None:
        """Return the exit code of the process, or None while it runs."""
        return None if self.process is None else self.process.poll()

    def start(self) -> None:
        with self._lock, (self.folder / "log").open("ab") as log:
            self.should_run, self._due, self._started = True, 0.0, time.monotonic()
            self.process = subprocess.Popen(
                self._description["command"],
                env=self.environment,
                cwd=self.folder / "data",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                preexec_fn=die_with_parent(),
            )

    def run(self, *command: str) -> str:
        """Run a command as `docker compose exec` would, and return its output."""
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
        """Return the result of the health check, or whether the process runs if there is no check."""
        check = self._description.get("healthcheck")
        if check is None or not self.alive:
            return self.alive
        kind, *rest = check["test"]
        command = ["sh", "-c", *rest] if kind == "CMD-SHELL" else rest
        with suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                command,
                env=self.environment,
                capture_output=True,
                timeout=seconds(parse_seconds(check["timeout"])),
            )
            return done.returncode == 0
        return False

    def completed(self) -> bool:
        """Return whether the process ended successfully; raise AssertionError if it failed."""
        assert not self.code, f"{self.service} ended with {self.code}:\n{self.log()[-3000:]}"
        return self.code == 0

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def processes(self) -> list[psutil.Process]:
        """Return all processes of the container, the main process first."""
        if self.process is None:
            return []
        with suppress(psutil.NoSuchProcess):
            main = psutil.Process(self.process.pid)
            return [main, *main.children(recursive=True)]
        return []

    def pool(self) -> list[psutil.Process]:
        """Return the pool processes of a worker: forks of the main process with the same command line."""
        commands: list[tuple[psutil.Process, list[str]]] = []
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                commands.append((process, process.cmdline()))
        return [process for process, command in commands[1:] if command == commands[0][1]]

    def kill(self) -> None:
        """Kill all processes at once, as a crash of the machine would."""
        send(signal.SIGKILL, self.processes())

    def kill_pool(self) -> None:
        """Kill the pool processes of a worker."""
        send(signal.SIGKILL, self.pool())

    def kill_main(self) -> None:
        """Kill the main process; the watcher then kills the other processes and restarts the container."""
        assert self.process is not None
        self.process.kill()

    def pause(self) -> None:
        """Suspend all processes, as `docker compose pause` does."""
        send(signal.SIGSTOP, self.processes())

    def resume(self) -> None:
        send(signal.SIGCONT, self.processes())

    def stop(self) -> None:
        """Stop the container like `docker compose stop`: SIGTERM, then SIGKILL after the grace period."""
        with self._lock:
            self.should_run = False
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds(parse_seconds(self._description["stop_grace_period"])))
        self.destroy()

    def destroy(self) -> None:
        """Kill all processes and do not restart them."""
        with self._lock:
            self.should_run = False
        self.kill()
        if self.process is not None:
            self.process.wait()
            self._kill_group()

    def restart_if_ended(self) -> None:
        """Record the end of the process, and restart it when its restart is due, as Docker does."""
        with self._lock:
            if self.process is None or not self.should_run or self.alive:
                return
            if not self._due:
                self._note_end()
            elif self.restarts and self._due <= time.monotonic():
                self.start()

    def _note_end(self) -> None:
        assert self.process is not None
        self._kill_group()
        now = time.monotonic()
        self.ends.append((now, self.process.returncode))
        is_stable = now - self._started > STABLE_SECONDS
        self._pause = 0.1 if is_stable or not self._pause else min(2 * self._pause, 60.0)
        self._due = now + self._pause

    def _kill_group(self) -> None:
        """Kill the process group, as the kernel does in a container when the main process ends."""
        assert self.process is not None
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)


def send(number: signal.Signals, processes: Sequence[psutil.Process]) -> None:
    """Send a signal to the processes that have not ended."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _replaced(value: Any, replaced: Mapping[str, str]) -> Any:
    """Return `value` with the replacements applied to every string in it."""
    if isinstance(value, Mapping):
        return {name: _replaced(item, replaced) for name, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, replaced) for item in value]
    if not isinstance(value, str):
        return value
    for pattern, text in replaced.items():
        value = re.sub(pattern, text.replace("\\", r"\\"), value)
    return value


class Stack:
    """All services of docker-compose.yml.

    settings: values of CUPEL_* variables that override those of the file. Use a stack only in the thread that
    created it, because a process ends with the thread that started it.
    """

    def __init__(self, **settings: object) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cupel-stack-"))
        self.folder.chmod(0o755)  # PostgreSQL has to run as another user
        self._extra_settings = {f"CUPEL_{name.upper()}": str(value) for name, value in settings.items()}
        self._secrets = self.folder / "secrets"
        self.containers: dict[str, Container] = {}
        self._numbers = count(2)
        self._stop_watching = threading.Event()
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
        """Start the stack like `make up`: write the secrets, start the services in order, wait for health."""
        subprocess.run(
            [sys.executable, ROOT / "deploy" / "make_secrets.py", self._secrets],
            check=True,
            capture_output=True,
        )
        self._start_servers()
        for service in cupel_services():
            self.containers[service] = self._container(service)
        self._watcher.start()
        for service in cupel_services():
            self._wait_for_dependencies(service)
            self.containers[service].start()
        self.wait_until_healthy()
        return self

    def _start_servers(self) -> None:
        """Start the local servers that replace third-party images, with the secrets of the stack."""
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
        """Return a new container; its addresses and paths are replaced by local ones."""
        ports = {
            "postgres:5432": self.postgres.port,
            "redis:6379": self.redis.port,
            "s3:8333": self.proxy.port,
        }
        replaced = {rf"\b{address}\b": f"127.0.0.1:{port}" for address, port in ports.items()}
        replaced |= {r"^/run/secrets\b": str(self._secrets)}
        # The file's key is not a valid user name of Swift, which has two parts.
        more = {**self._extra_settings, "CUPEL_S3_KEY": self.s3.key}
        return Container(service, self.folder / (name or service), replaced, more)

    @contextmanager
    def extra_container(self, service: str) -> Iterator[Container]:
        """Run an additional container of a service inside the block, as `--scale` does."""
        name = f"{service}-{next(self._numbers)}"
        container = self.containers[name] = self._container(service, name)
        container.start()
        try:
            until(container.healthy, limit=STARTING)
            yield container
        finally:
            container.stop()
            del self.containers[name]

    def _wait_for_dependencies(self, service: str) -> None:
        for needed, dependency in read_services()[service].get("depends_on", {}).items():
            conditions: dict[str, Callable[[], bool]] = {
                "service_started": lambda: True,
                "service_healthy": partial(self._healthy, needed),
                "service_completed_successfully": partial(self._completed, needed),
            }
            until(conditions[dependency["condition"]], limit=STARTING)

    def _healthy(self, service: str) -> bool:
        if service in self.containers:
            return self[service].healthy()
        server: components.Server = getattr(self, service)
        return server.answers()

    def _completed(self, service: str) -> bool:
        return self[service].completed()

    def wait_until_healthy(self) -> None:
        """Wait like `docker compose up --wait`."""
        for container in self.containers.values():
            until(container.healthy if container.restarts else container.completed, limit=STARTING)

    def _watch(self) -> None:
        while not self._stop_watching.wait(CHECK_SECONDS):
            for container in list(self.containers.values()):
                container.restart_if_ended()

    def close(self) -> None:
        self._stop_watching.set()
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

    # Inspection of the stack

    def __getitem__(self, name: str) -> Container:
        return self.containers[name]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self['gateway'].port}"

    def token(self) -> str:
        """Issue an admin token as deploy/README.md describes, and return it."""
        command = ("cupel", "admin", "token", "--team", "organisers", "--scope", "admin")
        return self["gateway"].run(*command).strip()

    def client(self) -> Client:
        return Client(self.url, self.token(), attempts=10)

    def query(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Return rows of the database, read without the service."""
        with psycopg.connect(self.postgres.url, autocommit=True) as connection:
            return connection.execute(text, values).fetchall()

    def blobs(self) -> set[str]:
        """Return the keys of all objects in the bucket, read without the service."""
        pages = self._s3().get_paginator("list_objects_v2").paginate(Bucket="cupel")
        return {item["Key"] for page in pages for item in page.get("Contents", ())}

    def remove_blob(self, key: str) -> bytes:
        """Remove a blob from the bucket and return its content."""
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

    def log_tails(self) -> str:
        """Return the last lines of the log of each container."""
        tails = ((name, container.log()[-2000:]) for name, container in self.containers.items())
        return "\n".join(f"--- {name}\n{tail}" for name, tail in tails)
