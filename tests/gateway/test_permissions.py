"""Permissions: every operation of the API, requested by every user."""

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import pytest

from cupel_backend import access, job_execution
from cupel_backend.scores import rescoring

ALL_USERS = ("admin", "organiser", "other organiser", "participant", "other participant", "stranger")
ANY_TOKEN = ALL_USERS[:-1]
ORGANISERS = ALL_USERS[:3]
OWNERS = ("admin", "organiser")
TEAM_AND_OWNERS = ("admin", "organiser", "participant")


@dataclass(frozen=True, kw_only=True)
class OperationCase:
    """A request template, and the users who may send it; all other users get status `refusal`."""

    method: str
    path: str
    allowed: tuple[str, ...]
    refusal: int = 403
    options: dict[str, Any] = field(default_factory=dict)
    otherwise: dict[str, int] = field(default_factory=dict)
    """Refusal status by user, where it differs: 403 for users who may see the resource, for example."""


EVENTS = {"headers": {"Last-Event-ID": "none"}}
RUN = {"content": b"t1 Q0 a 1 3 tag\nt2 Q0 b 1 2 tag\n"}
TRACK = {
    "json": {"name": "{new}", "title": "x", "aspects": {"relevance": {"labels": [0, 1]}}, "measures": ["AP"]}
}
SCHEDULE = {"json": {"request": {"kind": "downsampling"}, "cron": "0 3 * * 1", "zone": "Europe/Berlin"}}
ALERT = {"json": {"kind": "downsampling", "number": "tau(AP)@50", "below": 0.9}}
AUDIT = {"json": {"kind": "downsampling", "parameters": {"repeats": 2}}}
TOKEN = {"json": {"team": "operators", "scope": "participant"}}
EXPLAIN = {"json": {"measures": ["AP"], "about": ["scale"]}}
QRELS = {
    "files": [
        ("collection", ("c.yaml", b"qrels: [{file: a, aspect: relevance}]")),
        ("files", ("a", b"t1 0 a 1\n")),
    ]
}

MATRIX = {
    "show_service": OperationCase(method="GET", path="/v1", allowed=ALL_USERS),
    "list_errors": OperationCase(method="GET", path="/v1/errors", allowed=ALL_USERS),
    "list_measures": OperationCase(method="GET", path="/v1/measures", allowed=ALL_USERS),
    "read_measure": OperationCase(method="GET", path="/v1/measures/nDCG@10", allowed=ALL_USERS),
    "healthz": OperationCase(method="GET", path="/healthz", allowed=ALL_USERS),
    "readyz": OperationCase(method="GET", path="/readyz", allowed=ALL_USERS),
    "metrics": OperationCase(method="GET", path="/metrics", allowed=ALL_USERS),
    "show_caller": OperationCase(method="GET", path="/v1/me", allowed=ANY_TOKEN),
    "list_tokens": OperationCase(method="GET", path="/v1/tokens", allowed=ANY_TOKEN),
    "issue_token": OperationCase(method="POST", path="/v1/tokens", allowed=("admin",), options=TOKEN),
    "revoke_token": OperationCase(
        method="DELETE", path="/v1/tokens/{token}", allowed=("admin", "participant"), refusal=404
    ),
    "create_track": OperationCase(method="POST", path="/v1/tracks", allowed=ORGANISERS, options=TRACK),
    "list_tracks": OperationCase(method="GET", path="/v1/tracks", allowed=ANY_TOKEN),
    "show_track": OperationCase(method="GET", path="/v1/tracks/{track}", allowed=ANY_TOKEN),
    "change_track": OperationCase(
        method="PATCH", path="/v1/tracks/{track}", allowed=OWNERS, options={"json": {"title": "new"}}
    ),
    "show_leaderboard": OperationCase(method="GET", path="/v1/tracks/{track}/leaderboard", allowed=ANY_TOKEN),
    "upload_qrels": OperationCase(
        method="POST", path="/v1/tracks/{track}/qrels", allowed=OWNERS, options=QRELS
    ),
    "list_qrels": OperationCase(method="GET", path="/v1/tracks/{track}/qrels", allowed=ANY_TOKEN),
    "show_qrels": OperationCase(
        method="GET", path="/v1/tracks/{track}/qrels/{draft}", allowed=OWNERS, refusal=404
    ),
    "watch_qrels": OperationCase(
        method="GET", path="/v1/tracks/{track}/qrels/{number}/events", allowed=ANY_TOKEN, options=EVENTS
    ),
    "publish_qrels": OperationCase(
        method="POST", path="/v1/tracks/{track}/qrels/{draft}/publish", allowed=OWNERS
    ),
    "compare_qrels": OperationCase(
        method="GET", path="/v1/tracks/{track}/qrels/{number}/diff?from=1&measure=AP", allowed=ANY_TOKEN
    ),
    "submit_run": OperationCase(
        method="POST", path="/v1/tracks/{track}/submissions", allowed=ANY_TOKEN, options=RUN
    ),
    "list_submissions": OperationCase(method="GET", path="/v1/tracks/{track}/submissions", allowed=ANY_TOKEN),
    "show_submission": OperationCase(
        method="GET", path="/v1/submissions/{submission}", allowed=TEAM_AND_OWNERS
    ),
    "withdraw_submission": OperationCase(
        method="DELETE", path="/v1/submissions/{submission}", allowed=TEAM_AND_OWNERS
    ),
    "watch_submission": OperationCase(
        method="GET", path="/v1/submissions/{submission}/events", allowed=TEAM_AND_OWNERS, options=EVENTS
    ),
    "show_scores": OperationCase(
        method="GET", path="/v1/submissions/{submission}/scores", allowed=TEAM_AND_OWNERS
    ),
    "show_topic_scores": OperationCase(
        method="GET", path="/v1/submissions/{submission}/scores/topics?measure=AP", allowed=TEAM_AND_OWNERS
    ),
    "explain_scores": OperationCase(
        method="POST",
        path="/v1/submissions/{submission}/explanations",
        allowed=TEAM_AND_OWNERS,
        options=EXPLAIN,
    ),
    "show_explanations": OperationCase(
        method="GET", path="/v1/submissions/{submission}/explanations", allowed=TEAM_AND_OWNERS
    ),
    "show_run": OperationCase(method="GET", path="/v1/runs/{run}", allowed=TEAM_AND_OWNERS, refusal=404),
    "download_run": OperationCase(
        method="GET", path="/v1/runs/{run}/file", allowed=TEAM_AND_OWNERS, refusal=404
    ),
    "list_audit_kinds": OperationCase(method="GET", path="/v1/audits/kinds", allowed=ALL_USERS),
    "request_audit": OperationCase(
        method="POST", path="/v1/tracks/{track}/audits", allowed=OWNERS, options=AUDIT
    ),
    "list_audits": OperationCase(method="GET", path="/v1/tracks/{track}/audits", allowed=ANY_TOKEN),
    "show_audit_history": OperationCase(
        method="GET",
        path="/v1/tracks/{track}/audits/history?kind=downsampling&number=tau(AP)@50",
        allowed=ANY_TOKEN,
    ),
    "show_audit": OperationCase(method="GET", path="/v1/audits/{audit}", allowed=ANY_TOKEN),
    "watch_audit": OperationCase(
        method="GET", path="/v1/audits/{audit}/events", allowed=ANY_TOKEN, options=EVENTS
    ),
    "show_audit_report": OperationCase(method="GET", path="/v1/audits/{audit}/report", allowed=ANY_TOKEN),
    "show_audit_table": OperationCase(method="GET", path="/v1/audits/{audit}/report.csv", allowed=ANY_TOKEN),
    "cancel_audit": OperationCase(method="POST", path="/v1/audits/{audit}/cancel", allowed=OWNERS),
    "rerun_audit_part": OperationCase(method="POST", path="/v1/audits/{audit}/parts/1/rerun", allowed=OWNERS),
    "add_schedule": OperationCase(
        method="POST", path="/v1/tracks/{track}/schedules", allowed=OWNERS, options=SCHEDULE
    ),
    "list_schedules": OperationCase(method="GET", path="/v1/tracks/{track}/schedules", allowed=OWNERS),
    "change_schedule": OperationCase(
        method="PATCH",
        path="/v1/schedules/{schedule}",
        allowed=OWNERS,
        refusal=404,
        options={"json": {"paused": True}},
    ),
    "remove_schedule": OperationCase(
        method="DELETE", path="/v1/schedules/{schedule}", allowed=OWNERS, refusal=404
    ),
    "add_alert": OperationCase(
        method="POST", path="/v1/tracks/{track}/alerts", allowed=OWNERS, options=ALERT
    ),
    "list_alerts": OperationCase(method="GET", path="/v1/tracks/{track}/alerts", allowed=OWNERS),
    "remove_alert": OperationCase(method="DELETE", path="/v1/alerts/{alert}", allowed=OWNERS, refusal=404),
    "list_jobs": OperationCase(method="GET", path="/v1/jobs", allowed=ORGANISERS),
    "show_job": OperationCase(method="GET", path="/v1/jobs/{job}", allowed=TEAM_AND_OWNERS, refusal=404),
    "watch_job": OperationCase(
        method="GET", path="/v1/jobs/{job}/events", allowed=TEAM_AND_OWNERS, refusal=404, options=EVENTS
    ),
    "revive_job": OperationCase(
        method="POST",
        path="/v1/jobs/{dead}/revive",
        allowed=OWNERS,
        refusal=404,
        otherwise={"participant": 403},
    ),
}


if find_spec("cupel_reports") is not None:
    MATRIX["show_audit_page"] = OperationCase(
        method="GET", path="/v1/audits/{audit}/report.html", allowed=ANY_TOKEN
    )


@pytest.fixture
def resources(service) -> dict[str, Any]:
    """Fresh resources that the test may change."""
    return create_resources(service)


@pytest.fixture(scope="module")
def shared_resources(service) -> dict[str, Any]:
    """Shared resources for tests that only read."""
    return create_resources(service)


def create_resources(service) -> dict[str, Any]:
    """Create a track with resources of every kind, among them a dead job of alice."""
    track = service.create_track()
    number = service.publish(track)
    submission = service.accepted_submission(track)
    service.accepted_submission(track, b"t1 Q0 b 1 3 other\nt2 Q0 a 1 2 other\n", who="other participant")
    service.run_jobs()
    audit = service.request("organiser", "POST", f"/v1/tracks/{track}/audits", **AUDIT).json()["id"]
    service.run_jobs()
    schedule = service.request("organiser", "POST", f"/v1/tracks/{track}/schedules", **SCHEDULE).json()["id"]
    alert = service.request("organiser", "POST", f"/v1/tracks/{track}/alerts", **ALERT).json()["id"]
    dead = service.accepted_submission(track)["jobs"][0]["id"]
    job_execution.run_jobs(service.system, rescoring.QUEUE, {"evaluate": fail})
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


def fail(system: Any, claim: Any) -> None:
    raise RuntimeError("failed on purpose")


def fill_in_name(options: dict[str, Any], new: str) -> dict[str, Any]:
    if "json" not in options or options["json"].get("name") != "{new}":
        return options
    return options | {"json": options["json"] | {"name": new}}


def test_matrix_covers_every_operation(service) -> None:
    operations = {
        operation["operationId"]: (method.upper(), path)
        for path, methods in service.openapi["paths"].items()
        for method, operation in methods.items()
    }
    assert operations.keys() == MATRIX.keys()
    assert {name: case.method for name, case in MATRIX.items()} == {
        name: method for name, (method, _) in operations.items()
    }


@pytest.mark.parametrize("operation", MATRIX)
def test_operation_is_allowed_to_exactly_the_listed_users(
    service, request: pytest.FixtureRequest, operation: str
) -> None:
    case = MATRIX[operation]
    resources = request.getfixturevalue("shared_resources" if case.method == "GET" else "resources")
    path = case.path.format(**resources)
    match = service.operation(case.method, path.partition("?")[0])
    assert match is not None
    assert match[1]["operationId"] == operation
    for who in sorted(
        ALL_USERS, key=lambda user: user in case.allowed
    ):  # refused users first, because their requests change nothing
        answer = service.request(
            who,
            case.method,
            path,
            **fill_in_name(case.options, f"{resources['track']}-{who.replace(' ', '-')}"),
        )
        if who in case.allowed:
            assert answer.is_success or answer.status_code == 409, (who, answer.text)
        else:
            expected = 401 if who == "stranger" else case.otherwise.get(who, case.refusal)
            assert answer.status_code == expected, (who, answer.text)
            assert answer.json()["detail"]


def test_submission_list_is_limited_to_visible_submissions(service, resources: dict[str, Any]) -> None:
    path = f"/v1/tracks/{resources['track']}/submissions"
    assert len(service.get("participant", path)["items"]) == 2
    assert len(service.get("organiser", path)["items"]) == 3
    assert len(service.get("admin", path)["items"]) == 3
    assert {item["team"] for item in service.get("other participant", path)["items"]} == {"bob"}
    assert service.get("other organiser", path)["items"] == []


def test_drafts_are_listed_only_for_organisers_of_the_track(service, resources: dict[str, Any]) -> None:
    path = f"/v1/tracks/{resources['track']}/qrels"
    assert [item["state"] for item in service.get("organiser", path)["items"]] == ["draft", "current"]
    assert [item["state"] for item in service.get("participant", path)["items"]] == ["current"]


def test_tokens_are_listed_only_for_their_team(service) -> None:
    assert {item["team"] for item in service.get("participant", "/v1/tokens")["items"]} == {"alice"}
    assert "bob" in {item["team"] for item in service.get("admin", "/v1/tokens?limit=500")["items"]}


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
def test_invalid_token_is_refused_with_a_challenge(service, header: str) -> None:
    answer = service.http.get("/v1/me", headers={"Authorization": header})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["code"] == "token-refused"


def test_revoked_token_is_refused(service) -> None:
    made = service.request(
        "participant", "POST", "/v1/tokens", json={"team": "alice", "scope": "participant"}
    ).json()
    header = {"Authorization": f"Bearer {made['token']}"}
    assert service.http.get("/v1/me", headers=header).json()["prefix"] == made["prefix"]
    assert service.request("participant", "DELETE", f"/v1/tokens/{made['prefix']}").status_code == 204
    assert service.http.get("/v1/me", headers=header).status_code == 401


def test_token_is_limited_to_the_team_and_scope_of_its_issuer(service) -> None:
    def issue(who: str, team: str, scope: str) -> int:
        return int(
            service.request(who, "POST", "/v1/tokens", json={"team": team, "scope": scope}).status_code
        )

    assert issue("participant", "alice", "participant") == 201
    assert issue("participant", "alice", "organiser") == 403
    assert issue("organiser", "alice", "participant") == 403
    assert issue("organiser", "organisers", "admin") == 403


def test_token_secret_is_shown_only_at_creation(service) -> None:
    answer = service.request("admin", "POST", "/v1/tokens", json={"team": "carol", "scope": "participant"})
    assert answer.headers["cache-control"] == "no-store"
    listed = service.request("admin", "GET", "/v1/tokens?limit=500").text
    assert answer.json()["prefix"] in listed
    assert answer.json()["token"] not in listed
