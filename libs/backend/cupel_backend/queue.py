"""The doorbell: Celery, and nothing but a doorbell. The one file that knows Celery and kombu.

Jobs live in the database. A message says only that a queue has work: lost, doubled or late, it does
no harm, for the scheduler rings again for whatever nobody claimed.
"""

import logging
from collections.abc import Callable
from typing import Any

from celery import Celery, signals
from kombu.entity import Queue

from cupel_backend.settings import Settings

log = logging.getLogger(__name__)

QUEUES = ("score", "audit", "notify")

RING = "cupel.ring"


class Bell:
    """Rings for work. Never raises: what was accepted is accepted, whatever the broker does."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._app = _app(settings)

    def ring(self, queue: str, *, times: int = 1) -> bool:
        """Say that `queue` has work for up to `times` workers; False if the broker can't be reached."""
        try:
            _make_folders(self._settings)
            for _ in range(times):
                self._app.send_task(RING, args=[queue], queue=queue, retry=False, ignore_result=True)
        except Exception as error:  # every broker library raises its own
            log.warning("could not ring for %s, the scheduler will: %s", queue, error)
            return False
        return True

    def close(self) -> None:
        self._app.close()


def work(settings: Settings, *, begin: Callable[[], None], answer: Callable[[str], bool]) -> int:
    """Run a worker with `settings.workers` processes until SIGTERM; returns its exit code.

    Each process calls `begin` once, after its fork, then `answer(queue)` for each ring; when that
    returns True there is more to do, and the process rings for itself: so a worker that is told
    to stop never has to wait for a long queue.
    """
    app = _app(settings)
    _make_folders(settings)

    @app.task(name=RING, ignore_result=True)  # type: ignore[untyped-decorator]
    def ring(queue: str) -> None:
        if answer(queue):
            ring.apply_async([queue], queue=queue, retry=False)

    def on_process_init(**_: Any) -> None:
        begin()

    signals.worker_process_init.connect(on_process_init, weak=False)
    worker = app.Worker(
        pool="prefork",
        concurrency=settings.workers,
        queues=list(QUEUES),
        loglevel="INFO",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    return int(worker.exitcode or 0)


def _app(settings: Settings) -> Celery:
    app = Celery("cupel", set_as_current=False)
    longest = settings.turn_seconds + settings.job_seconds + settings.lease_seconds
    app.conf.update(
        broker_url=settings.broker_url,
        broker_transport_options=_transport_options(settings),
        broker_connection_retry_on_startup=True,
        task_queues=[Queue(name, routing_key=name) for name in QUEUES],
        task_default_queue=QUEUES[0],
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_time_limit=longest,
        worker_prefetch_multiplier=1,
        worker_cancel_long_running_tasks_on_connection_loss=True,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_send_task_events=False,
        worker_max_tasks_per_child=500,
        worker_max_memory_per_child=settings.worker_megabytes * 1024,
    )
    return app


def _transport_options(settings: Settings) -> dict[str, Any]:
    if not settings.broker_url.startswith("filesystem:"):
        return {}
    folder = settings.broker_folder
    return {
        "data_folder_in": str(folder / "messages"),
        "data_folder_out": str(folder / "messages"),
        "control_folder": str(folder / "control"),
        "processed_folder": str(folder / "taken"),
        "polling_interval": settings.polling_seconds,
    }


def _make_folders(settings: Settings) -> None:
    if settings.broker_url.startswith("filesystem:"):
        for name in ("messages", "control"):
            (settings.broker_folder / name).mkdir(parents=True, exist_ok=True)
