"""A test that kills all processes during scoring: every run is still scored exactly once and correctly."""

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

pytestmark = pytest.mark.drill

FAST_RECOVERY = {
    "lease_seconds": 2,
    "renew_seconds": 0.5,
    "sweep_seconds": 0.5,
    "retry_seconds": 0.2,
    "attempts": 9,
}
"""Settings that detect a lost job within two seconds and allow a job to be lost by every fault below."""

SubmittedRuns = dict[str, Path]
"""Mapping of submission ids to run files."""


@pytest.fixture
def loads(request: pytest.FixtureRequest) -> list[Load]:
    return clef_or_example(request)


# The production size is tested in tests/deploy/test_faults.py.
@pytest.mark.parametrize("size", ["embedded"], indirect=True)
def test_every_run_is_scored_exactly_once_after_processes_are_killed(serve: Serve, loads: list[Load]) -> None:
    service = serve(**FAST_RECOVERY)
    with service.client() as client:
        submitted = [upload_and_submit(client, load, load.runs[:-1]) for load in loads]
        inject_faults(service, client, loads, submitted)
    total = sum(map(len, submitted))
    assert count_scored(service.data) < total, (
        "all runs were scored before the last fault, so the test shows nothing"
    )
    service = serve(**FAST_RECOVERY)
    with service.client() as client:
        for load, submissions in zip(loads, submitted, strict=True):
            assert_all_scored(client, load, submissions)
            assert_scored_as_offline(client, load, submissions)
    expected = sum(len(load.bound) * len(load.runs) for load in loads)
    assert list(query(service.data, "select count(*) from scores")) == [(expected,)]


def upload_and_submit(client: Client, load: Load, runs: list[Path]) -> SubmittedRuns:
    """Create the track, upload its judgments without publishing them, and submit `runs`."""
    load.upload(client)
    return {client.submit(load.track, path).id: path for path in runs}


def inject_faults(
    service: Service, client: Client, loads: list[Load], submitted: list[SubmittedRuns]
) -> None:
    """Publish the judgments, and kill processes during scoring.

    Faults: a pool process is killed, the worker is killed, the broker's folder is deleted before another run
    is submitted, and finally all processes are killed.
    """
    for load in loads:
        client.publish_qrels(load.track, 1)
    until(lambda: count_scored(service.data) >= 2)
    service.pool()[0].kill()
    until(lambda: count_scored(service.data) >= 6)
    service.child("worker").kill()
    # The folder is renamed first, because rmtree is not atomic.
    shutil.rmtree((service.data / "broker").rename(service.data / "broker-gone"))
    for load, submissions in zip(loads, submitted, strict=True):
        submissions[client.submit(load.track, load.runs[-1]).id] = load.runs[-1]
    until(lambda: count_scored(service.data) >= 10)
    service.kill()


def count_scored(data: Path) -> int:
    """Return the number of submissions with scores."""
    ((count,),) = query(data, "select count(distinct submission_id) from scores")
    return int(count)


def query(data: Path, text: str) -> Iterator[tuple[int, ...]]:
    """Yield rows of the database, read without the service."""
    connection = sqlite3.connect(f"file:{data / 'cupel.sqlite'}?mode=ro", uri=True, timeout=30)
    try:
        yield from connection.execute(text).fetchall()
    finally:
        connection.close()
