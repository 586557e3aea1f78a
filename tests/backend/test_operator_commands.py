"""Tests of the commands `cupel admin`."""

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cupel_backend import access, jobs
from cupel_backend.infrastructure.system import System
from cupel_backend.operator_commands import admin
from support.backend_cast import ADMIN, ORGANISER, Clock, make_track, publish_qrels, submit


def cupel_admin(*arguments: str, data: Path) -> Result:
    return CliRunner().invoke(admin, [*arguments, "--data", str(data)])


def cupel_admin_of(system: System, *arguments: str) -> Result:
    """Run `cupel admin` with the settings of a service in the environment."""
    return CliRunner(env=system.settings.environment()).invoke(admin, arguments)


def test_issued_token_works_and_can_be_revoked(system: System) -> None:
    result = cupel_admin_of(system, "token", "--team", "alice", "--scope", "organiser")
    assert result.exit_code == 0
    principal = access.authenticate(system, result.output.strip())
    assert (principal.team, principal.scope) == ("alice", "organiser")
    assert cupel_admin_of(system, "revoke", principal.prefix).exit_code == 0
    assert access.list_(system, ADMIN).items[0].revoked_at is not None


def test_missing_data_folder_is_refused_until_it_is_migrated(tmp_path: Path) -> None:
    result = cupel_admin("token", "--team", "alice", data=tmp_path / "new")
    assert result.exit_code == 2
    assert f"there is no data folder of a service at {tmp_path / 'new'}" in result.output
    assert "cupel admin migrate" in result.output
    assert not (tmp_path / "new").exists()
    assert cupel_admin("migrate", data=tmp_path / "new").exit_code == 0
    assert cupel_admin("token", "--team", "alice", data=tmp_path / "new").exit_code == 0


def test_dead_jobs_are_listed_and_revived(system: System, clock: Clock) -> None:
    make_track(system)
    publish_qrels(system)
    [job] = submit(system).jobs
    for _ in range(3):
        claim = jobs.claim_next(system, "score")
        assert claim is not None
        jobs.fail(system, claim, "no such file\nand more")
        clock.forward(10)
    listed = cupel_admin_of(system, "jobs").output
    assert job.id in listed
    assert "no such file" in listed
    assert job.id in cupel_admin_of(system, "jobs", "--revive").output
    assert jobs.get(system, ORGANISER, job.id).state == "queued"


def test_invalid_team_name_is_a_one_line_error(system: System) -> None:
    result = cupel_admin_of(system, "token", "--team", "a b")
    assert result.exit_code == 2
    assert "Error: 'a b' is not a valid team name" in result.output


def test_created_files_are_private(tmp_path: Path) -> None:
    assert cupel_admin("migrate", data=tmp_path / "new").exit_code == 0
    for path in [tmp_path / "new", *(tmp_path / "new").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_unknown_token_error_names_the_list_command(system: System) -> None:
    result = cupel_admin_of(system, "revoke", "12345678")
    assert result.exit_code == 2
    assert "cupel admin tokens" in result.output
    assert "/v1/" not in result.output
    text, token = access.issue(system, ADMIN, team="alice", scope="participant", label="ci")
    listed = cupel_admin_of(system, "tokens").output
    assert f"{token.prefix}  alice  participant  in force  'ci'" in listed
    assert text not in listed


def test_outdated_tables_exit_with_code_3(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "cupel.sqlite").touch()
    result = cupel_admin("tokens", data=tmp_path / "old")
    assert result.exit_code == 3
    assert "cupel admin migrate" in result.output


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("CUPEL_WORKERS", "abc", "integer"),
        ("CUPEL_BLOBS", "ftp://somewhere/", "give a file: URL"),
        ("CUPEL_BLOBS", "s3:///prefix", "s3://bucket/prefix"),
        ("CUPEL_DATABASE", "mysql://me:secret@x/y", "give the URL of a database"),
        ("CUPEL_BROKER", "kafka://me:secret@x/y", "redis://host:6379/0"),
        ("CUPEL_QUEUES", "score,other", "give one or more of score, audit"),
        ("CUPEL_S3_SECRET_FILE", "/nowhere/to/be/found", "cannot be read: No such file"),
        ("CUPEL_DATA", "/dev/null/x", "name another one with CUPEL_DATA"),
    ],
)
def test_invalid_setting_is_a_one_line_error(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(variable, value)
    result = CliRunner().invoke(admin, ["migrate"])
    assert result.exit_code == 2
    assert result.output.startswith("Error: ")
    assert len(result.output.splitlines()) == 1
    assert variable in result.output
    assert message in result.output
    assert "secret" not in result.output


def test_help_has_an_example() -> None:
    assert "cupel admin token" in CliRunner().invoke(admin, ["--help"]).output.partition("Example:")[2]
