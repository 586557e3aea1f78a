"""The gateway under load and at shutdown: health check, HEAD requests, unfinished uploads."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from sqlalchemy import text

from cupel_backend.infrastructure.database import writing
from support.patience import seconds
from support.service.gateway_service import run_file, serve_gateway

WAITING = 45  # more requests than the gateway has threads


def test_health_check_answers_while_all_threads_wait_for_the_database(start_service) -> None:
    service = start_service()
    body = {"team": "a", "scope": "participant"}
    with ThreadPoolExecutor(WAITING) as pool, writing(service.system.engine) as holder:
        if holder.dialect.name == "postgresql":
            holder.execute(text("LOCK TABLE tokens IN EXCLUSIVE MODE"))  # SQLite has one writer anyway
        writes = [
            pool.submit(service.request, "admin", "POST", "/v1/tokens", json=body) for _ in range(WAITING)
        ]
        for _ in range(5):
            assert httpx.get(f"{service.url}/healthz", timeout=seconds(60)).text == "ok\n"
        assert not any(write.done() for write in writes)
        holder.rollback()
        assert {write.result().status_code for write in writes} == {201}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/v1", "/v1/tracks", "/metrics"])
def test_head_response_equals_get_without_a_body(service, path: str) -> None:
    answer = service.request("participant", "HEAD", path)
    assert (answer.status_code, answer.content) == (200, b"")
    assert (
        answer.headers["content-type"] == service.request("participant", "GET", path).headers["content-type"]
    )


def test_upload_cut_off_by_shutdown_gets_a_retry_after(start_service, caplog) -> None:
    service = start_service()
    track = service.create_track()
    started, resume = threading.Event(), threading.Event()

    def slow_content():
        yield run_file()
        started.set()
        resume.wait(seconds(60))

    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.INFO):
        with serve_gateway(service.system, grace=1) as (_, url):
            response = pool.submit(
                httpx.post,
                f"{url}/v1/tracks/{track}/submissions",
                content=slow_content(),
                headers=service.auth_headers("participant"),
                timeout=seconds(60),
            )
            assert started.wait(seconds(60))
        resume.set()
        answer = response.result()
    assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")
    assert int(answer.headers["retry-after"]) > 0
    assert not [item for item in caplog.records if item.exc_info]
