"""Tests of the stack of docker-compose.yml with real runs, an audit and the demonstration."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from cupel_client.api.client import Client
from support.data.real_runs import Load, clef_or_example
from support.patience import seconds
from support.service.compose_stack import Container, Stack, environment_of
from support.service.invariants import SubmittedFiles, assert_consistent, assert_rows_consistent


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """Yield a stack with exactly the settings of docker-compose.yml."""
    with Stack() as stack:
        yield stack


@pytest.fixture(scope="module")
def organiser(stack: Stack) -> Iterator[Client]:
    with stack.client() as client:
        yield client


@pytest.fixture
def loads(request: pytest.FixtureRequest, all_examples: bool) -> list[Load]:
    """Return the collections with all of their runs; `make test` takes every fourth run."""
    return [replace(load, runs=load.runs[:: 1 if all_examples else 4]) for load in clef_or_example(request)]


def test_scores_and_leaderboards_of_real_runs_equal_offline_scores(
    stack: Stack, organiser: Client, loads: list[Load]
) -> None:
    submitted = [submit_all(organiser, load) for load in loads]
    for load, submissions in zip(loads, submitted, strict=True):
        assert_consistent(
            organiser, load, submissions, query=stack.query, blobs=stack.blobs(), sample=len(load.runs)
        )
    expected = sum(len(load.measures) * len(load.runs) for load in loads)
    assert stack.query("SELECT count(*) FROM scores") == [(expected,)]


def test_audit_of_real_runs_finishes(stack: Stack, organiser: Client, loads: list[Load]) -> None:
    audit = organiser.request_audit(
        loads[0].track, "downsampling", parameters={"repeats": 4, "ratios": [50]}, measures=["AP"]
    )
    *_, last = organiser.watch_audit(audit.id)
    assert (last.state, last.failures) == ("done", ())
    assert last.numbers["kept@50"] is not None
    assert organiser.audit(audit.id).runs
    assert_rows_consistent(stack.query, stack.blobs())


def submit_all(client: Client, load: Load) -> SubmittedFiles:
    """Create the track, publish its judgments, and submit all runs."""
    client.publish_qrels(load.track, load.upload(client))
    return {client.submit(load.track, run).id: run for run in load.runs}


def test_demonstration_succeeds_with_bit_identical_scores(stack: Stack, tmp_path: Path) -> None:
    token = tmp_path / "admin-token"
    token.write_text(stack.token())
    command = [sys.executable, "-m", "cupel_standalone.demo", "--url", stack.url, "--token-file", str(token)]
    completed = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds(180)
    )
    assert completed.returncode == 0, completed.stderr
    assert "60 of 60 scores are bit-identical" in completed.stdout


@pytest.mark.parametrize("service", ["gateway", "worker-score", "scheduler"])
def test_service_has_exactly_the_settings_of_the_file(stack: Stack, service: str) -> None:
    (main, *_) = stack[service].processes()
    settings = {name for name in main.environ() if name.startswith("CUPEL_")}
    assert settings == set(environment_of(service))


# This test must be the last one, because it stops all services.
def test_stopped_services_exit_with_code_0_and_leave_no_lease(stack: Stack) -> None:
    services = [container for container in stack.containers.values() if container.restarts]
    with ThreadPoolExecutor(len(services)) as pool:
        list(pool.map(Container.stop, services))
    assert {container.service: container.code for container in services} == {
        container.service: 0 for container in services
    }
    assert stack.query("SELECT id FROM jobs WHERE lease_until IS NOT NULL") == []
