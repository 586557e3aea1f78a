"""The `System` of one process: settings, database, object store, broker, metrics."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from cupel_backend.infrastructure.check_processes import Checkers
from cupel_backend.infrastructure.clock import SharedClock, utc_now
from cupel_backend.infrastructure.database import connect, database_time, is_migrated, migrate
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.metrics import Metrics
from cupel_backend.infrastructure.object_store import Blobs, DirectoryBlobs, InstrumentedBlobs
from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.wake_ups import WakeUps

NOT_READY = refusal("not-ready")


@dataclass(frozen=True, kw_only=True)
class System:
    """The dependencies of a backend process: database, blobs, broker, and so on.

    Functions of the backend take a System as their first argument. Create one per process.
    """

    settings: Settings
    engine: Engine
    blobs: Blobs
    wake_ups: WakeUps
    metrics: Metrics
    checkers: Checkers
    now: Callable[[], datetime] = utc_now

    def ready(self) -> None:
        """Raise Unavailable unless the tables are up to date and blobs can be stored."""
        try:
            if not is_migrated(self.engine):
                raise NOT_READY("the tables are not up to date; run `cupel admin migrate`")
            self.blobs.check()
        except (SQLAlchemyError, OSError) as error:
            raise NOT_READY(
                f"{type(error).__name__} while checking the database and the object store"
            ) from error

    def migrate(self) -> None:
        """Bring the tables up to date and create the folder or bucket of the blobs.

        Several processes may call this method at the same time.
        """
        migrate(self.engine)
        self.blobs.prepare()

    def close(self) -> None:
        """Close the connections and end the check processes."""
        self.checkers.close()
        self.wake_ups.close()
        self.engine.dispose()


def open_system(settings: Settings) -> System:
    """Open a system with `settings`.

    Call it after a fork, because processes cannot share connections.
    """
    settings.prepare()
    metrics = Metrics(settings.metrics)
    engine = connect(settings.database_url, connections=settings.connections)
    return System(
        settings=settings,
        engine=engine,
        blobs=InstrumentedBlobs(open_blobs(settings), metrics.observe_storage),
        wake_ups=WakeUps(settings, metrics.count_wake_up),
        metrics=metrics,
        checkers=Checkers(settings),
        now=utc_now if engine.dialect.name == "sqlite" else SharedClock(lambda: database_time(engine)),
    )


def open_blobs(settings: Settings) -> Blobs:
    """Open the object store that the settings name."""
    url = urlsplit(settings.blobs_url)
    if url.scheme == "s3":
        from cupel_backend.infrastructure.s3_store import S3Blobs  # boto3 is slow to import

        return S3Blobs(settings, bucket=url.netloc, prefix=url.path.strip("/"))
    return DirectoryBlobs(Path(unquote(url.path)))
