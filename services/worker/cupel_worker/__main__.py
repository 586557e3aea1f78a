"""The processes that do the queued work: `python -m cupel_worker worker | scheduler | metrics`."""

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
from cupel_worker.reserved_process import Reserve

log = logging.getLogger("cupel_worker")


@cache
def system() -> System:
    """The system of this process, opened when first needed: in a worker that is after its fork."""
    return open_system(read_settings())


def worker() -> int:
    """Work on jobs in a pool of processes until SIGTERM, which lets running jobs end first."""
    settings = read_settings()
    settings.prepare()
    liveness_file.beat(settings.liveness_file("worker"))
    endpoint = None
    if settings.metrics_port:  # a process of its own: a server's threads must not be copied by a fork
        endpoint = subprocess.Popen([sys.executable, "-m", "cupel_worker", "metrics"])
    try:
        with TemporaryDirectory(prefix="cupel-worker-") as folder:
            answer = partial(_answer, Reserve(Path(folder), settings.workers))
            return wake_ups.work(settings, begin=_begin, answer=answer)
    finally:
        if endpoint is not None:
            endpoint.terminate()
            endpoint.wait()


def _begin() -> None:
    system()


def _answer(reserve: Reserve, name: str) -> bool:
    """Work on the queue `name`, and whatever it is, on what is urgent and waits when that is done."""
    own = system()
    heard = own.settings.liveness_file("worker")
    liveness_file.beat(heard)
    alive = partial(liveness_file.beat, heard)
    more = False
    try:
        if name != jobs.URGENT:
            with reserve.place() as free:
                more = free and job_execution.run_jobs(own, name, HANDLERS, alive=alive)
        if jobs.URGENT in own.settings.queues and jobs.has_urgent_work(own):
            reserve.note()
            again = job_execution.run_jobs(own, jobs.URGENT, HANDLERS, alive=alive)
            more = again if name == jobs.URGENT else more
        return more
    except Unavailable as problem:  # the scheduler rings again when the database is back
        log.warning("no work on %s: %s", name, problem)
        return False


def scheduler() -> int:
    """Sweep every few seconds until SIGTERM or SIGINT. Two at once do no harm."""
    stop = _stopping()
    own = system()
    _serve_metrics("scheduler")
    while not stop.is_set():
        try:
            scheduler_steps.tick(own)
            liveness_file.beat(own.settings.liveness_file("scheduler"))
        except Unavailable as problem:  # the database may be away for a while; the next tick is soon
            log.warning("the sweep failed: %s", problem)
        except Exception:
            log.exception("the sweep failed")
        stop.wait(own.settings.sweep_seconds)
    own.close()
    return 0


def serve_metrics() -> int:
    """Answer Prometheus for the worker's processes, as long as the worker lives."""
    stop, parent = _stopping(), os.getppid()
    read_settings().prepare()
    _serve_metrics("worker")
    while os.getppid() == parent and not stop.wait(1):
        pass
    return 0


def _serve_metrics(role: str) -> None:
    """Answer /metrics and /healthz for `role`, where a port was given."""
    settings = read_settings()
    beats, longest = settings.liveness_file(role), settings.liveness_seconds
    if settings.metrics_port:
        metrics.serve(
            settings.metrics, settings.metrics_port, system, lambda: liveness_file.complaint(beats, longest)
        )


def _stopping() -> threading.Event:
    """An event that is set by SIGTERM or SIGINT."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


ROLES = {"worker": worker, "scheduler": scheduler, "metrics": serve_metrics}


def main() -> int:
    """Run the role that the command line names; 2 if it names none."""
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
