"""Disasters for a running stack, one function each, while runs are handed in and scored.

Each returns how long it took from the end of the disturbance (where nothing has to come back, from its
beginning) until all was well again.
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
"""Slow measures, so that a job is long enough to be caught at work; few, for each has a board to analyse."""

TEAMS = ("aster", "basalt", "cedar")

AWAY = 4.0
"""Seconds for which something is away: long enough for everybody to notice."""

BUSY = 8.0
"""Seconds for which the object store has enough of us."""

WAITING = 4
"""Jobs that are to be there when something goes away."""

RECOVERY_SECONDS = 120.0
"""Limit for everything to be well again."""

AT_WORK = "SELECT id FROM jobs WHERE kind = 'evaluate' AND lease_until IS NOT NULL"


@contextmanager
def impatient(longest: float = 1.0) -> Iterator[None]:
    """Within it, clients wait for this long at most, whatever the service asks for."""
    before, transport.MAX_PAUSE_SECONDS = transport.MAX_PAUSE_SECONDS, longest
    try:
        yield
    finally:
        transport.MAX_PAUSE_SECONDS = before


class Traffic:
    """Three teams that hand in runs to a track of their own, each one after the other, until it is enough."""

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

    def hand_in(self, client: Client, run: Path) -> str:
        """Hand in a run under a name that no other has; the id of the submission."""
        id = client.submit(self.load.track, run, name=f"{next(self._names)}-{run.name}").id
        self.accepted[id] = run
        return id

    def _client(self, team: str) -> Client:
        token = self.organiser.issue_token(team, "participant").token
        return Client(self.stack.url, token, attempts=1000)  # some faults take long on a busy machine

    def _hand_in_all(self, team: Client) -> None:
        try:
            with team:
                for run in cycle(self.load.runs):
                    self.hand_in(team, run)
                    if self._stopping.wait(self.pause):
                        return
        except BaseException as failure:
            self.failures.append(failure)

    # What the database says of it: jobs are evaluations, for those of analyses come when they may

    def running(self) -> int:
        """Jobs that are being worked on."""
        return len(self.jobs("id", "lease_until IS NOT NULL"))

    def done(self) -> int:
        return len(self.jobs("id", "finished_at IS NOT NULL"))

    def open(self) -> set[str]:
        """Jobs that are neither done nor dead."""
        return {id for (id,) in self.jobs("id", "finished_at IS NULL AND dead_at IS NULL")}

    def jobs(self, what: str, which: str = "true") -> list[tuple[Any, ...]]:
        mine = "kind = 'evaluate' AND track_id = (SELECT id FROM tracks WHERE name = %s)"
        return self.stack.query(f"SELECT {what} FROM jobs WHERE {which} AND {mine}", self.load.track)


@dataclass(frozen=True)
class Recovery:
    """Seconds until a new submission was accepted, until it was scored, and until all older ones were."""

    accepted: float
    scored: float
    caught_up: float

    @property
    def seconds(self) -> float:
        return max(self.scored, self.caught_up)

    @property
    def last(self) -> str:
        """What took longest."""
        if self.caught_up > self.scored:
            return "what was open already"
        return "accepting" if self.accepted > self.scored / 2 else "scoring"


def recovery(traffic: Traffic, since: float | None = None) -> Recovery:
    """How long it takes from now, or from the moment `since`, until everything is well again."""
    began = since if since is not None else time.monotonic()
    with impatient(0.1):
        waiting = traffic.open()
        probe = traffic.hand_in(traffic.newcomer, traffic.load.runs[0])
        accepted = time.monotonic() - began
        ((mine,),) = traffic.stack.query("SELECT id FROM jobs WHERE submission_id = %s", probe)
        scored = caught_up = 0.0
        end = time.monotonic() + seconds(RECOVERY_SECONDS)
        while not (scored and caught_up):
            assert time.monotonic() < end, (
                f"not well in {seconds(RECOVERY_SECONDS):.0f} s:\n{traffic.stack.last_words()}"
            )
            left = traffic.open()
            now = time.monotonic() - began
            scored = scored or (now if mine not in left else 0.0)
            caught_up = caught_up or (now if not waiting & left else 0.0)
            time.sleep(0.02)
    return Recovery(accepted, scored, caught_up)


# The faults


def worker_killed(traffic: Traffic) -> Recovery:
    """kill -9 of the worker with its pool, at work."""
    until(traffic.running)
    traffic.stack["worker-score"].kill()
    return recovery(traffic)


def worker_main_killed(traffic: Traffic) -> Recovery:
    """kill -9 of the worker's main process alone."""
    until(traffic.running)
    traffic.stack["worker-score"].kill_main()
    return recovery(traffic)


def pool_killed(traffic: Traffic) -> Recovery:
    """kill -9 of the processes of the worker's pool, at work; the main process replaces them."""
    until(traffic.running)
    traffic.stack["worker-score"].kill_pool()
    return recovery(traffic)


def gateway_killed(traffic: Traffic) -> Recovery:
    """kill -9 of the gateway with its checkers, in the midst of uploads."""
    gateway = traffic.stack["gateway"]
    incoming = gateway.folder / "data" / "incoming"
    before = set(incoming.iterdir())
    until(lambda: set(incoming.iterdir()) - before)
    gateway.kill()
    return recovery(traffic)


def broker_lost(traffic: Traffic) -> Recovery:
    """Redis is killed while the worker's processes are all busy, forgets everything, and is away a while."""
    redis = traffic.stack.redis
    busy = len(traffic.stack["worker-score"].pool())
    until(lambda: traffic.running() >= busy)
    redis.stop(SIGKILL)
    redis.empty()
    time.sleep(AWAY)
    redis.start()
    return recovery(traffic)


def database_restarted(traffic: Traffic) -> Recovery:
    """PostgreSQL is shut down, which ends all its connections, and started again a little later."""
    traffic.stack.postgres.stop()
    time.sleep(AWAY)
    traffic.stack.postgres.start()
    return recovery(traffic)


def database_crashed(traffic: Traffic) -> Recovery:
    """All of PostgreSQL is killed, at work, and started at once: it recovers from its log."""
    until(traffic.running)
    traffic.stack.postgres.stop(SIGKILL)
    traffic.stack.postgres.start()
    return recovery(traffic)


def nothing() -> None: ...


def store_busy(traffic: Traffic, meanwhile: Callable[[], None] = nothing) -> Recovery:
    """The object store answers 503 for a while, and jobs wait for it. meanwhile: done then."""
    worker = traffic.stack["worker-score"]
    with asleep(traffic.stack, worker):
        until(lambda: len(traffic.open()) >= WAITING)
        with traffic.stack.proxy.busy():
            worker.resume()
            end = time.monotonic() + BUSY
            meanwhile()
            time.sleep(max(0.0, end - time.monotonic()))
    return recovery(traffic)


def store_gone(traffic: Traffic) -> Recovery:
    """Nobody can connect to the object store for a while, and jobs wait for it."""
    worker = traffic.stack["worker-score"]
    with asleep(traffic.stack, worker):
        until(lambda: len(traffic.open()) >= WAITING)
        with traffic.stack.proxy.gone():
            worker.resume()
            time.sleep(AWAY)
    return recovery(traffic)


def worker_asleep(traffic: Traffic) -> Recovery:
    """A worker stops with jobs in its hands for longer than its lease; a new one takes over, and it wakes."""
    with asleep(traffic.stack, traffic.stack["worker-score"], at_work=True):
        since = time.monotonic()
        with traffic.stack.one_more("worker-score"):
            return recovery(traffic, since)


@contextmanager
def asleep(stack: Stack, worker: Container, *, at_work: bool = False) -> Iterator[None]:
    """Within it a worker is stopped, all of its processes.

    at_work: with jobs in its hands. Never within a transaction, whose locks would hold up everybody.
    """
    until(lambda: _fell_asleep(stack, worker, at_work))
    try:
        yield
    finally:
        worker.resume()


def _fell_asleep(stack: Stack, worker: Container, at_work: bool) -> bool:
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
    """Everything is killed; our services come back at once, what they need only later."""
    stack = traffic.stack
    until(traffic.running)
    for container in stack.containers.values():
        container.kill()
    stack.postgres.stop(SIGKILL)
    stack.redis.stop(SIGKILL)
    with stack.proxy.gone():
        time.sleep(AWAY)
    stack.postgres.start()
    stack.redis.start()
    return recovery(traffic)


def schedulers_doubled(traffic: Traffic) -> Recovery:
    """Two schedulers at once, of which one is killed, and with it, again and again, whoever works."""
    with traffic.stack.one_more("scheduler") as second:
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
    f"S3 refuses connections for {AWAY:.0f} s": store_gone,
    "two schedulers, and kills": schedulers_doubled,
    "worker stopped past its lease": worker_asleep,
    f"all killed, what they need away for {AWAY:.0f} s": power_cut,
}
