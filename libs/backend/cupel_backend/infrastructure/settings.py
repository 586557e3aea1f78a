"""The settings of the service. Only this module reads or writes the environment."""

import errno
import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import quote, urlsplit, urlunsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

MEGABYTE = 1 << 20

QUEUES = ("score", "audit")
"""The job queues. They are separate so that scoring never waits for audits."""

FILE = "_FILE"
"""Suffix of a variable that names a file with the value."""

Span = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Pause = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class WrongSetting(Exception):
    """Invalid settings.

    The message has one sentence per invalid setting, which names its variable.
    """


class Settings(BaseSettings):
    """The settings. The defaults suit a single machine.

    Each field is read from the variable `CUPEL_<FIELD>`, or from the file that `CUPEL_<FIELD>_FILE` names.
    """

    model_config = SettingsConfigDict(env_prefix="CUPEL_", frozen=True, extra="forbid")

    data: Path = Field(
        Path("cupel-data"),
        description="folder of the embedded database, blobs and broker, and of the metrics",
    )
    database: str = Field(
        "",
        description="URL postgresql://user@host/name or sqlite:///path; default: SQLite in the data folder",
    )
    database_password: SecretStr = Field(
        SecretStr(""), description="password of the database, if its URL has none"
    )
    connections: int = Field(20, ge=4, description="maximum number of PostgreSQL connections of a process")
    blobs: str = Field(
        "", description="URL file:///folder or s3://bucket/prefix; default: a folder in the data folder"
    )
    s3_endpoint: str = Field("", description="address of the S3 server; default: AWS")
    s3_region: str = Field("us-east-1", description="region of the bucket")
    s3_key: str = Field("", description="access key id; default: the credentials that boto3 finds")
    s3_secret: SecretStr = Field(SecretStr(""), description="secret access key")
    broker: str = Field(
        "",
        description="URL redis://host:6379/0 or amqp://user@host:5672/vhost; default: a folder in the data "
        "folder",
    )
    broker_password: SecretStr = Field(
        SecretStr(""), description="password of the broker, if its URL has none"
    )

    queues: Annotated[tuple[str, ...], NoDecode] = Field(
        QUEUES, description="queues of a worker, separated by commas"
    )
    workers: int = Field(2, ge=1, description="number of processes of a worker")
    checkers: int = Field(
        2, ge=1, description="number of check processes of a gateway; each checks one upload at a time"
    )
    checker_megabytes: int = Field(
        3072, ge=1, description="limit on the address space of a check process, in megabytes"
    )
    checker_seconds: Span = Field(
        120.0, description="time limit for checking an upload, including the wait for a check process"
    )
    checker_turns: int = Field(
        100, ge=1, description="number of uploads after which a check process is replaced"
    )

    lease_seconds: Span = Field(
        20.0,
        description="duration of the lease of a running job; the job is queued again if the lease expires",
    )
    renew_seconds: Span = Field(5.0, description="time between two renewals of a lease")
    sweep_seconds: Span = Field(5.0, description="time between two ticks of the scheduler")
    retry_seconds: Pause = Field(
        2.0, description="pause before a job is tried again, multiplied by its number of failed attempts"
    )
    turn_seconds: Span = Field(
        5.0, description="time for which a worker process runs jobs of one queue before it turns to others"
    )
    job_seconds: Span = Field(
        600.0, description="time limit of a job; then its lease is not renewed and its process is soon killed"
    )
    worker_megabytes: int = Field(
        2048, ge=1, description="memory in megabytes above which a worker process is replaced"
    )
    attempts: int = Field(3, ge=1, description="number of attempts after which a job is dead")
    analysis_seconds: Pause = Field(
        5.0, description="minimum time between two analyses of the leaderboards of a track"
    )

    upload_megabytes: int = Field(512, ge=1, description="size limit of an uploaded file, in megabytes")
    expanded_megabytes: int = Field(
        2048, ge=1, description="size limit of an uploaded file after decompression, in megabytes"
    )
    open_submissions: int = Field(
        1000, ge=1, description="maximum number of unscored submissions of a team to a track"
    )
    upload_hours: Span = Field(6.0, description="age at which a partial upload is removed")
    key_hours: Span = Field(48.0, description="time for which an Idempotency-Key is stored")

    metrics_port: int = Field(
        0,
        ge=0,
        le=65535,
        description="port of /metrics and /healthz of a worker or scheduler; 0: no port",
    )
    liveness_seconds: Span = Field(
        120.0, description="time without a wake-up or tick after which a worker or scheduler is unhealthy"
    )
    polling_seconds: Span = Field(0.1, description="time between two polls of the folder broker")

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
        if url.startswith("s3:"):
            _require_package("boto3")
        return url

    @field_validator("database")
    @classmethod
    def _known_database(cls, url: str) -> str:
        if url and not url.startswith(("sqlite:", "postgresql:", "postgresql+psycopg:")):
            raise ValueError("give the URL of a database: postgresql://user@host/name or sqlite:///path")
        if url.startswith("postgresql"):
            _require_package("psycopg")
        return _check_port(url)

    @field_validator("broker")
    @classmethod
    def _known_broker(cls, url: str) -> str:
        if url and urlsplit(url).scheme not in ("redis", "rediss", "amqp", "amqps", "folder"):
            raise ValueError("give the URL of a broker: redis://host:6379/0 or amqp://user@host:5672/vhost")
        if urlsplit(url).scheme.startswith("redis") and not re.fullmatch(r"/?\d*", urlsplit(url).path):
            raise ValueError("the path of a redis: URL must be the number of a database, such as /0")
        if urlsplit(url).scheme.startswith("redis"):
            _require_package("redis")
        return _check_port(url)

    @field_validator("s3_endpoint")
    @classmethod
    def _known_endpoint(cls, url: str) -> str:
        if url and not (urlsplit(url).scheme in ("http", "https") and urlsplit(url).hostname):
            raise ValueError("give the address with its scheme, such as http://s3:8333")
        return _check_port(url)

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        """Check settings that depend on each other."""
        for name, password in (("database", self.database_password), ("broker", self.broker_password)):
            if password.get_secret_value() and not getattr(self, name):
                raise ValueError(f"{variable(name)}_PASSWORD is set, but {variable(name)} is not")
        if bool(self.s3_key) != bool(self.s3_secret.get_secret_value()):
            raise ValueError("only one of CUPEL_S3_KEY and CUPEL_S3_SECRET is set; set both or neither")
        if 2 * self.renew_seconds > self.lease_seconds:
            raise ValueError(
                f"CUPEL_RENEW_SECONDS is {self.renew_seconds:g}, but a lease of {self.lease_seconds:g} s "
                "(CUPEL_LEASE_SECONDS) must be renewed at least twice"
            )
        return self

    @field_validator("queues", mode="before")
    @classmethod
    def _known_queues(cls, value: object) -> object:
        names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
        if not isinstance(names, Sequence) or not names or not set(names) <= set(QUEUES):
            raise ValueError(f"give one or more of {', '.join(QUEUES)}, separated by commas")
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
        """Folder of the messages of the folder broker."""
        return self.data.absolute() / "broker"

    @cached_property
    def incoming(self) -> Path:
        """Folder of uploads that are being received."""
        return self.data.absolute() / "incoming"

    @cached_property
    def metrics(self) -> Path:
        """Folder of the metrics of all processes that share the data folder.

        It has one file per process.
        """
        return self.data.absolute() / "metrics"

    def liveness_file(self, role: str) -> Path:
        """Return the file that a worker or scheduler touches regularly.

        See liveness_file.py.
        """
        return self.data.absolute() / f"liveness-{role}"

    def in_use(self) -> bool:
        """Return whether a database is configured or exists in the data folder."""
        return bool(self.database) or (self.data / "cupel.sqlite").is_file()

    def limits(self) -> dict[str, int]:
        """Return arguments of `cupel_measures.reading.compression.Limits`, in bytes."""
        return {
            "compressed": self.upload_megabytes * MEGABYTE,
            "expanded": self.expanded_megabytes * MEGABYTE,
        }

    def prepare(self) -> None:
        """Create the folders, and tell prometheus_client the folder of metrics.

        prometheus_client reads this folder from an environment variable. Raises WrongSetting if the data
        folder cannot be created or written to.
        """
        try:
            for folder in (self.data, self.incoming, self.metrics):
                folder.mkdir(parents=True, exist_ok=True)
                if not os.access(folder, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise WrongSetting(
                f"the data folder {self.data} is not writable ({error.strerror}): "
                "name another one with CUPEL_DATA or --data"
            ) from None
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(self.metrics)

    def environment(self) -> dict[str, str]:
        """Return the environment of a child process with these settings.

        OpenBLAS gets one thread, because no score uses OpenBLAS, and its other threads would waste CPU time.
        """
        values = {variable(name): _format_value(value) for name, value in self.model_dump().items()}
        # The child must not read the files again, because `values` contains the settings from them.
        files = {variable(name) + FILE for name in self.model_dump()}
        kept = {name: value for name, value in os.environ.items() if name not in files}
        return {"OPENBLAS_NUM_THREADS": "1", **kept, **values}


class FromFiles(PydanticBaseSettingsSource):
    """A settings source that reads the file named by `CUPEL_<FIELD>_FILE`.

    Such a file contains, for example, a secret.
    """

    def __call__(self) -> dict[str, Any]:
        return {
            name: self._read(variable(name) + FILE)
            for name in self.settings_cls.model_fields
            if os.environ.get(variable(name) + FILE)
        }

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        raise NotImplementedError  # only __call__ of the base class calls this method

    def _read(self, name: str) -> str:
        if name.removesuffix(FILE) in os.environ:
            raise WrongSetting(f"{name} and {name.removesuffix(FILE)} are both set: give one of them")
        try:
            value = Path(os.environ[name]).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise WrongSetting(f"{name} names {os.environ[name]}, which cannot be read: {reason}") from None
        if not value.isprintable():
            raise WrongSetting(f"{name} names {os.environ[name]}, which contains more than one line of text")
        return value


def variable(name: str) -> str:
    """Return the environment variable of the setting `name`."""
    return f"CUPEL_{name.upper()}"


def _format_value(value: object) -> str:
    """Return a setting in the syntax of its variable."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _require_package(name: str) -> None:
    """Raise ValueError if the optional package `name` is not installed."""
    if find_spec(name) is None:
        raise ValueError(f"this needs the package {name}, which is not installed; run `make setup`")


def _check_port(url: str) -> str:
    """Return `url`; raise ValueError if its port is invalid."""
    try:
        _ = urlsplit(url).port
    except ValueError:
        raise ValueError("the port is not a number from 0 to 65535") from None
    return url


def _with_password(url: str, password: SecretStr) -> str:
    """Return `url` with the password added.

    `url` stays the same if there is no password or the URL has one already.
    """
    parts = urlsplit(url)
    if not url or not password.get_secret_value() or parts.password is not None:
        return url
    user, _, host = parts.netloc.rpartition("@")
    login = f"{user}:{quote(password.get_secret_value(), safe='')}"
    return urlunsplit(parts._replace(netloc=f"{login}@{host}"))


def read_settings(**overrides: object) -> Settings:
    """Read the settings from the environment.

    `overrides` that are not None take precedence. Raises WrongSetting.
    """
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})  # type: ignore[arg-type]
    except ValidationError as problem:
        raise WrongSetting("; ".join(map(_describe_error, problem.errors()))) from None


def _describe_error(error: Mapping[str, Any]) -> str:
    """Return a sentence for an error of pydantic. It never contains a secret."""
    reason = error["msg"].removeprefix("Value error, ")
    if not error["loc"]:  # raised by _check_combinations
        return str(reason)
    name = str(error["loc"][0])
    field = Settings.model_fields[name]
    is_secret = name in ("database", "broker") or field.annotation is SecretStr  # URLs may contain passwords
    value = "" if is_secret else f" is {error['input']!r}"
    default = _format_value(field.default)
    about = f"{field.description}; default {default!r}" if default else field.description
    return f"{variable(name)}{value}: {reason[0].lower()}{reason[1:]} ({about})"


def checker_environment() -> dict[str, str]:
    """Return the environment of a check process.

    It has the paths of Python, one BLAS thread, and no secrets.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    paths = os.pathsep.join(filter(None, sys.path))
    return {**kept, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"}
