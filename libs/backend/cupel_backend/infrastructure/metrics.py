"""What monitoring sees. The one file that knows prometheus_client.

Every metric is declared here, once. Several processes count, each into a file of its own in the folder
`metrics`; whoever is asked adds them up. What is a state rather than a count (queues, dead jobs) is read from
the database at that moment.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any, Literal
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, values
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, make_wsgi_app
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy import and_, case, func, select
from sqlalchemy.exc import SQLAlchemyError

from cupel_backend.infrastructure.database import reading
from cupel_backend.infrastructure.errors import Unavailable
from cupel_backend.infrastructure.settings import QUEUES
from cupel_backend.infrastructure.tables import JOB_STATES, alarms, alerts, jobs, tracks

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System

REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
WORK_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


@dataclass(frozen=True)
class Declared:
    """A metric: a count, a distribution of seconds over `buckets`, or (gauge) a state read when asked for."""

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def exposed(self) -> str:
        """The name of its first sample in Prometheus."""
        return self.name + {"counter": "_total", "histogram": "_count", "gauge": ""}[self.kind]


METRICS: dict[str, Declared] = {}
"""Every metric, by name."""


def _declare(*declaration: Any) -> Declared:
    declared = Declared(*declaration)
    METRICS[declared.name] = declared
    return declared


REQUESTS = _declare("cupel_requests", "counter", "HTTP requests answered", ("method", "route", "status"))
REQUEST_TIME = _declare(
    "cupel_request_seconds",
    "histogram",
    "time to answer an HTTP request",
    ("method", "route"),
    REQUEST_SECONDS,
)
CHECKS = _declare("cupel_checks", "counter", "uploads checked, by verdict", ("kind", "verdict"))
CHECK_TIME = _declare("cupel_check_seconds", "histogram", "time to check an upload", ("kind",), WORK_SECONDS)
JOBS = _declare("cupel_jobs", "counter", "attempts at jobs, by outcome", ("queue", "outcome"))
JOB_TIME = _declare("cupel_job_seconds", "histogram", "time of an attempt at a job", ("queue",), WORK_SECONDS)
JOB_WAIT = _declare(
    "cupel_job_wait_seconds",
    "histogram",
    "from the queueing of a job to its results",
    ("queue",),
    WORK_SECONDS,
)
RINGS = _declare("cupel_rings", "counter", "rings for work, by what the broker did", ("queue", "outcome"))
STORAGE_TIME = _declare(
    "cupel_storage_seconds",
    "histogram",
    "time of an operation of the store of blobs",
    ("operation", "outcome"),
    WORK_SECONDS,
)
SWEEPS = _declare("cupel_sweeps", "counter", "sweeps by the scheduler")
SWEPT = _declare("cupel_swept", "counter", "jobs that a sweep freed or gave up", ("outcome",))
DEPTH = _declare("cupel_queue_depth", "gauge", "jobs that wait", ("queue",))
RUNNING = _declare("cupel_queue_running", "gauge", "jobs being worked on", ("queue",))
DEAD = _declare("cupel_queue_dead", "gauge", "jobs given up", ("queue",))
OLDEST = _declare(
    "cupel_queue_oldest_seconds", "gauge", "how long the oldest waiting job has been ready", ("queue",)
)
RAISED = _declare(
    "cupel_alerts_raised", "gauge", "alerts on audits that the newest audit of a track raised", ("track",)
)
DATABASE_UP = _declare("cupel_database_up", "gauge", "whether the database answers")


class Metrics:
    """Counts for the folder `folder`. One object per process."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Values go to the folder that the environment names when they are made (see Settings.prepare).
        values.ValueClass = values.MultiProcessValue()
        self._counters = {one: _counter(one) for one in METRICS.values() if one.kind == "counter"}
        self._histograms = {one: _histogram(one) for one in METRICS.values() if one.kind == "histogram"}

    def count_request(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """Count an HTTP request; `route` is the route's template, never the path itself."""
        self._count(REQUESTS, method, route, str(status))
        self._observe(REQUEST_TIME, seconds, method, route)

    def count_check(self, *, kind: str, verdict: str, seconds: float) -> None:
        """Count a checked upload, a run or qrels: accepted, refused, or ended its checker."""
        self._count(CHECKS, kind, verdict)
        self._observe(CHECK_TIME, seconds, kind)

    def count_attempt(self, *, queue: str, outcome: str, seconds: float) -> None:
        """Count an attempt at a job: done, failed, put off, or lost to another worker."""
        self._count(JOBS, queue, outcome)
        self._observe(JOB_TIME, seconds, queue)

    def observe_job_wait(self, *, queue: str, waited: timedelta) -> None:
        """Note how long after its queueing a job had results."""
        self._observe(JOB_WAIT, waited.total_seconds(), queue)

    def count_wake_ups(self, queue: str, taken: bool) -> None:
        """Count a ring, and whether the broker took it."""
        self._count(RINGS, queue, "taken" if taken else "failed")

    def observe_storage(self, operation: str, worked: bool, seconds: float) -> None:
        """Note an operation of the store of blobs."""
        self._observe(STORAGE_TIME, seconds, operation, "done" if worked else "failed")

    def count_sweep(self, *, expired: int, died: int) -> None:
        """Count a sweep, and what it did to jobs."""
        self._count(SWEEPS)
        self._count(SWEPT, "freed", times=expired - died)
        self._count(SWEPT, "died", times=died)

    def exposition(self, system: "System") -> bytes:
        """Everything, summed over the processes of the folder, in Prometheus' text format."""
        return generate_latest(_registry(self.folder, lambda: system))

    def _count(self, metric: Declared, *labels: str, times: int = 1) -> None:
        counter = self._counters[metric]
        (counter.labels(*labels) if labels else counter).inc(times)

    def _observe(self, metric: Declared, seconds: float, *labels: str) -> None:
        self._histograms[metric].labels(*labels).observe(seconds)


def serve(
    folder: Path, port: int, system: Callable[[], "System"], complaint: Callable[[], str | None]
) -> None:
    """Answer /metrics and /healthz on `port` from threads of this process, which must not fork afterwards.

    complaint: what is wrong with the process that this one speaks for, if anything is.
    """
    exposition = make_wsgi_app(_registry(folder, system))

    def answer(environ: Any, start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/healthz":
            answered: Iterable[bytes] = exposition(environ, start_response)
            return answered
        wrong = complaint()
        start_response("503 Service Unavailable" if wrong else "200 OK", [("Content-Type", "text/plain")])
        return [f"{wrong or 'ok'}\n".encode()]

    server = make_server("", port, answer, _Threaded, _Silent)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()


class _Threaded(ThreadingMixIn, WSGIServer):
    """A slow reader keeps nobody waiting."""

    daemon_threads = True


class _Silent(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """A line for each scrape says nothing."""


def _registry(folder: Path, system: Callable[[], "System"]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Counted(folder))
    registry.register(_Backlog(system))
    return registry


def _counter(one: Declared) -> Counter:
    return Counter(one.name, one.meaning, one.labels, registry=None)


def _histogram(one: Declared) -> Histogram:
    return Histogram(one.name, one.meaning, one.labels, registry=None, buckets=one.buckets)


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
        up = GaugeMetricFamily(DATABASE_UP.name, DATABASE_UP.meaning)
        try:
            yield from _backlog(self._system())
            yield _raised(self._system())
            up.add_metric([], 1)
        except (Unavailable, SQLAlchemyError):
            up.add_metric([], 0)
        yield up


def _backlog(system: "System") -> list[Metric]:
    states = {DEPTH: JOB_STATES["queued"], RUNNING: JOB_STATES["running"], DEAD: JOB_STATES["dead"]}
    families: list[Metric] = []
    with reading(system.engine) as connection:
        for metric, state in states.items():
            counts = select(jobs.c.queue, func.count()).where(state).group_by(jobs.c.queue)
            found = {queue: float(count) for queue, count in connection.execute(counts)}
            families.append(_gauge(metric, found))
        # A job that was put off, again and again maybe, has waited since it was made.
        since_when = case((jobs.c.error.is_not(None), jobs.c.created_at), else_=jobs.c.ready_at)
        oldest = select(jobs.c.queue, func.min(since_when)).where(JOB_STATES["queued"]).group_by(jobs.c.queue)
        since = {queue: (system.now() - at).total_seconds() for queue, at in connection.execute(oldest)}
    waits = {queue: max(0.0, seconds) for queue, seconds in since.items()}
    return [*families, _gauge(OLDEST, waits)]


def _raised(system: "System") -> Metric:
    """Of each track that has alerts, how many are raised by the last audit that judged them."""
    other = alarms.alias()
    last = select(func.max(other.c.audit_id)).where(other.c.alert_id == alerts.c.id).scalar_subquery()
    query = (
        select(tracks.c.name, func.count().filter(alarms.c.raised).label("raised"))
        .select_from(alerts)
        .join(tracks, tracks.c.id == alerts.c.track_id)
        .join(alarms, and_(alarms.c.alert_id == alerts.c.id, alarms.c.audit_id == last), isouter=True)
        .where(alerts.c.removed_at.is_(None))
        .group_by(tracks.c.name)
    )
    family = GaugeMetricFamily(RAISED.name, RAISED.meaning, labels=RAISED.labels)
    with reading(system.engine) as connection:
        for row in connection.execute(query):
            family.add_metric([row.name], float(row.raised))
    return family


def _gauge(metric: Declared, found: dict[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    for queue in QUEUES:
        family.add_metric([queue], found.get(queue, 0.0))
    return family
