"""Error responses: problem documents with stable codes, and the limits on requests."""

import gzip
import json
import re
import socket
from collections.abc import Iterator

import pytest
from sqlalchemy import update

from cupel_backend.infrastructure.database import writing
from cupel_backend.infrastructure.tables import tracks
from support.patience import seconds
from support.service.gateway_service import run_file
from support.service.service_sizes import SizeName, place

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    "path", ["/", "/v2", "/v1/nothing", "/v1/tracks/a/b/c", "//v1", "/v1/../etc/passwd", "/docs"]
)
def test_unknown_path_is_not_found(service, path: str) -> None:
    answer = service.request("admin", "GET", path)
    assert (answer.status_code, answer.json()["code"]) == (404, "path-unknown")


@pytest.mark.parametrize("method", ["PUT", "TRACE", "DELETE", "INVENTED"])
def test_unsupported_method_is_refused_with_the_allowed_methods(service, method: str) -> None:
    answer = service.request("admin", method, "/v1/tracks")
    assert (answer.status_code, answer.json()["code"]) == (405, "method-not-allowed")
    assert answer.headers["allow"]


@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        (b"{", JSON, 400, "body-malformed"),
        (b"", JSON, 422, "request-invalid"),
        (b"null", JSON, 422, "request-invalid"),
        (b"[]", JSON, 422, "request-invalid"),
        (b"\xff\xfe{}", JSON, 400, "body-malformed"),
        (b'"\\ud800"', JSON, 422, "request-invalid"),
        (b'{"\\ud800": 1}', JSON, 422, "request-invalid"),
        (b"[" * 100_000, JSON, 400, "body-malformed"),
        (b'{"depth": ' + b"9" * 10_000 + b"}", JSON, 400, "body-malformed"),
        (b'{"name": "x"}', {"Content-Type": "text/plain"}, 415, "content-type-unsupported"),
        (b'{"name": "x"}', {}, 415, "content-type-unsupported"),
        (b" " * (1 << 20) + b"{}", JSON, 413, "body-too-large"),
    ],
)
def test_unusable_body_is_refused(
    service, content: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    answer = service.request("organiser", "POST", "/v1/tracks", content=content, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


def test_deeply_nested_aspects_are_refused(service) -> None:
    nested = '{"a":' * 300 + "1" + "}" * 300
    body = f'{{"name": "n", "title": "x", "measures": ["AP"], "aspects": {{"r": {nested}}}}}'
    answer = service.request("organiser", "POST", "/v1/tracks", content=body.encode(), headers=JSON)
    assert answer.status_code in (400, 422)


def test_problem_names_its_resource_type_and_remedy(service) -> None:
    answer = service.request("admin", "GET", "/v1/tracks/nowhere")
    problem = answer.json()
    assert problem["instance"] == "/v1/tracks/nowhere"
    assert problem["type"] == "/v1/errors#track-unknown"
    assert "nowhere" in problem["detail"]
    codes = {item["code"]: item for item in service.get("stranger", "/v1/errors")["items"]}
    assert codes["track-unknown"]["status"] == 404
    assert codes["track-unknown"]["remedy"] == problem["remedy"]
    assert answer.headers["cache-control"] == "no-store"


def test_request_id_of_the_caller_is_returned_if_safe(service) -> None:
    def id_for(offered: str) -> str:
        return str(
            service.request("admin", "GET", "/v1/me", headers={"X-Request-Id": offered}).headers[
                "x-request-id"
            ]
        )

    assert id_for("build-17:step.3") == "build-17:step.3"
    assert re.fullmatch("[0-9a-f]{32}", id_for("x" * 101))
    assert re.fullmatch("[0-9a-f]{32}", id_for('{"level": "error"}'))


def test_unexpected_error_has_a_request_id_and_no_traceback(start_service, caplog) -> None:
    service = start_service()
    track = service.create_track()
    with writing(service.system.engine) as connection:
        connection.execute(update(tracks).values(measures=5))
    answer = service.request("participant", "GET", f"/v1/tracks/{track}")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal-error")
    assert str(service.system.settings.data) not in answer.text
    failed = [item for item in caplog.records if item.exc_info and item.name == "cupel.gateway"]
    assert [item.request_id for item in failed] == [answer.json()["request_id"]]


@pytest.fixture(scope="module")
def limited(size: SizeName, tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A service with low limits."""
    from support.service.gateway_service import run_service

    data = tmp_path_factory.mktemp("small")
    limits = {"upload_megabytes": 1, "expanded_megabytes": 2, "open_submissions": 2}
    with place(size) as at, run_service(data, watching={"idle_seconds": 0.3}, **at, **limits) as service:
        yield service


def test_declared_length_above_the_limit_is_refused(limited) -> None:
    answer = limited.submit(limited.create_track(), bytes((1 << 20) + 1))
    assert (answer.status_code, answer.json()["code"]) == (413, "upload-too-large")
    assert str(1 << 20) in answer.json()["detail"].replace(",", "")


def test_chunked_body_above_the_limit_is_refused(limited) -> None:
    answer = limited.submit(limited.create_track(), (b"x" * 65536 for _ in range(64)))
    assert (answer.status_code, answer.json()["code"]) == (413, "upload-too-large")
    assert "1 MB" in answer.json()["detail"]
    assert not list(limited.system.settings.incoming.iterdir())


def test_judgments_above_the_limit_are_refused(limited) -> None:
    parts = [("collection", ("c", b"qrels: []")), ("files", ("a", bytes(2 << 20)))]
    answer = limited.upload(limited.create_track(), parts=parts)
    assert (answer.status_code, answer.json()["code"]) == (413, "body-too-large")
    assert "1,048,576" in answer.json()["detail"]


def test_decompression_bomb_is_refused_with_the_limit(limited) -> None:
    track = limited.create_track()
    limited.publish(track)
    bomb = gzip.compress(run_file() + b"\n" * (64 << 20))
    answer = limited.submit(track, bomb)
    assert (answer.status_code, answer.json()["code"]) == (422, "run-invalid"), answer.text
    assert answer.json()["errors"][0]["code"].startswith("limit-")


def test_too_many_open_submissions_are_refused_with_retry_after(limited) -> None:
    track = limited.create_track()
    limited.publish(track)
    for _ in range(2):
        limited.accepted_submission(track)
    answer = limited.submit(track)
    assert (answer.status_code, answer.json()["code"]) == (429, "too-many-open")
    assert int(answer.headers["retry-after"]) > 0
    limited.run_jobs()
    assert limited.submit(track).status_code == 202
    limited.run_jobs()


@pytest.mark.parametrize("path", ["/v1/tracks", "/v1/tracks/{}/submissions", "/v1/tracks/{}/qrels"])
def test_stalled_body_is_refused(limited, path: str) -> None:
    track = limited.create_track()
    kind = "multipart/form-data; boundary=x" if path.endswith("qrels") else "text/plain"
    head = (
        f"POST {path.format(track)} HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Bearer {limited.tokens['organiser']}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: 1000\r\n\r\n--x\r\n"
    )
    with socket.create_connection(
        ("127.0.0.1", limited.http.base_url.port), timeout=seconds(60)
    ) as connection:
        connection.sendall(head.encode())
        answer = b""
        while b"\r\n\r\n" not in answer or not answer.endswith(b"}"):
            answer += connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "body-slow"


def test_disconnected_upload_leaves_no_files(limited) -> None:
    track = limited.create_track()
    head = (
        f"POST /v1/tracks/{track}/submissions HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Bearer {limited.tokens['participant']}\r\nContent-Length: 1000\r\n\r\nonly this"
    )
    with socket.create_connection(
        ("127.0.0.1", limited.http.base_url.port), timeout=seconds(60)
    ) as connection:
        connection.sendall(head.encode())
    assert limited.get("participant", f"/v1/tracks/{track}/submissions")["items"] == []
    while list(limited.system.settings.incoming.iterdir()):
        limited.get("participant", "/v1/me")


def test_service_without_tables_is_not_ready(tmp_path, new_place) -> None:
    import httpx

    from cupel_backend.infrastructure.settings import Settings
    from cupel_backend.infrastructure.system import open_system
    from support.service.gateway_service import serve_gateway

    with serve_gateway(open_system(Settings(data=tmp_path / "data", **new_place()))) as (_, url):
        assert httpx.get(f"{url}/healthz").text == "ok\n"
        answer = httpx.get(f"{url}/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")
