"""A gateway under strain: its health, HEAD, and what becomes of requests when it stops."""

import logging
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest

from gateway_service import run_file, serving

WAITING = 45  # more than the gateway has threads for


def test_its_health_is_told_while_every_thread_waits_for_the_database(special) -> None:
    service = special()
    wanted = {"team": "a", "scope": "participant"}
    database = service.system.settings.data / "cupel.sqlite"
    with (
        closing(sqlite3.connect(database, isolation_level=None)) as holder,
        ThreadPoolExecutor(WAITING) as pool,
    ):
        holder.execute("BEGIN IMMEDIATE")
        writes = [
            pool.submit(service.ask, "admin", "POST", "/v1/tokens", json=wanted) for _ in range(WAITING)
        ]
        for _ in range(20):
            assert httpx.get(f"{service.url}/healthz", timeout=5).text == "ok\n"
        assert not all(write.done() for write in writes)
        holder.execute("ROLLBACK")
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
        go_on.wait(30)

    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.INFO):
        with serving(service.system, grace=1) as (_, url):
            sent = pool.submit(
                httpx.post,
                f"{url}/v1/tracks/{track}/submissions",
                content=slowly(),
                headers=service.signed("participant"),
                timeout=30,
            )
            assert begun.wait(10)
        go_on.set()
        answer = sent.result()
    assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")
    assert int(answer.headers["retry-after"]) > 0
    assert not [one for one in caplog.records if one.exc_info]
