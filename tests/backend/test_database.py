"""The database: migrations that make the tables the code uses, and writers that wait for each other."""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import event, func, insert, select, update
from sqlalchemy.dialects import postgresql

from backend.cast import ADMIN
from cupel_backend import access, tracks
from cupel_backend.database import connect, migrate, migrated, reading, writing
from cupel_backend.errors import Invalid, Unavailable
from cupel_backend.settings import Settings
from cupel_backend.system import System, open_system
from cupel_backend.tables import metadata, turns

MIGRATE = """
import sys
from cupel_backend.database import connect, migrate
migrate(connect(sys.argv[1]))
"""


def test_the_migrations_make_exactly_the_tables_of_the_code(tmp_path: Path) -> None:
    engine = connect(f"sqlite:///{tmp_path / 'new.sqlite'}")
    assert not migrated(engine)
    migrate(engine)
    assert migrated(engine)
    with reading(engine) as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def test_processes_that_migrate_at_the_same_time_do_no_harm(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.sqlite'}"
    started = [subprocess.Popen([sys.executable, "-c", MIGRATE, url]) for _ in range(4)]
    assert [process.wait() for process in started] == [0, 0, 0, 0]


def test_a_system_without_tables_is_not_ready_and_says_what_to_do(tmp_path: Path) -> None:
    system = open_system(Settings(data=tmp_path / "data"))
    with pytest.raises(Unavailable, match="cupel admin migrate"):
        system.ready()
    system.migrate()
    system.ready()
    system.close()


def test_writers_that_read_first_wait_for_each_other(system: System) -> None:
    with writing(system.engine) as connection:
        connection.execute(insert(turns).values(queue="q", tenant="0", served_at=system.now()))

    def count() -> None:
        for _ in range(20):
            with writing(system.engine) as connection:
                value = int(connection.execute(select(turns.c.tenant)).scalar_one())
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
    with reading(system.engine) as connection:
        milliseconds = connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one()
    assert 0 < milliseconds / 1000 + system.settings.renew_seconds < system.settings.lease_seconds


def test_who_does_not_wait_leaves_the_patience_of_others(system: System) -> None:
    with writing(system.engine):
        with pytest.raises(Unavailable), writing(system.engine, wait=False):
            pass
        with reading(system.engine) as connection:
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() > 0


def test_a_reader_of_postgresql_sees_one_snapshot() -> None:
    asked: dict[str, object] = {}

    class Recorded:
        dialect = postgresql.dialect()

        def execution_options(self, **options: object) -> "Recorded":
            asked.update(options)
            return self

        @contextmanager
        def begin(self) -> Iterator[None]:
            yield

    with reading(Recorded()):  # type: ignore[arg-type]
        assert asked["isolation_level"] == "REPEATABLE READ"
