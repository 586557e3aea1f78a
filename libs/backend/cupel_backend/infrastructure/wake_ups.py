"""Wake-up messages for workers, sent over Celery.

Only this module imports Celery and kombu. Jobs live in the database. A message says only that a queue has
work. A message that is lost, repeated or late does no harm, because the scheduler sends another one for every
job that waits.
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

WAKE_UP = "cupel.wake_up"
"""Name of the Celery task."""

MAX_PENDING = 64
"""Maximum number of pending wake-ups of a queue while the broker is unavailable or slow."""

BROKER_SECONDS = 3
"""Time limit in seconds for an answer of the broker."""

SINGLE_ATTEMPT = {"max_retries": 0, "connect_retries_timeout": BROKER_SECONDS}
"""Options of senders, which do not retry; by default, kombu retries forever. Receiving workers do retry."""

FOLDER = "folder"
"""URL scheme of the broker that keeps messages in a folder of this machine."""


class FolderChannel(filesystem.Channel):
    """kombu's filesystem channel with a folder that may be deleted at any time."""

    @property
    def data_folder_in(self) -> str:
        folder: str = self.transport_options["data_folder_in"]
        Path(folder).mkdir(parents=True, exist_ok=True)
        return folder

    data_folder_out = data_folder_in

    def _put(self, queue: str, payload: Any, **_: Any) -> None:  # type: ignore[override]  # kombu names it so
        """Write a message atomically.

        With kombu's method, a reader could see a partial file.
        """
        path = Path(self.data_folder_out, f"{round(monotonic() * 1000)}_{uuid4()}.{queue}.msg")
        part = path.with_suffix(".part")
        part.write_text(json.dumps(payload))
        part.rename(path)

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        """Do nothing, because `_lookup` needs no table of bindings.

        kombu's table is a file, which is empty while another process writes it.
        """

    def _lookup(self, exchange: str, routing_key: str, default: str | None = None) -> list[str]:
        # Every routing key is the name of a queue. kombu's method reads a file, which may have been deleted.
        return [routing_key]


class FolderTransport(filesystem.Transport):
    """A Celery transport over a folder, polled by a timer of the worker's event loop.

    With kombu's own transport, Celery uses its blocking pool, whose processes share one pipe behind a lock.
    A process that is killed while it holds the lock never releases it, so the whole pool stops for good.
    With an event loop, each process has its own pipe.
    """

    Channel = FolderChannel
    implements = filesystem.Transport.implements.extend(asynchronous=True)

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        options = connection.client.transport_options
        loop.call_repeatedly(options["polling_interval"], self._receive, connection)

    def _receive(self, connection: Any) -> None:
        """Receive messages until the folder is empty or the prefetch limit is reached."""
        with suppress(TimeoutError):
            while True:
                self.drain_events(connection, timeout=0)  # type: ignore[no-untyped-call]


TRANSPORT_ALIASES[FOLDER] = f"{__name__}:{FolderTransport.__name__}"


@cache
def _patch_redis_transport() -> None:
    """Make a busy worker detect a lost connection to Redis.

    Without the patch, a worker does not detect a connection that was lost while all of its processes were
    busy. kombu counts the messages that were received but not acknowledged. While this number is at the
    prefetch limit, kombu does not read from its connection. A failed acknowledgment is only logged and stays
    counted. So when the acknowledgments of all busy processes fail, kombu never looks at the broken
    connection again, and the worker receives nothing more. The patch subtracts a message from the count even
    if its acknowledgment fails.
    """
    from kombu.transport import redis  # slow to import, and needed with Redis only

    class RedisQoS(redis.QoS):
        def ack(self, delivery_tag: str) -> None:
            with self._free_on_failure(delivery_tag):
                super().ack(delivery_tag)  # type: ignore[no-untyped-call]

        def reject(self, delivery_tag: str, requeue: bool = False) -> None:
            with self._free_on_failure(delivery_tag):
                super().reject(delivery_tag, requeue)  # type: ignore[no-untyped-call]

        @contextmanager
        def _free_on_failure(self, delivery_tag: str) -> Iterator[None]:
            try:
                yield
            except BaseException:
                self._quick_ack(delivery_tag)
                raise

    redis.Channel.QoS = RedisQoS


class WakeUps:
    """A sender of wake-ups.

    Its callers neither wait for the broker nor see its errors.
    """

    def __init__(self, settings: Settings, record: Callable[[str, bool], None]) -> None:
        """Prepare a sender of wake-ups.

        record: called for each wake-up with the queue and whether the broker accepted it.
        """
        self._app = _make_app(settings)
        self._record = record
        self._pending: dict[str, int] = {}
        self._change = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    def send(self, queue: str, *, times: int = 1) -> None:
        """Send at most `times` wake-ups for `queue`, without waiting for the broker."""
        with self._change:
            self._pending[queue] = min(self._pending.get(queue, 0) + times, MAX_PENDING)
            if self._thread is None:
                self._start_thread()
            self._change.notify()

    def close(self) -> None:
        """Send the pending wake-ups and stop.

        They are sent only if the broker accepts them within BROKER_SECONDS.
        """
        with self._change:
            self._closing = True
            self._change.notify()
        if self._thread is not None:
            self._thread.join(BROKER_SECONDS)
        self._app.close()

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._send_all, name="wake-ups", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # The machine is out of threads; the next call tries again.
            log.warning("cannot start the wake-up thread (%s); the scheduler will send the wake-ups", error)
        else:
            self._thread = thread

    def _send_all(self) -> None:
        while (pending := self._take_pending()) is not None:
            for queue, times in pending.items():
                for _ in range(times):
                    sent = self._send_message(queue)
                    self._try_record(queue, sent)
                    if not sent:
                        break

    def _take_pending(self) -> dict[str, int] | None:
        """Wait for pending wake-ups and return them.

        Returns None if the sender is closed and has none.
        """
        with self._change:
            self._change.wait_for(lambda: self._pending or self._closing)
            pending, self._pending = self._pending, {}
        return pending or None

    def _try_record(self, queue: str, sent: bool) -> None:
        try:
            self._record(queue, sent)
        except Exception:  # For example a full disk, which must not end the thread.
            log.exception("could not record a wake-up for %s", queue)

    def _send_message(self, queue: str) -> bool:
        try:
            self._app.send_task(
                WAKE_UP,
                args=[queue],
                queue=queue,
                retry=False,
                ignore_result=True,
                confirm_timeout=BROKER_SECONDS,  # RabbitMQ confirms nothing when it lacks memory or disk
            )
        except Exception as error:  # Every broker library raises its own exceptions.
            log.warning("could not send a wake-up for %s; the scheduler will send it: %s", queue, error)
            return False
        return True


def run_worker(
    settings: Settings, *, on_process_start: Callable[[], None], on_wake_up: Callable[[str], bool]
) -> int:
    """Run worker processes until SIGTERM; return the exit code.

    There are `settings.workers` processes, which serve `settings.queues`. Each process calls
    `on_process_start` once, after its fork, then `on_wake_up(queue)` for each message. `on_wake_up` returns
    True if the queue has more work. Then the process sends another wake-up for the queue instead of
    continuing. So SIGTERM stops a worker before a long queue is empty.
    """
    app = _make_app(settings)

    @app.task(name=WAKE_UP, ignore_result=True)  # type: ignore[untyped-decorator]
    def wake_up(queue: str) -> None:
        if on_wake_up(queue):
            wake_up.apply_async([queue], queue=queue, retry=False)

    def start_process(**_: Any) -> None:
        on_process_start()

    def keep_logging(**_: Any) -> None:
        """Do nothing: a connected handler stops Celery from configuring the logging."""

    signals.worker_process_init.connect(start_process, weak=False)
    signals.setup_logging.connect(keep_logging, weak=False)
    logging.getLogger("celery").setLevel(logging.WARNING)  # Celery logs every message at INFO.
    warnings.simplefilter("ignore", SecurityWarning)  # Running as root is safe because messages are JSON.
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


def _make_app(settings: Settings) -> Celery:
    app = Celery("cupel", set_as_current=False)
    longest = settings.turn_seconds + settings.job_seconds + settings.lease_seconds
    app.conf.update(
        broker_url=settings.broker_url,
        broker_transport_options=_transport_options(settings, longest),
        broker_connection_timeout=BROKER_SECONDS,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,  # A worker waits for its broker without limit.
        task_queues=[Queue(name, routing_key=name, queue_arguments=_QUORUM) for name in QUEUES],
        task_default_queue=QUEUES[0],
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_time_limit=longest,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=settings.broker_url.startswith("redis"),
        worker_cancel_long_running_tasks_on_connection_loss=False,  # let a job with a lease finish
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_send_task_events=False,
        worker_max_tasks_per_child=500,
        worker_max_memory_per_child=settings.worker_megabytes * 1024,
    )
    return app


_QUORUM = {"x-queue-type": "quorum"}
"""Queue arguments for RabbitMQ, whose quorum queues survive the loss of a node. Other brokers ignore them."""


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
        _patch_redis_transport()
        return {
            **SINGLE_ATTEMPT,
            "visibility_timeout": int(3 * longest),  # a lower value redelivers messages of running jobs
            "unacked_restore_throttle": 1,  # restore messages of lost workers every 10 s instead of 100 s
            "socket_connect_timeout": BROKER_SECONDS,
            "socket_timeout": 3 * BROKER_SECONDS,  # more than the 1 s for which a consumer's BRPOP blocks
            "socket_keepalive": True,
            "health_check_interval": 10,
        }
    return {**SINGLE_ATTEMPT, "confirm_publish": True, "write_timeout": BROKER_SECONDS}
