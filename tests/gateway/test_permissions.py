"""Who may do what: every operation of the route table, by everybody of the cast."""

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import pytest

from cupel_backend import access, job_execution
from cupel_backend.scores import rescoring

EVERYBODY = ("admin", "organiser", "other organiser", "participant", "other participant", "stranger")
ANY_TOKEN = EVERYBODY[:-1]
ORGANISERS = EVERYBODY[:3]
OWNERS = ("admin", "organiser")
ITS_TEAM = ("admin", "organiser", "participant")


@dataclass(frozen=True)
class Asked:
    """A request with places to fill in, and who may make it; the others get `refusal`."""

    method: str
    path: str
    allowed: tuple[str, ...]
    refusal: int = 403
    options: dict[str, Any] = field(default_factory=dict)
    otherwise: dict[str, int] = field(default_factory=dict)
    """Who gets another refusal: 403 to those who may see a thing that is hidden from others, say."""


EVENTS = {"headers": {"Last-Event-ID": "none"}}
RUN = {"content": b"t1 Q0 a 1 3 tag\nt2 Q0 b 1 2 tag\n"}
TRACK = {
    "json": {"name": "{new}", "title": "x", "aspects": {"relevance": {"labels": [0, 1]}}, "measures": ["AP"]}
}
SCHEDULE = {"json": {"request": {"kind": "downsampling"}, "cron": "0 3 * * 1", "zone": "Europe/Berlin"}}
ALERT = {"json": {"kind": "downsampling", "number": "tau(AP)@50", "below": 0.9}}
AUDIT = {"json": {"kind": "downsampling", "parameters": {"repeats": 2}}}
TOKEN = {"json": {"team": "house", "scope": "participant"}}
EXPLAIN = {"json": {"measures": ["AP"], "about": ["scale"]}}
QRELS = {
    "files": [
        ("collection", ("c.yaml", b"qrels: [{file: a, aspect: relevance}]")),
        ("files", ("a", b"t1 0 a 1\n")),
    ]
}

MATRIX = {
    "show_service": Asked("GET", "/v1", EVERYBODY),
    "list_errors": Asked("GET", "/v1/errors", EVERYBODY),
    "list_measures": Asked("GET", "/v1/measures", EVERYBODY),
    "read_measure": Asked("GET", "/v1/measures/nDCG@10", EVERYBODY),
    "healthz": Asked("GET", "/healthz", EVERYBODY),
    "readyz": Asked("GET", "/readyz", EVERYBODY),
    "metrics": Asked("GET", "/metrics", EVERYBODY),
    "show_caller": Asked("GET", "/v1/me", ANY_TOKEN),
    "list_tokens": Asked("GET", "/v1/tokens", ANY_TOKEN),
    "issue_token": Asked("POST", "/v1/tokens", ("admin",), options=TOKEN),
    "revoke_token": Asked("DELETE", "/v1/tokens/{token}", ("admin", "participant"), 404),
    "create_track": Asked("POST", "/v1/tracks", ORGANISERS, options=TRACK),
    "list_tracks": Asked("GET", "/v1/tracks", ANY_TOKEN),
    "show_track": Asked("GET", "/v1/tracks/{track}", ANY_TOKEN),
    "change_track": Asked("PATCH", "/v1/tracks/{track}", OWNERS, options={"json": {"title": "new"}}),
    "show_leaderboard": Asked("GET", "/v1/tracks/{track}/leaderboard", ANY_TOKEN),
    "upload_qrels": Asked("POST", "/v1/tracks/{track}/qrels", OWNERS, options=QRELS),
    "list_qrels": Asked("GET", "/v1/tracks/{track}/qrels", ANY_TOKEN),
    "show_qrels": Asked("GET", "/v1/tracks/{track}/qrels/{draft}", OWNERS, 404),
    "watch_qrels": Asked("GET", "/v1/tracks/{track}/qrels/{number}/events", ANY_TOKEN, options=EVENTS),
    "publish_qrels": Asked("POST", "/v1/tracks/{track}/qrels/{draft}/publish", OWNERS),
    "compare_qrels": Asked("GET", "/v1/tracks/{track}/qrels/{number}/diff?from=1&measure=AP", ANY_TOKEN),
    "submit_run": Asked("POST", "/v1/tracks/{track}/submissions", ANY_TOKEN, options=RUN),
    "list_submissions": Asked("GET", "/v1/tracks/{track}/submissions", ANY_TOKEN),
    "show_submission": Asked("GET", "/v1/submissions/{submission}", ITS_TEAM),
    "withdraw_submission": Asked("DELETE", "/v1/submissions/{submission}", ITS_TEAM),
    "watch_submission": Asked("GET", "/v1/submissions/{submission}/events", ITS_TEAM, options=EVENTS),
    "show_scores": Asked("GET", "/v1/submissions/{submission}/scores", ITS_TEAM),
    "show_topic_scores": Asked("GET", "/v1/submissions/{submission}/scores/topics?measure=AP", ITS_TEAM),
    "explain_scores": Asked("POST", "/v1/submissions/{submission}/explanations", ITS_TEAM, options=EXPLAIN),
    "show_explanations": Asked("GET", "/v1/submissions/{submission}/explanations", ITS_TEAM),
    "show_run": Asked("GET", "/v1/runs/{run}", ITS_TEAM, 404),
    "download_run": Asked("GET", "/v1/runs/{run}/file", ITS_TEAM, 404),
    "list_audit_kinds": Asked("GET", "/v1/audits/kinds", EVERYBODY),
    "request_audit": Asked("POST", "/v1/tracks/{track}/audits", OWNERS, options=AUDIT),
    "list_audits": Asked("GET", "/v1/tracks/{track}/audits", ANY_TOKEN),
    "show_audit_history": Asked(
        "GET", "/v1/tracks/{track}/audits/history?kind=downsampling&number=tau(AP)@50", ANY_TOKEN
    ),
    "show_audit": Asked("GET", "/v1/audits/{audit}", ANY_TOKEN),
    "watch_audit": Asked("GET", "/v1/audits/{audit}/events", ANY_TOKEN, options=EVENTS),
    "show_audit_report": Asked("GET", "/v1/audits/{audit}/report", ANY_TOKEN),
    "show_audit_table": Asked("GET", "/v1/audits/{audit}/report.csv", ANY_TOKEN),
    "cancel_audit": Asked("POST", "/v1/audits/{audit}/cancel", OWNERS),
    "rerun_audit_part": Asked("POST", "/v1/audits/{audit}/parts/1/rerun", OWNERS),
    "add_schedule": Asked("POST", "/v1/tracks/{track}/schedules", OWNERS, options=SCHEDULE),
    "list_schedules": Asked("GET", "/v1/tracks/{track}/schedules", OWNERS),
    "change_schedule": Asked(
        "PATCH", "/v1/schedules/{schedule}", OWNERS, 404, options={"json": {"paused": True}}
    ),
    "remove_schedule": Asked("DELETE", "/v1/schedules/{schedule}", OWNERS, 404),
    "add_alert": Asked("POST", "/v1/tracks/{track}/alerts", OWNERS, options=ALERT),
    "list_alerts": Asked("GET", "/v1/tracks/{track}/alerts", OWNERS),
    "remove_alert": Asked("DELETE", "/v1/alerts/{alert}", OWNERS, 404),
    "list_jobs": Asked("GET", "/v1/jobs", ORGANISERS),
    "show_job": Asked("GET", "/v1/jobs/{job}", ITS_TEAM, 404),
    "watch_job": Asked("GET", "/v1/jobs/{job}/events", ITS_TEAM, 404, options=EVENTS),
    "revive_job": Asked("POST", "/v1/jobs/{dead}/revive", OWNERS, 404, otherwise={"participant": 403}),
}


if find_spec("cupel_reports") is not None:
    MATRIX["show_audit_page"] = Asked("GET", "/v1/audits/{audit}/report.html", ANY_TOKEN)


@pytest.fixture
def world(service) -> dict[str, Any]:
    """One that may be changed."""
    return new_world(service)


@pytest.fixture(scope="module")
def lasting_world(service) -> dict[str, Any]:
    """One that is only looked at."""
    return new_world(service)


def new_world(service) -> dict[str, Any]:
    """A track with judgments and a draft, alice's scored submission, her token, and a dead job of hers."""
    track = service.track()
    number = service.publish(track)
    submission = service.submitted(track)
    service.submitted(track, b"t1 Q0 b 1 3 other\nt2 Q0 a 1 2 other\n", who="other participant")
    service.work()
    audit = service.ask("organiser", "POST", f"/v1/tracks/{track}/audits", **AUDIT).json()["id"]
    service.work()
    schedule = service.ask("organiser", "POST", f"/v1/tracks/{track}/schedules", **SCHEDULE).json()["id"]
    alert = service.ask("organiser", "POST", f"/v1/tracks/{track}/alerts", **ALERT).json()["id"]
    dead = service.submitted(track)["jobs"][0]["id"]
    job_execution.run_jobs(service.system, rescoring.QUEUE, {"evaluate": broken})
    draft = service.upload(track).json()["number"]
    _, token = access.issue(service.system, access.OPERATOR, team="alice", scope="participant")
    return {
        "track": track,
        "number": number,
        "draft": draft,
        "submission": submission["id"],
        "run": submission["run"]["id"],
        "job": submission["jobs"][0]["id"],
        "dead": dead,
        "audit": audit,
        "schedule": schedule,
        "alert": alert,
        "token": token.prefix,
    }


def broken(system: Any, claim: Any) -> None:
    raise RuntimeError("this machine is out of order")


def filled(options: dict[str, Any], new: str) -> dict[str, Any]:
    if "json" not in options or options["json"].get("name") != "{new}":
        return options
    return options | {"json": options["json"] | {"name": new}}


def test_the_matrix_has_every_operation(service) -> None:
    operations = {
        operation["operationId"]: (method.upper(), path)
        for path, methods in service.openapi["paths"].items()
        for method, operation in methods.items()
    }
    assert operations.keys() == MATRIX.keys()
    assert {name: asked.method for name, asked in MATRIX.items()} == {
        name: method for name, (method, _) in operations.items()
    }


@pytest.mark.parametrize("operation", MATRIX)
def test_everybody_gets_what_they_may_and_nothing_else(
    service, request: pytest.FixtureRequest, operation: str
) -> None:
    asked = MATRIX[operation]
    world = request.getfixturevalue("lasting_world" if asked.method == "GET" else "world")
    path = asked.path.format(**world)
    found = service.operation(asked.method, path.partition("?")[0])
    assert found is not None
    assert found[1]["operationId"] == operation
    for who in sorted(
        EVERYBODY, key=lambda one: one in asked.allowed
    ):  # the refused first: they change nothing
        answer = service.ask(
            who, asked.method, path, **filled(asked.options, f"{world['track']}-{who.replace(' ', '-')}")
        )
        if who in asked.allowed:
            assert answer.is_success or answer.status_code == 409, (who, answer.text)
        else:
            expected = 401 if who == "stranger" else asked.otherwise.get(who, asked.refusal)
            assert answer.status_code == expected, (who, answer.text)
            assert answer.json()["detail"]


def test_a_list_holds_only_what_its_reader_may_see(service, world: dict[str, Any]) -> None:
    path = f"/v1/tracks/{world['track']}/submissions"
    assert len(service.get("participant", path)["items"]) == 2
    assert len(service.get("organiser", path)["items"]) == 3
    assert len(service.get("admin", path)["items"]) == 3
    assert {one["team"] for one in service.get("other participant", path)["items"]} == {"bob"}
    assert service.get("other organiser", path)["items"] == []


def test_drafts_are_listed_to_the_organisers_of_the_track_only(service, world: dict[str, Any]) -> None:
    path = f"/v1/tracks/{world['track']}/qrels"
    assert [one["state"] for one in service.get("organiser", path)["items"]] == ["draft", "current"]
    assert [one["state"] for one in service.get("participant", path)["items"]] == ["current"]


def test_tokens_are_listed_to_their_team_only(service) -> None:
    assert {one["team"] for one in service.get("participant", "/v1/tokens")["items"]} == {"alice"}
    assert "bob" in {one["team"] for one in service.get("admin", "/v1/tokens?limit=500")["items"]}


@pytest.mark.parametrize(
    "header",
    [
        "Bearer cupel_00000000_0000000000000000000000000000000000000000000",
        "Bearer nonsense",
        "Bearer",
        "Basic YWxpY2U6c2VjcmV0",
        "Bearer cupel_00000000_" + "x" * 5000,
    ],
)
def test_a_wrong_token_is_refused_with_a_challenge(service, header: str) -> None:
    answer = service.http.get("/v1/me", headers={"Authorization": header})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["code"] == "token-refused"


def test_a_revoked_token_opens_nothing(service) -> None:
    made = service.ask(
        "participant", "POST", "/v1/tokens", json={"team": "alice", "scope": "participant"}
    ).json()
    own = {"Authorization": f"Bearer {made['token']}"}
    assert service.http.get("/v1/me", headers=own).json()["prefix"] == made["prefix"]
    assert service.ask("participant", "DELETE", f"/v1/tokens/{made['prefix']}").status_code == 204
    assert service.http.get("/v1/me", headers=own).status_code == 401


def test_nobody_can_make_a_token_beyond_their_own_team_and_scope(service) -> None:
    def issue(who: str, team: str, scope: str) -> int:
        return int(service.ask(who, "POST", "/v1/tokens", json={"team": team, "scope": scope}).status_code)

    assert issue("participant", "alice", "participant") == 201
    assert issue("participant", "alice", "organiser") == 403
    assert issue("organiser", "alice", "participant") == 403
    assert issue("organiser", "organisers", "admin") == 403


def test_the_secret_of_a_token_is_shown_once(service) -> None:
    answer = service.ask("admin", "POST", "/v1/tokens", json={"team": "carol", "scope": "participant"})
    assert answer.headers["cache-control"] == "no-store"
    listed = service.ask("admin", "GET", "/v1/tokens?limit=500").text
    assert answer.json()["prefix"] in listed
    assert answer.json()["token"] not in listed
