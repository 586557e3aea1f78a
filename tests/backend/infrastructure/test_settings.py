"""Tests of the settings: variables, files, validation, and child processes."""

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from cupel_backend.infrastructure.settings import QUEUES, Settings, WrongSetting, read_settings

SHOW = "from cupel_backend.infrastructure.settings import Settings; print(Settings().model_dump_json())"


def test_setting_is_read_from_its_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUPEL_LEASE_SECONDS", "17.5")
    monkeypatch.setenv("CUPEL_DATA", str(tmp_path))
    settings = Settings()
    assert (settings.lease_seconds, settings.data) == (17.5, tmp_path)
    assert settings.database_url == f"sqlite:///{tmp_path}/cupel.sqlite"


def test_child_process_has_the_same_settings(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, lease_seconds=11.5, workers=3, metrics_port=9100)
    shown = subprocess.run(
        [sys.executable, "-c", SHOW], env=settings.environment(), capture_output=True, text=True, check=True
    )
    assert Settings.model_validate_json(shown.stdout) == settings


@pytest.mark.parametrize("value", ["many", "0"])
def test_invalid_value_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CUPEL_WORKERS", value)
    with pytest.raises(ValidationError, match="workers"):
        Settings()


def test_every_setting_has_a_description() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_value_is_read_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("p/w@\n")
    monkeypatch.setenv("CUPEL_DATABASE", "postgresql://cupel@db:5432/cupel")
    monkeypatch.setenv("CUPEL_DATABASE_PASSWORD_FILE", str(tmp_path / "password"))
    settings = read_settings()
    assert settings.database_url == "postgresql://cupel:p%2Fw%40@db:5432/cupel"
    assert "p/w" not in str(settings)
    assert "CUPEL_DATABASE_PASSWORD_FILE" not in settings.environment()
    assert settings.environment()["CUPEL_DATABASE_PASSWORD"] == "p/w@"


def test_password_in_the_url_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUPEL_DATABASE", "postgresql://cupel:inside@db/cupel")
    monkeypatch.setenv("CUPEL_DATABASE_PASSWORD", "beside")
    assert read_settings().database_url == "postgresql://cupel:inside@db/cupel"


def test_unreadable_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUPEL_S3_SECRET_FILE", str(tmp_path / "nothing"))
    with pytest.raises(WrongSetting, match=r"CUPEL_S3_SECRET_FILE names .*nothing, which cannot be read"):
        read_settings()


def test_value_in_variable_and_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "workers").write_text("3")
    monkeypatch.setenv("CUPEL_WORKERS_FILE", str(tmp_path / "workers"))
    assert read_settings().workers == 3
    monkeypatch.setenv("CUPEL_WORKERS", "2")
    with pytest.raises(WrongSetting, match="CUPEL_WORKERS_FILE and CUPEL_WORKERS are both set"):
        read_settings()


@pytest.mark.parametrize(
    ("module", "name", "url"),
    [
        ("boto3", "CUPEL_BLOBS", "s3://bucket"),
        ("psycopg", "CUPEL_DATABASE", "postgresql://db/cupel"),
        ("redis", "CUPEL_BROKER", "redis://broker:6379/0"),
    ],
)
def test_setting_whose_package_is_missing_is_refused(
    monkeypatch: pytest.MonkeyPatch, module: str, name: str, url: str
) -> None:
    monkeypatch.setenv(name, url)
    read_settings()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(WrongSetting, match=f"{name}.* the package {module}, .*run `make setup`"):
        read_settings()


def test_gateway_without_the_s3_package_ends_with_a_sentence(tmp_path: Path) -> None:
    code = "import sys; sys.modules['boto3'] = None; from cupel_gateway.__main__ import main; main()"
    environment = {**Settings(data=tmp_path).environment(), "CUPEL_BLOBS": "s3://bucket"}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "CUPEL_BLOBS is 's3://bucket': this needs the package boto3" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_queues_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_settings().queues == QUEUES
    monkeypatch.setenv("CUPEL_QUEUES", "audit, score")
    assert read_settings().queues == ("audit", "score")
    assert read_settings().environment()["CUPEL_QUEUES"] == "audit,score"


@pytest.mark.parametrize(
    ("values", "right"),
    [
        ({"DATABASE": "postgresql://u:hunter2@h:abc/db"}, "CUPEL_DATABASE: the port is not a number"),
        ({"BROKER": "redis://:hunter2@h:abc/0"}, "CUPEL_BROKER: the port is not a number"),
        (
            {"BROKER": "redis://h:6379/abc"},
            "CUPEL_BROKER: the path of a redis: URL must be the number of a database",
        ),
        (
            {"S3_ENDPOINT": "localhost:8333"},
            "CUPEL_S3_ENDPOINT is 'localhost:8333': give the address with its scheme",
        ),
        ({"S3_KEY": "key"}, "only one of CUPEL_S3_KEY and CUPEL_S3_SECRET is set"),
        ({"BROKER_PASSWORD": "hunter2"}, "CUPEL_BROKER_PASSWORD is set, but CUPEL_BROKER is not"),
        ({"DATABASE_PASSWORD": "hunter2"}, "CUPEL_DATABASE_PASSWORD is set, but CUPEL_DATABASE is not"),
        ({"METRICS_PORT": "99999"}, "less than or equal to 65535"),
        ({"LEASE_SECONDS": "1", "RENEW_SECONDS": "60"}, "must be renewed at least twice"),
        ({"LEASE_SECONDS": "nan"}, "CUPEL_LEASE_SECONDS is 'nan'"),
        ({"TURN_SECONDS": "0"}, "CUPEL_TURN_SECONDS is '0': input should be greater than 0"),
        ({"SWEEP_SECONDS": "-1"}, "CUPEL_SWEEP_SECONDS is '-1': input should be greater than 0"),
        ({"CONNECTIONS": "1"}, "CUPEL_CONNECTIONS is '1': input should be greater than or equal to 4"),
    ],
)
def test_invalid_settings_are_a_one_line_error_without_secrets(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, str], right: str
) -> None:
    for name, value in values.items():
        monkeypatch.setenv(f"CUPEL_{name}", value)
    with pytest.raises(WrongSetting) as refusal:
        read_settings()
    assert right in str(refusal.value)
    assert "hunter2" not in str(refusal.value)


def test_secret_with_several_lines_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"first\0second")
    monkeypatch.setenv("CUPEL_S3_SECRET_FILE", str(tmp_path / "secret"))
    with pytest.raises(WrongSetting, match="more than one line of text"):
        read_settings()
