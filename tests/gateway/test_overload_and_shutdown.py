"""A gateway under strain: its health, HEAD, and what becomes of requests when it stops."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from sqlalchemy import text

from cupel_backend.infrastructure.database import writing
from support.patience import seconds
from support.service.gateway_service import run_file, serving

WAITING = 45  # more than the gateway has threads for


def test_its_health_is_told_while_every_thread_waits_for_the_database(special) -> None:
    service = special()
    wanted = {"team": "a", "scope": "participant"}
    with ThreadPoolExecutor(WAITING) as pool, writing(service.system.engine) as holder:
        if holder.dialect.name == "postgresql":
            holder.execute(text("LOCK TABLE tokens IN EXCLUSIVE MODE"))  # SQLite has one writer as it is
        writes = [
            pool.submit(service.ask, "admin", "POST", "/v1/tokens", json=wanted) for _ in range(WAITING)
        ]
        for _ in range(5):
            assert httpx.get(f"{service.url}/healthz", timeout=seconds(60)).text == "ok\n"
        assert not any(write.done() for write in writes)
        holder.rollback()
        assert {write.result().status_code for write in writes} == {201}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/v1", "/v1/tracks", "/metrics"])
def test_head_is_get_without_its_body(service, path: str) -> None:
    answer = service.ask("participant", "HEAD", path)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"] == service.ask("participant", "GET", path).headers["content-type"]


def test_an_upload_that_outlasts_a_stop_is_told_to_come_again(special, caplog) -> None:
    service = special()
    track = service.track()
    begun, go_on = threading.Event(), threading.Event()

    def slowly():
        yield run_file()
        begun.set()
        go_on.wait(seconds(60))

    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.INFO):
        with serving(service.system, grace=1) as (_, url):
            sent = pool.submit(
                httpx.post,
                f"{url}/v1/tracks/{track}/submissions",
                content=slowly(),
                headers=service.signed("participant"),
                timeout=seconds(60),
            )
            assert begun.wait(seconds(60))
        go_on.set()
        answer = sent.result()
    assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")
    assert int(answer.headers["retry-after"]) > 0
    assert not [one for one in caplog.records if one.exc_info]
