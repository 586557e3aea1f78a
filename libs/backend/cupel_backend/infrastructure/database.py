"""The database: engines, transactions, migrations and pages, in SQL that SQLite and PostgreSQL share."""

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

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, Select, Table, create_engine, event, make_url, text
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
"""How long a writer waits for another one: well below a job's lease, which a renewal has to reach in time."""
LARGEST_PAGE = 500
KEPT = 4
"""Connections that a process keeps open when they are not in use."""
THREADS = 128
"""Connections to SQLite that a process may have at once: more than a gateway has threads."""
MIGRATING = 0x43_75_70_65_6C
"""PostgreSQL's lock for who migrates: any number that nobody else takes."""

POSTGRESQL = {
    "connect_timeout": 5,
    "keepalives_idle": 10,  # with these, and the next, a host that is gone without a word is noticed
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "options": f"-c lock_timeout={BUSY_SECONDS}s -c statement_timeout=60s"
    " -c idle_in_transaction_session_timeout=60s"  # a stopped process must not hold its locks for ever
    " -c timezone=UTC -c datestyle=ISO",  # the last instants of the calendar are beyond it in other zones
    "client_encoding": "utf8",
    "target_session_attrs": "read-write",  # not a standby
    "application_name": "cupel",
}
"""How a connection to PostgreSQL behaves when something goes wrong."""

PASSING = ("08", "40", "53", "57", "55P03", "25P03")
"""Beginnings of PostgreSQL's codes for what passes: connections, deadlocks, resources, shutdowns, locks held
for long, and who slept in a transaction. The driver files others under the same classes of error."""

WRITERS: WeakKeyDictionary[Engine, BoundedSemaphore] = WeakKeyDictionary()
"""How many may write to a PostgreSQL at once: those who wait for a lock leave connections to readers."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ListPage(Generic[T]):
    """Some items of a list in its stable order; `next` is the cursor of the following ones, if any."""

    items: tuple[T, ...]
    next: str | None


def new_id(prefix: str) -> str:
    """An opaque id such as `sub_<uuid7 hex>`: sorts by time of making, can't be guessed."""
    return f"{prefix}_{UUID(str(uuid7())).hex}"


def connect(url: str, *, connections: int = 20) -> Engine:
    """An engine for `url`. Make it after fork: connections must never be shared between processes.

    connections: to PostgreSQL, at a time; who comes when all are in use waits for BUSY_SECONDS. The sum over
    all processes has to stay below the server's max_connections.
    """
    if url.startswith("sqlite"):
        engine = create_engine(url, pool_size=KEPT, max_overflow=THREADS - KEPT)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    kept = min(KEPT, connections)
    engine = create_engine(
        make_url(url).set(drivername="postgresql+psycopg"),
        pool_pre_ping=True,  # the server may have been started anew
        pool_size=kept,
        max_overflow=connections - kept,
        pool_timeout=BUSY_SECONDS,
        connect_args=POSTGRESQL,
    )
    WRITERS[engine] = BoundedSemaphore(max(1, connections - max(1, connections // 4)))
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver must not begin transactions of its own: _begin_sqlite does
    for pragma in (
        f"busy_timeout={BUSY_SECONDS * 1000}",
        "journal_mode=WAL",
        "synchronous=FULL",  # in WAL mode NORMAL may forget the last commits when the power fails
        "foreign_keys=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later can fail at once with "database is locked",
    # whatever busy_timeout says; a writer therefore takes its lock at the beginning.
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
    """A transaction that may write: committed at the end, rolled back on any error.

    wait: for another writer, of the whole database where it has only one; else Unavailable at once.
    """
    with _writer(engine), _transaction(engine, writes=True, wait=wait) as connection:
        if not wait and engine.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL lock_timeout = 1"))  # milliseconds; 0 would mean for ever
        yield connection


@contextmanager
def _writer(engine: Engine) -> Iterator[None]:
    """A writer's turn, where there are only so many."""
    turns = WRITERS.get(engine)
    if turns is None:
        yield
        return
    if not turns.acquire(timeout=BUSY_SECONDS):
        raise DATABASE_BUSY("too many wait to write", retry_after=RETRY_SECONDS)
    try:
        yield
    finally:
        turns.release()


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that only reads: one consistent view of everything."""
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
        reason = getattr(error, "orig", None) or error  # without the statement, which may be very long
        state = getattr(reason, "sqlstate", None)
        if isinstance(error, InternalError) if state is None else not state.startswith(PASSING):
            raise
        # Locked for too long, gone, all in use; or we were, for the process was stopped in the midst of it.
        if options.get("wait", True):
            log.warning("the database did not answer: %s", reason)
        raise DATABASE_BUSY("the database does not answer now", retry_after=RETRY_SECONDS) from error


def database_time(engine: Engine) -> datetime:
    """The clock of a PostgreSQL server, asked over a connection of its own: who asks may hold one already."""
    alone = create_engine(engine.url, poolclass=NullPool, connect_args=POSTGRESQL)
    with reading(alone) as connection:
        instant: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
        return instant


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert those of `rows` that break no unique rule; returns how many were new."""
    if not rows:
        return 0
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(table).values([dict(row) for row in rows]).on_conflict_do_nothing()
    # Counted by what comes back: psycopg tells no number of rows for such a statement.
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
    """A page of `query` by descending `key` (a unique text or integer column): newest first."""
    limit = max(1, min(limit, LARGEST_PAGE))
    if cursor is not None:
        query = query.where(key < _place(key, cursor))
    rows = connection.execute(query.order_by(key.desc()).limit(limit + 1)).all()
    more = len(rows) > limit
    following = str(getattr(rows[limit - 1], key.name)) if more else None
    return ListPage(tuple(make(row) for row in rows[:limit]), following)


def _place(key: Any, cursor: str) -> Any:
    with suppress(ValueError):
        place = key.type.python_type(cursor)
        if not isinstance(place, int) or abs(place) < 2**63:  # else no database could compare it
            return place
    raise CURSOR_UNKNOWN(f"{cursor!r} is not a cursor of this list")


def migrate(engine: Engine) -> None:
    """Bring the tables up to date. Several processes may call it at once: a lock orders them."""
    with writing(engine) as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL statement_timeout = 0"))  # a large table takes its time
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATING})
        config = _alembic()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def is_migrated(engine: Engine) -> bool:
    """Whether the tables are those of this version of the code."""
    with reading(engine) as connection:
        heads = MigrationContext.configure(connection).get_current_heads()
    return set(heads) == set(ScriptDirectory.from_config(_alembic()).get_heads())


def _alembic() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config
