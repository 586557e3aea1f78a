"""`cupel serve` as its user meets it: the first start, a second one, deaths of its parts, the end."""

import json
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from cupel_client.api.client import Client, ServiceError
from support.patience import seconds, until
from support.service.service_processes import CUPEL, Serve, Service, command, services
from support.service.service_sizes import SizeName, place


@pytest.fixture(scope="module")
def running(size: SizeName, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service for tests that leave it as it was."""
    with place(size) as at, services(tmp_path_factory.mktemp("serving"), **at) as start:
        yield start()


def started_again(data: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Another `cupel serve`, which is expected to end by itself."""
    return subprocess.run(command(data, *options), capture_output=True, text=True, timeout=seconds(120))


def test_the_first_token_lets_its_owner_in_and_is_for_nobody_elses_eyes(running: Service) -> None:
    assert stat.S_IMODE((running.data / "admin-token").stat().st_mode) == 0o600
    with running.client() as client:
        assert client.me().scope == "admin"


def test_a_stranger_gets_nothing(running: Service) -> None:
    with (
        Client(running.url, "cupel_00000000_" + "x" * 43) as stranger,
        pytest.raises(ServiceError) as refusal,
    ):
        list(stranger.tracks())
    assert refusal.value.status == 401


def test_what_the_service_keeps_is_its_owners_alone(running: Service) -> None:
    assert stat.S_IMODE(running.data.stat().st_mode) == 0o700


def test_it_is_a_gateway_a_worker_and_a_scheduler(running: Service) -> None:
    assert len(running.children()) == 3
    assert httpx.get(f"{running.url}/readyz", timeout=seconds(60)).status_code == 200


def test_the_log_says_who_says_what(running: Service) -> None:
    until(lambda: "gateway |" in running.log())
    speakers = {line.partition("|")[0].strip() for line in running.log().splitlines()}
    assert speakers <= {"cupel", "gateway", "worker", "scheduler"}


def test_a_second_start_on_the_same_folder_is_told_where_the_first_one_is(running: Service) -> None:
    second = started_again(running.data)
    assert second.returncode == 3
    assert running.url in second.stderr
    assert str(running.process.pid) in second.stderr


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        second = started_again(tmp_path / "data", "--port", port)
    assert second.returncode == 3
    assert f"port {port}" in second.stderr
    assert "--port" in second.stderr


@pytest.mark.parametrize("option", ["--workers=0", "--port=99999", "--port=-1"])
def test_a_number_that_makes_no_sense_is_named(tmp_path: Path, option: str) -> None:
    second = started_again(tmp_path / "data", option)
    assert second.returncode == 2
    assert option.partition("=")[0] in second.stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [("CUPEL_WORKERS", "abc"), ("CUPEL_BLOBS", "ftp://x"), ("CUPEL_DATA", "/dev/null/x")],
)
def test_a_setting_that_can_not_be_is_named_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, value)
    done = subprocess.run(
        [CUPEL, "serve", "--port", "0"], capture_output=True, text=True, timeout=seconds(120)
    )
    assert done.returncode == 2
    assert done.stderr.startswith("cupel serve: ")
    assert len(done.stderr.splitlines()) == 1
    assert variable in done.stderr


@pytest.mark.parametrize("part", ["gateway", "worker", "scheduler"])
def test_a_part_that_dies_is_replaced_and_callers_wait_rather_than_fail(running: Service, part: str) -> None:
    before = running.child(part)
    before.kill()
    assert httpx.get(f"{running.url}/readyz", timeout=seconds(60)).status_code == 200
    assert running.child(part).pid != before.pid
    psutil.wait_procs([before], timeout=seconds(60))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_a_log_that_can_not_be_written_does_not_end_the_service(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        process = subprocess.Popen(
            command(tmp_path / "data"), stdout=subprocess.PIPE, stderr=full, text=True, process_group=0
        )
    assert process.stdout is not None
    try:
        assert any("ready at" in line for line in process.stdout)
        (first, *_) = psutil.Process(process.pid).children()
        first.kill()  # which is told to the log
        until(
            lambda: len([one for one in psutil.Process(process.pid).children() if one.pid != first.pid]) == 3
        )
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


def test_it_stops_when_told_and_leaves_nothing_behind(serve: Serve) -> None:
    service = serve()
    family = service.family()
    assert service.stop() == 0
    assert not [process for process in family if process.is_running()]
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{service.url}/readyz")


def test_killed_it_leaves_nothing_behind_and_starts_again_on_what_it_kept(serve: Serve) -> None:
    service = serve()
    token = service.token
    with service.client() as client:
        client.create_track("kept", title="Kept", aspects={"relevance": {"labels": [0, 1]}}, measures=["AP"])
    service.kill()
    again = serve()
    assert again.token == token
    with again.client() as client:
        assert client.track("kept").title == "Kept"


def test_a_token_that_was_put_to_use_and_taken_away_is_not_issued_anew(serve: Serve) -> None:
    service = serve()
    with service.client() as client:
        # a use is noted by the first request that meets no other writer
        until(lambda: any(token.used_at for token in client.tokens()))
    (service.data / "admin-token").unlink()
    service.kill()
    serve()
    assert not (service.data / "admin-token").exists()


def test_every_part_of_the_service_is_counted_by_its_metrics(running: Service) -> None:
    text = until(lambda: httpx.get(f"{running.url}/metrics", timeout=seconds(60)).text)
    assert "cupel_" in text


def test_who_serves_is_written_down_for_others(running: Service) -> None:
    assert json.loads((running.data / "serve.lock").read_text()) == {
        "pid": running.process.pid,
        "url": running.url,
    }
