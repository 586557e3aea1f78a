"""Tests of alerts: bounds, and which audits they are checked against."""

import pytest

from cupel_backend import scheduler_steps
from cupel_backend.audits import audit_alerts, audit_parts, audit_requests
from cupel_backend.infrastructure.errors import Invalid
from cupel_backend.infrastructure.system import System
from support.audit_cast import SMALL
from support.backend_cast import BOB, ORGANISER, Clock, make_track, work_off

REQUEST = {"kind": "downsampling", "parameters": SMALL}


def test_alert_is_checked_once_by_every_audit(
    judged: System, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = "tau(AP)@10"
    low = audit_alerts.add(judged, ORGANISER, "track", kind="downsampling", number=number, below=1.01)
    assert (low.raised, low.audit) == (None, None)
    audit = audit_requests.request(judged, ORGANISER, "track", **REQUEST)
    with monkeypatch.context() as dying:  # the worker dies before it checks the alerts
        dying.setattr(audit_parts, "conclude", lambda *_: False)
        work_off(judged)
    scheduler_steps.tick(judged)
    done = audit_requests.get(judged, BOB, audit.id)
    calm = audit_alerts.add(judged, ORGANISER, "track", kind="downsampling", number=number, above=1.01)
    other = audit_alerts.add(judged, ORGANISER, "track", kind="downsampling", number="nothing", below=1)
    schedules_by_id = {
        schedule.id: schedule for schedule in audit_alerts.list_(judged, ORGANISER, "track").items
    }
    assert (schedules_by_id[low.id].raised, schedules_by_id[low.id].value) == (True, done.numbers[number])
    assert schedules_by_id[low.id].audit == schedules_by_id[calm.id].audit == audit.id
    assert (
        schedules_by_id[calm.id].raised,
        schedules_by_id[other.id].raised,
        schedules_by_id[other.id].value,
    ) == (False, False, None)
    assert audit_alerts.check_all(judged) == 0
    exposed = judged.metrics.exposition(judged).decode()
    assert 'cupel_raised_audit_alerts{track="track"} 1.0' in exposed
    audit_alerts.remove(judged, ORGANISER, low.id)
    assert 'cupel_raised_audit_alerts{track="track"} 0.0' in judged.metrics.exposition(judged).decode()
    with pytest.raises(Invalid):
        audit_alerts.add(judged, ORGANISER, "track", kind="downsampling", number=number)
    with pytest.raises(Invalid, match="requires the document texts"):
        audit_alerts.add(judged, ORGANISER, "track", kind="content", number=number, below=1)
    with pytest.raises(Invalid):
        audit_alerts.add(judged, ORGANISER, "track", kind="nonsense", number=number, below=1)


def add_alert(system: System, number: str = "tau(AP)@10", **bounds: float) -> audit_alerts.Alert:
    return audit_alerts.add(system, ORGANISER, "track", kind="downsampling", number=number, **bounds)


def test_alert_compares_strictly_with_both_bounds(judged: System) -> None:
    audit = audit_requests.request(judged, ORGANISER, "track", **REQUEST)
    work_off(judged)
    value = audit_requests.get(judged, BOB, audit.id).numbers["tau(AP)@10"]
    assert value is not None
    assert not add_alert(judged, below=value, above=value).raised
    assert add_alert(judged, below=value + 0.01).raised
    assert add_alert(judged, above=value - 0.01).raised
    assert add_alert(judged, below=value - 0.01, above=value - 0.01).raised


def test_alert_is_checked_against_the_newest_concluded_audit_of_its_kind(judged: System) -> None:
    audit = audit_requests.request(judged, ORGANISER, "track", **REQUEST)
    audit_requests.request(judged, ORGANISER, "track", kind="correlation")
    work_off(judged)
    audit_requests.request(judged, ORGANISER, "track", **REQUEST)  # not done yet
    assert add_alert(judged, above=-2).audit == audit.id
    make_track(judged, "other")
    assert audit_alerts.list_(judged, ORGANISER, "other").items == ()


def test_removed_alert_is_neither_listed_nor_checked(judged: System) -> None:
    kept, removed = add_alert(judged, above=-2), add_alert(judged, above=-2)
    audit_alerts.remove(judged, ORGANISER, removed.id)
    audit = audit_requests.request(judged, ORGANISER, "track", **REQUEST)
    work_off(judged)
    assert [alert.id for alert in audit_alerts.list_(judged, ORGANISER, "track").items] == [kept.id]
    raised = audit_requests.get(judged, BOB, audit.id).alerts
    assert [alert.alert for alert in raised] == [kept.id]
