"""Tests of the database: migrations, locks, snapshots, connections and temporary failures."""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, func, insert, select, text, update
from sqlalchemy.exc import InternalError, OperationalError

from cupel_backend import access, tracks
from cupel_backend.infrastructure.database import connect, is_migrated, migrate, reading, writing
from cupel_backend.infrastructure.errors import Invalid, Unavailable
from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.system import System, open_system
from cupel_backend.infrastructure.tables import turns
from support.backend_cast import ADMIN
from support.patience import until

MIGRATE = """
import sys
from cupel_backend.infrastructure.database import connect, migrate
migrate(connect(sys.argv[1]))
"""


on_postgresql = pytest.mark.parametrize("size", ["production"], indirect=True)
"""Mark of tests that need a database server."""


@pytest.fixture
def engine(at: dict[str, Any]) -> Iterator[Engine]:
    """Yield an engine of a database without tables."""
    at["data"].mkdir()
    engine = connect(Settings(**at).database_url)
    yield engine
    engine.dispose()


def test_concurrent_migrations_succeed(engine: Engine) -> None:
    url = engine.url.render_as_string(hide_password=False)
    started = [subprocess.Popen([sys.executable, "-c", MIGRATE, url]) for _ in range(4)]
    assert [process.wait() for process in started] == [0, 0, 0, 0]
    assert is_migrated(engine)


def test_system_without_tables_is_not_ready(at: dict[str, Any]) -> None:
    system = open_system(Settings(**at))
    with pytest.raises(Unavailable, match="cupel admin migrate"):
        system.ready()
    system.migrate()
    system.ready()
    system.close()


def test_writers_with_locked_reads_are_serialised(system: System) -> None:
    with writing(system.engine) as connection:
        connection.execute(insert(turns).values(queue="q", tenant="0", served_at=system.now()))

    def count() -> None:
        for _ in range(20):
            with writing(system.engine) as connection:
                value = int(connection.execute(select(turns.c.tenant).with_for_update()).scalar_one())
                connection.execute(update(turns).values(tenant=str(value + 1)))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with reading(system.engine) as connection:
        assert connection.execute(select(turns.c.tenant)).scalar() == "80"


def test_failed_transaction_is_rolled_back(system: System) -> None:
    def interrupted() -> None:
        with writing(system.engine) as connection:
            connection.execute(insert(turns).values(queue="q", tenant="t", served_at=system.now()))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    with reading(system.engine) as connection:
        assert connection.execute(select(func.count()).select_from(turns)).scalar() == 0


def test_cursor_of_another_list_is_refused(system: System) -> None:
    with pytest.raises(Invalid, match="cursor"):
        tracks.list_(system, ADMIN, cursor="sub_1")


@pytest.mark.parametrize("limit", [-1, 0, 10**9])
def test_limit_is_clamped(system: System, limit: int) -> None:
    access.issue(system, ADMIN, team="a", scope="participant")
    assert len(access.list_(system, ADMIN, limit=limit).items) == 1


def test_locked_database_is_temporary_unavailability(tmp_path: Path) -> None:
    engine = connect(f"sqlite:///{tmp_path / 'locked.sqlite'}")
    migrate(engine)
    event.listen(engine, "checkout", lambda dbapi, *_: dbapi.execute("PRAGMA busy_timeout=50"))
    blocker = sqlite3.connect(tmp_path / "locked.sqlite", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable) as refused, writing(engine):
        pass
    assert (refused.value.code, refused.value.retry_after) == ("database-busy", 2)
    blocker.execute("ROLLBACK")
    blocker.close()
    with writing(engine):
        pass


def test_writer_times_out_before_a_lease_expires(system: System) -> None:
    assert 0 < lock_timeout(system.engine) + system.settings.renew_seconds < system.settings.lease_seconds


def lock_timeout(engine: Engine) -> float:
    """Return the seconds that a connection waits for another writer."""
    with reading(engine) as connection:
        if engine.dialect.name == "sqlite":
            return int(connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one()) / 1000
        return float(str(connection.exec_driver_sql("SHOW lock_timeout").scalar_one()).removesuffix("s"))


def test_writer_without_waiting_keeps_the_lock_timeout_of_others(system: System) -> None:
    with writing(system.engine) as connection:
        connection.execute(insert(turns).values(queue="q", tenant="0", served_at=system.now()))
    before = lock_timeout(system.engine)
    locking = select(turns).with_for_update()
    with writing(system.engine) as connection:
        connection.execute(locking)
        with pytest.raises(Unavailable), writing(system.engine, wait=False) as other:
            other.execute(locking)
    assert lock_timeout(system.engine) == before


def test_reader_sees_a_consistent_snapshot(system: System) -> None:
    with reading(system.engine) as connection:
        before = connection.execute(select(func.count()).select_from(turns)).scalar_one()
        with writing(system.engine) as other:
            other.execute(insert(turns).values(queue="q", tenant="0", served_at=system.now()))
        assert connection.execute(select(func.count()).select_from(turns)).scalar_one() == before


@on_postgresql
def test_reader_cannot_write(system: System) -> None:
    row = insert(turns).values(queue="q", tenant="0", served_at=system.now())
    with pytest.raises(InternalError, match="read-only"), reading(system.engine) as connection:
        connection.execute(row)


@on_postgresql
def test_exhausted_connections_are_temporary_unavailability(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cupel_backend.infrastructure.database.BUSY_SECONDS", 0.1)
    few = connect(engine.url.render_as_string(hide_password=False), connections=2)
    with reading(few), reading(few), pytest.raises(Unavailable) as refused, reading(few):
        pass
    assert refused.value.code == "database-busy"
    few.dispose()


@on_postgresql
def test_connections_closed_by_the_server_are_replaced(engine: Engine) -> None:
    with reading(engine) as connection:
        connection.execute(text("SELECT 1"))
    others = text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    another = connect(engine.url.render_as_string(hide_password=False))
    with writing(another) as connection:
        assert connection.execute(others).all() == [(True,)]
    another.dispose()
    with reading(engine) as connection:
        assert connection.execute(text("SELECT 1")).scalar_one() == 1


@on_postgresql
def test_connection_lost_in_a_transaction_is_temporary_unavailability(engine: Engine) -> None:
    suicide = text("SELECT pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(Unavailable) as refused, writing(engine) as connection:
        connection.execute(suicide)
    assert (refused.value.code, refused.value.retry_after) == ("database-busy", 2)


BACKENDS = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid")


@on_postgresql
def test_transaction_ended_by_the_idle_timeout_is_temporary_unavailability(engine: Engine) -> None:
    def sleep() -> None:
        with writing(engine) as connection:
            connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 50"))
            pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            # A transaction sees only the processes of its first query, so use a new transaction for each
            # query.
            autocommit = engine.execution_options(isolation_level="AUTOCOMMIT")
            with autocommit.connect() as observer:
                until(lambda: not observer.execute(BACKENDS, {"pid": pid}).scalar_one())
            connection.execute(text("SELECT 1"))

    with pytest.raises(Unavailable):
        sleep()


@on_postgresql
def test_permanent_error_is_not_temporary_unavailability(system: System) -> None:
    """Check that a row too large for an index is not retried, although psycopg raises OperationalError."""
    row = insert(turns).values(queue="".join(map(chr, range(1000, 6000))), tenant="t", served_at=system.now())
    with pytest.raises(OperationalError, match="index row"), writing(system.engine) as connection:
        connection.execute(row)


@on_postgresql
def test_waiting_writers_leave_connections_to_readers(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cupel_backend.infrastructure.database.BUSY_SECONDS", 0.2)
    few = connect(engine.url.render_as_string(hide_password=False), connections=4)
    with writing(few), writing(few), writing(few):
        with pytest.raises(Unavailable, match="too many requests wait to write"), writing(few):
            pass
        with reading(few) as connection:
            assert connection.execute(text("SELECT 1")).scalar_one() == 1
    few.dispose()


@on_postgresql
def test_server_time_zone_does_not_matter(engine: Engine) -> None:
    url = engine.url.render_as_string(hide_password=False)
    with writing(engine) as connection:
        connection.execute(text(f"ALTER DATABASE {engine.url.database} SET timezone = 'Asia/Tokyo'"))
    fresh = connect(url)
    migrate(fresh)
    last = datetime(9999, 12, 31, 23, 30, tzinfo=UTC)
    with writing(fresh) as connection:
        connection.execute(insert(turns).values(queue="q", tenant="t", served_at=last))
        assert connection.execute(select(turns.c.served_at)).scalar_one() == last
    fresh.dispose()
