"""Tests of wake-ups: sending from a separate thread, all brokers, and outages of the broker."""

import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu.connection import Connection

from cupel_backend.infrastructure.settings import QUEUES, Settings
from cupel_backend.infrastructure.system import System, open_system
from cupel_backend.infrastructure.wake_ups import WakeUps
from support.backend_cast import ALICE, make_track, publish_qrels, submit
from support.patience import until
from support.service import components
from support.service.components import Redis, Server
from support.service.service_sizes import emptied_rabbitmq

NO_BROKER = "redis://127.0.0.1:1/0"
"""An address at which nothing listens."""


class RecordedWakeUps:
    """A sender of wake-ups that records (queue, whether the broker accepted the message)."""

    def __init__(self, **settings: Any) -> None:
        self.outcomes: list[tuple[str, bool]] = []
        self.wake_ups = WakeUps(Settings(**settings), lambda queue, sent: self.outcomes.append((queue, sent)))

    def send(self, queue: str = "score") -> bool:
        """Send a wake-up, wait for its outcome, and return whether the broker accepted it."""
        before = len(self.outcomes)
        self.wake_ups.send(queue)
        return until(lambda: self.outcomes[before:])[0][1]


class BlockedWakeUps:
    """A sender whose thread stops after its first message until `release` is called."""

    def __init__(self, settings: Settings) -> None:
        self.outcomes: list[tuple[str, bool]] = []
        self._released = threading.Event()
        self.wake_ups = WakeUps(settings, self._record)

    def _record(self, queue: str, sent: bool) -> None:
        self.outcomes.append((queue, sent))
        self._released.wait()

    def release(self) -> None:
        self._released.set()


@pytest.fixture
def redis() -> Iterator[Server]:
    """A private Redis, which a test may kill."""
    components.require("redis-server")
    with tempfile.TemporaryDirectory() as folder:
        server = Redis(Path(folder) / "redis").start()
        yield server
        server.stop()


def test_wake_ups_are_sent_again_after_the_broker_restarts(redis: Server) -> None:
    sender = RecordedWakeUps(broker=redis.url)
    assert sender.send()
    for number in (signal.SIGKILL, signal.SIGTERM):
        redis.stop(number)
        assert not sender.send()
        redis.start()
        until(sender.send)
    sender.wake_ups.close()


def test_submission_does_not_wait_for_the_broker(tmp_path: Path) -> None:
    system = open_system(Settings(data=tmp_path / "data"))
    system.migrate()
    blocked = BlockedWakeUps(system.settings)
    blocked.wake_ups.send("audit")
    until(lambda: blocked.outcomes)
    system = replace(system, wake_ups=blocked.wake_ups)
    make_track(system)
    publish_qrels(system)
    assert submit(system, ALICE).state == "queued"
    assert blocked.outcomes == [("audit", True)]
    blocked.release()
    system.close()


def test_broker_that_never_answers_is_a_failed_wake_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        system = open_system(Settings(data=tmp_path / "data", broker=address))
        system.wake_ups.send("score")
        until(lambda: count_wake_ups(system) == {"failed": 1})
        system.close()


def count_wake_ups(system: System) -> dict[str, float]:
    """Return the number of wake-ups of the queue `score` by outcome."""
    lines = system.metrics.exposition(system).decode().splitlines()
    samples = [line for line in lines if line.startswith("cupel_wakeups_total{") and 'queue="score"' in line]
    return {line.partition('outcome="')[2].partition('"')[0]: float(line.split()[-1]) for line in samples}


def test_every_message_is_counted(tmp_path: Path) -> None:
    system = open_system(Settings(data=tmp_path / "data"))
    system.wake_ups.send("score", times=3)
    until(lambda: count_wake_ups(system) == {"sent": 3})
    system.close()


def test_at_most_64_wake_ups_of_a_queue_are_pending(tmp_path: Path) -> None:
    blocked = BlockedWakeUps(Settings(data=tmp_path))
    blocked.wake_ups.send("score")
    until(lambda: blocked.outcomes)
    for _ in range(10):
        blocked.wake_ups.send("score", times=60)
    blocked.wake_ups.send("audit", times=3)
    blocked.release()
    until(lambda: len(blocked.outcomes) == 1 + 64 + 3)
    blocked.wake_ups.close()
    queues = [queue for queue, _ in blocked.outcomes]
    assert (queues.count("score"), queues.count("audit")) == (1 + 64, 3)


def test_first_failure_drops_the_pending_wake_ups_of_its_queue() -> None:
    sender = RecordedWakeUps(broker=NO_BROKER)
    sender.wake_ups.send("score", times=64)
    sender.wake_ups.close()
    assert sender.outcomes == [("score", False)]


def test_wake_ups_continue_after_an_error_while_recording() -> None:
    recorded: list[str] = []

    def record(queue: str, sent: bool) -> None:
        recorded.append(queue)
        if len(recorded) == 1:
            raise OSError("no space left on device")

    wake_ups = WakeUps(Settings(broker=NO_BROKER), record)
    for number in (1, 2):
        wake_ups.send("score")
        until(lambda: len(recorded) >= number)  # noqa: B023  (called at once)
    wake_ups.close()


def test_wake_up_without_a_thread_is_sent_with_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_to_start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    sender = RecordedWakeUps(broker=NO_BROKER)
    with monkeypatch.context() as context:
        context.setattr(threading.Thread, "start", fail_to_start)
        sender.wake_ups.send("audit")
    sender.wake_ups.send("score")
    until(lambda: len(sender.outcomes) == 2)
    sender.wake_ups.close()


def test_sender_that_was_never_used_can_be_closed() -> None:
    RecordedWakeUps().wake_ups.close()


def test_closing_sends_the_pending_wake_ups(redis: Server) -> None:
    sender = RecordedWakeUps(broker=redis.url)
    for queue in QUEUES:
        sender.wake_ups.send(queue)
    sender.wake_ups.close()
    assert sorted(sender.outcomes) == [(queue, True) for queue in sorted(QUEUES)]


def test_rabbitmq_queues_are_quorum_queues() -> None:
    with emptied_rabbitmq() as broker:
        sender = RecordedWakeUps(broker=broker)
        assert sender.send()
        with Connection(broker) as connection:
            refusals = connection.channel_errors
            with pytest.raises(refusals, match="x-queue-type"):
                connection.channel().queue_declare("score", durable=True, auto_delete=False)
        sender.wake_ups.close()


def test_broker_password_may_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    components.require("redis-server")
    secret = tmp_path / "secret"
    secret.write_text("p/w@ \n")

    class RedisWithPassword(Redis):
        password = "p/w@"

        @property
        def url(self) -> str:
            return f"redis://127.0.0.1:{self.port}/0"

    monkeypatch.setitem(os.environ, "CUPEL_BROKER_PASSWORD_FILE", str(secret))
    server = RedisWithPassword(tmp_path / "redis").start()
    try:
        sender = RecordedWakeUps(broker=server.url)
        assert sender.send()
        sender.wake_ups.close()
        monkeypatch.delitem(os.environ, "CUPEL_BROKER_PASSWORD_FILE")
        assert not RecordedWakeUps(broker=server.url).send()
    finally:
        server.stop()


def test_folder_broker_delivers_complete_messages_only(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path)
    settings.prepare()
    sender, received = RecordedWakeUps(data=tmp_path), []
    with Connection(
        settings.broker_url, transport_options=kombu_folders(settings.broker_folder)
    ) as connection:
        messages = connection.SimpleQueue("score")
        for number in range(1, 6):
            sender.wake_ups.send("score", times=20)
            while len(sender.outcomes) < 20 * number:
                with suppress(Empty):
                    received.append(messages.get_nowait().payload)
        sender.wake_ups.close()
    assert received


def kombu_folders(broker: Path) -> dict[str, str]:
    """Return kombu's transport options for the folders of the embedded broker."""
    messages = str(broker / "messages")
    names = {"data_folder_in": messages, "data_folder_out": messages}
    return {**names, "control_folder": str(broker / "control")}
