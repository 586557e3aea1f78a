"""The two sizes of the service: everything in a folder, or on PostgreSQL, Redis and S3.

A place is the empty, private storage of one system: database, bucket and broker. The same tests run on both
sizes. A third size, rabbitmq, is production with RabbitMQ as broker; only tests of brokers use it.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Literal
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import psycopg
from kombu import pools
from kombu.connection import Connection
from redis import Redis

from cupel_backend.infrastructure.settings import QUEUES
from support.service import components

SizeName = Literal["embedded", "production", "rabbitmq"]

Places = Callable[[], dict[str, Any]]
"""Returns the settings of a new, empty place at each call."""

SIZES: tuple[SizeName, ...] = ("embedded", "production")

BUCKET = "cupel-tests"

numbers = count()


@contextmanager
def place(size: SizeName, *, template: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield settings of a system of this size with an empty database, bucket and broker.

    template: the name of a PostgreSQL database, whose tables the database gets.
    """
    if size == "embedded":
        yield {}
        return
    broker = emptied_rabbitmq() if size == "rabbitmq" else nullcontext(new_redis())
    with new_database(template) as database, broker as url:
        yield {"database": database, "broker": url, **new_blobs()}


@contextmanager
def new_database(template: str | None = None) -> Iterator[str]:
    """Yield the URL of an empty PostgreSQL database or a copy of `template`, and drop it after the block."""
    server = components.address("postgres")
    name = f"t{os.getpid()}_{next(numbers)}_{uuid4().hex[:8]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template or 'template1'}")
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def new_redis() -> str:
    """Return the URL of a Redis database that no other test uses."""
    server = components.address("redis")
    with Redis.from_url(server) as redis:
        return urlsplit(server)._replace(path=f"/{redis.incr('databases')}").geturl()


@contextmanager
def emptied_rabbitmq() -> Iterator[str]:
    """Delete the queues of RabbitMQ and yield its URL. Other test processes wait until the block ends."""
    server = components.address("rabbitmq")
    with open(Path(os.environ.get("CUPEL_TEST_SERVERS", gettempdir()), "rabbitmq.turn"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pools.reset()  # the connections of this process cache which queues they have declared
        purge(server)
        yield server


def purge(broker: str) -> None:
    """Delete all messages of a broker, as a restart without persistent storage does."""
    if broker.startswith("redis:"):
        with Redis.from_url(broker) as redis:
            redis.flushdb()
        return
    with Connection(broker) as connection, connection.channel() as channel:
        for queue in QUEUES:
            channel.queue_delete(queue)


def new_blobs() -> dict[str, Any]:
    """Return settings of an empty prefix in the bucket of the tests."""
    server = urlsplit(components.address("s3"))
    return {
        "blobs": f"s3://{BUCKET}/{uuid4().hex}",
        "s3_endpoint": f"{server.scheme}://{server.hostname}:{server.port}",
        "s3_key": unquote(server.username or ""),
        "s3_secret": unquote(server.password or ""),
    }
