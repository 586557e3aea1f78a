"""Tests of explanations: they are separate from scoring and are computed once."""

import pytest
from sqlalchemy import func, select

from cupel_backend import job_execution, jobs, submissions, tracks
from cupel_backend.infrastructure.database import reading
from cupel_backend.infrastructure.errors import Forbidden, Invalid, NotFound, TooMany
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import explanations as rows
from cupel_backend.job_handlers import HANDLERS
from cupel_backend.scores import rescoring, score_explanations
from support.backend_cast import (
    ADMIN,
    ALICE,
    BOB,
    CORRECTED,
    ORGANISER,
    Clock,
    make_track,
    publish_qrels,
    submit,
    work_off,
)


@pytest.fixture
def sent(system: System) -> str:
    """Return the id of a scored submission of alice."""
    make_track(system)
    publish_qrels(system)
    id = submit(system, ALICE).id
    work_off(system)
    return id


def count(system: System) -> int:
    with reading(system.engine) as connection:
        return connection.execute(select(func.count()).select_from(rows)).scalar_one()


def test_version_switch_does_not_wait_for_explanations(system: System, sent: str) -> None:
    score_explanations.request(system, ALICE, sent, about=["scale"])
    before = submissions.get(system, ALICE, sent)
    assert {job.kind for job in before.jobs} == {rescoring.EVALUATE}
    assert before.state == "scored"
    publish_qrels(system, relevance=CORRECTED)
    while job_execution.run_jobs(system, rescoring.QUEUE, HANDLERS):
        pass
    assert tracks.get(system, ADMIN, "track").current == 2
    assert {job.state for job in jobs.list_(system, ADMIN).items if job.kind == "explain"} == {"queued"}


def test_explained_submission_without_scores_is_not_scored(system: System, sent: str) -> None:
    waiting = submit(system, ALICE).id
    score_explanations.request(system, ALICE, waiting, measures=["AP"], about=["scale"])
    while job_execution.run_jobs(system, score_explanations.QUEUE, HANDLERS):
        pass
    assert submissions.get(system, ALICE, waiting).state == "queued"
    assert score_explanations.read_explanations(system, ALICE, waiting).explanations


def test_explanation_that_runs_twice_is_stored_once(system: System, sent: str, clock: Clock) -> None:
    score_explanations.request(system, ALICE, sent, measures=["AP"], about=["scale", "judgments"])
    slow = jobs.claim_next(system, score_explanations.QUEUE)
    assert slow is not None
    clock.forward(3600)
    jobs.sweep(system)
    work_off(system)
    assert count(system) == 2
    with pytest.raises(jobs.LeaseLost):
        score_explanations.compute(system, slow)
    assert count(system) == 2


def test_stored_parts_are_not_computed_again(system: System, sent: str, clock: Clock) -> None:
    score_explanations.request(system, ALICE, sent, measures=["AP"], about=["scale"])
    work_off(system)
    clock.forward(60)
    score_explanations.request(system, ALICE, sent, measures=["AP"], about=["scale", "judgments"])
    work_off(system)
    with reading(system.engine) as connection:
        times = {row.about: row.explained_at for row in connection.execute(select(rows))}
    assert times["scale"] < times["judgments"]


def test_explanations_have_the_visibility_of_scores(system: System, sent: str) -> None:
    for anybody in (ORGANISER, ADMIN, ALICE):
        score_explanations.request(system, anybody, sent, measures=["AP"], about=["scale"])
    with pytest.raises(Forbidden):
        score_explanations.request(system, BOB, sent)
    with pytest.raises(Forbidden):
        score_explanations.read_explanations(system, BOB, sent)
    with pytest.raises(NotFound):
        score_explanations.request(system, ALICE, "sub_none")


def test_measure_that_cannot_be_computed_is_refused(system: System, sent: str) -> None:
    with pytest.raises(Invalid, match="judgments by subtopic, and this collection has none"):
        score_explanations.request(system, ALICE, sent, measures=["alpha_nDCG@2", "AP"], about=["judgments"])
    assert not score_explanations.read_explanations(system, ALICE, sent).explanations


def test_open_requests_are_limited_per_team(system: System, sent: str) -> None:
    for hundred in range(score_explanations.MAX_OPEN // 100):
        measures = [f"P@{100 * hundred + cutoff}" for cutoff in range(1, 101)]
        score_explanations.request(system, ALICE, sent, measures=measures, about=["scale"])
    with pytest.raises(TooMany):
        score_explanations.request(system, ALICE, sent, measures=["AP"])
    assert score_explanations.request(system, ORGANISER, sent, measures=["AP"], about=["scale"]).jobs
