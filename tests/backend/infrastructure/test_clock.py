"""Tests of the clock that all machines with a common database share."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from cupel_backend import jobs
from cupel_backend.infrastructure import clock
from cupel_backend.infrastructure.clock import SharedClock, utc_now
from cupel_backend.infrastructure.database import DATABASE_BUSY, database_time
from cupel_backend.infrastructure.system import System
from support.backend_cast import make_track, publish_qrels, submit

on_postgresql = pytest.mark.parametrize("size", ["production"], indirect=True)

HOUR = timedelta(hours=1)
MOMENT = timedelta(minutes=1)
"""Tolerance: much longer than a measurement, much shorter than an hour."""


def hour_ahead() -> datetime:
    return utc_now() + HOUR


@on_postgresql
def test_wrong_clock_is_corrected_by_the_database(system: System) -> None:
    wrong = SharedClock(lambda: database_time(system.engine), local=hour_ahead)
    assert abs(wrong() - utc_now()) < MOMENT


@on_postgresql
def test_system_on_postgresql_uses_its_clock(
    open_at: Callable[..., System], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a scheduler whose clock is an hour ahead does not expire a running job."""
    worker = replace(open_at(), now=utc_now)
    make_track(worker)
    publish_qrels(worker)
    submit(worker)
    assert jobs.claim_next(worker, "score") is not None
    ahead = replace(worker, now=SharedClock(lambda: database_time(worker.engine), local=hour_ahead))
    assert jobs.sweep(ahead).expired == 0
    assert jobs.sweep(replace(worker, now=hour_ahead)).expired == 1


def test_last_offset_is_kept_while_the_database_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock, "MEASURE_INTERVAL", 0)
    answers = [hour_ahead]

    def ask() -> datetime:
        if not answers:
            raise DATABASE_BUSY("away")
        return answers.pop()()

    shared = SharedClock(ask)
    for _ in range(3):
        assert abs(shared() - hour_ahead()) < MOMENT


def test_clock_without_a_measurement_is_the_local_clock() -> None:
    def ask() -> datetime:
        raise DATABASE_BUSY("away")

    assert abs(SharedClock(ask)() - utc_now()) < MOMENT


def test_worker_with_a_slow_clock_claims_a_new_job(system: System) -> None:
    make_track(system)
    publish_qrels(system)
    submit(system)
    behind = replace(system, now=lambda: system.now() - timedelta(milliseconds=20))
    assert jobs.claim_next(behind, "score") is not None
