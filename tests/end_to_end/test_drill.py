"""Everything is killed while runs are being scored: each is scored exactly once all the same, to the bit."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from cupel_client.api.client import Client
from support.data.real_runs import Load, clef_or_example
from support.patience import until
from support.service.invariants import assert_all_scored, assert_scored_as_offline
from support.service.service_processes import Serve, Service

HURRIED = {
    "lease_seconds": 2,
    "renew_seconds": 0.5,
    "sweep_seconds": 0.5,
    "retry_seconds": 0.2,
    "attempts": 9,
}
"""Settings that make a lost job known in two seconds, and let one job meet every disaster below."""

HandedIn = dict[str, Path]
"""Id of the submission -> run."""


@pytest.fixture
def loads(request: pytest.FixtureRequest) -> list[Load]:
    return clef_or_example(request)


@pytest.mark.parametrize("size", ["embedded"], indirect=True)  # of the other one: tests/deploy/test_faults.py
def test_whatever_is_killed_every_run_is_scored_exactly_once_and_as_offline(
    serve: Serve, loads: list[Load]
) -> None:
    service = serve(**HURRIED)
    with service.client() as client:
        handed_in = [hand_in(client, load, load.runs[:-1]) for load in loads]
        disasters(service, client, loads, handed_in)
    total = sum(map(len, handed_in))
    assert scored(service.data) < total, "all was scored before the last disaster: nothing was shown"
    service = serve(**HURRIED)
    with service.client() as client:
        for load, submissions in zip(loads, handed_in, strict=True):
            assert_all_scored(client, load, submissions)
            assert_scored_as_offline(client, load, submissions)
    expected = sum(len(load.bound) * len(load.runs) for load in loads)
    assert list(query(service.data, "select count(*) from scores")) == [(expected,)]


def hand_in(client: Client, load: Load, runs: list[Path]) -> HandedIn:
    """Create the track with its judgments, not yet published, and submit `runs`."""
    load.upload(client)
    return {client.submit(load.track, path).id: path for path in runs}


def disasters(service: Service, client: Client, loads: list[Load], handed_in: list[HandedIn]) -> None:
    """Publish, and while everything is being scored kill a pool process, the worker and, at the end, all;
    delete the broker's folder, and hand in one more run then."""
    for load in loads:
        client.publish_qrels(load.track, 1)
    until(lambda: scored(service.data) >= 2)
    service.pool()[0].kill()
    until(lambda: scored(service.data) >= 6)
    service.child("worker").kill()
    shutil.rmtree((service.data / "broker").rename(service.data / "broker-gone"))  # at once
    for load, submissions in zip(loads, handed_in, strict=True):
        submissions[client.submit(load.track, load.runs[-1]).id] = load.runs[-1]
    until(lambda: scored(service.data) >= 10)
    service.kill()


def scored(data: Path) -> int:
    """How many submissions have scores."""
    ((count,),) = query(data, "select count(distinct submission_id) from scores")
    return int(count)


def query(data: Path, text: str) -> Iterator[tuple[int, ...]]:
    """Rows straight from the database: what no door of the service could embellish."""
    connection = sqlite3.connect(f"file:{data / 'cupel.sqlite'}?mode=ro", uri=True, timeout=30)
    try:
        yield from connection.execute(text).fetchall()
    finally:
        connection.close()
