"""Database engines, transactions, migrations and list pages.

SQLite and PostgreSQL are supported.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, Generic, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, Select, Table, create_engine, event, inspect, make_url, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection
from sqlalchemy.pool import NullPool
from uuid6 import uuid7

from cupel_backend.infrastructure.errors import refusal

T = TypeVar("T")

CURSOR_UNKNOWN = refusal("cursor-unknown")

DATABASE_BUSY = refusal("database-busy")

RETRY_SECONDS = 2
BUSY_SECONDS = 10
"""Seconds that a writer waits for another writer. Leases last longer, so a renewal that waits is in time."""
LARGEST_PAGE = 500
KEPT = 4
"""Maximum number of idle PostgreSQL connections that a process keeps open."""
THREADS = 128
"""Maximum number of SQLite connections of a process. A gateway has fewer threads."""
MIGRATIONS = Path(__file__).parent / "migrations"
MIGRATING = 0x43_75_70_65_6C
"""Key of the PostgreSQL advisory lock for migrations, an arbitrary number."""

POSTGRESQL = {
    "connect_timeout": 5,
    "keepalives_idle": 10,  # the keepalives and tcp_user_timeout detect a lost host
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "options": f"-c lock_timeout={BUSY_SECONDS}s -c statement_timeout=60s"
    " -c idle_in_transaction_session_timeout=60s"  # a stopped process must not keep its locks
    " -c timezone=UTC -c datestyle=ISO",  # in other time zones, times at the end of year 9999 overflow
    "client_encoding": "utf8",
    "target_session_attrs": "read-write",  # no standby server
    "application_name": "cupel",
}
"""Connection parameters for PostgreSQL, mostly time limits."""

TRANSIENT = ("08", "40", "53", "57", "55P03", "25P03")
"""Prefixes of the SQLSTATE codes of transient errors: connections, deadlocks, resources, shutdowns, lock
timeouts and idle transactions. The exception classes of the driver also cover permanent errors."""

WRITERS: WeakKeyDictionary[Engine, BoundedSemaphore] = WeakKeyDictionary()
"""Limits on concurrent PostgreSQL writers. Writers that wait for locks must leave connections for readers."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ListPage(Generic[T]):
    """A page of a list in a stable order.

    next: cursor of the next page, or None on the last page.
    """

    items: tuple[T, ...]
    next: str | None


def new_id(prefix: str) -> str:
    """Return a new id such as `sub_<uuid7 hex>`.

    Ids sort by creation time and cannot be guessed.
    """
    return f"{prefix}_{UUID(str(uuid7())).hex}"


def connect(url: str, *, connections: int = 20) -> Engine:
    """Create an engine for `url`.

    Call it after a fork, because processes must not share connections. connections: maximum number of
    PostgreSQL connections. When all are in use, callers wait for at most BUSY_SECONDS. The sum over all
    processes must stay below the server's max_connections.
    """
    if url.startswith("sqlite"):
        engine = create_engine(url, pool_size=KEPT, max_overflow=THREADS - KEPT)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    kept = min(KEPT, connections)
    engine = create_engine(
        make_url(url).set(drivername="postgresql+psycopg"),
        pool_pre_ping=True,  # the server may have been restarted
        pool_size=kept,
        max_overflow=connections - kept,
        pool_timeout=BUSY_SECONDS,
        connect_args=POSTGRESQL,
    )
    WRITERS[engine] = BoundedSemaphore(max(1, connections - max(1, connections // 4)))
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # _begin_sqlite begins transactions instead of the driver
    for pragma in (
        f"busy_timeout={BUSY_SECONDS * 1000}",
        "journal_mode=WAL",
        "synchronous=FULL",  # with NORMAL, WAL mode may lose the last commits in a power failure
        "foreign_keys=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later can fail at once with "database is locked", regardless
    # of busy_timeout. So a writer takes its lock at the beginning.
    options = connection.get_execution_options()
    begin = "BEGIN IMMEDIATE" if options.get("writes", False) else "BEGIN"
    if options.get("wait", True):
        connection.exec_driver_sql(begin)
        return
    connection.exec_driver_sql("PRAGMA busy_timeout=0")
    try:
        connection.exec_driver_sql(begin)
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")


@contextmanager
def writing(engine: Engine, *, wait: bool = True) -> Iterator[Connection]:
    """Run the block in a transaction that may write.

    The transaction is committed at the end, or rolled back after an error. wait: whether to wait for locks of
    other writers. If False, raise Unavailable instead. SQLite has one writer for the whole database;
    PostgreSQL locks rows. A PostgreSQL writer always waits up to BUSY_SECONDS if too many others are writing.
    """
    with _writer(engine), _transaction(engine, writes=True, wait=wait) as connection:
        if not wait and engine.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL lock_timeout = 1"))  # milliseconds; 0 means no limit
        yield connection


@contextmanager
def _writer(engine: Engine) -> Iterator[None]:
    """Run the block as one of a limited number of concurrent writers.

    Wait while the limit is reached; raise Unavailable after BUSY_SECONDS. SQLite engines have no such limit.
    """
    turns = WRITERS.get(engine)
    if turns is None:
        yield
        return
    if not turns.acquire(timeout=BUSY_SECONDS):
        raise DATABASE_BUSY("too many requests wait to write", retry_after=RETRY_SECONDS)
    try:
        yield
    finally:
        turns.release()


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Run the block in a transaction that only reads, with one consistent snapshot."""
    snapshot = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with _transaction(
        engine, writes=False, **(snapshot if engine.dialect.name == "postgresql" else {})
    ) as connection:
        yield connection


@contextmanager
def _transaction(engine: Engine, **options: Any) -> Iterator[Connection]:
    try:
        with engine.execution_options(**options).begin() as connection:
            yield connection
    except (OperationalError, InterfaceError, InternalError, NoConnection) as error:
        reason = (
            getattr(error, "orig", None) or error
        )  # the driver's error omits the statement, which may be long
        state = getattr(reason, "sqlstate", None)
        if isinstance(error, InternalError) if state is None else not state.startswith(TRANSIENT):
            raise
        # The error is transient: a lock or connection timeout, a lost connection, or a suspended process.
        if options.get("wait", True):
            log.warning("the database did not answer: %s", reason)
        raise DATABASE_BUSY("the database does not answer now", retry_after=RETRY_SECONDS) from error


def database_time(engine: Engine) -> datetime:
    """Return the time of a PostgreSQL server.

    It opens a connection outside the pool, because the caller may already hold a connection of the pool.
    """
    single = create_engine(engine.url, poolclass=NullPool, connect_args=POSTGRESQL)
    with reading(single) as connection:
        instant: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
        return instant


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert the rows that violate no unique constraint; return their number."""
    if not rows:
        return 0
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(table).values([dict(row) for row in rows]).on_conflict_do_nothing()
    # Count the returned rows, because psycopg reports no row count for this statement.
    return len(connection.execute(statement.returning(*table.primary_key)).all())


def fetch_page(
    connection: Connection,
    query: Select[Any],
    key: Any,
    make: Callable[[Any], T],
    *,
    limit: int,
    cursor: str | None,
) -> ListPage[T]:
    """Return a page of `query` in descending order of `key`.

    `key` is a unique text or integer column.
    """
    limit = max(1, min(limit, LARGEST_PAGE))
    if cursor is not None:
        query = query.where(key < _parse_cursor(key, cursor))
    rows = connection.execute(query.order_by(key.desc()).limit(limit + 1)).all()
    more = len(rows) > limit
    following = str(getattr(rows[limit - 1], key.name)) if more else None
    return ListPage(tuple(make(row) for row in rows[:limit]), following)


def _parse_cursor(key: Any, cursor: str) -> Any:
    with suppress(ValueError):
        place = key.type.python_type(cursor)
        if not isinstance(place, int) or abs(place) < 2**63:  # larger numbers do not fit a database integer
            return place
    raise CURSOR_UNKNOWN(f"invalid cursor {cursor!r}")


def migrate(engine: Engine) -> None:
    """Bring the tables up to date. Several processes may call it at the same time."""
    from alembic import command  # imported late, because few processes migrate
    from alembic.config import Config

    with writing(engine) as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(
                text("SET LOCAL statement_timeout = 0")
            )  # changing a large table may take long
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATING})
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def is_migrated(engine: Engine) -> bool:
    """Return whether the tables match this version of the code."""
    newest = max(path.name for path in (MIGRATIONS / "versions").glob("[0-9]*.py")).partition("_")[0]
    with reading(engine) as connection:
        if not inspect(connection).has_table("alembic_version"):
            return False
        return connection.scalars(text("SELECT version_num FROM alembic_version")).all() == [newest]
