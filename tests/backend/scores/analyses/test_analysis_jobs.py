"""Tests of the jobs of board analyses: requests, delays, repetitions and failures."""

from collections.abc import Callable

import pytest
from sqlalchemy import func, select

from cupel_backend import job_execution, jobs, scheduler_steps
from cupel_backend.infrastructure.database import reading
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import analyses as rows
from cupel_backend.job_handlers import HANDLERS
from cupel_backend.scores import board_analyses, rescoring
from cupel_measures.comparing import board_analysis
from support.analysed_boards import ORDERS, QRELS, board, open_jobs, run, score
from support.backend_cast import (
    ADMIN,
    ALICE,
    BOB,
    ORGANISER,
    Clock,
    publish_qrels,
    submit,
    work_off,
)


def test_burst_of_submissions_costs_one_analysis_per_board(system: System) -> None:
    for number in range(5):
        submit(system, ALICE, run(number))
        scheduler_steps.tick(system)
    while (claim := jobs.claim_next(system, rescoring.QUEUE)) is not None:
        assert not open_jobs(system)
        HANDLERS[claim.kind](system, claim)
        scheduler_steps.tick(system)
    assert len(open_jobs(system)) == 3
    scheduler_steps.tick(system)
    assert len(open_jobs(system)) == 3
    work_off(system, analysing=True)
    submit(system, BOB, run(0))
    work_off(system, analysing=True)
    assert len([job for job in jobs.list_(system, ADMIN).items if job.kind == board_analyses.ANALYSE]) == 3


def count_analysed(system: System) -> int:
    """Return the number of submissions in the board's analysis; 0 while it is pending."""
    shown = board(system, measure="AP").analysis
    return 0 if shown.state == "pending" else shown.submissions


def test_analysed_track_waits_until_the_scheduler_requests_the_next_analysis(
    open_at: Callable[..., System], clock: Clock
) -> None:
    system = open_at(analysis_seconds=30)
    submit(system, ALICE, run(0))
    work_off(system, analysing=True)
    assert count_analysed(system) == 1  # immediately, because there was no analysis
    for number in (1, 2, 3):
        clock.forward(9)
        submit(system, ALICE, run(number))
        scheduler_steps.tick(system)
        work_off(system, analysing=True)
        assert count_analysed(system) == 0
    clock.forward(3)
    scheduler_steps.tick(system)
    work_off(system, analysing=True)
    assert count_analysed(system) == 4
    clock.forward(3600)
    submit(system, BOB, run(4))
    work_off(system, analysing=True)
    assert count_analysed(system) == 5


def test_board_without_analysis_does_not_wait(open_at: Callable[..., System], clock: Clock) -> None:
    system = open_at(analysis_seconds=30)
    for number in range(2):
        submit(system, ALICE, run(number))
    work_off(system, analysing=True)
    clock.forward(1)
    publish_qrels(system, relevance=QRELS.replace(b"a 0", b"a 2"))
    work_off(system, analysing=True)
    assert (board(system).qrels, count_analysed(system)) == (2, 2)


def test_track_that_never_stops_scoring_is_analysed_periodically(
    open_at: Callable[..., System], clock: Clock
) -> None:
    system = open_at(analysis_seconds=30)
    for _ in range(2):
        submit(system, ALICE, run(0))
    seen = []
    for number in range(22):
        submit(system, BOB, run(number % len(ORDERS)))  # so that two evaluations are always open
        claim = jobs.claim_next(system, rescoring.QUEUE)
        assert claim is not None
        HANDLERS[claim.kind](system, claim)
        scheduler_steps.tick(system)
        while (claim := jobs.claim_next(system, board_analyses.QUEUE)) is not None:
            HANDLERS[claim.kind](system, claim)
        seen.append(count_analysed(system))
        clock.forward(6)
    # The scheduler ticks at 0, 6, ... s. The first analysis runs when the oldest change has waited for 30 s.
    # Each later analysis runs 30 s after the first change that follows.
    assert [(6 * place, count) for place, count in enumerate(seen) if count] == [
        (36, 7),
        (78, 14),
        (120, 21),
    ]


def test_version_in_publishing_is_analysed_after_all_is_scored(
    open_at: Callable[..., System], clock: Clock
) -> None:
    system = open_at(analysis_seconds=30)
    for number in range(4):
        submit(system, ALICE, run(number))
    work_off(system, analysing=True)
    publish_qrels(system, relevance=QRELS.replace(b"a 0", b"a 2"))
    for _ in range(3):
        clock.forward(60)
        claim = jobs.claim_next(system, rescoring.QUEUE)
        assert claim is not None
        HANDLERS[claim.kind](system, claim)
        scheduler_steps.tick(system)
        assert not open_jobs(system)
    work_off(system, analysing=True)
    assert (board(system).qrels, count_analysed(system)) == (2, 4)


def test_overtaken_job_analyses_the_newest_state(system: System) -> None:
    for number in range(2):
        submit(system, ALICE, run(number))
    score(system)
    begun = jobs.claim_next(system, board_analyses.QUEUE)
    submit(system, BOB, run(2))
    score(system)
    assert begun is not None
    HANDLERS[begun.kind](system, begun)  # the job reads the current state
    assert board(system, measure=begun.payload["measure"]).analysis.submissions == 3
    work_off(system, analysing=True)
    assert {board(system, measure=text).analysis.state for text in ("nDCG@2", "AP", "P@1")} == {"done"}


def test_outdated_analysis_is_not_shown_and_is_repeated(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        submit(system, ALICE, run(number))
    score(system)
    analyse = board_analysis.analyse

    def analyse_with_new_submission(
        *arguments: object, **options: object
    ) -> list[board_analysis.BoardAnalysis]:
        monkeypatch.setattr(board_analysis, "analyse", analyse)
        submit(system, BOB, run(2))
        score(system)
        return analyse(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(board_analysis, "analyse", analyse_with_new_submission)
    begun = jobs.claim_next(system, board_analyses.QUEUE)
    assert begun is not None
    HANDLERS[begun.kind](system, begun)
    late = board(system, measure=begun.payload["measure"])
    assert late.analysis.state == "pending"
    assert all(not row.groups for row in late.rows)
    work_off(system, analysing=True)
    assert board(system, measure=begun.payload["measure"]).analysis.neighbours == 2


def test_lost_worker_does_not_change_the_result(system: System, clock: Clock) -> None:
    for number in range(3):
        submit(system, ALICE, run(number))
    score(system)
    lost = jobs.claim_next(system, board_analyses.QUEUE)
    assert lost is not None
    clock.forward(3600)
    scheduler_steps.tick(system)
    work_off(system, analysing=True)
    shown = board(system, measure=lost.payload["measure"])
    assert shown.analysis.state == "done"
    with pytest.raises(jobs.LeaseLost):
        HANDLERS[lost.kind](system, lost)
    assert board(system, measure=lost.payload["measure"]) == shown
    with reading(system.engine) as connection:
        assert connection.execute(select(func.count()).select_from(rows)).scalar_one() == 3


def test_tick_makes_a_missed_request(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(board_analyses, "request", lambda *_: 0)  # the worker dies after writing its scores
        submit(system, ALICE, run(0))
        submit(system, ALICE, run(1))
        work_off(system, analysing=True)
        assert board(system).analysis.state == "pending"
    scheduler_steps.tick(system)
    work_off(system, analysing=True)
    assert board(system).analysis.state == "done"


def test_analysis_that_always_fails_is_reported_as_failed(
    system: System, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(board_analysis, "analyse", lambda *_, **__: 1 / 0)
        submit(system, ALICE, run(0))
        submit(system, ALICE, run(1))
        for _ in range(3 * system.settings.attempts):
            work_off(system, analysing=True)
            clock.forward(3600)
            scheduler_steps.tick(system)
    assert not open_jobs(system)
    assert board(system).analysis.undefined == "the analysis failed; the organisers can see the error"
    dead = jobs.list_(system, ORGANISER, state="dead").items
    assert {job.error for job in dead} == {"division by zero"}
    jobs.revive(system, ORGANISER, dead[0].id)
    submit(system, ALICE, run(2))
    work_off(system, analysing=True)
    assert {board(system, measure=text).analysis.state for text in ("nDCG@2", "AP", "P@1")} == {"done"}


def test_scoring_has_priority_over_analyses(system: System) -> None:
    for number in range(2):
        submit(system, ALICE, run(number))
    score(system)
    waiting = len(open_jobs(system))
    submit(system, BOB, run(2))
    # True, because more analyses are queued: the turn ended so that scoring can run.
    assert job_execution.run_jobs(system, board_analyses.QUEUE, HANDLERS)
    assert len(open_jobs(system)) == waiting - 1
