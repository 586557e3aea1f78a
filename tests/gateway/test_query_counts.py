"""Lists and boards: a request asks the database as often for thirty items as for one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import event

from cupel_backend import access
from support.service.gateway_service import Service, run_file

MANY = 30

NO_QUERY = ("BEGIN", "PRAGMA", "SET LOCAL", "UPDATE tokens")
"""How statements begin that do not count: those of transactions, and the note that a token is in use."""


@dataclass(frozen=True)
class Case:
    """Two addresses of an operation: the answer to `one` holds one item, that to `many` holds MANY.

    Braces in them are filled in by `places`. items: what the answer calls them. statements: at most so
    many, that which looks up the token among them.
    """

    operation: str
    statements: int
    one: str
    many: str
    items: str = "items"
    who: str = "organiser"


CASES = [
    Case("list_tokens", 2, "/v1/tokens?limit=1", "/v1/tokens?limit=30", who="admin"),
    Case("list_tracks", 3, "/v1/tracks?limit=1", "/v1/tracks?limit=30"),
    Case("list_jobs", 2, "/v1/jobs?limit=1", "/v1/jobs?limit=30"),
    Case("list_qrels", 6, "{small}/qrels", "{corrected}/qrels"),
    Case(
        "compare_qrels",
        9,
        "{corrected}/qrels/30/diff?from=1&measure=P@1",
        "{large}/qrels/2/diff?from=1&measure=P@1",
        "rows",
    ),
    Case("list_submissions", 9, "{small}/submissions", "{large}/submissions"),
    Case("show_submission", 10, "{small submission}", "{corrected submission}", "jobs"),
    Case("show_leaderboard", 9, "{small}/leaderboard", "{large}/leaderboard", "rows"),
    Case(
        "show_leaderboard", 9, "{small}/leaderboard?measure=AP", "{large}/leaderboard?measure=AP", "unscored"
    ),
    Case("show_scores", 6, "{small submission}/scores", "{large submission}/scores", "scores"),
    Case(
        "show_explanations",
        7,
        "{small submission}/explanations",
        "{large submission}/explanations",
        "explanations",
    ),
    Case("list_schedules", 3, "{large}/schedules", "{small}/schedules"),
    Case("list_alerts", 3, "{large}/alerts", "{small}/alerts"),
    Case("list_audits", 6, "{large}/audits", "{paired}/audits"),
    Case("show_audit", 6, "{small audit}", "{large audit}", "runs"),
    Case(
        "show_audit_history",
        3,
        "{large}/audits/history?kind=downsampling&number=tau(P@1)@50",
        "{paired}/audits/history?kind=downsampling&number=tau(P@1)@50",
        "points",
    ),
    Case(
        "show_topic_scores",
        6,
        "{small submission}/scores/topics?measure=P@1",
        "{large submission}/scores/topics?measure=P@1",
        "topics",
    ),
]


@pytest.fixture(scope="module")
def places(service: Service) -> dict[str, str]:
    """Addresses of three tracks and of a submission to each; and MANY other tracks and tokens.

    small: one of everything. large: MANY topics, measures and submissions. corrected: MANY versions.
    """
    for number in range(MANY):
        service.track()
        access.issue(service.system, access.OPERATOR, team=f"team-{number}", scope="participant")
    found: dict[str, Any] = {}
    for name, many in {"small": 1, "large": MANY, "corrected": 1}.items():
        plan = [f"P@{cutoff}" for cutoff in range(1, many + 1)]
        track = service.track(aspects={"relevance": {"labels": [0, 1]}}, measures=plan)
        publish(service, track, topics=many)
        for number in range(many):
            sent = service.submitted(track, run_file(("t1", "ab"), tag=f"run-{number}"))
        for _ in range({"small": 1, "large": 2, "corrected": MANY}[name] - 1):
            publish(service, track, topics=many)
        found |= {name: f"/v1/tracks/{track}", f"{name} submission": sent["links"]["self"]}
    service.work()
    for name in ("small", "large"):
        address = f"{found[f'{name} submission']}/explanations"
        assert service.ask("participant", "POST", address, json={"about": ["scale"]}).status_code == 202
    make_audits(service, found)
    service.work()
    return found


def make_audits(service: Service, found: dict[str, str]) -> None:
    """One of a run, one of MANY runs, and MANY of a track of two."""
    paired = service.track(aspects={"relevance": {"labels": [0, 1]}}, measures=["P@1"])
    publish(service, paired, topics=1)
    for number in range(2):
        service.submitted(paired, run_file(("t1", "ab"), tag=f"run-{number}"))
    service.work()
    found["paired"] = f"/v1/tracks/{paired}"
    wanted = {"kind": "downsampling", "parameters": {"repeats": 1, "ratios": [50]}, "measures": ["P@1"]}
    for name in ("small", "large", *["paired"] * MANY):
        answer = service.ask("organiser", "POST", f"{found[name]}/audits", json=wanted)
        assert answer.status_code == 202, answer.text
        found[f"{name} audit"] = answer.headers["location"]
    alert = {"kind": "downsampling", "number": "tau(P@1)@50", "below": 0.9}
    for name in ("large", *["small"] * MANY):
        for noun, body in (("schedules", {"request": wanted}), ("alerts", alert)):
            assert service.ask("organiser", "POST", f"{found[name]}/{noun}", json=body).status_code == 201


def publish(service: Service, track: str, *, topics: int) -> None:
    """Publish judgments of so many topics, and leave the scoring for later."""
    judgments = "".join(f"t{number} 0 a 1\n" for number in range(1, topics + 1)).encode()
    parts = [
        ("collection", ("collection.yaml", b"qrels: [{file: qrels, aspect: relevance}]")),
        ("files", ("qrels", judgments)),
    ]
    answer = service.upload(track, parts=parts)
    assert answer.status_code == 201, answer.text
    published = service.ask("organiser", "POST", f"{answer.headers['location']}/publish")
    assert published.status_code == 202, published.text


@contextmanager
def queries(service: Service) -> Iterator[list[str]]:
    """Gathers what the database is asked meanwhile."""
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if not statement.startswith(NO_QUERY):
            asked.append(statement)

    event.listen(service.system.engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        event.remove(service.system.engine, "before_cursor_execute", note)


def lists(service: Service, *, public: bool) -> dict[str, str]:
    """Path by operation of every GET whose answer is, or holds, a list of things."""
    schemas = service.openapi["components"]["schemas"]
    found: dict[str, Any] = {}
    for path, operations in service.openapi["paths"].items():
        operation = operations.get("get")
        if operation is None or public == ("security" in operation):
            continue
        content = operation["responses"]["200"].get("content", {}).get("application/json", {})
        name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
        fields = schemas.get(name, {}).get("properties", {}).values()
        if any("$ref" in field.get("items", {}) for field in fields):
            found[operation["operationId"]] = path
    return found


def test_every_list_has_a_case(service: Service) -> None:
    assert lists(service, public=False).keys() == {case.operation for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.operation}-{case.items}")
def test_a_list_of_many_costs_as_much_as_a_list_of_one(
    service: Service, places: dict[str, str], case: Case
) -> None:
    asked: dict[int, list[str]] = {}
    for items, address in {1: case.one, MANY: case.many}.items():
        with queries(service) as asked[items]:
            answer = service.get(case.who, address.format(**places))
        assert len(answer[case.items]) == items
    assert len(asked[MANY]) == len(asked[1]), "\n".join(asked[MANY])
    assert 2 <= len(asked[1]) <= case.statements, "\n".join(asked[1])


def test_lists_that_need_no_token_ask_the_database_nothing(service: Service) -> None:
    for path in lists(service, public=True).values():
        with queries(service) as asked:
            service.get("stranger", path)
        assert not asked, path
