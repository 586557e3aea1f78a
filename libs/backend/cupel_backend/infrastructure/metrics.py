"""The service's Prometheus metrics. Only this module imports prometheus_client.

Every metric is declared here. Each process writes its counts to its own file in the folder `metrics`. The
process that answers a scrape sums the counts of all files. The states of queues, jobs and audit alerts are
read from the database during the scrape.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any, Literal, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, values
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, make_wsgi_app
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy import Engine, and_, case, func, select
from sqlalchemy.exc import SQLAlchemyError

from cupel_backend.infrastructure.database import reading
from cupel_backend.infrastructure.errors import Unavailable
from cupel_backend.infrastructure.settings import QUEUES
from cupel_backend.infrastructure.tables import JOB_STATES, alarms, alerts, jobs, tracks

REQUEST_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
WORK_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
"""Upper bounds of the buckets of histograms, in seconds."""


class StateSource(Protocol):
    """The database and the clock from which gauges are computed, such as a `System`."""

    @property
    def engine(self) -> Engine: ...

    @property
    def now(self) -> Callable[[], datetime]: ...


@dataclass(frozen=True, kw_only=True)
class MetricDeclaration:
    """A metric: a counter, a histogram, or a gauge.

    A histogram counts seconds over `buckets`. A gauge is read on each scrape.
    """

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def sample_name(self) -> str:
        """Return the name of the metric's first sample in the exposition format."""
        return self.name + {"counter": "_total", "histogram": "_count", "gauge": ""}[self.kind]


METRICS: dict[str, MetricDeclaration] = {}
"""Every metric, by name."""


def _declare(metric: MetricDeclaration) -> MetricDeclaration:
    METRICS[metric.name] = metric
    return metric


def _counter(name: str, help: str, *labels: str) -> MetricDeclaration:
    return _declare(MetricDeclaration(name=name, kind="counter", help=help, labels=labels))


def _histogram(
    name: str, help: str, *labels: str, buckets: tuple[float, ...] = WORK_BUCKETS
) -> MetricDeclaration:
    return _declare(MetricDeclaration(name=name, kind="histogram", help=help, labels=labels, buckets=buckets))


def _gauge(name: str, help: str, *labels: str) -> MetricDeclaration:
    return _declare(MetricDeclaration(name=name, kind="gauge", help=help, labels=labels))


REQUESTS = _counter("cupel_requests", "HTTP requests answered.", "method", "route", "status")
REQUEST_DURATION = _histogram(
    "cupel_request_duration_seconds",
    "Time to answer an HTTP request.",
    "method",
    "route",
    buckets=REQUEST_BUCKETS,
)
CHECKS = _counter("cupel_checks", "Uploaded files checked, by verdict.", "kind", "verdict")
CHECK_DURATION = _histogram("cupel_check_duration_seconds", "Time to check an uploaded file.", "kind")
ATTEMPTS = _counter("cupel_job_attempts", "Attempts to run a job, by outcome.", "queue", "outcome")
ATTEMPT_DURATION = _histogram(
    "cupel_job_attempt_duration_seconds", "Duration of an attempt to run a job.", "queue"
)
JOB_WAIT = _histogram(
    "cupel_job_wait_seconds", "Time from the creation of a job to its stored results.", "queue"
)
WAKEUPS = _counter(
    "cupel_wakeups",
    "Wake-up messages sent to workers, by whether the broker accepted them.",
    "queue",
    "outcome",
)
STORAGE_DURATION = _histogram(
    "cupel_storage_operation_duration_seconds",
    "Duration of an object store operation, by outcome.",
    "operation",
    "outcome",
)
SWEEPS = _counter("cupel_sweeps", "Sweeps of the scheduler for expired leases.")
EXPIRED_LEASES = _counter(
    "cupel_expired_leases", "Expired leases of jobs, by whether the job was queued again or died.", "outcome"
)
QUEUED = _gauge("cupel_queued_jobs", "Jobs that wait for a worker.", "queue")
RUNNING = _gauge("cupel_running_jobs", "Jobs that are running.", "queue")
DEAD = _gauge("cupel_dead_jobs", "Jobs that failed on every attempt.", "queue")
OLDEST = _gauge(
    "cupel_oldest_queued_job_age_seconds", "Time for which the oldest queued job has been ready.", "queue"
)
RAISED_ALERTS = _gauge(
    "cupel_raised_audit_alerts", "Alerts that the latest audits of a track raised.", "track"
)
DATABASE_UP = _gauge("cupel_database_up", "1 if the database answers, else 0.")


class Metrics:
    """The counters and histograms of this process, kept in `folder`.

    Make one object per process.
    """

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # MultiProcessValue reads the folder from the environment, where Settings.prepare set it.
        values.ValueClass = values.MultiProcessValue()
        self._counters = {
            metric: Counter(metric.name, metric.help, metric.labels, registry=None)
            for metric in METRICS.values()
            if metric.kind == "counter"
        }
        self._histograms = {
            metric: Histogram(metric.name, metric.help, metric.labels, registry=None, buckets=metric.buckets)
            for metric in METRICS.values()
            if metric.kind == "histogram"
        }

    def count_request(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """Count an HTTP request.

        `route` is the template of the route, not the path itself.
        """
        self._count(REQUESTS, method, route, str(status))
        self._observe(REQUEST_DURATION, seconds, method, route)

    def count_check(self, *, kind: str, verdict: str, seconds: float) -> None:
        """Count a checked upload. kind: run or qrels. verdict: accepted, refused or ended."""
        self._count(CHECKS, kind, verdict)
        self._observe(CHECK_DURATION, seconds, kind)

    def count_attempt(self, *, queue: str, outcome: str, seconds: float) -> None:
        """Count an attempt to run a job.

        outcome: done, failed, postponed, or lost to another worker.
        """
        self._count(ATTEMPTS, queue, outcome)
        self._observe(ATTEMPT_DURATION, seconds, queue)

    def observe_job_wait(self, *, queue: str, waited: timedelta) -> None:
        """Record the time from the creation of a job to its results."""
        self._observe(JOB_WAIT, waited.total_seconds(), queue)

    def count_wake_up(self, queue: str, sent: bool) -> None:
        """Count a wake-up. sent: whether the broker accepted it."""
        self._count(WAKEUPS, queue, "sent" if sent else "failed")

    def observe_storage(self, operation: str, succeeded: bool, seconds: float) -> None:
        """Record an operation of the object store."""
        self._observe(STORAGE_DURATION, seconds, operation, "done" if succeeded else "failed")

    def count_sweep(self, *, expired: int, died: int) -> None:
        """Count a sweep, its expired leases, and the jobs that died because of them."""
        self._count(SWEEPS)
        self._count(EXPIRED_LEASES, "requeued", times=expired - died)
        self._count(EXPIRED_LEASES, "died", times=died)

    def exposition(self, source: StateSource) -> bytes:
        """Return all metrics in Prometheus' text format.

        They are summed over the processes of the folder.
        """
        return generate_latest(_make_registry(self.folder, lambda: source))

    def _count(self, metric: MetricDeclaration, *labels: str, times: int = 1) -> None:
        counter = self._counters[metric]
        (counter.labels(*labels) if labels else counter).inc(times)

    def _observe(self, metric: MetricDeclaration, seconds: float, *labels: str) -> None:
        self._histograms[metric].labels(*labels).observe(seconds)


def serve_metrics(
    folder: Path,
    port: int,
    open_source: Callable[[], StateSource],
    find_problem: Callable[[], str | None],
) -> None:
    """Answer /metrics and /healthz on `port` from threads of this process.

    The process must not fork afterwards. find_problem: returns a sentence if the observed process is
    unhealthy; /healthz then answers 503.
    """
    exposition = make_wsgi_app(_make_registry(folder, open_source))

    def respond(environ: Any, start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/healthz":
            body: Iterable[bytes] = exposition(environ, start_response)
            return body
        problem = find_problem()
        status = "503 Service Unavailable" if problem else "200 OK"
        start_response(status, [("Content-Type", "text/plain")])
        return [f"{problem or 'ok'}\n".encode()]

    server = make_server("", port, respond, _ThreadingServer, _SilentRequestHandler)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()


class _ThreadingServer(ThreadingMixIn, WSGIServer):
    """A server with a thread per connection.

    So a slow client does not delay the others.
    """

    daemon_threads = True


class _SilentRequestHandler(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Do not log scrapes."""


def _make_registry(folder: Path, open_source: Callable[[], StateSource]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_ProcessCounts(folder))
    registry.register(_DatabaseStates(open_source))
    return registry


class _ProcessCounts(Collector):
    """The counts of all processes that share a folder, including ended processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterator[Metric]:
        with _scrape_lock(self._folder):
            _merge_ended_processes(self._folder)
            metrics = list(MultiProcessCollector(None, path=str(self._folder)).collect())
        yield from metrics


@contextmanager
def _scrape_lock(folder: Path) -> Iterator[None]:
    """Allow one scrape at a time.

    Two scrapes at once could count an ended process twice or never.
    """
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _merge_ended_processes(folder: Path) -> None:
    """Add the counts of ended processes to one file per metric type.

    The files of the ended processes are removed.
    """
    for path in folder.glob("*_*.db"):
        kind, _, owner = path.stem.partition("_")
        if owner.isdigit() and not _is_alive(int(owner)):
            ended = MmapedDict(str(folder / f"{kind}_ended.db"))
            for key, value, _, _ in MmapedDict.read_all_values_from_file(str(path)):
                ended.write_value(key, ended.read_value(key)[0] + value, 0.0)
            ended.close()
            path.unlink()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class _DatabaseStates(Collector):
    """The gauges, computed from the database during the scrape."""

    def __init__(self, open_source: Callable[[], StateSource]) -> None:
        self._open_source = open_source

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily(DATABASE_UP.name, DATABASE_UP.help)
        try:
            yield from _job_gauges(self._open_source())
            yield _raised_alerts(self._open_source())
            up.add_metric([], 1)
        except (Unavailable, SQLAlchemyError):
            up.add_metric([], 0)
        yield up


def _job_gauges(source: StateSource) -> list[Metric]:
    states = {QUEUED: JOB_STATES["queued"], RUNNING: JOB_STATES["running"], DEAD: JOB_STATES["dead"]}
    families: list[Metric] = []
    with reading(source.engine) as connection:
        for metric, state in states.items():
            counts = select(jobs.c.queue, func.count()).where(state).group_by(jobs.c.queue)
            by_queue = {queue: float(count) for queue, count in connection.execute(counts)}
            families.append(_gauge_family(metric, by_queue))
        # A job with an error has been waiting since its creation; its ready_at is only the end of a pause.
        since = case((jobs.c.error.is_not(None), jobs.c.created_at), else_=jobs.c.ready_at)
        oldest = select(jobs.c.queue, func.min(since)).where(JOB_STATES["queued"]).group_by(jobs.c.queue)
        ages = {queue: (source.now() - at).total_seconds() for queue, at in connection.execute(oldest)}
    return [*families, _gauge_family(OLDEST, {queue: max(0.0, age) for queue, age in ages.items()})]


def _raised_alerts(source: StateSource) -> Metric:
    """Count, for each track, the alerts that were raised when they were last checked."""
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
    family = GaugeMetricFamily(RAISED_ALERTS.name, RAISED_ALERTS.help, labels=RAISED_ALERTS.labels)
    with reading(source.engine) as connection:
        for row in connection.execute(query):
            family.add_metric([row.name], float(row.raised))
    return family


def _gauge_family(metric: MetricDeclaration, by_queue: dict[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
    for queue in QUEUES:
        family.add_metric([queue], by_queue.get(queue, 0.0))
    return family
