"""The doorbell: rung from a thread of its own, over whichever broker, there or away."""

import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection

from cupel_backend.infrastructure.settings import QUEUES, Settings
from cupel_backend.infrastructure.system import System, open_system
from cupel_backend.infrastructure.wake_ups import WakeUps
from support.backend_cast import ALICE, make_track, publish_qrels, submit
from support.patience import until
from support.service import components
from support.service.components import Redis, Server
from support.service.service_sizes import emptied_rabbitmq


class Rung:
    """A bell, and what became of its rings."""

    def __init__(self, **settings: Any) -> None:
        self.outcomes: list[tuple[str, bool]] = []
        self.wake_ups = WakeUps(
            Settings(**settings), lambda queue, taken: self.outcomes.append((queue, taken))
        )

    def ring(self, queue: str = "score") -> bool:
        """Ring, and wait for what comes of it."""
        before = len(self.outcomes)
        self.wake_ups.send(queue)
        return until(lambda: self.outcomes[before:])[0][1]


@pytest.fixture
def redis() -> Iterator[Server]:
    """A Redis of the test's own, which may be killed."""
    components.require("redis-server")
    with tempfile.TemporaryDirectory() as folder:
        server = Redis(Path(folder) / "redis").start()
        yield server
        server.stop()


def test_a_bell_rings_again_as_soon_as_its_broker_is_back(redis: Server) -> None:
    rung = Rung(broker=redis.url)
    assert rung.ring()
    for number in (signal.SIGKILL, signal.SIGTERM):
        redis.stop(number)
        assert not rung.ring()
        redis.start()
        until(rung.ring)
    rung.wake_ups.close()


def test_who_rings_does_not_wait_for_a_broker_that_hangs(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connects, and never says a word
        system = open_system(
            Settings(data=tmp_path / "data", broker=f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        )
        system.migrate()
        make_track(system)
        publish_qrels(system)
        assert submit(system, ALICE).state == "queued"
        assert rings(system) == {}, "the answer came before the broker had refused or timed out"
    until(lambda: rings(system).get("failed"))
    system.close()


def rings(system: System) -> dict[str, float]:
    """Rings by what became of them."""
    lines = system.metrics.exposition(system).decode().splitlines()
    found = [line for line in lines if line.startswith("cupel_rings_total{") and 'queue="score"' in line]
    return {line.partition('outcome="')[2].partition('"')[0]: float(line.split()[-1]) for line in found}


def test_rings_for_a_broker_that_is_away_do_not_pile_up() -> None:
    rung = Rung(broker="redis://127.0.0.1:1/0")
    for _ in range(1000):
        rung.wake_ups.send("score", times=100)
    until(lambda: rung.outcomes)
    rung.wake_ups.close()
    assert 0 < len(rung.outcomes) <= 1000
    assert not any(taken for _, taken in rung.outcomes)


def test_a_bell_goes_on_when_a_ring_could_not_be_noted() -> None:
    noted: list[str] = []

    def note(queue: str, taken: bool) -> None:
        noted.append(queue)
        if len(noted) == 1:
            raise OSError("no space left on device")

    wake_ups = WakeUps(Settings(broker="redis://127.0.0.1:1/0"), note)
    for number in (1, 2):
        wake_ups.send("score")
        until(lambda: len(noted) >= number)  # noqa: B023  (called at once)
    wake_ups.close()


def test_who_can_not_start_a_thread_rings_with_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    rung = Rung(broker="redis://127.0.0.1:1/0")
    with monkeypatch.context() as context:
        context.setattr(threading.Thread, "start", no_more)
        rung.wake_ups.send("audit")
    rung.wake_ups.send("score")
    until(lambda: len(rung.outcomes) == 2)
    rung.wake_ups.close()
    Rung().wake_ups.close()


def test_what_is_due_when_a_bell_is_closed_is_rung_still(redis: Server) -> None:
    rung = Rung(broker=redis.url)
    for queue in QUEUES:
        rung.wake_ups.send(queue)
    rung.wake_ups.close()
    assert sorted(rung.outcomes) == [(queue, True) for queue in sorted(QUEUES)]


def test_queues_of_rabbitmq_are_quorum_queues() -> None:
    with emptied_rabbitmq() as broker:
        rung = Rung(broker=broker)
        assert rung.ring()
        with Connection(broker) as connection:
            refused = connection.channel_errors
            with pytest.raises(refused, match="x-queue-type"):
                connection.channel().queue_declare("score", durable=True, auto_delete=False)
        rung.wake_ups.close()


def test_a_password_beside_the_address_opens_the_broker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    components.require("redis-server")
    secret = tmp_path / "secret"
    secret.write_text("p/w@ \n")

    class Guarded(Redis):
        password = "p/w@"

        @property
        def url(self) -> str:
            return f"redis://127.0.0.1:{self.port}/0"

    monkeypatch.setitem(os.environ, "CUPEL_BROKER_PASSWORD_FILE", str(secret))
    server = Guarded(tmp_path / "redis").start()
    try:
        rung = Rung(broker=server.url)
        assert rung.ring()
        rung.wake_ups.close()
        monkeypatch.delitem(os.environ, "CUPEL_BROKER_PASSWORD_FILE")
        assert not Rung(broker=server.url).ring()
    finally:
        server.stop()


def test_a_message_of_a_folder_is_never_taken_before_it_is_whole(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path)
    settings.prepare()
    rung, taken = Rung(data=tmp_path), []
    with Connection(settings.broker_url, transport_options=folders(settings.broker_folder)) as connection:
        messages = connection.SimpleQueue("score")
        for _ in range(5):
            rung.wake_ups.send("score", times=20)
            before = len(rung.outcomes)
            while len(rung.outcomes) == before:
                with suppress(Empty):
                    taken.append(messages.get_nowait().payload)
        rung.wake_ups.close()
    assert taken


def folders(broker: Path) -> dict[str, str]:
    """kombu's names for the folders of the embedded broker."""
    messages = str(broker / "messages")
    names = {"data_folder_in": messages, "data_folder_out": messages}
    return {**names, "control_folder": str(broker / "control")}
