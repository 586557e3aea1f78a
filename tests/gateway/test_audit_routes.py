"""Audits over HTTP: asked for, done by jobs, watched, read in every form."""

import csv
import io
import json
from typing import Any

import pytest

from cupel_audits import KINDS
from cupel_backend import jobs
from cupel_backend.audits import audit_requests
from support.service.gateway_service import run_file

RUNS = {name: run_file(("t1", one), ("t2", other), tag=name) for name, one, other in (
    ("first", "abc", "bac"), ("second", "bca", "abc"), ("third", "cab", "cba")
)}  # fmt: skip
SMALL = {"repeats": 4, "ratios": [50, 10], "method": "uniform"}


@pytest.fixture
def judged(service, track: str) -> str:
    """A track with three scored runs."""
    for name, content in RUNS.items():
        service.submitted(track, content, name=f"{name}.txt.gz")
    service.work()
    return track


def ask(service, track: str, who: str = "organiser", **wanted: Any) -> Any:
    given = {"kind": "downsampling", "parameters": SMALL, "part_trials": 1} | wanted
    answer = service.ask(who, "POST", f"/v1/tracks/{track}/audits", json=given)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == answer.json()["links"]["self"]
    return answer.json()


def refused(service, track: str, **wanted: Any) -> Any:
    answer = service.ask("organiser", "POST", f"/v1/tracks/{track}/audits", json=wanted)
    assert answer.is_client_error, answer.text
    return answer.json()


def test_an_audit_is_done_by_jobs_and_read_in_every_form(service, judged: str) -> None:
    asked = ask(service, judged, seed=2**60)
    assert (asked["state"], asked["seed"], asked["submissions"]) == ("queued", 2**60, 3)
    assert [one["name"] for one in asked["runs"]] == ["first.txt", "second.txt", "third.txt"]
    assert service.ask("participant", "GET", asked["links"]["report"]).json()["code"] == "audit-not-begun"
    service.work()
    done = service.get("participant", asked["links"]["self"])
    assert (done["state"], done["progress"]["trials_done"], done["progress"]["parts"]) == ("done", 4, 4)
    report = service.get("participant", asked["links"]["report"])
    assert (report["trials"], report["done"], report["digest"]) == (4, 4, done["digest"])
    assert report["report"]["verdict"] == done["verdict"]
    assert report["report"]["numbers"] == done["numbers"]
    assert report["provenance"]["audit"] == done["id"]
    table = service.ask("participant", "GET", f"{asked['links']['report']}.csv")
    assert table.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert len(rows) == len(report["report"]["tables"][0]["rows"])
    other = service.ask("participant", "GET", f"{asked['links']['report']}.csv?table=nothing")
    assert other.json()["code"] == "audit-table-unknown"


def test_reports_have_etags(service, judged: str) -> None:
    asked = ask(service, judged)
    service.work()
    for path in ("", "/report", "/report.csv"):
        first = service.ask("participant", "GET", asked["links"]["self"] + path)
        again = service.ask(
            "participant",
            "GET",
            asked["links"]["self"] + path,
            headers={"If-None-Match": first.headers["etag"]},
        )
        assert (first.status_code, again.status_code) == (200, 304)


def test_a_report_as_a_page_runs_only_what_it_brings(service, judged: str) -> None:
    pytest.importorskip("cupel_reports")
    asked = ask(service, judged)
    service.work()
    page = service.ask("participant", "GET", f"{asked['links']['report']}.html")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "http://" not in page.headers["content-security-policy"]
    assert page.text.lower().startswith("<!doctype html>")


def test_an_audit_is_watched_to_its_end(service, judged: str) -> None:
    asked = ask(service, judged)
    service.work()
    path = asked["links"]["events"]
    with service.http.stream("GET", path, headers=service.signed("participant")) as stream:
        text = "".join(stream.iter_text())
    assert "event: end" in text
    data = json.loads(text.partition("data: ")[2].partition("\n")[0])
    assert (data["state"], data["progress"]["parts_done"]) == ("done", 4)


def test_a_cancelled_audit_stays_cancelled(service, judged: str) -> None:
    asked = ask(service, judged)
    cancelled = service.ask("organiser", "POST", f"{asked['links']['self']}/cancel").json()
    assert cancelled["state"] == "cancelled"
    service.work()
    assert service.get("participant", asked["links"]["self"])["state"] == "cancelled"
    again = service.ask("organiser", "POST", f"{asked['links']['self']}/parts/0/rerun")
    assert (again.status_code, again.json()["code"]) == (409, "audit-over")


def test_a_part_that_was_given_up_is_named_and_done_again(service, judged: str) -> None:
    asked = ask(service, judged)
    claim = jobs.claim_next(service.system, audit_requests.QUEUE)
    assert claim is not None
    for attempt in range(service.system.settings.attempts):
        again = claim if attempt == 0 else _claimed_again(service)
        jobs.fail(service.system, again, "RuntimeError: no luck")
    failed = service.get("participant", asked["links"]["self"])
    assert failed["state"] == "failed"
    assert [(one["part"], one["error"]) for one in failed["failures"]] == [(0, "RuntimeError: no luck")]
    assert service.ask("organiser", "POST", f"{asked['links']['self']}/parts/0/rerun").status_code == 200
    service.work()
    assert service.get("participant", asked["links"]["self"])["state"] == "done"


def _claimed_again(service) -> jobs.Claim:
    """The job that was given back, whose pause is over."""
    from sqlalchemy import update

    from cupel_backend.infrastructure.database import writing
    from cupel_backend.infrastructure.tables import jobs as rows

    with writing(service.system.engine) as connection:
        open_ = update(rows).where(rows.c.error.is_not(None), rows.c.dead_at.is_(None))
        connection.execute(open_.values(ready_at=rows.c.created_at))
    claim = jobs.claim_next(service.system, audit_requests.QUEUE)
    assert claim is not None
    return claim


def test_everything_wrong_is_told_at_once(service, judged: str) -> None:
    wrong = refused(
        service,
        judged,
        kind="downsampling",
        parameters={"ratios": [0], "nonsense": 1},
        measures=["nonsense"],
        submissions=["sub_none"],
    )
    assert (wrong["status"], wrong["code"]) == (422, "audit-invalid")
    assert len(wrong["errors"]) == 4
    assert {one["code"] for one in wrong["errors"]} == {"audit-wrong"}
    assert refused(service, judged, kind="nonsense")["code"] == "audit-invalid"
    assert refused(service, judged, kind="downsampling", seed=-1)["code"] == "request-invalid"
    assert refused(service, judged, kind="downsampling", submissions=["\0"])["code"] == "request-invalid"
    assert refused(service, judged, kind="downsampling", qrels=77)["code"] == "qrels-not-published"


def test_kinds_tell_their_parameters(service) -> None:
    kinds = {one["name"]: one for one in service.get("stranger", "/v1/audits/kinds")["items"]}
    assert kinds.keys() == KINDS.keys()
    told = kinds["downsampling"]
    assert told["answers"].endswith("?")
    assert {one["name"]: one["default"] for one in told["parameters"]}["repeats"] == "30"
    assert all(one["about"] and one["expects"] for kind in kinds.values() for one in kind["parameters"])


def test_audits_are_listed_and_their_numbers_make_a_history(service, judged: str) -> None:
    ids = [ask(service, judged)["id"] for _ in range(3)]
    service.work()
    listed = service.get("participant", f"/v1/tracks/{judged}/audits?limit=2")
    assert [one["id"] for one in listed["items"]] == ids[:0:-1]
    assert [one["id"] for one in service.get("participant", listed["next"])["items"]] == ids[:1]
    number = next(iter(listed["items"][0]["numbers"]))
    asked = {"kind": "downsampling", "number": number}
    history = service.get("participant", f"/v1/tracks/{judged}/audits/history", params=asked)
    assert [one["audit"] for one in history["points"]] == ids


def test_schedules_are_made_paused_and_removed(service, judged: str) -> None:
    here = f"/v1/tracks/{judged}/schedules"
    wanted = {"request": {"kind": "downsampling", "parameters": SMALL}, "cron": "30 2 * * *"}
    made = service.ask("organiser", "POST", here, json=wanted | {"zone": "Europe/Berlin"})
    assert made.status_code == 201, made.text
    one = f"/v1/schedules/{made.json()['id']}"
    assert service.ask("organiser", "PATCH", one, json={"paused": True}).json()["paused_at"]
    (listed,) = service.get("organiser", here)["items"]
    assert (listed["request"], listed["zone"]) == (wanted["request"], "Europe/Berlin")
    assert service.ask("organiser", "DELETE", one).status_code == 204
    assert service.get("organiser", here)["items"] == []
    for wrong in ({"cron": "nonsense"}, {"runs": 1, "cron": "* * * * *"}, {"zone": "UTC"}):
        refused = service.ask("organiser", "POST", here, json={"request": wanted["request"]} | wrong)
        assert (refused.status_code, refused.json()["code"]) == (422, "schedule-invalid")


def test_an_alert_shows_on_the_track_and_on_the_audit_that_raised_it(service, judged: str) -> None:
    here = f"/v1/tracks/{judged}/alerts"
    wanted = {"kind": "downsampling", "number": "tau(AP)@10", "below": 2}
    made = service.ask("organiser", "POST", here, json=wanted).json()
    assert made["raised"] is None
    asked = ask(service, judged)
    service.work()
    (listed,) = service.get("organiser", here)["items"]
    done = service.get("participant", asked["links"]["self"])
    assert (listed["raised"], listed["audit"]) == (True, done["id"])
    assert [(one["alert"], one["value"]) for one in done["alerts"]] == [(made["id"], listed["value"])]
    assert service.ask("organiser", "DELETE", f"/v1/alerts/{made['id']}").status_code == 204
    refused = service.ask("organiser", "POST", here, json=wanted | {"below": None})
    assert refused.json()["code"] == "alert-invalid"
