"""Where the system is put together: settings in, everything wired out."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from cupel_backend.infrastructure.check_processes import Checkers
from cupel_backend.infrastructure.clock import SharedClock, utc_now
from cupel_backend.infrastructure.database import connect, database_time, is_migrated, migrate
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.metrics import Metrics
from cupel_backend.infrastructure.object_store import Blobs, WatchedBlobs, open_blobs
from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.wake_ups import WakeUps

NOT_READY = refusal("not-ready")


@dataclass(frozen=True)
class System:
    """All means of the backend; the first argument of every noun's functions. One per process."""

    settings: Settings
    engine: Engine
    blobs: Blobs
    wake_ups: WakeUps
    metrics: Metrics
    checkers: Checkers
    now: Callable[[], datetime] = utc_now

    def ready(self) -> None:
        """Raise Unavailable unless the database is up to date and blobs can be stored."""
        try:
            if not is_migrated(self.engine):
                raise NOT_READY("the tables are not up to date: run `cupel admin migrate`")
            self.blobs.check()
        except (SQLAlchemyError, OSError) as error:
            raise NOT_READY(f"{type(error).__name__} while looking at the database and blobs") from error

    def migrate(self) -> None:
        """Bring the tables up to date, and make the place of the blobs.

        Harmless if all is there, or if another process does the same.
        """
        migrate(self.engine)
        self.blobs.prepare()

    def close(self) -> None:
        """Let go of everything: connections, checking processes."""
        self.checkers.close()
        self.wake_ups.close()
        self.engine.dispose()


def open_system(settings: Settings) -> System:
    """Wire the system that `settings` describe. Call it after fork: connections can't be shared."""
    settings.prepare()
    metrics = Metrics(settings.metrics)
    engine = connect(settings.database_url, connections=settings.connections)
    return System(
        settings=settings,
        engine=engine,
        blobs=WatchedBlobs(open_blobs(settings), metrics.observe_storage),
        wake_ups=WakeUps(settings, metrics.count_wake_ups),
        metrics=metrics,
        checkers=Checkers(settings),
        now=utc_now if engine.dialect.name == "sqlite" else SharedClock(lambda: database_time(engine)),
    )
