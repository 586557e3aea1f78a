"""All settings, in one typed place: the only one that reads or writes the environment."""

import errno
import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import quote, urlsplit, urlunsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

MEGABYTE = 1 << 20

QUEUES = ("score", "audit", "notify")
"""The kinds of work that must not wait for each other."""

FILE = "_FILE"

Span = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Pause = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class WrongSetting(Exception):
    """Settings that can't be used; the message is a sentence for each, which names its variable."""


class Settings(BaseSettings):
    """Each field may be set by the variable `CUPEL_<FIELD>`, or by a file that `CUPEL_<FIELD>_FILE` names.

    Everything has a default for one machine.
    """

    model_config = SettingsConfigDict(env_prefix="CUPEL_", frozen=True, extra="forbid")

    data: Path = Field(Path("cupel-data"), description="folder of the database, blobs, broker and metrics")
    database: str = Field("", description="postgresql: or sqlite: URL; default: SQLite in the data folder")
    database_password: SecretStr = Field(
        SecretStr(""), description="password, where the URL of the database has none"
    )
    connections: int = Field(
        20, ge=4, description="connections to PostgreSQL that one process may have at a time"
    )
    blobs: str = Field(
        "", description="file: URL or s3://bucket/prefix; default: a folder in the data folder"
    )
    s3_endpoint: str = Field("", description="address of the S3 server; default: that of AWS")
    s3_region: str = Field("us-east-1", description="region of the bucket")
    s3_key: str = Field("", description="access key; default: wherever AWS's tools look for one")
    s3_secret: SecretStr = Field(SecretStr(""), description="secret of the access key")
    broker: str = Field("", description="redis: or amqp: URL; default: folders in the data folder")
    broker_password: SecretStr = Field(
        SecretStr(""), description="password, where the URL of the broker has none"
    )

    queues: Annotated[tuple[str, ...], NoDecode] = Field(
        QUEUES, description="queues that a worker takes jobs from, separated by commas"
    )
    workers: int = Field(2, ge=1, description="processes that work on jobs")
    checkers: int = Field(
        2, ge=1, description="checking processes of a gateway, and so uploads checked at once"
    )
    checker_megabytes: int = Field(3072, ge=1, description="memory a checking process may map")
    checker_seconds: Span = Field(120.0, description="time to check one upload, waiting for a turn included")
    checker_turns: int = Field(100, ge=1, description="uploads after which a checking process is replaced")

    lease_seconds: Span = Field(
        20.0,
        description="a running job that is not renewed for so long is free again",
    )
    renew_seconds: Span = Field(5.0, description="how often a running job is renewed")
    sweep_seconds: Span = Field(
        5.0,
        description="how often expired leases and unclaimed jobs are looked for",
    )
    retry_seconds: Pause = Field(
        2.0,
        description="pause before a failed job is tried again, times its attempts",
    )
    turn_seconds: Span = Field(5.0, description="a worker process takes jobs for so long before it yields")
    job_seconds: Span = Field(600.0, description="longest a job may run; then its process is ended")
    worker_megabytes: int = Field(2048, ge=1, description="memory after which a worker process is replaced")
    attempts: int = Field(3, ge=1, description="claims after which a job that never finished is dead")
    analysis_seconds: Pause = Field(
        5.0,
        description="boards of a track that change all the time are analysed anew no more often than this",
    )

    upload_megabytes: int = Field(512, ge=1, description="largest file accepted, as sent")
    expanded_megabytes: int = Field(2048, ge=1, description="largest file accepted, decompressed")
    open_submissions: int = Field(1000, ge=1, description="submissions of a team to a track that may wait")
    upload_hours: Span = Field(6.0, description="age at which a forgotten partial upload is removed")
    key_hours: Span = Field(48.0, description="how long an Idempotency-Key is remembered")

    metrics_port: int = Field(
        0,
        ge=0,
        le=65535,
        description="port of /metrics and /healthz of worker and scheduler; 0: none (the gateway shows all)",
    )
    liveness_seconds: Span = Field(
        120.0,
        description="a worker that heard no ring for so long, or a scheduler that did not sweep, is not well",
    )
    polling_seconds: Span = Field(0.1, description="how often the folder broker is looked at")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, FromFiles(settings_cls)

    @field_validator("blobs")
    @classmethod
    def _known_store(cls, url: str) -> str:
        if url and not (url.startswith("file:") or (url.startswith("s3://") and urlsplit(url).netloc)):
            raise ValueError("give a file: URL, such as file:///srv/cupel/blobs, or s3://bucket/prefix")
        return url

    @field_validator("database")
    @classmethod
    def _known_database(cls, url: str) -> str:
        if url and not url.startswith(("sqlite:", "postgresql:", "postgresql+psycopg:")):
            raise ValueError("give the URL of a database: postgresql://user@host/name or sqlite:///path")
        return _with_a_port(url)

    @field_validator("broker")
    @classmethod
    def _known_broker(cls, url: str) -> str:
        if url and urlsplit(url).scheme not in ("redis", "rediss", "amqp", "amqps", "folder"):
            raise ValueError("give the URL of a broker: redis://host:6379/0 or amqp://user@host:5672/vhost")
        if urlsplit(url).scheme.startswith("redis") and not re.fullmatch(r"/?\d*", urlsplit(url).path):
            raise ValueError("the path of a redis: URL is the number of a database, such as /0")
        return _with_a_port(url)

    @field_validator("s3_endpoint")
    @classmethod
    def _known_endpoint(cls, url: str) -> str:
        if url and not (urlsplit(url).scheme in ("http", "https") and urlsplit(url).hostname):
            raise ValueError("give the whole address, such as http://s3:8333")
        return _with_a_port(url)

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        """What each value alone can't show."""
        for name, password in (("database", self.database_password), ("broker", self.broker_password)):
            if password.get_secret_value() and not getattr(self, name):
                raise ValueError(f"{variable(name)}_PASSWORD is set, but {variable(name)} is not")
        if bool(self.s3_key) != bool(self.s3_secret.get_secret_value()):
            raise ValueError("CUPEL_S3_KEY and CUPEL_S3_SECRET belong together: give both, or neither")
        if 2 * self.renew_seconds > self.lease_seconds:
            raise ValueError(
                f"a lease of {self.lease_seconds:g} s (CUPEL_LEASE_SECONDS) must be renewed at least twice: "
                f"CUPEL_RENEW_SECONDS is {self.renew_seconds:g}"
            )
        return self

    @field_validator("queues", mode="before")
    @classmethod
    def _known_queues(cls, value: object) -> object:
        names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
        if not isinstance(names, Sequence) or not names or not set(names) <= set(QUEUES):
            raise ValueError(f"give some of {', '.join(QUEUES)}, separated by commas")
        return names

    @cached_property
    def database_url(self) -> str:
        url = _with_password(self.database, self.database_password)
        return url or f"sqlite:///{self.data.absolute() / 'cupel.sqlite'}"

    @cached_property
    def blobs_url(self) -> str:
        return self.blobs or (self.data.absolute() / "blobs").as_uri()

    @cached_property
    def broker_url(self) -> str:
        return _with_password(self.broker, self.broker_password) or "folder://localhost"

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

    def liveness_file(self, role: str) -> Path:
        """A file that was changed when the worker or scheduler of the folder last did its work."""
        return self.data.absolute() / f"liveness-{role}"

    def in_use(self) -> bool:
        """Whether there is a service to look after: a database elsewhere, or one in the data folder."""
        return bool(self.database) or (self.data / "cupel.sqlite").is_file()

    def limits(self) -> dict[str, int]:
        """The limits of reading (`cupel_measures.reading.compression.Limits`) that are settings, in bytes."""
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
        own = {variable(name): _written(value) for name, value in self.model_dump().items()}
        files = {variable(name) + FILE for name in self.model_dump()}  # what they held is in `own`
        kept = {name: value for name, value in os.environ.items() if name not in files}
        return {"OPENBLAS_NUM_THREADS": "1", **kept, **own}


class FromFiles(PydanticBaseSettingsSource):
    """Settings whose variable with `_FILE` behind it names a file with the value: secrets, above all."""

    def __call__(self) -> dict[str, Any]:
        return {
            name: self._read(variable(name) + FILE)
            for name in self.settings_cls.model_fields
            if os.environ.get(variable(name) + FILE)
        }

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        raise NotImplementedError  # asked for by the base class, for sources that are read a field at a time

    def _read(self, name: str) -> str:
        if name.removesuffix(FILE) in os.environ:
            raise WrongSetting(f"{name} and {name.removesuffix(FILE)} are both set: give one of them")
        try:
            value = Path(os.environ[name]).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise WrongSetting(f"{name} names {os.environ[name]}, which can't be read: {reason}") from None
        if not value.isprintable():
            raise WrongSetting(f"{name} names {os.environ[name]}, which holds more than one line of text")
        return value


def variable(name: str) -> str:
    """The environment variable of the setting `name`."""
    return f"CUPEL_{name.upper()}"


def _written(value: object) -> str:
    """A setting as its variable has it."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _with_a_port(url: str) -> str:
    """`url`, if what it has for a port can be one."""
    try:
        _ = urlsplit(url).port
    except ValueError:
        raise ValueError("the port is no number from 0 to 65535") from None
    return url


def _with_password(url: str, password: SecretStr) -> str:
    """`url` with the password in its place, if there is one and the URL has none."""
    parts = urlsplit(url)
    if not url or not password.get_secret_value() or parts.password is not None:
        return url
    user, _, host = parts.netloc.rpartition("@")
    login = f"{user}:{quote(password.get_secret_value(), safe='')}"
    return urlunsplit(parts._replace(netloc=f"{login}@{host}"))


def read_settings(**given: object) -> Settings:
    """Settings of the environment, and over them what is `given` and not None; raises WrongSetting."""
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    except ValidationError as problem:
        raise WrongSetting("; ".join(map(_sentence, problem.errors()))) from None


def _sentence(wrong: Mapping[str, Any]) -> str:
    reason = wrong["msg"].removeprefix("Value error, ")
    if not wrong["loc"]:  # several settings do not fit each other
        return str(reason)
    name = str(wrong["loc"][0])
    field = Settings.model_fields[name]
    secret = name in ("database", "broker") or field.annotation is SecretStr  # those may hold a password
    said = "" if secret else f" is {wrong['input']!r}"
    default = _written(field.default)
    about = f"{field.description}; default {default!r}" if default else field.description
    return f"{variable(name)}{said}: {reason[0].lower()}{reason[1:]} ({about})"


def checker_environment() -> dict[str, str]:
    """What a checking process may know: where Python finds its parts, one thread, and nothing else."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    paths = os.pathsep.join(filter(None, sys.path))
    return {**kept, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"}
