"""The two sizes of the service: everything in a folder, or on PostgreSQL, Redis and S3.

A place is where one system keeps its things, empty and its own; what is tested there is the same. The third
one, rabbitmq, is production with the other broker, for the tests of what a broker is there for.
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
"""Gives settings of a new, empty place each time."""

SIZES: tuple[SizeName, ...] = ("embedded", "production")

BUCKET = "cupel-tests"

numbers = count()


@contextmanager
def place(size: SizeName) -> Iterator[dict[str, Any]]:
    """Settings, besides the data folder, of a system of this size: database, bucket and broker are empty."""
    if size == "embedded":
        yield {}
        return
    broker = emptied_rabbitmq() if size == "rabbitmq" else nullcontext(new_redis())
    with new_database() as database, broker as url:
        yield {"database": database, "broker": url, **new_blobs()}


@contextmanager
def new_database() -> Iterator[str]:
    """The URL of an empty PostgreSQL database, which goes away again."""
    server = components.address("postgres")
    name = f"t{os.getpid()}_{next(numbers)}_{uuid4().hex[:8]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def new_redis() -> str:
    """The URL of a Redis database that nobody else has."""
    server = components.address("redis")
    with Redis.from_url(server) as redis:
        return urlsplit(server)._replace(path=f"/{redis.incr('databases')}").geturl()


@contextmanager
def emptied_rabbitmq() -> Iterator[str]:
    """The URL of RabbitMQ, whose queues are gone; tests of other processes wait for their turn."""
    server = components.address("rabbitmq")
    with open(Path(os.environ.get("CUPEL_TEST_SERVERS", gettempdir()), "rabbitmq.turn"), "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        pools.reset()  # connections of this process remember which queues they have declared
        forget(server)
        yield server


def forget(broker: str) -> None:
    """Have a broker lose all that it holds, as one without a disk does when it is started again."""
    if broker.startswith("redis:"):
        with Redis.from_url(broker) as redis:
            redis.flushdb()
        return
    with Connection(broker) as connection, connection.channel() as channel:
        for queue in QUEUES:
            channel.queue_delete(queue)


def new_blobs() -> dict[str, Any]:
    """Settings of an empty prefix of the tests' bucket."""
    server = urlsplit(components.address("s3"))
    return {
        "blobs": f"s3://{BUCKET}/{uuid4().hex}",
        "s3_endpoint": f"{server.scheme}://{server.hostname}:{server.port}",
        "s3_key": unquote(server.username or ""),
        "s3_secret": unquote(server.password or ""),
    }
