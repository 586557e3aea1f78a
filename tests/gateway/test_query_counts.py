"""Number of database queries of lists and boards: the same for many items as for one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import event

from cupel_backend import access
from support.service.gateway_service import Service, run_file

MANY = 8

NO_QUERY = ("BEGIN", "PRAGMA", "SET LOCAL", "UPDATE tokens")
"""Prefixes of statements that are not counted: transaction control, and the last use of a token."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """Two paths of an operation. The response to `single` has one item, and the response to `many` has MANY.

    The fixture `urls` fills in the braces. `items` is the field of the response that holds the items.
    `statements` is the largest number of statements allowed, including the token look-up.
    """

    operation: str
    statements: int
    single: str
    many: str
    items: str = "items"
    who: str = "organiser"


CASES = [
    Case(
        operation="list_tokens",
        statements=2,
        single="/v1/tokens?limit=1",
        many=f"/v1/tokens?limit={MANY}",
        who="admin",
    ),
    Case(operation="list_tracks", statements=3, single="/v1/tracks?limit=1", many=f"/v1/tracks?limit={MANY}"),
    Case(operation="list_jobs", statements=2, single="/v1/jobs?limit=1", many=f"/v1/jobs?limit={MANY}"),
    Case(operation="list_qrels", statements=6, single="{small}/qrels", many="{corrected}/qrels"),
    Case(
        operation="compare_qrels",
        statements=9,
        single=f"{{corrected}}/qrels/{MANY}/diff?from=1&measure=P@1",
        many="{large}/qrels/2/diff?from=1&measure=P@1",
        items="rows",
    ),
    Case(
        operation="list_submissions", statements=9, single="{small}/submissions", many="{large}/submissions"
    ),
    Case(
        operation="show_submission",
        statements=10,
        single="{small submission}",
        many="{corrected submission}",
        items="jobs",
    ),
    Case(
        operation="show_leaderboard",
        statements=9,
        single="{small}/leaderboard",
        many="{large}/leaderboard",
        items="rows",
    ),
    Case(
        operation="show_leaderboard",
        statements=9,
        single="{small}/leaderboard?measure=AP",
        many="{large}/leaderboard?measure=AP",
        items="unscored",
    ),
    Case(
        operation="show_scores",
        statements=6,
        single="{small submission}/scores",
        many="{large submission}/scores",
        items="scores",
    ),
    Case(
        operation="show_explanations",
        statements=7,
        single="{small submission}/explanations",
        many="{large submission}/explanations",
        items="explanations",
    ),
    Case(operation="list_schedules", statements=3, single="{large}/schedules", many="{small}/schedules"),
    Case(operation="list_alerts", statements=3, single="{large}/alerts", many="{small}/alerts"),
    Case(operation="list_audits", statements=6, single="{large}/audits", many="{paired}/audits"),
    Case(operation="show_audit", statements=6, single="{small audit}", many="{large audit}", items="runs"),
    Case(
        operation="show_audit_history",
        statements=3,
        single="{large}/audits/history?kind=downsampling&number=tau(P@1)@50",
        many="{paired}/audits/history?kind=downsampling&number=tau(P@1)@50",
        items="points",
    ),
    Case(
        operation="show_topic_scores",
        statements=6,
        single="{small submission}/scores/topics?measure=P@1",
        many="{large submission}/scores/topics?measure=P@1",
        items="topics",
    ),
]


@pytest.fixture(scope="module")
def urls(service: Service) -> dict[str, str]:
    """Return URLs of three tracks and of a submission to each; create MANY other tracks and tokens.

    `small` has one topic, one measure and one submission. `large` has MANY of each.
    `corrected` has MANY versions.
    """
    for number in range(MANY):
        service.create_track()
        access.issue(service.system, access.OPERATOR, team=f"team-{number}", scope="participant")
    urls: dict[str, Any] = {}
    for name, many in {"small": 1, "large": MANY, "corrected": 1}.items():
        plan = [f"P@{cutoff}" for cutoff in range(1, many + 1)]
        track = service.create_track(aspects={"relevance": {"labels": [0, 1]}}, measures=plan)
        publish(service, track, topics=many)
        for number in range(many):
            sent = service.accepted_submission(track, run_file(("t1", "ab"), tag=f"run-{number}"))
        for _ in range({"small": 1, "large": 2, "corrected": MANY}[name] - 1):
            publish(service, track, topics=many)
        urls |= {name: f"/v1/tracks/{track}", f"{name} submission": sent["links"]["self"]}
    service.run_jobs()
    for name in ("small", "large"):
        address = f"{urls[f'{name} submission']}/explanations"
        assert service.request("participant", "POST", address, json={"about": ["scale"]}).status_code == 202
    request_audits(service, urls)
    service.run_jobs()
    return urls


def request_audits(service: Service, urls: dict[str, str]) -> None:
    """Request one audit of one run, one audit of MANY runs, and MANY audits of a track with two runs."""
    paired = service.create_track(aspects={"relevance": {"labels": [0, 1]}}, measures=["P@1"])
    publish(service, paired, topics=1)
    for number in range(2):
        service.accepted_submission(paired, run_file(("t1", "ab"), tag=f"run-{number}"))
    service.run_jobs()
    urls["paired"] = f"/v1/tracks/{paired}"
    audit_request = {
        "kind": "downsampling",
        "parameters": {"repeats": 1, "ratios": [50]},
        "measures": ["P@1"],
    }
    for name in ("small", "large", *["paired"] * MANY):
        answer = service.request("organiser", "POST", f"{urls[name]}/audits", json=audit_request)
        assert answer.status_code == 202, answer.text
        urls[f"{name} audit"] = answer.headers["location"]
    alert = {"kind": "downsampling", "number": "tau(P@1)@50", "below": 0.9}
    for name in ("large", *["small"] * MANY):
        for noun, body in (("schedules", {"request": audit_request}), ("alerts", alert)):
            assert service.request("organiser", "POST", f"{urls[name]}/{noun}", json=body).status_code == 201


def publish(service: Service, track: str, *, topics: int) -> None:
    """Publish judgments of this many topics without running the scoring jobs."""
    judgments = "".join(f"t{number} 0 a 1\n" for number in range(1, topics + 1)).encode()
    parts = [
        ("collection", ("collection.yaml", b"qrels: [{file: qrels, aspect: relevance}]")),
        ("files", ("qrels", judgments)),
    ]
    answer = service.upload(track, parts=parts)
    assert answer.status_code == 201, answer.text
    published = service.request("organiser", "POST", f"{answer.headers['location']}/publish")
    assert published.status_code == 202, published.text


@contextmanager
def record_statements(service: Service) -> Iterator[list[str]]:
    """Record the counted SQL statements inside the block."""
    statements: list[str] = []

    def record(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if not statement.startswith(NO_QUERY):
            statements.append(statement)

    event.listen(service.system.engine, "before_cursor_execute", record)
    try:
        yield statements
    finally:
        event.remove(service.system.engine, "before_cursor_execute", record)


def list_operations(service: Service, *, public: bool) -> dict[str, str]:
    """Return the path of every GET operation whose response is or contains a list of objects."""
    schemas = service.openapi["components"]["schemas"]
    paths: dict[str, Any] = {}
    for path, operations in service.openapi["paths"].items():
        operation = operations.get("get")
        if operation is None or public == ("security" in operation):
            continue
        content = operation["responses"]["200"].get("content", {}).get("application/json", {})
        name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
        fields = schemas.get(name, {}).get("properties", {}).values()
        if any("$ref" in field.get("items", {}) for field in fields):
            paths[operation["operationId"]] = path
    return paths


def test_every_list_operation_has_a_case(service: Service) -> None:
    assert list_operations(service, public=False).keys() == {case.operation for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.operation}-{case.items}")
def test_query_count_does_not_depend_on_the_number_of_items(
    service: Service, urls: dict[str, str], case: Case
) -> None:
    statements: dict[int, list[str]] = {}
    for items, address in {1: case.single, MANY: case.many}.items():
        with record_statements(service) as statements[items]:
            answer = service.get(case.who, address.format(**urls))
        assert len(answer[case.items]) == items
    assert len(statements[MANY]) == len(statements[1]), "\n".join(statements[MANY])
    assert 2 <= len(statements[1]) <= case.statements, "\n".join(statements[1])


def test_public_lists_send_no_queries(service: Service) -> None:
    for path in list_operations(service, public=True).values():
        with record_statements(service) as statements:
            service.get("stranger", path)
        assert not statements, path
