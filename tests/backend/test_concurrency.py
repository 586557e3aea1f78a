"""Tests of concurrent submitters, workers and organisers."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, select, text

from cupel_backend import job_execution, jobs, qrels_versions, scheduler_steps, submissions, tracks
from cupel_backend.access import Principal
from cupel_backend.infrastructure.clock import utc_now
from cupel_backend.infrastructure.database import reading, writing
from cupel_backend.infrastructure.errors import Conflict
from cupel_backend.infrastructure.settings import QUEUES
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import jobs as job_rows
from cupel_backend.infrastructure.tables import qrels as qrels_rows
from cupel_backend.infrastructure.tables import runs, scores
from cupel_backend.infrastructure.tables import tracks as track_rows
from cupel_backend.job_handlers import HANDLERS
from cupel_backend.scores import leaderboards, rescoring
from cupel_backend.submissions import Submission
from support.backend_cast import (
    ADMIN,
    ALICE,
    ORGANISER,
    RELEVANCE,
    make_track,
    publish_qrels,
    run_file,
    submit,
    upload_qrels,
    work_off,
)
from support.patience import until

SUBMITTERS, RUNS_PER_TEAM, WORKERS, VERSIONS = 12, 2, 4, 3

on_postgresql = pytest.mark.parametrize("size", ["production"], indirect=True)
"""Mark of tests that need a database with several writers."""


@pytest.fixture
def system(open_at: Callable[..., System]) -> System:
    """Return a system with the real clock, because these tests depend on the order of events."""
    return replace(open_at(connections=SUBMITTERS + WORKERS + 8), now=utc_now)


def run_concurrently(*calls: Callable[[], Any]) -> list[Any]:
    """Make the calls at the same time; return their results, or raise the first exception."""
    start = threading.Barrier(len(calls))

    def wait_and_call(call: Callable[[], Any]) -> Any:
        start.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(wait_and_call, call) for call in calls]]


@contextmanager
def workers_running(system: System, workers: int) -> Iterator[None]:
    """Run workers during the block, and afterwards until no job is left."""
    stopping = threading.Event()

    def work() -> None:
        has_more = True
        while has_more or not stopping.is_set():
            has_more = max(job_execution.run_jobs(system, queue, HANDLERS) for queue in QUEUES)
            stopping.wait(0.01)

    with ThreadPoolExecutor(workers) as pool:
        started = [pool.submit(work) for _ in range(workers)]
        try:
            yield
        finally:
            stopping.set()
        for future in started:
            future.result()


def team(number: int) -> Principal:
    return Principal(f"team{number}", "participant")


def submit_runs(system: System, number: int) -> list[Submission]:
    return [submit(system, team(number), run_file(tag=f"r{number}-{i}")) for i in range(RUNS_PER_TEAM)]


def publish(system: System) -> int:
    """Upload and publish versions, concurrently with another organiser. Return the number published."""
    published = 0
    for _ in range(VERSIONS):
        number = upload_qrels(system, "track", RELEVANCE).number
        with suppress(Conflict):  # The other organiser has published a later version.
            qrels_versions.publish(system, ORGANISER, "track", number)
            published += 1
    return published


def test_concurrent_submitters_workers_and_organisers_leave_every_run_scored_once(system: System) -> None:
    make_track(system)
    publish_qrels(system)
    with workers_running(system, WORKERS):
        submitting = [lambda number=number: submit_runs(system, number) for number in range(SUBMITTERS)]
        publishing = [lambda: publish(system)] * 2
        *submitted, first, second = run_concurrently(*submitting, *publishing)
    scheduler_steps.tick(system)
    work_off(system)
    ids = {submission.id for submissions in submitted for submission in submissions}
    assert len(ids) == SUBMITTERS * RUNS_PER_TEAM
    assert first + second >= 2
    assert_settled(system, ids)


def assert_settled(system: System, ids: set[str]) -> None:
    """Check that the newest published version is current, and that each score exists exactly once."""
    with reading(system.engine) as connection:
        track = connection.execute(select(track_rows)).one()
        versions = connection.execute(select(qrels_rows).order_by(qrels_rows.c.number)).all()
        score_rows = connection.execute(
            select(scores.c.submission_id, scores.c.measure, scores.c.qrels_id)
        ).all()
        attempts = connection.execute(select(job_rows.c.attempts, job_rows.c.finished_at)).all()
    assert [version.number for version in versions] == list(range(1, 2 * VERSIONS + 2))
    newest = max(
        (version for version in versions if version.published_at), key=lambda version: version.number
    )
    assert track.current == newest.number
    counts = Counter((row.submission_id, row.measure) for row in score_rows if row.qrels_id == newest.id)
    assert counts == {(id, measure): 1 for id in ids for measure in track.measures}
    assert all(row.finished_at and row.attempts == 1 for row in attempts)
    board = leaderboards.read_board(system, ADMIN, "track")
    assert board is not None
    assert {row.submission for row in board.rows} == ids
    assert not board.unscored


def test_concurrent_requests_with_one_idempotency_key_create_one_submission(system: System) -> None:
    make_track(system)
    publish_qrels(system)
    created = run_concurrently(*[lambda: submit(system, ALICE, key="the key")] * SUBMITTERS)
    assert len({submission.id for submission in created}) == 1
    assert work_off(system) == 1


def test_concurrent_submissions_of_one_file_share_one_run(system: System) -> None:
    make_track(system)
    created = run_concurrently(*[lambda: submit(system, ALICE)] * SUBMITTERS)
    assert len({submission.id for submission in created}) == SUBMITTERS
    with reading(system.engine) as connection:
        assert connection.execute(select(func.count()).select_from(runs)).scalar_one() == 1


def test_concurrent_creation_of_a_track_succeeds_once(system: System) -> None:
    def make() -> str:
        try:
            make_track(system)
        except Conflict as refusal:
            return refusal.code
        return "created"

    outcomes = Counter(run_concurrently(*[make] * 8))
    assert outcomes == {"created": 1, "track-exists": 7}


def test_concurrent_claims_share_all_jobs(system: System) -> None:
    names = [f"{tenant}/{number}" for tenant in ("a", "b", "c") for number in range(20)]
    with writing(system.engine) as connection:
        for name in names:
            enqueue(system, connection, name)

    def claim_all() -> list[str]:
        claimed = []
        while (claim := jobs.claim_next(system, "score")) is not None:
            claimed.append(claim.payload["key"])
        return claimed

    claimed = [key for keys in run_concurrently(*[claim_all] * WORKERS) for key in keys]
    assert sorted(claimed) == sorted(names)


def enqueue(system: System, connection: Any, name: str) -> None:
    request = jobs.JobRequest(
        key=name, kind="test", queue="score", tenant=name.partition("/")[0], payload={"key": name}
    )
    assert jobs.enqueue(connection, [request], now=system.now()) == 1


@on_postgresql
def test_claim_skips_a_locked_job_of_another_tenant(system: System) -> None:
    with writing(system.engine) as connection:
        for name in ("a/1", "b/1"):
            enqueue(system, connection, name)
    with writing(system.engine) as other:
        other.execute(select(job_rows).where(job_rows.c.key == "a/1").with_for_update())
        claim = jobs.claim_next(system, "score")
    assert claim is not None
    assert claim.payload["key"] == "b/1"


@on_postgresql
def test_claim_waits_for_the_first_job_of_a_tenant(system: System) -> None:
    with writing(system.engine) as connection:
        for name in ("a/1", "a/2"):
            enqueue(system, connection, name)
    with ThreadPoolExecutor(1) as pool:
        with writing(system.engine) as other:
            other.execute(select(job_rows).where(job_rows.c.key == "a/1").with_for_update())
            waiting = pool.submit(jobs.claim_next, system, "score")
            until(lambda: waits_for_a_lock(system))
            other.execute(job_rows.update().where(job_rows.c.key == "a/1").values(finished_at=system.now()))
        claim = waiting.result()
    assert claim is not None
    assert claim.payload["key"] == "a/2"


@on_postgresql
def test_sweep_skips_a_row_locked_by_a_stopped_worker(system: System) -> None:
    with writing(system.engine) as connection:
        for name in ("a/1", "b/1"):
            enqueue(system, connection, name)
    held, lost = jobs.claim_next(system, "score"), jobs.claim_next(system, "score")
    assert held is not None
    assert lost is not None
    late = replace(system, now=lambda: utc_now().replace(year=2100))
    with writing(system.engine) as stopped:
        stopped.execute(select(job_rows).where(job_rows.c.id == held.id).with_for_update())
        assert jobs.sweep(late).expired == 1
    assert jobs.sweep(late).expired == 1


@on_postgresql
def test_board_does_not_switch_while_a_submission_is_being_stored(system: System) -> None:
    """Check that the switch waits for the submission's lock on the track, and then sees its job."""
    make_track(system)
    publish_qrels(system)
    submit(system)
    publish_qrels(system)
    assert rescoring.switch_version(system, track_id(system)) is False
    work_off(system)
    publish_qrels_without_switching(system)
    with ThreadPoolExecutor(1) as pool:
        with writing(system.engine) as arriving:
            tracks.find(arriving, "track", lock=True)
            switching = pool.submit(rescoring.switch_version, system, track_id(system))
            until(lambda: waits_for_a_lock(system))
            arriving.execute(
                job_rows.update().where(job_rows.c.qrels_id == newest_id(arriving)).values(finished_at=None)
            )
        assert switching.result() is False
    work_off(system)
    assert qrels_versions.get(system, ORGANISER, "track", 3).state == "current"


def publish_qrels_without_switching(system: System) -> None:
    """Publish a version and finish its job without switching the board, as a killed worker would."""
    publish_qrels(system)
    claim = jobs.claim_next(system, "score")
    assert claim is not None
    with writing(system.engine) as connection:
        jobs.finish(connection, claim, now=system.now())


def track_id(system: System) -> int:
    with reading(system.engine) as connection:
        return int(tracks.find(connection, "track").id)


def newest_id(connection: Any) -> int:
    return int(connection.execute(select(func.max(qrels_rows.c.id))).scalar_one())


def waits_for_a_lock(system: System) -> bool:
    """Return whether a database session waits for a lock of another session."""
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with reading(system.engine) as connection:
        return bool(connection.execute(waiting).scalar_one())


# Connections are not held during file operations.


class ConnectionRecorder:
    """A proxy of a component of the system that records the connections in use at each call.

    calls: (name of the method, number of connections).
    """

    def __init__(self, system: System, component: Any) -> None:
        self._system = system
        self._component = component
        self.calls: list[tuple[str, int]] = []

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._component, name)
        if not callable(attribute):
            return attribute

        def record_and_call(*arguments: Any, **options: Any) -> Any:
            self.calls.append((name, self._system.engine.pool.checkedout()))  # type: ignore[attr-defined]
            return attribute(*arguments, **options)

        return record_and_call


def test_no_connection_is_held_while_a_file_is_checked_stored_or_read(system: System) -> None:
    checkers, blobs = ConnectionRecorder(system, system.checkers), ConnectionRecorder(system, system.blobs)
    recorded: System = replace(system, checkers=checkers, blobs=blobs)  # type: ignore[arg-type]
    make_track(recorded)
    publish_qrels(recorded)
    submit(recorded)
    work_off(recorded)
    tracks.change(recorded, ORGANISER, "track", changes={"measures": ["AP", "P@7"]})
    work_off(recorded)
    assert {name for name, _ in checkers.calls} == {"check"}
    assert {name for name, _ in blobs.calls} == {"put_file", "copy_to", "get"}
    assert {in_use for _, in_use in [*checkers.calls, *blobs.calls]} == {0}


def test_no_connection_is_held_while_an_upload_arrives(system: System) -> None:
    make_track(system)
    upload = submissions.begin(system, ALICE, "track")
    upload.write(run_file())
    assert system.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    upload.discard()
