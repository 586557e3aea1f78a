"""The doorbell: Celery, and nothing but a doorbell. The one file that knows Celery and kombu.

Jobs live in the database. A message says only that a queue has work: lost, doubled or late, it does
no harm, for the scheduler rings again for whatever nobody claimed.
"""

import json
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

from celery import Celery, signals
from celery.platforms import SecurityWarning
from kombu.entity import Queue
from kombu.transport import TRANSPORT_ALIASES, filesystem

from cupel_backend.infrastructure.settings import QUEUES, Settings

log = logging.getLogger(__name__)

RING = "cupel.ring"

MOST_RINGS = 64
"""Rings for one queue that are kept for a broker that is away or slow: more would say nothing new."""

BROKER_SECONDS = 3
"""How long a broker may take to answer."""

ONE_TRY = {"max_retries": 0, "connect_retries_timeout": BROKER_SECONDS}
"""Who rings does not insist: kombu would try for ever. Workers that listen are another matter, and do."""

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

    def _put(self, queue: str, payload: Any, **_: Any) -> None:  # type: ignore[override]  # kombu names it so
        """Put a message there whole: kombu's own may be taken while it is half written."""
        path = Path(self.data_folder_out, f"{round(monotonic() * 1000)}_{uuid4()}.{queue}.msg")
        part = path.with_suffix(".part")
        part.write_text(json.dumps(payload))
        part.rename(path)

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        """Note nothing: `_lookup` needs no table, whose file is empty while another process makes it."""

    def _lookup(self, exchange: str, routing_key: str, default: str | None = None) -> list[str]:
        # kombu would look in a file, which may have gone: a routing key is a queue's name here
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


@cache
def _mend_redis() -> None:
    """Have a worker notice that Redis went away while all of its processes were busy.

    kombu counts what was taken and not acknowledged, and while that is as much as may be, it does not look
    at the connection that it takes from. An acknowledgment that fails is only logged, and stays counted. So
    where all acknowledgments of busy processes fail, the broken connection is never looked at again, and the
    worker is deaf for ever. Here a place is free once its message was to be acknowledged, come what may.
    """
    from kombu.transport import redis  # takes a while to import: only who uses it pays

    class QoS(redis.QoS):
        def ack(self, delivery_tag: str) -> None:
            with self._freeing(delivery_tag):
                super().ack(delivery_tag)  # type: ignore[no-untyped-call]

        def reject(self, delivery_tag: str, requeue: bool = False) -> None:
            with self._freeing(delivery_tag):
                super().reject(delivery_tag, requeue)  # type: ignore[no-untyped-call]

        @contextmanager
        def _freeing(self, delivery_tag: str) -> Iterator[None]:
            try:
                yield
            except BaseException:
                self._quick_ack(delivery_tag)
                raise

    redis.Channel.QoS = QoS


class WakeUps:
    """Rings for work, from a thread of its own: nobody who rings waits for the broker, or fails with it."""

    def __init__(self, settings: Settings, note: Callable[[str, bool], None]) -> None:
        """note: told of each ring, (queue, whether the broker took it)."""
        self._app = _app(settings)
        self._note = note
        self._due: dict[str, int] = {}
        self._change = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    def send(self, queue: str, *, times: int = 1) -> None:
        """Say that `queue` has work for up to `times` workers."""
        with self._change:
            self._due[queue] = min(self._due.get(queue, 0) + times, MOST_RINGS)
            if self._thread is None:
                self._start()
            self._change.notify()

    def close(self) -> None:
        """Send what is due, if the broker takes it in a few seconds."""
        with self._change:
            self._closing = True
            self._change.notify()
        if self._thread is not None:
            self._thread.join(BROKER_SECONDS)
        self._app.close()

    def _start(self) -> None:
        thread = threading.Thread(target=self._ring_on, name="bell", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no more threads to be had: the next ring tries again
            log.warning("nobody could be sent to ring, the scheduler will: %s", error)
        else:
            self._thread = thread

    def _ring_on(self) -> None:
        while (due := self._next()) is not None:
            for queue, times in due.items():
                try:
                    self._note(queue, all(self._send(queue) for _ in range(times)))
                except Exception:  # a full disk, say: the next ring is sent all the same
                    log.exception("could not note a ring for %s", queue)

    def _next(self) -> dict[str, int] | None:
        """What is due, as soon as anything is; None when the bell is closed and nothing is left."""
        with self._change:
            self._change.wait_for(lambda: self._due or self._closing)
            due, self._due = self._due, {}
        return due or None

    def _send(self, queue: str) -> bool:
        try:
            self._app.send_task(
                RING,
                args=[queue],
                queue=queue,
                retry=False,
                ignore_result=True,
                confirm_timeout=BROKER_SECONDS,  # RabbitMQ short of memory or disk confirms nothing
            )
        except Exception as error:  # every broker library raises its own
            log.warning("could not ring for %s, the scheduler will: %s", queue, error)
            return False
        return True


def work(settings: Settings, *, begin: Callable[[], None], answer: Callable[[str], bool]) -> int:
    """Run a worker on `settings.queues` with `settings.workers` processes until SIGTERM; its exit code.

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
        queues=list(settings.queues),
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
        broker_transport_options=_transport_options(settings, longest),
        broker_connection_timeout=BROKER_SECONDS,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,  # a broker that is away for long is waited for
        task_queues=[Queue(name, routing_key=name, queue_arguments=_QUORUM) for name in QUEUES],
        task_default_queue=QUEUES[0],
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_time_limit=longest,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=settings.broker_url.startswith("redis"),
        worker_cancel_long_running_tasks_on_connection_loss=False,  # what runs holds a lease: let it finish
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_send_task_events=False,
        worker_max_tasks_per_child=500,
        worker_max_memory_per_child=settings.worker_megabytes * 1024,
    )
    return app


_QUORUM = {"x-queue-type": "quorum"}
"""For RabbitMQ, which keeps such a queue through the loss of a node; other brokers don't look at it."""


def _transport_options(settings: Settings, longest: float) -> dict[str, Any]:
    scheme = settings.broker_url.partition(":")[0]
    if scheme == FOLDER:
        folder = settings.broker_folder
        return {
            "data_folder_in": str(folder / "messages"),
            "data_folder_out": str(folder / "messages"),
            "control_folder": str(folder / "control"),
            "processed_folder": str(folder / "taken"),
            "polling_interval": settings.polling_seconds,
        }
    if scheme.startswith("redis"):
        _mend_redis()
        return {
            **ONE_TRY,
            "visibility_timeout": int(3 * longest),  # else what runs for longer would be delivered again
            "unacked_restore_throttle": 1,  # look for what a lost worker held every 10 s, not every 100
            "socket_connect_timeout": BROKER_SECONDS,
            "socket_timeout": 3 * BROKER_SECONDS,  # above the second that a consumer's BRPOP waits
            "socket_keepalive": True,
            "health_check_interval": 10,
        }
    return {**ONE_TRY, "confirm_publish": True, "write_timeout": BROKER_SECONDS}
