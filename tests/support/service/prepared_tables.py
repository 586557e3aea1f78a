"""Storage whose tables are up to date, copied from a database that each process migrates once."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from cupel_backend.infrastructure.database import connect, migrate
from cupel_backend.infrastructure.settings import Settings
from support.service.service_sizes import SizeName, new_database, place

kept = ExitStack()
"""The databases that are copied; conftest.py removes them at the end of the process."""


@contextmanager
def prepared_place(size: SizeName, data: Path) -> Iterator[dict[str, Any]]:
    """Yield settings of a system whose tables are up to date and empty.

    Its data folder is `data`.
    """
    if size != "embedded":
        with place(size, template=_prepared_database()) as at:
            yield {"data": data, **at}
        return
    settings = Settings(data=data)
    settings.prepare()
    shutil.copyfile(_prepared_file(), _file_of(settings))
    yield {"data": data}


@cache
def _prepared_file() -> Path:
    """Return the path of an SQLite file with up-to-date tables."""
    settings = Settings(data=Path(kept.enter_context(TemporaryDirectory())))
    _create_tables(settings.database_url)
    return _file_of(settings)


@cache
def _prepared_database() -> str:
    """Return the name of a PostgreSQL database with up-to-date tables."""
    url = kept.enter_context(new_database())
    _create_tables(Settings(data=Path(), database=url).database_url)
    return urlsplit(url).path.strip("/")


def _create_tables(url: str) -> None:
    engine = connect(url)
    migrate(engine)
    engine.dispose()


def _file_of(settings: Settings) -> Path:
    return settings.data / "cupel.sqlite"
