"""All settings, in one typed place: the only one that reads or writes the environment."""

import errno
import os
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

MEGABYTE = 1 << 20


class WrongSetting(Exception):
    """Settings that can't be used; the message is a sentence for each, which names its variable."""


class Settings(BaseSettings):
    """Each field may be set by the variable `CUPEL_<FIELD>`; everything has a default for one machine."""

    model_config = SettingsConfigDict(env_prefix="CUPEL_", frozen=True, extra="forbid")

    data: Path = Field(Path("cupel-data"), description="folder of the database, blobs, broker and metrics")
    database: str = Field("", description="SQLAlchemy URL; default: SQLite in the data folder")
    blobs: str = Field("", description="where blobs live; default: a folder in the data folder")
    broker: str = Field("", description="Celery broker URL; default: folders in the data folder")

    workers: int = Field(2, ge=1, description="processes that work on jobs")
    checkers: int = Field(
        2, ge=1, description="checking processes of a gateway, and so uploads checked at once"
    )
    checker_megabytes: int = Field(3072, description="memory a checking process may map")
    checker_seconds: float = Field(120.0, description="time to check one upload, waiting for a turn included")
    checker_turns: int = Field(100, description="uploads after which a checking process is replaced")

    lease_seconds: float = Field(
        20.0, description="a running job that is not renewed for so long is free again"
    )
    renew_seconds: float = Field(5.0, description="how often a running job is renewed")
    sweep_seconds: float = Field(
        5.0, description="how often expired leases and unclaimed jobs are looked for"
    )
    retry_seconds: float = Field(
        2.0, description="pause before a failed job is tried again, times its attempts"
    )
    turn_seconds: float = Field(5.0, description="a worker process takes jobs for so long before it yields")
    job_seconds: float = Field(600.0, description="longest a job may run; then its process is ended")
    worker_megabytes: int = Field(2048, description="memory after which a worker process is replaced")
    attempts: int = Field(3, ge=1, description="claims after which a job that never finished is dead")

    upload_megabytes: int = Field(512, description="largest file accepted, as sent")
    expanded_megabytes: int = Field(2048, description="largest file accepted, decompressed")
    open_submissions: int = Field(1000, description="submissions of a team to a track that may wait")
    upload_hours: float = Field(6.0, description="age at which a forgotten partial upload is removed")
    key_hours: float = Field(48.0, description="how long an Idempotency-Key is remembered")

    metrics_port: int = Field(0, description="port of the worker's /metrics; 0: none (the gateway shows all)")
    polling_seconds: float = Field(0.1, description="how often the folder broker is looked at")

    @field_validator("blobs")
    @classmethod
    def _known_store(cls, url: str) -> str:
        if url and not url.startswith("file:"):
            raise ValueError("give a file: URL, such as file:///srv/cupel/blobs")
        return url

    @field_validator("database")
    @classmethod
    def _known_database(cls, url: str) -> str:
        if url and not url.startswith(("sqlite", "postgresql")):
            raise ValueError("give the SQLAlchemy URL of a PostgreSQL or SQLite database")
        return url

    @cached_property
    def database_url(self) -> str:
        return self.database or f"sqlite:///{self.data.absolute() / 'cupel.sqlite'}"

    @cached_property
    def blobs_url(self) -> str:
        return self.blobs or (self.data.absolute() / "blobs").as_uri()

    @cached_property
    def broker_url(self) -> str:
        return self.broker or "folder://localhost"

    @cached_property
    def broker_folder(self) -> Path:
        """Messages of the folder broker; of no use to another one."""
        return self.data.absolute() / "broker"

    @cached_property
    def incoming(self) -> Path:
        """Uploads on their way in."""
        return self.data.absolute() / "incoming"

    @cached_property
    def metrics(self) -> Path:
        """Values of all processes that share the data folder, one file a process."""
        return self.data.absolute() / "metrics"

    def in_use(self) -> bool:
        """Whether there is a service to look after: a database elsewhere, or one in the data folder."""
        return bool(self.database) or (self.data / "cupel.sqlite").is_file()

    def limits(self) -> dict[str, int]:
        """The limits of reading (`cupel_measures.reading.streams.Limits`) that are settings, in bytes."""
        return {
            "compressed": self.upload_megabytes * MEGABYTE,
            "expanded": self.expanded_megabytes * MEGABYTE,
        }

    def prepare(self) -> None:
        """Make the folders, and say where metrics go: prometheus_client reads that when first imported.

        Raises WrongSetting where the data folder can't be made or written to.
        """
        try:
            for folder in (self.data, self.incoming, self.metrics):
                folder.mkdir(parents=True, exist_ok=True)
                if not os.access(folder, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise WrongSetting(
                f"the data folder {self.data} can't be used ({error.strerror}): "
                "name a folder that you may write to, with CUPEL_DATA or --data"
            ) from None
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(self.metrics)

    def environment(self) -> dict[str, str]:
        """The environment for a child process that runs with these settings.

        One thread for BLAS: its idle ones would only spin, and no score depends on it.
        """
        own = {f"CUPEL_{name.upper()}": str(value) for name, value in self.model_dump().items()}
        return {"OPENBLAS_NUM_THREADS": "1", **os.environ, **own}


def read_settings(**given: object) -> Settings:
    """Settings of the environment, and over them what is `given` and not None; raises WrongSetting."""
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    except ValidationError as problem:
        raise WrongSetting("; ".join(map(_sentence, problem.errors()))) from None


def _sentence(wrong: Mapping[str, Any]) -> str:
    name = str(wrong["loc"][0])
    said = "" if name in ("database", "broker") else f" is {wrong['input']!r}"  # those may hold a password
    reason = wrong["msg"].removeprefix("Value error, ")
    field = Settings.model_fields[name]
    about = f"{field.description}; default {field.default!r}" if field.default != "" else field.description
    return f"CUPEL_{name.upper()}{said}: {reason[0].lower()}{reason[1:]} ({about})"


def checker_environment() -> dict[str, str]:
    """What a checking process may know: where Python finds its parts, one thread, and nothing else."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    paths = os.pathsep.join(filter(None, sys.path))
    return {**kept, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"}
