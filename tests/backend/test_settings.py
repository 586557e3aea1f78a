"""Settings: typed, from one place, and the same in every process of a service."""

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from cupel_backend.settings import Settings

SHOW = "from cupel_backend.settings import Settings; print(Settings().model_dump_json())"


def test_a_setting_is_read_from_its_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUPEL_LEASE_SECONDS", "7.5")
    monkeypatch.setenv("CUPEL_DATA", str(tmp_path))
    settings = Settings()
    assert (settings.lease_seconds, settings.data) == (7.5, tmp_path)
    assert settings.database_url == f"sqlite:///{tmp_path}/cupel.sqlite"


def test_a_child_process_has_the_same_settings(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, lease_seconds=1.5, workers=3, metrics_port=9100)
    shown = subprocess.run(
        [sys.executable, "-c", SHOW], env=settings.environment(), capture_output=True, text=True, check=True
    )
    assert Settings.model_validate_json(shown.stdout) == settings


@pytest.mark.parametrize("value", ["many", "0"])
def test_a_value_that_can_not_be_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CUPEL_WORKERS", value)
    with pytest.raises(ValidationError, match="workers"):
        Settings()


def test_every_setting_says_what_it_is() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []
