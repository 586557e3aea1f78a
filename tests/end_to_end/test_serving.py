"""Tests of the command `cupel serve`: start, conflicts, restarts of its processes, and shutdown."""

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
    """Yield a service that is shared by the tests that do not change it."""
    with place(size) as at, services(tmp_path_factory.mktemp("serving"), **at) as start:
        yield start()


def run_serve(data: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a `cupel serve` that is expected to exit by itself."""
    return subprocess.run(command(data, *options), capture_output=True, text=True, timeout=seconds(120))


def test_first_token_has_admin_scope_and_is_readable_by_its_owner_only(running: Service) -> None:
    assert stat.S_IMODE((running.data / "admin-token").stat().st_mode) == 0o600
    with running.client() as client:
        assert client.me().scope == "admin"


def test_unknown_token_is_refused(running: Service) -> None:
    with (
        Client(running.url, "cupel_00000000_" + "x" * 43) as client,
        pytest.raises(ServiceError) as refusal,
    ):
        list(client.tracks())
    assert refusal.value.status == 401


def test_data_folder_is_accessible_to_its_owner_only(running: Service) -> None:
    assert stat.S_IMODE(running.data.stat().st_mode) == 0o700


def test_service_consists_of_three_processes_and_is_ready(running: Service) -> None:
    assert len(running.children()) == 3
    assert httpx.get(f"{running.url}/readyz", timeout=seconds(60)).status_code == 200


def test_log_lines_name_their_process(running: Service) -> None:
    until(lambda: "gateway |" in running.log())
    names = {line.partition("|")[0].strip() for line in running.log().splitlines()}
    assert names <= {"cupel", "gateway", "worker", "scheduler"}


def test_second_service_on_a_folder_exits_with_url_and_pid_of_the_first(running: Service) -> None:
    second = run_serve(running.data)
    assert second.returncode == 3
    assert running.url in second.stderr
    assert str(running.process.pid) in second.stderr


def test_used_port_is_named_in_the_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        second = run_serve(tmp_path / "data", "--port", port)
    assert second.returncode == 3
    assert f"port {port}" in second.stderr
    assert "--port" in second.stderr


@pytest.mark.parametrize("option", ["--workers=0", "--port=99999", "--port=-1"])
def test_invalid_option_is_named_in_the_error(tmp_path: Path, option: str) -> None:
    second = run_serve(tmp_path / "data", option)
    assert second.returncode == 2
    assert option.partition("=")[0] in second.stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [("CUPEL_WORKERS", "abc"), ("CUPEL_BLOBS", "ftp://x"), ("CUPEL_DATA", "/dev/null/x")],
)
def test_invalid_setting_is_named_in_a_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, value)
    completed = subprocess.run(
        [CUPEL, "serve", "--port", "0"], capture_output=True, text=True, timeout=seconds(120)
    )
    assert completed.returncode == 2
    assert completed.stderr.startswith("cupel serve: ")
    assert len(completed.stderr.splitlines()) == 1
    assert variable in completed.stderr


@pytest.mark.parametrize("name", ["gateway", "worker", "scheduler"])
def test_killed_process_is_replaced_while_clients_wait(running: Service, name: str) -> None:
    before = running.child(name)
    before.kill()
    assert httpx.get(f"{running.url}/readyz", timeout=seconds(60)).status_code == 200
    assert running.child(name).pid != before.pid
    psutil.wait_procs([before], timeout=seconds(60))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full does not exist")
def test_service_survives_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        process = subprocess.Popen(
            command(tmp_path / "data"), stdout=subprocess.PIPE, stderr=full, text=True, process_group=0
        )
    assert process.stdout is not None
    try:
        assert any("ready at" in line for line in process.stdout)
        (first, *_) = psutil.Process(process.pid).children()
        first.kill()  # The supervisor writes this death to the log.
        until(
            lambda: (
                len([child for child in psutil.Process(process.pid).children() if child.pid != first.pid])
                == 3
            )
        )
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


@pytest.mark.sampled(every=2)
def test_stopped_service_leaves_no_process_and_no_open_port(serve: Serve) -> None:
    service = serve()
    family = service.family()
    assert service.stop() == 0
    assert not [process for process in family if process.is_running()]
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{service.url}/readyz")


def test_killed_service_resumes_with_its_data(serve: Serve) -> None:
    service = serve()
    token = service.token
    with service.client() as client:
        client.create_track("kept", title="Kept", aspects={"relevance": {"labels": [0, 1]}}, measures=["AP"])
    service.kill()
    again = serve()
    assert again.token == token
    with again.client() as client:
        assert client.track("kept").title == "Kept"


@pytest.mark.sampled(every=2)
def test_first_token_is_not_issued_again_after_use(serve: Serve) -> None:
    service = serve()
    with service.client() as client:
        # A request records the use of the token only if no other writer holds the database.
        until(lambda: any(token.used_at for token in client.tokens()))
    (service.data / "admin-token").unlink()
    service.kill()
    serve()
    assert not (service.data / "admin-token").exists()


def test_metrics_endpoint_answers(running: Service) -> None:
    text = until(lambda: httpx.get(f"{running.url}/metrics", timeout=seconds(60)).text)
    assert "cupel_" in text


def test_lock_file_has_pid_and_url(running: Service) -> None:
    assert json.loads((running.data / "serve.lock").read_text()) == {
        "pid": running.process.pid,
        "url": running.url,
    }
