"""Audits over HTTP: request, jobs, events, reports, schedules and alerts."""

import csv
import io
import json
import sys
from typing import Any

import pytest

from cupel_audits import KINDS
from cupel_backend import jobs
from cupel_backend.audits import audit_requests
from support.service.gateway_service import run_file

RUNS = {name: run_file(("t1", first), ("t2", second), tag=name) for name, first, second in (
    ("first", "abc", "bac"), ("second", "bca", "abc"), ("third", "cab", "cba")
)}  # fmt: skip
SMALL = {"repeats": 4, "ratios": [50, 10], "method": "uniform"}


@pytest.fixture
def scored_track(service, track: str) -> str:
    """A track with three scored runs."""
    for name, content in RUNS.items():
        service.accepted_submission(track, content, name=f"{name}.txt.gz")
    service.run_jobs()
    return track


def request_audit(service, track: str, who: str = "organiser", **fields: Any) -> Any:
    body = {"kind": "downsampling", "parameters": SMALL, "part_trials": 1} | fields
    answer = service.request(who, "POST", f"/v1/tracks/{track}/audits", json=body)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == answer.json()["links"]["self"]
    return answer.json()


def refused_audit(service, track: str, **fields: Any) -> Any:
    answer = service.request("organiser", "POST", f"/v1/tracks/{track}/audits", json=fields)
    assert answer.is_client_error, answer.text
    return answer.json()


def test_audit_runs_as_jobs_and_has_json_and_csv_reports(service, scored_track: str) -> None:
    audit = request_audit(service, scored_track, seed=2**60)
    assert (audit["state"], audit["seed"], audit["submissions"]) == ("queued", 2**60, 3)
    assert [item["name"] for item in audit["runs"]] == ["first.txt", "second.txt", "third.txt"]
    assert service.request("participant", "GET", audit["links"]["report"]).json()["code"] == "audit-not-begun"
    service.run_jobs()
    done = service.get("participant", audit["links"]["self"])
    assert (done["state"], done["progress"]["trials_done"], done["progress"]["parts"]) == ("done", 4, 4)
    report = service.get("participant", audit["links"]["report"])
    assert (report["trials"], report["done"], report["digest"]) == (4, 4, done["digest"])
    assert report["report"]["verdict"] == done["verdict"]
    assert report["report"]["numbers"] == done["numbers"]
    assert report["provenance"]["audit"] == done["id"]
    table = service.request("participant", "GET", f"{audit['links']['report']}.csv")
    assert table.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert len(rows) == len(report["report"]["tables"][0]["rows"])
    other = service.request("participant", "GET", f"{audit['links']['report']}.csv?table=nothing")
    assert other.json()["code"] == "audit-table-unknown"


def test_audit_and_its_reports_have_etags(service, scored_track: str) -> None:
    audit = request_audit(service, scored_track)
    service.run_jobs()
    for path in ("", "/report", "/report.csv"):
        first = service.request("participant", "GET", audit["links"]["self"] + path)
        again = service.request(
            "participant",
            "GET",
            audit["links"]["self"] + path,
            headers={"If-None-Match": first.headers["etag"]},
        )
        assert (first.status_code, again.status_code) == (200, 304)


def test_page_without_figure_packages_is_a_problem(
    service, scored_track: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = request_audit(service, scored_track)["links"]["self"]
    service.run_jobs()
    for module in ("altair", "vl_convert"):
        monkeypatch.setitem(sys.modules, module, None)
    refused = service.request("participant", "GET", f"{audit}/report.html")
    assert (refused.status_code, refused.json()["code"]) == (503, "audit-page-unavailable")
    assert "altair and vl-convert-python" in refused.json()["detail"]
    assert service.request("participant", "GET", f"{audit}/report").status_code == 200


def test_html_report_forbids_external_content(service, scored_track: str) -> None:
    pytest.importorskip("cupel_reports")
    audit = request_audit(service, scored_track)
    service.run_jobs()
    page = service.request("participant", "GET", f"{audit['links']['report']}.html")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "http://" not in page.headers["content-security-policy"]
    assert page.text.lower().startswith("<!doctype html>")


def test_audit_events_end_with_the_finished_audit(service, scored_track: str) -> None:
    audit = request_audit(service, scored_track)
    service.run_jobs()
    path = audit["links"]["events"]
    with service.http.stream("GET", path, headers=service.auth_headers("participant")) as stream:
        text = "".join(stream.iter_text())
    assert "event: end" in text
    data = json.loads(text.partition("data: ")[2].partition("\n")[0])
    assert (data["state"], data["progress"]["parts_done"]) == ("done", 4)


def test_cancelled_audit_stays_cancelled(service, scored_track: str) -> None:
    audit = request_audit(service, scored_track)
    cancelled = service.request("organiser", "POST", f"{audit['links']['self']}/cancel").json()
    assert cancelled["state"] == "cancelled"
    service.run_jobs()
    assert service.get("participant", audit["links"]["self"])["state"] == "cancelled"
    again = service.request("organiser", "POST", f"{audit['links']['self']}/parts/0/rerun")
    assert (again.status_code, again.json()["code"]) == (409, "audit-over")


def test_failed_part_is_reported_and_can_be_rerun(service, scored_track: str) -> None:
    audit = request_audit(service, scored_track)
    claim = jobs.claim_next(service.system, audit_requests.QUEUE)
    assert claim is not None
    for attempt in range(service.system.settings.attempts):
        again = claim if attempt == 0 else _claim_again(service)
        jobs.fail(service.system, again, "RuntimeError: failed on purpose")
    failed = service.get("participant", audit["links"]["self"])
    assert failed["state"] == "failed"
    assert [(item["part"], item["error"]) for item in failed["failures"]] == [
        (0, "RuntimeError: failed on purpose")
    ]
    assert service.request("organiser", "POST", f"{audit['links']['self']}/parts/0/rerun").status_code == 200
    service.run_jobs()
    assert service.get("participant", audit["links"]["self"])["state"] == "done"


def _claim_again(service) -> jobs.Claim:
    """Claim the failed job again, without waiting for its retry delay."""
    from sqlalchemy import update

    from cupel_backend.infrastructure.database import writing
    from cupel_backend.infrastructure.tables import jobs as rows

    with writing(service.system.engine) as connection:
        open_ = update(rows).where(rows.c.error.is_not(None), rows.c.dead_at.is_(None))
        connection.execute(open_.values(ready_at=rows.c.created_at))
    claim = jobs.claim_next(service.system, audit_requests.QUEUE)
    assert claim is not None
    return claim


def test_all_errors_of_a_request_are_reported_together(service, scored_track: str) -> None:
    problem = refused_audit(
        service,
        scored_track,
        kind="downsampling",
        parameters={"ratios": [0], "nonsense": 1},
        measures=["nonsense"],
        submissions=["sub_none"],
    )
    assert (problem["status"], problem["code"]) == (422, "audit-invalid")
    assert len(problem["errors"]) == 4
    assert {item["code"] for item in problem["errors"]} == {"audit-wrong"}
    assert refused_audit(service, scored_track, kind="nonsense")["code"] == "audit-invalid"
    assert refused_audit(service, scored_track, kind="downsampling", seed=-1)["code"] == "request-invalid"
    assert (
        refused_audit(service, scored_track, kind="downsampling", submissions=["\0"])["code"]
        == "request-invalid"
    )
    assert (
        refused_audit(service, scored_track, kind="downsampling", qrels=77)["code"] == "qrels-not-published"
    )


def test_audit_kinds_describe_their_parameters(service) -> None:
    kinds = {item["name"]: item for item in service.get("stranger", "/v1/audits/kinds")["items"]}
    assert kinds.keys() == KINDS.keys()
    description = kinds["downsampling"]
    assert description["answers"].endswith("?")
    assert {item["name"]: item["default"] for item in description["parameters"]}["repeats"] == "30"
    assert all(item["about"] and item["expects"] for kind in kinds.values() for item in kind["parameters"])


def test_audits_are_listed_newest_first_and_have_a_history(service, scored_track: str) -> None:
    ids = [request_audit(service, scored_track)["id"] for _ in range(3)]
    service.run_jobs()
    listed = service.get("participant", f"/v1/tracks/{scored_track}/audits?limit=2")
    assert [item["id"] for item in listed["items"]] == ids[:0:-1]
    assert [item["id"] for item in service.get("participant", listed["next"])["items"]] == ids[:1]
    number = next(iter(listed["items"][0]["numbers"]))
    query = {"kind": "downsampling", "number": number}
    history = service.get("participant", f"/v1/tracks/{scored_track}/audits/history", params=query)
    assert [item["audit"] for item in history["points"]] == ids


def test_schedule_is_created_paused_and_removed(service, scored_track: str) -> None:
    schedules = f"/v1/tracks/{scored_track}/schedules"
    body = {"request": {"kind": "downsampling", "parameters": SMALL}, "cron": "30 2 * * *"}
    made = service.request("organiser", "POST", schedules, json=body | {"zone": "Europe/Berlin"})
    assert made.status_code == 201, made.text
    schedule = f"/v1/schedules/{made.json()['id']}"
    assert service.request("organiser", "PATCH", schedule, json={"paused": True}).json()["paused_at"]
    (listed,) = service.get("organiser", schedules)["items"]
    assert (listed["request"], listed["zone"]) == (body["request"], "Europe/Berlin")
    assert service.request("organiser", "DELETE", schedule).status_code == 204
    assert service.get("organiser", schedules)["items"] == []
    for change in ({"cron": "nonsense"}, {"runs": 1, "cron": "* * * * *"}, {"zone": "UTC"}):
        refused = service.request("organiser", "POST", schedules, json={"request": body["request"]} | change)
        assert (refused.status_code, refused.json()["code"]) == (422, "schedule-invalid")


def test_raised_alert_appears_in_the_alert_list_and_the_audit(service, scored_track: str) -> None:
    alerts = f"/v1/tracks/{scored_track}/alerts"
    body = {"kind": "downsampling", "number": "tau(AP)@10", "below": 2}
    made = service.request("organiser", "POST", alerts, json=body).json()
    assert made["raised"] is None
    audit = request_audit(service, scored_track)
    service.run_jobs()
    (listed,) = service.get("organiser", alerts)["items"]
    done = service.get("participant", audit["links"]["self"])
    assert (listed["raised"], listed["audit"]) == (True, done["id"])
    assert [(item["alert"], item["value"]) for item in done["alerts"]] == [(made["id"], listed["value"])]
    assert service.request("organiser", "DELETE", f"/v1/alerts/{made['id']}").status_code == 204
    refused = service.request("organiser", "POST", alerts, json=body | {"below": None})
    assert refused.json()["code"] == "alert-invalid"


def test_audits_of_a_track_judged_by_subtopic_only(service) -> None:
    """Kinds that need no document texts run as on judgments by aspect; the others are refused."""
    body = {"name": "by-subtopic", "title": "Answers", "measures": ["alpha_nDCG@5", "ERR_IA@5"]}
    assert service.request("organiser", "POST", "/v1/tracks", json=body).status_code == 201
    judged = b"".join(
        b"t%d s%d %c %d\n" % (topic, subtopic, document, (topic + subtopic + document) % 3 == 0)
        for topic in (1, 2, 3)
        for subtopic in (1, 2)
        for document in b"abcd"
    )
    collection = b"qrels: [{file: d, layout: subtopics}]\n"
    uploaded = service.upload(
        "by-subtopic", parts=[("collection", ("c.yaml", collection)), ("files", ("d", judged))]
    )
    assert service.request("organiser", "POST", uploaded.headers["location"] + "/publish").is_success
    for orders in ("abc bca cab", "dca acb bad", "cbd dab acb"):
        rankings = [(f"t{topic}", order) for topic, order in enumerate(orders.split(), 1)]
        service.accepted_submission("by-subtopic", run_file(*rankings), name=f"{orders[:3]}.txt.gz")
    service.run_jobs()
    kinds = ("downsampling", "leave_one_run_out", "pool_depth", "scales", "unjudged")
    asked = {kind: request_audit(service, "by-subtopic", kind=kind, parameters={}) for kind in kinds}
    for kind in ("content", "label_selection", "topic_selection"):
        problem = refused_audit(service, "by-subtopic", kind=kind)
        assert "requires the document texts, which the service does not keep" in problem["detail"]
    service.run_jobs()
    for kind, audit in asked.items():
        done = service.get("participant", audit["links"]["self"])
        assert (kind, done["state"], done["problems"]) == (kind, "done", [])
        assert done["verdict"]
        page = service.request("participant", "GET", f"{audit['links']['report']}.html")
        assert page.status_code == 200
