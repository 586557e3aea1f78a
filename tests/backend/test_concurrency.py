"""Many at once: submitters, workers and organisers in each other's way, with one right outcome."""

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

SUBMITTERS, EACH, WORKERS, VERSIONS = 16, 3, 4, 3

on_postgresql = pytest.mark.parametrize("size", ["production"], indirect=True)
"""What a database with a single writer can't meet."""


@pytest.fixture
def system(open_at: Callable[..., System]) -> System:
    """A system with the real clock, whose order of events counts here."""
    return replace(open_at(connections=SUBMITTERS + WORKERS + 8), now=utc_now)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What the calls return that are made at the same moment; raises what any of them raised."""
    start = threading.Barrier(len(calls))

    def call(one: Callable[[], Any]) -> Any:
        start.wait()
        return one()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call, one) for one in calls]]


@contextmanager
def working(system: System, workers: int) -> Iterator[None]:
    """Workers that do what there is, until the end and then to the last job."""
    over = threading.Event()

    def work() -> None:
        more = True
        while more or not over.is_set():
            more = max(job_execution.run_jobs(system, queue, HANDLERS) for queue in QUEUES)
            over.wait(0.01)

    with ThreadPoolExecutor(workers) as pool:
        started = [pool.submit(work) for _ in range(workers)]
        try:
            yield
        finally:
            over.set()
        for one in started:
            one.result()


def team(number: int) -> Principal:
    return Principal(f"team{number}", "participant")


def hand_in(system: System, number: int) -> list[Submission]:
    return [submit(system, team(number), run_file(tag=f"r{number}-{one}")) for one in range(EACH)]


def publish(system: System) -> int:
    """Upload and publish versions in a race with somebody else; how many were published."""
    published = 0
    for _ in range(VERSIONS):
        number = upload_qrels(system, "track", RELEVANCE).number
        with suppress(Conflict):  # the other one has published a later version
            qrels_versions.publish(system, ORGANISER, "track", number)
            published += 1
    return published


def test_submitters_workers_and_two_organisers_at_once_leave_every_run_scored_once(system: System) -> None:
    make_track(system)
    publish_qrels(system)
    with working(system, WORKERS):
        submitting = [lambda number=number: hand_in(system, number) for number in range(SUBMITTERS)]
        publishing = [lambda: publish(system)] * 2
        *handed_in, first, second = at_once(*submitting, *publishing)
    scheduler_steps.tick(system)
    work_off(system)
    ids = {one.id for of_team in handed_in for one in of_team}
    assert len(ids) == SUBMITTERS * EACH
    assert first + second >= 2
    assert_settled(system, ids)


def assert_settled(system: System, ids: set[str]) -> None:
    """The newest published version is current, and each submission has each of its scores once."""
    with reading(system.engine) as connection:
        track = connection.execute(select(track_rows)).one()
        versions = connection.execute(select(qrels_rows).order_by(qrels_rows.c.number)).all()
        found = connection.execute(select(scores.c.submission_id, scores.c.measure, scores.c.qrels_id)).all()
        attempts = connection.execute(select(job_rows.c.attempts, job_rows.c.finished_at)).all()
    assert [one.number for one in versions] == list(range(1, 2 * VERSIONS + 2))
    newest = max((one for one in versions if one.published_at), key=lambda one: one.number)
    assert track.current == newest.number
    of_newest = Counter((row.submission_id, row.measure) for row in found if row.qrels_id == newest.id)
    assert of_newest == {(id, measure): 1 for id in ids for measure in track.measures}
    assert all(row.finished_at and row.attempts == 1 for row in attempts)
    board = leaderboards.read_board(system, ADMIN, "track")
    assert board is not None
    assert {row.submission for row in board.rows} == ids
    assert not board.unscored


def test_a_request_that_is_sent_sixteen_times_at_once_makes_one_submission(system: System) -> None:
    make_track(system)
    publish_qrels(system)
    made = at_once(*[lambda: submit(system, ALICE, key="the key")] * SUBMITTERS)
    assert len({one.id for one in made}) == 1
    assert work_off(system) == 1


def test_the_same_file_sixteen_times_at_once_is_one_run_in_sixteen_submissions(system: System) -> None:
    make_track(system)
    made = at_once(*[lambda: submit(system, ALICE)] * SUBMITTERS)
    assert len({one.id for one in made}) == SUBMITTERS
    with reading(system.engine) as connection:
        assert connection.execute(select(func.count()).select_from(runs)).scalar_one() == 1


def test_of_tracks_of_one_name_made_at_once_there_is_one(system: System) -> None:
    def make() -> str:
        try:
            make_track(system)
        except Conflict as refusal:
            return refusal.code
        return "made"

    outcomes = Counter(at_once(*[make] * 8))
    assert outcomes == {"made": 1, "track-exists": 7}


def test_workers_that_claim_at_once_share_the_jobs_and_miss_none(system: System) -> None:
    names = [f"{tenant}/{number}" for tenant in ("a", "b", "c") for number in range(20)]
    with writing(system.engine) as connection:
        for name in names:
            enqueue(system, connection, name)

    def claim_all() -> list[str]:
        claimed = []
        while (claim := jobs.claim_next(system, "score")) is not None:
            claimed.append(claim.payload["key"])
        return claimed

    claimed = [key for of_worker in at_once(*[claim_all] * WORKERS) for key in of_worker]
    assert sorted(claimed) == sorted(names)


def enqueue(system: System, connection: Any, name: str) -> None:
    wanted = jobs.JobRequest(name, "test", "score", tenant=name.partition("/")[0], payload={"key": name})
    assert jobs.enqueue(connection, [wanted], now=system.now()) == 1


@on_postgresql
def test_a_worker_passes_over_what_another_one_is_just_taking(system: System) -> None:
    with writing(system.engine) as connection:
        for name in ("a/1", "b/1"):
            enqueue(system, connection, name)
    with writing(system.engine) as other:
        other.execute(select(job_rows).where(job_rows.c.key == "a/1").with_for_update())
        claim = jobs.claim_next(system, "score")
    assert claim is not None
    assert claim.payload["key"] == "b/1"


@on_postgresql
def test_a_worker_waits_for_a_tenants_first_job_rather_than_miss_its_second(system: System) -> None:
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
def test_a_sweep_does_not_wait_for_a_worker_that_stopped_in_a_transaction(system: System) -> None:
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
def test_a_board_does_not_switch_while_a_submission_for_the_new_version_is_on_its_way(system: System) -> None:
    """The switch waits for the submission's lock on the track, and must then see the submission's job."""
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
    """Everything of a third version is scored, but the worker ended before it switched the board."""
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
    """Whether somebody in the database waits for somebody else."""
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with reading(system.engine) as connection:
        return bool(connection.execute(waiting).scalar_one())


# No transaction lasts as long as a file


class Watching:
    """Stands before a means of the system, and notes how many connections are in use while it is at work."""

    def __init__(self, system: System, means: Any) -> None:
        self._system = system
        self._means = means
        self.seen: list[tuple[str, int]] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._means, name)
        if not callable(found):
            return found

        def watched(*arguments: Any, **options: Any) -> Any:
            self.seen.append((name, self._system.engine.pool.checkedout()))  # type: ignore[attr-defined]
            return found(*arguments, **options)

        return watched


def test_no_connection_is_held_while_a_file_is_checked_stored_or_read(system: System) -> None:
    checkers, blobs = Watching(system, system.checkers), Watching(system, system.blobs)
    watched: System = replace(system, checkers=checkers, blobs=blobs)  # type: ignore[arg-type]
    make_track(watched)
    publish_qrels(watched)
    submit(watched)
    work_off(watched)
    tracks.change(watched, ORGANISER, "track", changes={"measures": ["AP", "P@7"]})
    work_off(watched)
    assert {name for name, _ in checkers.seen} == {"check"}
    assert {name for name, _ in blobs.seen} == {"put_file", "bring", "get"}
    assert {in_use for _, in_use in [*checkers.seen, *blobs.seen]} == {0}


def test_no_connection_is_held_while_an_upload_arrives(system: System) -> None:
    make_track(system)
    upload = submissions.begin(system, ALICE, "track")
    upload.write(run_file())
    assert system.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    upload.discard()
