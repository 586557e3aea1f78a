"""The service as docker-compose.yml describes it: real runs and the demonstration, equal to the last bit."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cupel_client.api.client import Client
from support.data.real_runs import Load, clef_or_example
from support.patience import seconds
from support.service.compose_stack import Container, Stack, environment_of
from support.service.invariants import HandedIn, assert_no_loose_ends, assert_sound


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """Everything with the very settings of the file."""
    with Stack() as stack:
        yield stack


@pytest.fixture(scope="module")
def organiser(stack: Stack) -> Iterator[Client]:
    with stack.client() as client:
        yield client


@pytest.fixture
def loads(request: pytest.FixtureRequest) -> list[Load]:
    return clef_or_example(request)


def test_real_runs_are_scored_as_offline_and_listed_on_boards(
    stack: Stack, organiser: Client, loads: list[Load]
) -> None:
    handed_in = [hand_in(organiser, load) for load in loads]
    for load, submissions in zip(loads, handed_in, strict=True):
        assert_sound(
            organiser, load, submissions, query=stack.query, blobs=stack.blobs(), sample=len(load.runs)
        )
    expected = sum(len(load.measures) * len(load.runs) for load in loads)
    assert stack.query("SELECT count(*) FROM scores") == [(expected,)]


def test_an_audit_of_these_runs_is_done_by_the_workers_for_it(
    stack: Stack, organiser: Client, loads: list[Load]
) -> None:
    audit = organiser.request_audit(
        loads[0].track, "downsampling", parameters={"repeats": 4, "ratios": [50]}, measures=["AP"]
    )
    *_, last = organiser.watch_audit(audit.id)
    assert (last.state, last.failures) == ("done", ())
    assert last.numbers["kept@50"] is not None
    assert organiser.audit(audit.id).runs
    assert_no_loose_ends(stack.query, stack.blobs())


def hand_in(client: Client, load: Load) -> HandedIn:
    """Create the track, publish its judgments, and submit all runs."""
    client.publish_qrels(load.track, load.upload(client))
    return {client.submit(load.track, run).id: run for run in load.runs}


def test_the_demonstration_runs_on_it_and_all_scores_are_equal_to_the_last_bit(
    stack: Stack, tmp_path: Path
) -> None:
    token = tmp_path / "admin-token"
    token.write_text(stack.token())
    command = [sys.executable, "-m", "cupel_standalone.demo", "--url", stack.url, "--token-file", str(token)]
    shown = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds(180)
    )
    assert shown.returncode == 0, shown.stderr
    assert "60 of 60 scores are bit-identical" in shown.stdout


@pytest.mark.parametrize("service", ["gateway", "worker-score", "scheduler"])
def test_a_service_has_the_settings_of_the_file_and_no_other(stack: Stack, service: str) -> None:
    (main, *_) = stack[service].processes()
    given = {name for name in main.environ() if name.startswith("CUPEL_")}
    assert given == set(environment_of(service))


# The last one, for it leaves nothing to test.
def test_asked_to_stop_every_service_ends_in_good_order(stack: Stack) -> None:
    services = [one for one in stack.containers.values() if one.restarts]
    with ThreadPoolExecutor(len(services)) as pool:
        list(pool.map(Container.stop, services))
    assert [(one.service, one.code) for one in services] == [(one.service, 0) for one in services]
    assert stack.query("SELECT id FROM jobs WHERE lease_until IS NOT NULL") == []
