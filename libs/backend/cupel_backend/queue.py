"""The doorbell: Celery, and nothing but a doorbell. The one file that knows Celery and kombu.

Jobs live in the database. A message says only that a queue has work: lost, doubled or late, it does
no harm, for the scheduler rings again for whatever nobody claimed.
"""

import logging
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from celery import Celery, signals
from celery.platforms import SecurityWarning
from kombu.entity import Queue
from kombu.transport import TRANSPORT_ALIASES, filesystem

from cupel_backend.settings import Settings

log = logging.getLogger(__name__)

QUEUES = ("score", "audit", "notify")

RING = "cupel.ring"

FOLDER = "folder"
"""Scheme of the broker URL that means a folder of this machine."""


class FolderChannel(filesystem.Channel):
    """kombu's folder of messages, which may be deleted at any time: nothing of value is in it."""

    @property
    def data_folder_in(self) -> str:
        folder: str = self.transport_options["data_folder_in"]
        Path(folder).mkdir(parents=True, exist_ok=True)
        return folder

    data_folder_out = data_folder_in

    def _lookup(self, exchange: str, routing_key: str, default: str | None = None) -> list[str]:
        # kombu would look in another file, which may have gone: a routing key is a queue's name here
        return [routing_key]


class FolderTransport(filesystem.Transport):
    """Celery over a folder, looked into by a timer of the worker's event loop.

    kombu's own would make Celery use its blocking pool, whose processes share one pipe behind a lock: a
    process killed while it waits there takes the lock with it, and the whole pool never works again. With
    an event loop each process has a pipe of its own.
    """

    Channel = FolderChannel
    implements = filesystem.Transport.implements.extend(asynchronous=True)

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        options = connection.client.transport_options
        loop.call_repeatedly(options["polling_interval"], self._take, connection)

    def _take(self, connection: Any) -> None:
        """Take messages until there are none, or as many are held as may be."""
        with suppress(TimeoutError):
            while True:
                self.drain_events(connection, timeout=0)  # type: ignore[no-untyped-call]


TRANSPORT_ALIASES[FOLDER] = f"{__name__}:{FolderTransport.__name__}"


class Bell:
    """Rings for work. Never raises: what was accepted is accepted, whatever the broker does."""

    def __init__(self, settings: Settings) -> None:
        self._app = _app(settings)

    def ring(self, queue: str, *, times: int = 1) -> bool:
        """Say that `queue` has work for up to `times` workers; False if the broker can't be reached."""
        try:
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

    @app.task(name=RING, ignore_result=True)  # type: ignore[untyped-decorator]
    def ring(queue: str) -> None:
        if answer(queue):
            ring.apply_async([queue], queue=queue, retry=False)

    def on_process_init(**_: Any) -> None:
        begin()

    def keep_logging(**_: Any) -> None:
        """Being connected keeps Celery from setting up logging its own way."""

    signals.worker_process_init.connect(on_process_init, weak=False)
    signals.setup_logging.connect(keep_logging, weak=False)
    logging.getLogger("celery").setLevel(logging.WARNING)  # a line for each ring says nothing
    warnings.simplefilter("ignore", SecurityWarning)  # root is no danger where messages are JSON
    worker = app.Worker(
        pool="prefork",
        concurrency=settings.workers,
        queues=list(QUEUES),
        quiet=True,
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
    if not settings.broker_url.startswith(f"{FOLDER}:"):
        return {}
    folder = settings.broker_folder
    return {
        "data_folder_in": str(folder / "messages"),
        "data_folder_out": str(folder / "messages"),
        "control_folder": str(folder / "control"),
        "processed_folder": str(folder / "taken"),
        "polling_interval": settings.polling_seconds,
    }
