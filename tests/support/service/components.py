"""PostgreSQL, Redis, RabbitMQ and Swift for tests: private servers, or those that the environment names.

CUPEL_TEST_POSTGRES, CUPEL_TEST_REDIS, CUPEL_TEST_RABBITMQ and CUPEL_TEST_S3 may hold addresses (S3
with its key and secret: http://key:secret@host:port). Otherwise a server is started on first use,
once for all processes of a test run, by a keeper process that stops it at the end of the run:

    PYTHONPATH=tests python -m support.service.components postgres FOLDER OWNER

runs a server in FOLDER until the process OWNER ends. If a program is not installed, the test is skipped,
or fails if CUPEL_REQUIRE_COMPONENTS is set.
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil
import pytest

from support.patience import seconds

SERVER_FOLDERS = (
    "/usr/sbin",
    "/usr/lib/rabbitmq/bin",
    *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin"))),
)
"""Folders of server programs that are usually not on the PATH."""

START_SECONDS = 60.0
"""Longest time that a server may take to start."""


class Missing(Exception):
    """A program is not installed; the message names it."""


def find(program: str) -> str:
    """Return the path of a program; raise Missing if it is not installed."""
    path = shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", ""), *SERVER_FOLDERS]))
    if path is None:
        raise Missing(f"{program} is not installed here")
    return path


def require(program: str) -> str:
    """Return the path of a program. If it is missing, skip the test, or fail if components are required."""
    try:
        return find(program)
    except Missing as missing:
        unavailable(str(missing))
        raise


def unavailable(reason: str) -> None:
    """Skip the test, or fail it if components are required."""
    if os.environ.get("CUPEL_REQUIRE_COMPONENTS"):
        pytest.fail(f"{reason}, and CUPEL_REQUIRE_COMPONENTS says that it must be")
    pytest.skip(f"{reason} (deploy/README.md says what the tests use)")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def reachable(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(seconds(1))
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Server:
    """A private server in its own folder, on a port that stays the same after a restart."""

    programs: Sequence[str] = ()
    user: str | None = None
    """The system user that runs it, because some servers refuse to run as root."""
    dying: Callable[[], None] | None = None
    """The preexec_fn of its processes: see cupel_standalone.supervisor.die_with_parent."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        for program in self.programs:
            find(program)

    @property
    def url(self) -> str:
        """The URL of the server, with credentials."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Create the files of the server in its folder, once."""

    def commands(self) -> list[list[str]]:
        """Return the command lines of the server's processes, in starting order."""
        raise NotImplementedError

    def answers(self) -> bool:
        return reachable(self.port)

    def start(self) -> "Server":
        """Start the server and wait until it answers."""
        self.launch()
        self.wait()
        return self

    def launch(self) -> None:
        """Start the processes of the server."""
        if not self.folder.exists():
            self.folder.mkdir(parents=True)
            self._change_owner()
            self.prepare()
        self.processes = [self._spawn(command) for command in self.commands()]

    def wait(self) -> None:
        """Wait until the server answers."""
        until = time.monotonic() + seconds(START_SECONDS)
        while not self.answers():
            if time.monotonic() > until or any(process.poll() is not None for process in self.processes):
                raise RuntimeError(f"{type(self).__name__} did not start:\n{self.log_end()}")
            time.sleep(0.05)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop the processes of the server with a signal. SIGKILL simulates a crash."""
        for process in reversed(self.processes):
            end_process(process, number)
        self.processes = []

    def log_end(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    def run(self, command: Sequence[str]) -> None:
        """Run a program to completion as the server's system user."""
        with self._log() as log:
            subprocess.run(
                command,
                check=True,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=self._user(),
                env=self.environment(),
            )

    def environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self._log() as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=self._user(),
                env=self.environment(),
                start_new_session=True,
                preexec_fn=self.dying,
            )

    def _log(self) -> IO[bytes]:
        return (self.folder / "log").open("ab")

    def _user(self) -> str | None:
        return self.user if os.geteuid() == 0 else None

    def _change_owner(self) -> None:
        if self._user() is not None:
            shutil.chown(self.folder, self._user())


def end_process(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to a process, and kill its group after it ended or timed out."""
    process.send_signal(number)
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds(20))
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Postgres(Server):
    """A PostgreSQL cluster of the user cupel."""

    programs = ("initdb", "postgres")
    user = "postgres"
    password = "pw"
    database = "postgres"
    """Database that the first start creates, unless initdb already does."""

    @property
    def url(self) -> str:
        return self._url(self.database)

    def _url(self, database: str) -> str:
        return f"postgresql://cupel:{self.password}@127.0.0.1:{self.port}/{database}"

    def wait(self) -> None:
        super().wait()
        self._make_database()

    def prepare(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self.password)
        secret.chmod(0o644)
        options = [
            "--username=cupel",
            f"--pwfile={secret}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
        ]
        self.run([find("initdb"), "--no-sync", *options, "--pgdata", str(self.folder / "data")])

    def commands(self) -> list[list[str]]:
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            "fsync": "off",  # no test cuts the power, so syncing is not needed
            "full_page_writes": "off",
            "autovacuum": "off",  # the tables are small and live for seconds
            "jit": "off",
            "max_connections": 300,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [[find("postgres"), "-D", str(self.folder / "data"), *options]]

    def answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self._url("postgres"), connect_timeout=int(seconds(5))).close()
        except psycopg.OperationalError:
            return False
        return True

    def _make_database(self) -> None:
        import psycopg

        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            there = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [self.database])
            if there.fetchone() is None:
                connection.execute(f"CREATE DATABASE {self.database}")

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop with SIGINT, PostgreSQL's fast shutdown, because SIGTERM waits for the clients."""
        alive = [psutil.Process(process.pid) for process in self.processes if process.poll() is None]
        children = [child for process in alive for child in process.children(recursive=True)]
        super().stop(number)
        # Each child leads its own process group, and holds shared memory that a restart needs.
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(children, timeout=seconds(30))


class Redis(Server):
    """Redis as docker-compose.yml configures it: append-only file, no eviction."""

    programs = ("redis-server",)
    password = ""

    @property
    def url(self) -> str:
        login = f":{self.password}@" if self.password else ""
        return f"redis://{login}127.0.0.1:{self.port}/0"

    def commands(self) -> list[list[str]]:
        settings = [
            "--save",
            "",
            "--appendonly",
            "yes",
            "--maxmemory-policy",
            "noeviction",
            "--databases",
            "10000",
        ]
        if self.password:
            settings += ["--requirepass", self.password]
        return [[find("redis-server"), "--bind", "127.0.0.1", "--port", str(self.port), *settings]]

    def empty(self) -> None:
        """Delete the data on disk. The server must be stopped."""
        shutil.rmtree(self.folder / "appendonlydir", ignore_errors=True)


class RabbitMQ(Server):
    """RabbitMQ with its own Erlang port mapper (epmd)."""

    programs = ("rabbitmq-server",)

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    def prepare(self) -> None:
        self._names, self._distribution = free_port(), free_port()

    def environment(self) -> dict[str, str]:
        return {
            **super().environment(),
            "RABBITMQ_NODENAME": f"cupel{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "ERL_EPMD_PORT": str(self._names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            # Idle schedulers of Erlang wait actively by default.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +sbwtdcpu none +sbwtdio none",
        }

    def commands(self) -> list[list[str]]:
        # The script of the same name on the PATH requires a certain user and folder, so do not use it.
        epmd = [find("epmd"), "-port", str(self._names), "-address", "127.0.0.1"]
        return [epmd, ["/usr/lib/rabbitmq/bin/rabbitmq-server"]]

    def answers(self) -> bool:
        from kombu.connection import Connection

        try:
            with Connection(self.url, connect_timeout=seconds(5)) as connection:
                connection.connect()
        except (OSError, *Connection(self.url).connection_errors):
            return False
        return True


class Swift(Server):
    """OpenStack Swift with its S3 API: an object store that Debian packages.

    With memcached, if it is installed, Swift needs less than half of the processor time.
    """

    programs = ("swift-proxy-server", "swift-account-server", "swift-container-server", "swift-object-server")
    key, secret = "cupel:cupel", "secret"
    BACKENDS = ("account", "container", "object")

    @property
    def url(self) -> str:
        return f"http://{self.key.replace(':', '%3A')}:{self.secret}@127.0.0.1:{self.port}"

    def prepare(self) -> None:
        self._ports = {kind: free_port() for kind in self.BACKENDS}
        self.cache_port = free_port() if shutil.which("memcached") else CLOSED_PORT
        (self.folder / "devices" / "disk").mkdir(parents=True)
        (self.folder / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = cupel\n")
        self._make_rings()
        for kind, port in self._ports.items():
            self._configure(kind, port, f"pipeline = {kind}-server", BACKEND.format(kind=kind))
        pipeline = "pipeline = catch_errors cache s3api tempauth proxy-server"
        self._configure("proxy", self.port, pipeline, PROXY.format(self=self))

    def _make_rings(self) -> None:
        """Create the rings with Swift's Python modules, because its command takes a second per ring."""
        python = Path(find("swift-ring-builder")).read_text().splitlines()[0].removeprefix("#!").split()
        self.run([*python, "-c", RINGS, *(f"{kind}:{port}" for kind, port in self._ports.items())])

    def _configure(self, kind: str, port: int, pipeline: str, rest: str) -> None:
        (self.folder / f"{kind}.conf").write_text(
            f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {port}\nworkers = 0\nswift_dir = {self.folder}\n"
            f"devices = {self.folder}/devices\nmount_check = false\nlog_address = {self.folder}/none\n"
            f"disable_fallocate = true\nlog_level = ERROR\nuser = root\n"
            f"[pipeline:main]\n{pipeline}\n{rest}"
        )

    def commands(self) -> list[list[str]]:
        cache = ["memcached", "-l", "127.0.0.1", "-p", str(self.cache_port), "-u", "nobody"]
        servers = [
            [find(f"swift-{kind}-server"), str(self.folder / f"{kind}.conf")]
            for kind in (*self.BACKENDS, "proxy")
        ]
        return servers if self.cache_port == CLOSED_PORT else [cache, *servers]

    def answers(self) -> bool:
        return reachable(self.port) and all(map(reachable, self._ports.values()))


RINGS = """
import sys
from swift.common.ring import RingBuilder
for given in sys.argv[1:]:
    kind, port = given.split(":")
    builder = RingBuilder(4, 1, 1)
    where = {"ip": "127.0.0.1", "port": int(port), "device": "disk", "region": 1, "zone": 1}
    copy = {"replication_ip": "127.0.0.1", "replication_port": int(port)}
    builder.add_dev({"id": 0, "weight": 1.0, "meta": "", **where, **copy})
    builder.rebalance()
    builder.get_ring().save(kind + ".ring.gz")
"""

CLOSED_PORT = 1
"""A port on which nothing listens, for a Swift without memcached."""

BACKEND = "[app:{kind}-server]\nuse = egg:swift#{kind}\n"

PROXY = """[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{self.cache_port}
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
[filter:tempauth]
use = egg:swift#tempauth
user_cupel_cupel = {self.secret} .admin
"""


SERVERS: dict[str, Callable[[Path], Server]] = {
    "postgres": Postgres,
    "redis": Redis,
    "rabbitmq": RabbitMQ,
    "s3": Swift,
}


def share_servers() -> None:
    """Let all processes started from now on share servers, which end with this process."""
    if "CUPEL_TEST_SERVERS" not in os.environ:
        folder = tempfile.mkdtemp(prefix="cupel-servers-")
        os.chmod(folder, 0o755)  # PostgreSQL runs as another user
        os.environ |= {"CUPEL_TEST_SERVERS": folder, "CUPEL_TEST_OWNER": str(os.getpid())}


def address(kind: str) -> str:
    """Return the URL of a server (postgres, redis, rabbitmq or s3), and start it on first use."""
    if given := os.environ.get(f"CUPEL_TEST_{kind.upper()}"):
        return given
    share_servers()
    folder = Path(os.environ["CUPEL_TEST_SERVERS"])
    url_file = folder / f"{kind}.url"
    with (folder / f"{kind}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process starts the server, and the other processes wait
        if not url_file.exists():
            keeper = [sys.executable, "-m", __name__, kind, str(folder), os.environ["CUPEL_TEST_OWNER"]]
            environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
            process = subprocess.Popen(
                keeper, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
            )
            with process.stdout or sys.stdin as output:
                url_file.write_text(output.readline().strip())
            process.returncode = 0  # the keeper outlives this call, so do not wait for it
    url = url_file.read_text()
    if url.startswith("missing: "):
        unavailable(url.removeprefix("missing: "))
    assert "://" in url, f"{kind} did not start: {url}"
    return url


def run_until_owner_ends(kind: str, folder: Path, owner: int) -> None:
    """Run a server until the process `owner` ends, then delete the server's files."""
    try:
        server = SERVERS[kind](folder / kind)
        server.start()
    except Missing as missing:
        print(f"missing: {missing}", flush=True)
        return
    print(server.url, flush=True)
    sys.stdout.close()
    while alive(owner):
        time.sleep(0.3)
    server.stop(signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    run_until_owner_ends(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
