"""Tests of schedules: every slot requests one audit, across clock changes and crashes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cupel_backend import scheduler_steps
from cupel_backend.audits import audit_alerts, audit_requests, audit_schedules
from cupel_backend.infrastructure.errors import Forbidden, Invalid, NotFound
from cupel_backend.infrastructure.system import System
from support.audit_cast import QRELS, SMALL, run
from support.backend_cast import (
    ADMIN,
    ALICE,
    BOB,
    ORGANISER,
    STRANGER,
    Clock,
    make_track,
    publish_qrels,
    submit,
    work_off,
)

REQUEST = {"kind": "downsampling", "parameters": SMALL}


def count_audits(system: System) -> int:
    return len(audit_requests.list_(system, ADMIN, "track", limit=500).items)


def add(system: System, **changes: Any) -> audit_schedules.Schedule:
    return audit_schedules.add(system, ORGANISER, "track", **({"request": REQUEST} | changes))


def instants(cron: str, zone: str, after: str, number: int) -> list[str]:
    """Return the next `number` times of a schedule, as day and time in UTC."""
    times = [datetime.fromisoformat(after).astimezone(UTC)]
    for _ in range(number):
        times.append(audit_schedules.compute_next_run(cron, zone, times[-1]))
    return [f"{instant:%d %H:%M}" for instant in times[1:]]


def test_next_runs_follow_the_time_zone_across_clock_changes() -> None:
    # Berlin, 2026: 02:00 -> 03:00 on March 29, 03:00 -> 02:00 on October 25 (both at 01:00 UTC)
    spring, autumn = "2026-03-28T00:00+01:00", "2026-10-24T00:00+02:00"
    assert instants("0 12 * * *", "Europe/Berlin", spring, 3) == ["28 11:00", "29 10:00", "30 10:00"]
    # A time that the clock change skips runs right after the change.
    assert instants("30 2 * * *", "Europe/Berlin", spring, 3) == ["28 01:30", "29 01:00", "30 00:30"]
    # A time that the clock change repeats runs once.
    assert instants("30 2 * * *", "Europe/Berlin", autumn, 3) == ["24 00:30", "25 00:30", "26 01:30"]
    # Hourly expressions follow elapsed time.
    hours = instants("0 * * * *", "Europe/Berlin", "2026-10-25T01:30+02:00", 4)
    assert hours == ["25 00:00", "25 01:00", "25 02:00", "25 03:00"]


INVALID_SCHEDULES: list[tuple[dict[str, Any], str]] = [
    ({"cron": "nonsense"}, "invalid expression"),
    ({"cron": "61 * * * *"}, "invalid expression"),
    ({"cron": "0 0 * * " + "1," * 100 + "1"}, "invalid expression .* \\(too long\\)"),
    ({"cron": "*/5 * * * * *"}, "invalid expression .* \\(Wrong number of fields\\)"),
    ({"cron": "0 0 31 2 *"}, "(never matches|invalid expression)"),
    ({"cron": "0 3 * * *", "zone": "Mars/Phobos"}, "unknown time zone 'Mars/Phobos'"),
    ({"cron": "0 3 * * *", "zone": "../etc/passwd"}, "unknown time zone"),
    ({"cron": "0 3 * * *", "runs": 3}, "cron, runs: give at most one"),
    ({"zone": "UTC"}, "zone: requires cron"),
    ({"request": {"kind": "nonsense"}}, "unknown audit 'nonsense'"),
    ({"request": REQUEST | {"measures": ["nonsense"]}}, "nonsense"),
]
"""Changes of a valid schedule, each with the beginning of its message."""


def test_invalid_schedule_is_refused(judged: System) -> None:
    for wrong, about in INVALID_SCHEDULES:
        with pytest.raises(Invalid, match=about):
            add(judged, **wrong)


def test_missed_slots_are_combined_into_one_audit(judged: System, clock: Clock) -> None:
    schedule = add(judged, cron="0 * * * *", zone="Europe/Berlin")
    assert schedule.zone == "Europe/Berlin"
    assert schedule.due_at == clock.now + timedelta(hours=1)
    scheduler_steps.tick(judged)
    assert count_audits(judged) == 0
    clock.forward(5.5 * 3600)  # no scheduler runs during this time
    for _ in range(3):
        scheduler_steps.tick(judged)
    assert count_audits(judged) == 1
    assert audit_schedules.list_(judged, ORGANISER, "track").items[0].due_at == clock.now + timedelta(
        minutes=30
    )
    clock.forward(1800)
    scheduler_steps.tick(judged)
    assert count_audits(judged) == 2
    assert audit_requests.list_(judged, BOB, "track").items[0].schedule == schedule.id


def test_slot_is_requested_once_by_two_schedulers_or_after_a_crash(
    judged: System, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(judged, cron="0 * * * *")
    clock.forward(3600)
    real = audit_requests.request

    def request_and_die(*given: Any, **more: Any) -> audit_requests.AuditView:
        real(*given, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(audit_requests, "request", request_and_die)
        with pytest.raises(KeyboardInterrupt):
            audit_schedules.request_due_audits(judged)
    assert count_audits(judged) == 1

    def request_after_other(*given: Any, **more: Any) -> audit_requests.AuditView:
        monkeypatch.setattr(audit_requests, "request", real)
        audit_schedules.request_due_audits(judged)  # a second scheduler that has read the same state
        return real(*given, **more)

    clock.forward(1)
    monkeypatch.setattr(audit_requests, "request", request_after_other)
    assert audit_schedules.request_due_audits(judged) == 0
    assert count_audits(judged) == 1
    clock.forward(3600)
    assert audit_schedules.request_due_audits(judged) == 1
    assert count_audits(judged) == 2


def test_new_current_version_triggers_an_audit(judged: System) -> None:
    add(judged)
    scheduler_steps.tick(judged)
    assert count_audits(judged) == 0
    publish_qrels(judged, relevance=QRELS.replace(b"a 0", b"a 1"))
    scheduler_steps.tick(judged)
    assert count_audits(judged) == 0  # it is not current yet
    work_off(judged)
    for _ in range(2):
        scheduler_steps.tick(judged)
    assert [audit.qrels for audit in audit_requests.list_(judged, BOB, "track").items] == [2]


def test_new_version_is_compared_with_the_previous_one(judged: System) -> None:
    add(judged, request={"kind": "qrels_versions"})
    publish_qrels(judged, relevance=QRELS.replace(b"a 0", b"a 1"))
    work_off(judged)
    scheduler_steps.tick(judged)
    assert [(audit.qrels, audit.other) for audit in audit_requests.list_(judged, BOB, "track").items] == [
        (2, 1)
    ]


def test_new_runs_trigger_an_audit_after_scoring(judged: System) -> None:
    add(judged, runs=2)
    submit(judged, BOB, run(3), name="run3")
    submit(judged, BOB, run(3), name="the same run")
    work_off(judged)
    scheduler_steps.tick(judged)
    assert count_audits(judged) == 0
    submit(judged, BOB, run(4), name="run4")
    scheduler_steps.tick(judged)
    assert count_audits(judged) == 0
    work_off(judged)
    for _ in range(2):
        scheduler_steps.tick(judged)
    assert [len(audit.runs) for audit in audit_requests.list_(judged, BOB, "track").items] == [5]


def test_paused_schedule_skips_missed_slots_and_removed_one_stops(judged: System, clock: Clock) -> None:
    schedule = add(judged, cron="0 * * * *")
    assert audit_schedules.change(judged, ORGANISER, schedule.id, paused=True).paused_at == clock.now
    clock.forward(7200)
    scheduler_steps.tick(judged)
    back = audit_schedules.change(judged, ORGANISER, schedule.id, paused=False)
    assert back.due_at == clock.now + timedelta(hours=1)
    scheduler_steps.tick(judged)
    assert count_audits(judged) == 0
    audit_schedules.remove(judged, ORGANISER, schedule.id)
    clock.forward(7200)
    scheduler_steps.tick(judged)
    assert count_audits(judged) == 0
    audit_schedules.remove(judged, ORGANISER, schedule.id)
    with pytest.raises(NotFound):
        audit_schedules.remove(judged, STRANGER, schedule.id)


def test_refused_audit_is_a_problem_of_the_schedule(system: System, clock: Clock) -> None:
    make_track(system)
    add(system, cron="0 * * * *")
    clock.forward(3600)
    scheduler_steps.tick(system)
    (schedules_by_id,) = audit_schedules.list_(system, ORGANISER, "track").items
    assert schedules_by_id.problem is not None
    assert "no current qrels version yet" in schedules_by_id.problem
    assert schedules_by_id.due_at == clock.now + timedelta(hours=1)


def test_failing_schedule_does_not_stop_others(judged: System, clock: Clock) -> None:
    strange = add(judged, cron="0 * * * *", request=REQUEST | {"submissions": ["\0"]})
    add(judged, cron="0 * * * *")
    clock.forward(3600)
    scheduler_steps.tick(judged)
    assert count_audits(judged) == 1
    schedules_by_id = {
        schedule.id: schedule for schedule in audit_schedules.list_(judged, ORGANISER, "track").items
    }
    assert schedules_by_id[strange.id].problem
    assert schedules_by_id[strange.id].due_at == clock.now + timedelta(hours=1)


def test_schedules_and_alerts_require_organiser(judged: System) -> None:
    for who in (ALICE, STRANGER):
        with pytest.raises(Forbidden):
            audit_schedules.add(judged, who, "track", request=REQUEST)
        with pytest.raises(Forbidden):
            audit_alerts.add(judged, who, "track", kind="downsampling", number="x", below=1)
