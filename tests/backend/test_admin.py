"""`cupel admin`: for whoever has a shell on the machine of the service."""

from pathlib import Path

from click.testing import CliRunner, Result

from backend.cast import ADMIN, ORGANISER, Clock, make_track, publish_qrels, submit
from cupel_backend import access, jobs
from cupel_backend.admin import admin
from cupel_backend.system import System


def cupel_admin(*arguments: str, data: Path) -> Result:
    return CliRunner().invoke(admin, [*arguments, "--data", str(data)])


def test_a_token_is_printed_once_and_works(system: System, tmp_path: Path) -> None:
    answer = cupel_admin("token", "--team", "alice", "--scope", "organiser", data=tmp_path / "data")
    assert answer.exit_code == 0
    principal = access.authenticate(system, answer.output.strip())
    assert (principal.team, principal.scope) == ("alice", "organiser")
    assert cupel_admin("revoke", principal.prefix, data=tmp_path / "data").exit_code == 0
    assert access.list_(system, ADMIN).items[0].revoked_at is not None


def test_a_folder_without_tables_says_what_to_do(tmp_path: Path) -> None:
    answer = cupel_admin("token", "--team", "alice", data=tmp_path / "new")
    assert answer.exit_code == 1
    assert "cupel admin migrate" in answer.output
    assert cupel_admin("migrate", data=tmp_path / "new").exit_code == 0
    assert cupel_admin("token", "--team", "alice", data=tmp_path / "new").exit_code == 0


def test_dead_jobs_are_listed_and_revived(system: System, tmp_path: Path, clock: Clock) -> None:
    make_track(system)
    publish_qrels(system)
    [job] = submit(system).jobs
    for _ in range(3):
        claim = jobs.claim(system, "score")
        assert claim is not None
        jobs.fail(system, claim, "no such file\nand more")
        clock.forward(10)
    listed = cupel_admin("jobs", data=tmp_path / "data").output
    assert job.id in listed
    assert "no such file" in listed
    assert job.id in cupel_admin("jobs", "--revive", data=tmp_path / "data").output
    assert jobs.get(system, ORGANISER, job.id).state == "queued"


def test_a_name_that_can_not_be_is_one_sentence(system: System, tmp_path: Path) -> None:
    answer = cupel_admin("token", "--team", "a b", data=tmp_path / "data")
    assert answer.exit_code == 1
    assert "Error: 'a b' can't be the name of a team" in answer.output
