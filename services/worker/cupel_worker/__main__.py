"""The background processes of the service.

Run `python -m cupel_worker worker | scheduler | metrics`.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from cupel_backend import job_execution, jobs, scheduler_steps
from cupel_backend.infrastructure import liveness_file, metrics, wake_ups
from cupel_backend.infrastructure.errors import Unavailable
from cupel_backend.infrastructure.settings import WrongSetting, read_settings
from cupel_backend.infrastructure.system import System, open_system
from cupel_backend.job_handlers import HANDLERS
from cupel_worker.reserved_process import ProcessReserve

log = logging.getLogger("cupel_worker")


@cache
def get_system() -> System:
    """Return the `System` of this process.

    It has the connections of the process to the database, object store and broker.

    It is opened on first use, so each process of a process pool opens its own.
    """
    return open_system(read_settings())


def run_worker() -> int:
    """Run jobs in a pool of processes until SIGTERM; return the exit code.

    After SIGTERM, the running jobs are finished.
    """
    settings = read_settings()
    settings.prepare()
    liveness_file.record_liveness(settings.liveness_file("worker"))
    endpoint = None
    if settings.metrics_port:  # A separate process, because a process with threads must not fork a pool.
        endpoint = subprocess.Popen([sys.executable, "-m", "cupel_worker", "metrics"])
    try:
        with TemporaryDirectory(prefix="cupel-worker-") as folder:
            on_wake_up = partial(_run_queue, ProcessReserve(Path(folder), settings.workers))
            return wake_ups.run_worker(settings, on_process_start=_open_system, on_wake_up=on_wake_up)
    finally:
        if endpoint is not None:
            endpoint.terminate()
            endpoint.wait()


def _open_system() -> None:
    get_system()


def _run_queue(reserve: ProcessReserve, queue: str) -> bool:
    """Run the jobs of `queue`; return whether it has more jobs.

    The urgent jobs that are waiting are run after the jobs of `queue`.
    """
    system = get_system()
    record_liveness = partial(liveness_file.record_liveness, system.settings.liveness_file("worker"))
    record_liveness()
    has_more = False
    try:
        if queue != jobs.URGENT:
            with reserve.acquire_slot() as is_free:
                has_more = is_free and job_execution.run_jobs(
                    system, queue, HANDLERS, on_renewal=record_liveness
                )
        if jobs.URGENT in system.settings.queues and jobs.has_urgent_work(system):
            reserve.record_urgent_job()
            has_urgent = job_execution.run_jobs(system, jobs.URGENT, HANDLERS, on_renewal=record_liveness)
            has_more = has_urgent if queue == jobs.URGENT else has_more
        return has_more
    except Unavailable as problem:  # The scheduler sends another wake-up when the database is back.
        log.warning("cannot run jobs of %s: %s", queue, problem)
        return False


def run_scheduler() -> int:
    """Run the scheduler's steps every few seconds until SIGTERM or SIGINT.

    Two schedulers may run at the same time.
    """
    stop = _install_stop_event()
    system = get_system()
    _serve_metrics("scheduler")
    is_current = False
    while not stop.is_set():
        try:
            if not is_current:
                scheduler_steps.recompute_outdated_scores(system)
                is_current = True
            scheduler_steps.tick(system)
            liveness_file.record_liveness(system.settings.liveness_file("scheduler"))
        except Unavailable as problem:  # The database may be unavailable; the next tick tries again.
            log.warning("the scheduler's tick failed: %s", problem)
        except Exception:
            log.exception("the scheduler's tick failed")
        stop.wait(system.settings.sweep_seconds)
    system.close()
    return 0


def run_metrics_endpoint() -> int:
    """Serve the metrics of the processes of a worker; return the exit code.

    It ends when the worker ends.
    """
    stop, parent = _install_stop_event(), os.getppid()
    read_settings().prepare()
    _serve_metrics("worker")
    while os.getppid() == parent and not stop.wait(1):
        pass
    return 0


def _serve_metrics(role: str) -> None:
    """Answer /metrics and /healthz for `role` if CUPEL_METRICS_PORT is set."""
    settings = read_settings()
    file, limit = settings.liveness_file(role), settings.liveness_seconds
    if settings.metrics_port:
        metrics.serve_metrics(
            settings.metrics,
            settings.metrics_port,
            get_system,
            find_problem=lambda: liveness_file.find_problem(file, limit),
        )


def _install_stop_event() -> threading.Event:
    """Return an event that SIGTERM or SIGINT sets."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


ROLES = {"worker": run_worker, "scheduler": run_scheduler, "metrics": run_metrics_endpoint}


def main() -> int:
    """Run the role that the command line names; return the exit code.

    The exit code is 2 for an unknown role.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if len(sys.argv) != 2 or sys.argv[1] not in ROLES:
        print(f"usage: python -m cupel_worker {'|'.join(ROLES)}", file=sys.stderr)
        return 2
    try:
        return ROLES[sys.argv[1]]()
    except KeyboardInterrupt:
        return 0
    except WrongSetting as wrong:
        print(f"python -m cupel_worker: {wrong}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
