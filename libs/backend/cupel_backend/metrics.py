"""What monitoring sees. The one file that knows prometheus_client.

Several processes count, each into a file of its own in the folder `metrics`; whoever is asked adds them
up. What is a state rather than a count (queues, dead jobs) is read from the database at that moment.
"""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, values
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, start_http_server
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from cupel_backend.database import reading
from cupel_backend.errors import Unavailable
from cupel_backend.queue import QUEUES
from cupel_backend.tables import JOB_STATES, jobs

if TYPE_CHECKING:
    from cupel_backend.system import System

REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
WORK_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """Every metric that is counted, declared here. One object per process, for the folder `folder`."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Values go to the folder that the environment names when they are made (see Settings.prepare).
        values.ValueClass = values.MultiProcessValue()
        self._requests = _counter("cupel_requests", "HTTP requests answered", "method", "route", "status")
        self._request_seconds = _histogram(
            "cupel_request_seconds", "time to answer an HTTP request", REQUEST_SECONDS, "method", "route"
        )
        self._checks = _counter("cupel_checks", "uploads checked, by verdict", "kind", "verdict")
        self._check_seconds = _histogram(
            "cupel_check_seconds", "time to check an upload", WORK_SECONDS, "kind"
        )
        self._jobs = _counter("cupel_jobs", "attempts at jobs, by outcome", "queue", "outcome")
        self._job_seconds = _histogram(
            "cupel_job_seconds", "time of an attempt at a job", WORK_SECONDS, "queue"
        )
        self._waits = _histogram(
            "cupel_job_wait_seconds", "from the queueing of a job to its results", WORK_SECONDS, "queue"
        )
        self._sweeps = _counter("cupel_sweeps", "sweeps by the scheduler")
        self._swept = _counter("cupel_swept", "jobs that a sweep freed or gave up", "outcome")

    def request(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """Count an HTTP request; `route` is the route's template, never the path itself."""
        self._requests.labels(method, route, str(status)).inc()
        self._request_seconds.labels(method, route).observe(seconds)

    def check(self, *, kind: str, verdict: str, seconds: float) -> None:
        """Count a checked upload, a run or qrels: accepted, refused, or ended its checker."""
        self._checks.labels(kind, verdict).inc()
        self._check_seconds.labels(kind).observe(seconds)

    def job(self, *, queue: str, outcome: str, seconds: float) -> None:
        """Count an attempt at a job: done, failed, or lost to another worker."""
        self._jobs.labels(queue, outcome).inc()
        self._job_seconds.labels(queue).observe(seconds)

    def finished(self, *, queue: str, waited: timedelta) -> None:
        """Note how long after its queueing a job had results."""
        self._waits.labels(queue).observe(waited.total_seconds())

    def swept(self, *, expired: int, died: int) -> None:
        """Count a sweep, and what it did to jobs."""
        self._sweeps.inc()
        self._swept.labels("freed").inc(expired - died)
        self._swept.labels("died").inc(died)

    def exposition(self, system: "System") -> bytes:
        """Everything, summed over the processes of the folder, in Prometheus' text format."""
        return generate_latest(_registry(self.folder, lambda: system))


def serve(folder: Path, port: int, system: Callable[[], "System"]) -> None:
    """Answer Prometheus on `port` from a thread of this process, which must not fork afterwards."""
    start_http_server(port, registry=_registry(folder, system))


def _registry(folder: Path, system: Callable[[], "System"]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Counted(folder))
    registry.register(_Backlog(system))
    return registry


def _counter(name: str, meaning: str, *labels: str) -> Counter:
    return Counter(name, meaning, labels, registry=None)


def _histogram(name: str, meaning: str, buckets: Iterable[float], *labels: str) -> Histogram:
    return Histogram(name, meaning, labels, registry=None, buckets=tuple(buckets))


class _Counted(Collector):
    """What the processes of a folder counted, those that have ended included."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterator[Metric]:
        with _locked(self._folder):
            _fold(self._folder)
            metrics = list(MultiProcessCollector(None, path=str(self._folder)).collect())
        yield from metrics


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One scrape at a time: else another one might see an ended process' counts twice, or not at all."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fold(folder: Path) -> None:
    """Add the counts of processes that have ended to one file per type, and remove their own."""
    for path in folder.glob("*_*.db"):
        kind, _, owner = path.stem.partition("_")
        if owner.isdigit() and not _alive(int(owner)):
            ended = MmapedDict(str(folder / f"{kind}_ended.db"))
            for key, value, _, _ in MmapedDict.read_all_values_from_file(str(path)):
                ended.write_value(key, ended.read_value(key)[0] + value, 0.0)
            ended.close()
            path.unlink()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class _Backlog(Collector):
    """What waits, runs and has died, as the database says at the moment of asking."""

    def __init__(self, system: Callable[[], "System"]) -> None:
        self._system = system

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("cupel_database_up", "whether the database answers")
        try:
            yield from _backlog(self._system())
            up.add_metric([], 1)
        except (Unavailable, SQLAlchemyError):
            up.add_metric([], 0)
        yield up


def _backlog(system: "System") -> list[Metric]:
    by_queue = [
        ("depth", JOB_STATES["queued"]),
        ("running", JOB_STATES["running"]),
        ("dead", JOB_STATES["dead"]),
    ]
    meanings = {"depth": "jobs that wait", "running": "jobs being worked on", "dead": "jobs given up"}
    families: list[Metric] = []
    with reading(system.engine) as connection:
        for name, state in by_queue:
            counts = select(jobs.c.queue, func.count()).where(state).group_by(jobs.c.queue)
            found = {queue: float(count) for queue, count in connection.execute(counts)}
            families.append(_gauge(f"cupel_queue_{name}", meanings[name], found))
        oldest = (
            select(jobs.c.queue, func.min(jobs.c.ready_at)).where(JOB_STATES["queued"]).group_by(jobs.c.queue)
        )
        since = {queue: (system.now() - at).total_seconds() for queue, at in connection.execute(oldest)}
    waits = {queue: max(0.0, seconds) for queue, seconds in since.items()}
    families.append(
        _gauge("cupel_queue_oldest_seconds", "how long the oldest waiting job has been ready", waits)
    )
    return families


def _gauge(name: str, meaning: str, found: dict[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, meaning, labels=["queue"])
    for queue in QUEUES:
        family.add_metric([queue], found.get(queue, 0.0))
    return family
