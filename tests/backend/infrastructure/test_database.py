"""The database: migrations that make the tables the code uses, and writers that wait for each other."""

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
"""What SQLite, without a server, has no counterpart for."""


@pytest.fixture
def engine(at: dict[str, Any]) -> Iterator[Engine]:
    """An engine of a database without tables."""
    at["data"].mkdir()
    engine = connect(Settings(**at).database_url)
    yield engine
    engine.dispose()


def test_processes_that_migrate_at_the_same_time_do_no_harm(engine: Engine) -> None:
    url = engine.url.render_as_string(hide_password=False)
    started = [subprocess.Popen([sys.executable, "-c", MIGRATE, url]) for _ in range(4)]
    assert [process.wait() for process in started] == [0, 0, 0, 0]
    assert is_migrated(engine)


def test_a_system_without_tables_is_not_ready_and_says_what_to_do(at: dict[str, Any]) -> None:
    system = open_system(Settings(**at))
    with pytest.raises(Unavailable, match="cupel admin migrate"):
        system.ready()
    system.migrate()
    system.ready()
    system.close()


def test_writers_that_lock_what_they_read_wait_for_each_other(system: System) -> None:
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


def test_a_transaction_that_raises_leaves_nothing(system: System) -> None:
    def interrupted() -> None:
        with writing(system.engine) as connection:
            connection.execute(insert(turns).values(queue="q", tenant="t", served_at=system.now()))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    with reading(system.engine) as connection:
        assert connection.execute(select(func.count()).select_from(turns)).scalar() == 0


def test_a_cursor_of_another_list_is_refused(system: System) -> None:
    with pytest.raises(Invalid, match="cursor"):
        tracks.list_(system, ADMIN, cursor="sub_1")


@pytest.mark.parametrize("limit", [-1, 0, 10**9])
def test_a_strange_limit_is_brought_into_bounds(system: System, limit: int) -> None:
    access.issue(system, ADMIN, team="a", scope="participant")
    assert len(access.list_(system, ADMIN, limit=limit).items) == 1


def test_a_database_that_stays_locked_is_unavailable_for_now(tmp_path: Path) -> None:
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


def test_a_writer_gives_up_before_a_lease_ends(system: System) -> None:
    assert 0 < patience(system.engine) + system.settings.renew_seconds < system.settings.lease_seconds


def patience(engine: Engine) -> float:
    """Seconds that a connection waits for another writer."""
    with reading(engine) as connection:
        if engine.dialect.name == "sqlite":
            return int(connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one()) / 1000
        return float(str(connection.exec_driver_sql("SHOW lock_timeout").scalar_one()).removesuffix("s"))


def test_who_does_not_wait_leaves_the_patience_of_others(system: System) -> None:
    with writing(system.engine) as connection:
        connection.execute(insert(turns).values(queue="q", tenant="0", served_at=system.now()))
    whole = patience(system.engine)
    locking = select(turns).with_for_update()
    with writing(system.engine) as connection:
        connection.execute(locking)
        with pytest.raises(Unavailable), writing(system.engine, wait=False) as other:
            other.execute(locking)
    assert patience(system.engine) == whole


def test_a_reader_sees_one_state_of_everything(system: System) -> None:
    with reading(system.engine) as connection:
        before = connection.execute(select(func.count()).select_from(turns)).scalar_one()
        with writing(system.engine) as other:
            other.execute(insert(turns).values(queue="q", tenant="0", served_at=system.now()))
        assert connection.execute(select(func.count()).select_from(turns)).scalar_one() == before


@on_postgresql
def test_a_reader_can_not_write(system: System) -> None:
    row = insert(turns).values(queue="q", tenant="0", served_at=system.now())
    with pytest.raises(InternalError, match="read-only"), reading(system.engine) as connection:
        connection.execute(row)


@on_postgresql
def test_all_connections_in_use_is_unavailable_for_now(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cupel_backend.infrastructure.database.BUSY_SECONDS", 0.1)
    few = connect(engine.url.render_as_string(hide_password=False), connections=2)
    with reading(few), reading(few), pytest.raises(Unavailable) as refused, reading(few):
        pass
    assert refused.value.code == "database-busy"
    few.dispose()


@on_postgresql
def test_connections_that_the_server_ended_are_replaced(engine: Engine) -> None:
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
def test_a_connection_that_ends_in_a_transaction_is_unavailable_for_now(engine: Engine) -> None:
    suicide = text("SELECT pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(Unavailable) as refused, writing(engine) as connection:
        connection.execute(suicide)
    assert (refused.value.code, refused.value.retry_after) == ("database-busy", 2)


BACKENDS = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid")


@on_postgresql
def test_who_slept_in_a_transaction_until_it_was_ended_is_refused_for_now(engine: Engine) -> None:
    def sleep() -> None:
        with writing(engine) as connection:
            connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 50"))
            pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            with engine.connect() as observer:  # as a stopped process, which wakes up much later
                until(lambda: not observer.execute(BACKENDS, {"pid": pid}).scalar_one())
            connection.execute(text("SELECT 1"))

    with pytest.raises(Unavailable):
        sleep()


@on_postgresql
def test_what_will_never_pass_is_not_taken_for_a_busy_database(system: System) -> None:
    """The driver calls it operational when a row does not fit an index: trying again would go on for ever."""
    row = insert(turns).values(queue="".join(map(chr, range(1000, 6000))), tenant="t", served_at=system.now())
    with pytest.raises(OperationalError, match="index row"), writing(system.engine) as connection:
        connection.execute(row)


@on_postgresql
def test_writers_that_wait_leave_connections_to_readers(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cupel_backend.infrastructure.database.BUSY_SECONDS", 0.2)
    few = connect(engine.url.render_as_string(hide_password=False), connections=4)
    with writing(few), writing(few), writing(few):
        with pytest.raises(Unavailable, match="too many wait to write"), writing(few):
            pass
        with reading(few) as connection:
            assert connection.execute(text("SELECT 1")).scalar_one() == 1
    few.dispose()


@on_postgresql
def test_the_zone_of_the_server_does_not_matter(engine: Engine) -> None:
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
