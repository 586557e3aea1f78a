"""Faults of a running stack, one function each, while runs are submitted and scored.

Each function returns the recovery time, measured from the end of the fault (or from its start, if nothing
has to be restored) until the service works normally.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count, cycle
from pathlib import Path
from signal import SIGKILL
from threading import Event, Thread
from typing import Any, Self

from cupel_client.api import transport
from cupel_client.api.client import Client
from support.data.real_runs import example
from support.patience import seconds, until
from support.service.compose_stack import Container, Stack

PLAN = tuple(f"{name}@{cutoff}" for name in ("AP", "RBP") for cutoff in (28, 29, 30))
"""Slow measures, so that jobs can be interrupted; only a few, because each one has a board to analyse."""

TEAMS = ("aster", "basalt", "cedar")

AWAY = 4.0
"""Duration of an outage in seconds, long enough for every process to notice it."""

BUSY = 8.0
"""Seconds for which the object store answers 503."""

WAITING = 4
"""Number of jobs that wait when an outage starts."""

RECOVERY_SECONDS = 120.0
"""Longest recovery time that a test accepts."""

AT_WORK = "SELECT id FROM jobs WHERE kind = 'evaluate' AND lease_until IS NOT NULL"


@contextmanager
def short_pauses(longest: float = 1.0) -> Iterator[None]:
    """Limit the pauses of clients to `longest` seconds inside the block, even if Retry-After is longer."""
    before, transport.MAX_PAUSE_SECONDS = transport.MAX_PAUSE_SECONDS, longest
    try:
        yield
    finally:
        transport.MAX_PAUSE_SECONDS = before


class Traffic:
    """Three teams that keep submitting runs to a new track until the block ends."""

    def __init__(self, stack: Stack, organiser: Client, track: str, *, pause: float = 0.3) -> None:
        self.stack = stack
        self.organiser = organiser
        self.load = replace(example(), track=track, measures=PLAN)
        self.accepted: dict[str, Path] = {}
        self.pause = pause
        self.failures: list[BaseException] = []
        self._names = count(1)
        self._stopping = Event()
        self.newcomer = self._client("newcomer")
        teams = map(self._client, TEAMS)
        self._threads = [Thread(target=self._hand_in_all, args=(team,), daemon=True) for team in teams]

    def __enter__(self) -> Self:
        self.organiser.publish_qrels(self.load.track, self.load.upload(self.organiser))
        *_, version = self.organiser.watch_qrels(self.load.track, 1)
        assert version.state == "current"
        for thread in self._threads:
            thread.start()
        until(lambda: self.failures or len(self.accepted) >= 3, limit=RECOVERY_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(seconds(RECOVERY_SECONDS))
        if self.failures:
            raise self.failures[0]
        self.newcomer.close()
        assert not any(thread.is_alive() for thread in self._threads), "a run was not accepted in time"

    def submit(self, client: Client, run: Path) -> str:
        """Submit a run under a unique name and return the id of the submission."""
        id = client.submit(self.load.track, run, name=f"{next(self._names)}-{run.name}").id
        self.accepted[id] = run
        return id

    def _client(self, team: str) -> Client:
        token = self.organiser.issue_token(team, "participant").token
        return Client(self.stack.url, token, attempts=1000)  # recovery is slow on a busy machine

    def _hand_in_all(self, team: Client) -> None:
        try:
            with team:
                for run in cycle(self.load.runs):
                    self.submit(team, run)
                    if self._stopping.wait(self.pause):
                        return
        except BaseException as failure:
            self.failures.append(failure)

    # Jobs in the database. Only evaluations are included, because analyses can be queued at any time.

    def running(self) -> int:
        """Return the number of running jobs."""
        return len(self.jobs("id", "lease_until IS NOT NULL"))

    def done(self) -> int:
        return len(self.jobs("id", "finished_at IS NOT NULL"))

    def open(self) -> set[str]:
        """Return the ids of the jobs that are neither done nor dead."""
        return {id for (id,) in self.jobs("id", "finished_at IS NULL AND dead_at IS NULL")}

    def jobs(self, what: str, which: str = "true") -> list[tuple[Any, ...]]:
        mine = "kind = 'evaluate' AND track_id = (SELECT id FROM tracks WHERE name = %s)"
        return self.stack.query(f"SELECT {what} FROM jobs WHERE {which} AND {mine}", self.load.track)


@dataclass(frozen=True)
class Recovery:
    """Seconds until a new submission was accepted, until it was scored, and until all others were scored."""

    accepted: float
    scored: float
    caught_up: float

    @property
    def seconds(self) -> float:
        return max(self.scored, self.caught_up)

    @property
    def longest_step(self) -> str:
        """The name of the step that took longest."""
        if self.caught_up > self.scored:
            return "open submissions"
        return "accepting" if self.accepted > self.scored / 2 else "scoring"


def recovery(traffic: Traffic, since: float | None = None) -> Recovery:
    """Measure the recovery time from now, or from the monotonic time `since`."""
    began = since if since is not None else time.monotonic()
    with short_pauses(0.1):
        waiting = traffic.open()
        probe = traffic.submit(traffic.newcomer, traffic.load.runs[0])
        accepted = time.monotonic() - began
        ((mine,),) = traffic.stack.query("SELECT id FROM jobs WHERE submission_id = %s", probe)
        scored = caught_up = 0.0
        end = time.monotonic() + seconds(RECOVERY_SECONDS)
        while not (scored and caught_up):
            assert time.monotonic() < end, (
                f"no recovery within {seconds(RECOVERY_SECONDS):.0f} s:\n{traffic.stack.log_tails()}"
            )
            left = traffic.open()
            now = time.monotonic() - began
            scored = scored or (now if mine not in left else 0.0)
            caught_up = caught_up or (now if not waiting & left else 0.0)
            time.sleep(0.02)
    return Recovery(accepted, scored, caught_up)


# The faults


def worker_killed(traffic: Traffic) -> Recovery:
    """Kill the worker and its pool while a job runs."""
    until(traffic.running)
    traffic.stack["worker-score"].kill()
    return recovery(traffic)


def worker_main_killed(traffic: Traffic) -> Recovery:
    """Kill only the main process of the worker."""
    until(traffic.running)
    traffic.stack["worker-score"].kill_main()
    return recovery(traffic)


def pool_killed(traffic: Traffic) -> Recovery:
    """Kill the pool processes of the worker while a job runs; the main process replaces them."""
    until(traffic.running)
    traffic.stack["worker-score"].kill_pool()
    return recovery(traffic)


def gateway_killed(traffic: Traffic) -> Recovery:
    """Kill the gateway and its checking processes during an upload."""
    gateway = traffic.stack["gateway"]
    incoming = gateway.folder / "data" / "incoming"
    before = set(incoming.iterdir())
    until(lambda: set(incoming.iterdir()) - before)
    gateway.kill()
    return recovery(traffic)


def broker_lost(traffic: Traffic) -> Recovery:
    """Kill Redis while all pool processes are busy, delete its data, and restart it after a pause."""
    redis = traffic.stack.redis
    busy = len(traffic.stack["worker-score"].pool())
    until(lambda: traffic.running() >= busy)
    redis.stop(SIGKILL)
    redis.empty()
    time.sleep(AWAY)
    redis.start()
    return recovery(traffic)


def database_restarted(traffic: Traffic) -> Recovery:
    """Shut PostgreSQL down, which closes all connections, and restart it after a pause."""
    traffic.stack.postgres.stop()
    time.sleep(AWAY)
    traffic.stack.postgres.start()
    return recovery(traffic)


def database_crashed(traffic: Traffic) -> Recovery:
    """Kill PostgreSQL while a job runs and restart it at once; it recovers from its write-ahead log."""
    until(traffic.running)
    traffic.stack.postgres.stop(SIGKILL)
    traffic.stack.postgres.start()
    return recovery(traffic)


def do_nothing() -> None: ...


def store_busy(traffic: Traffic, meanwhile: Callable[[], None] = do_nothing) -> Recovery:
    """Let the object store answer 503 for BUSY seconds while jobs wait; call `meanwhile` in this time."""
    worker = traffic.stack["worker-score"]
    with suspended(traffic.stack, worker):
        until(lambda: len(traffic.open()) >= WAITING)
        with traffic.stack.proxy.busy():
            worker.resume()
            end = time.monotonic() + BUSY
            meanwhile()
            time.sleep(max(0.0, end - time.monotonic()))
    return recovery(traffic)


def store_unavailable(traffic: Traffic) -> Recovery:
    """Let the object store refuse connections for AWAY seconds while jobs wait."""
    worker = traffic.stack["worker-score"]
    with suspended(traffic.stack, worker):
        until(lambda: len(traffic.open()) >= WAITING)
        with traffic.stack.proxy.unavailable():
            worker.resume()
            time.sleep(AWAY)
    return recovery(traffic)


def worker_suspended(traffic: Traffic) -> Recovery:
    """Pause a worker with running jobs past its lease; a second worker takes over, then the first resumes."""
    with suspended(traffic.stack, traffic.stack["worker-score"], at_work=True):
        since = time.monotonic()
        with traffic.stack.extra_container("worker-score"):
            return recovery(traffic, since)


@contextmanager
def suspended(stack: Stack, worker: Container, *, at_work: bool = False) -> Iterator[None]:
    """Pause all processes of a worker inside the block.

    If `at_work` is true, wait until the worker has running jobs. Never pause it in a transaction, because the
    locks of the transaction would block other processes.
    """
    until(lambda: _suspend_outside_transactions(stack, worker, at_work))
    try:
        yield
    finally:
        worker.resume()


def _suspend_outside_transactions(stack: Stack, worker: Container, at_work: bool) -> bool:
    worker.pause()
    time.sleep(0.4)
    in_midst = "state = 'idle in transaction' AND state_change < clock_timestamp() - interval '0.3 s'"
    locking = stack.query(f"SELECT pid FROM pg_stat_activity WHERE {in_midst}")
    if not locking and (not at_work or stack.query(AT_WORK)):
        return True
    worker.resume()
    time.sleep(0.1)
    return False


def power_cut(traffic: Traffic) -> Recovery:
    """Kill everything. Restart the services of Cupel at once, and the servers that they need later."""
    stack = traffic.stack
    until(traffic.running)
    for container in stack.containers.values():
        container.kill()
    stack.postgres.stop(SIGKILL)
    stack.redis.stop(SIGKILL)
    with stack.proxy.unavailable():
        time.sleep(AWAY)
    stack.postgres.start()
    stack.redis.start()
    return recovery(traffic)


def schedulers_doubled(traffic: Traffic) -> Recovery:
    """Run two schedulers, and repeatedly kill a scheduler or the worker together with the pool."""
    with traffic.stack.extra_container("scheduler") as second:
        for victim in (second, traffic.stack["worker-score"], traffic.stack["scheduler"]):
            until(traffic.running)
            traffic.stack["worker-score"].kill_pool()
            victim.kill()
            enough = traffic.done() + 3
            until(lambda: traffic.done() >= enough)  # noqa: B023  (called at once)
        return recovery(traffic)


FAULTS: Mapping[str, Callable[[Traffic], Recovery]] = {
    "worker killed with its pool": worker_killed,
    "worker's main process killed": worker_main_killed,
    "worker's pool killed": pool_killed,
    "gateway killed": gateway_killed,
    f"Redis killed, emptied, away for {AWAY:.0f} s": broker_lost,
    f"PostgreSQL shut down for {AWAY:.0f} s": database_restarted,
    "PostgreSQL killed": database_crashed,
    f"S3 answers 503 for {BUSY:.0f} s": store_busy,
    f"S3 refuses connections for {AWAY:.0f} s": store_unavailable,
    "two schedulers, and kills": schedulers_doubled,
    "worker stopped past its lease": worker_suspended,
    f"all killed, what they need away for {AWAY:.0f} s": power_cut,
}
