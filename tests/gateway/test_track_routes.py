"""Tracks and their leaderboards over HTTP: changes, ETags and pages."""

import re

import pytest

from support.service.gateway_service import ASPECTS, CORRECTED, PLAN, run_file


def test_created_track_is_read_back_unchanged(service) -> None:
    body = {
        "name": "made-and-read",
        "title": "Réponses 日本",
        "aspects": ASPECTS,
        "measures": PLAN,
        "depth": 50,
    }
    answer = service.request("organiser", "POST", "/v1/tracks", json=body)
    assert answer.status_code == 201
    read = service.request("participant", "GET", answer.headers["location"])
    assert read.json() == answer.json()
    assert read.headers["etag"] == answer.headers["etag"]
    assert read.json()["title"] == "Réponses 日本"
    assert read.json()["measures"][2] == "TOMA(of=nDCG@10,aspects=[relevance,credibility])"


def test_track_name_is_unique(service) -> None:
    name = service.create_track()
    again = {"name": name, "title": "x", "aspects": ASPECTS, "measures": ["AP"]}
    answer = service.request("other organiser", "POST", "/v1/tracks", json=again)
    assert (answer.status_code, answer.json()["code"]) == (409, "track-exists")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"name": "../x"}, "track-invalid"),
        ({"name": "a" * 201}, "request-invalid"),
        ({"name": ""}, "track-invalid"),
        ({"name": 5}, "request-invalid"),
        ({"title": ""}, "track-invalid"),
        ({"title": "lone \ud800 surrogate"}, "request-invalid"),
        ({"aspects": {}}, "aspects-invalid"),
        ({"aspects": {"relevance": {"labels": []}}}, "aspects-invalid"),
        ({"aspects": {"relevance": {"labels": [0, 1], "colour": "red"}}}, "aspects-invalid"),
        ({"aspects": {"relevance": {"labels": [0, 1], "gains": {"0": float("nan")}}}}, "aspects-invalid"),
        ({"aspects": {"relevance": {"labels": ["\ud800", "b"]}}}, "request-invalid"),
        ({"aspects": {"relevance": {"labels": {"range": [0, 10**30]}}}}, "aspects-invalid"),
        ({"aspects": [1]}, "request-invalid"),
        ({"aspects": None}, "request-invalid"),
        ({"measures": []}, "measure-invalid"),
        ({"measures": ["nDGC@10"]}, "measure-invalid"),
        ({"measures": ["AP"] * 1001}, "request-invalid"),
        ({"measures": "AP"}, "request-invalid"),
        ({"profile": "mine"}, "profile-unknown"),
        ({"depth": 0}, "request-invalid"),
        ({"depth": 10**30}, "track-invalid"),
        ({"surprise": 1}, "request-invalid"),
        ({"label_sets": {"x": 1}}, "aspects-invalid"),
    ],
)
def test_invalid_track_is_refused(service, change, code: str) -> None:
    import json

    body = {"name": "refused", "title": "x", "aspects": ASPECTS, "measures": ["AP"]} | change
    answer = service.request(
        "organiser",
        "POST",
        "/v1/tracks",
        content=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert answer.json()["detail"]


def test_all_invalid_fields_are_reported_together(service) -> None:
    problem = service.request(
        "organiser", "POST", "/v1/tracks", json={"title": 3, "depth": -1, "nam": "x"}
    ).json()
    codes_by_field = {item["field"]: item["code"] for item in problem["errors"]}
    assert codes_by_field["body.name"] == "field-missing"
    assert codes_by_field["body.nam"] == "field-unknown"
    assert codes_by_field["body.title"] == "field-invalid"
    assert codes_by_field["body.depth"] == "field-invalid"


def test_patch_changes_only_the_given_fields(service, track: str) -> None:
    before = service.get("organiser", f"/v1/tracks/{track}")
    answer = service.request(
        "organiser",
        "PATCH",
        f"/v1/tracks/{track}",
        content=b'{"title": "New"}',
        headers={"Content-Type": "application/merge-patch+json"},
    )
    assert answer.json() == before | {"title": "New"}
    closed = service.request("organiser", "PATCH", f"/v1/tracks/{track}", json={"closed": True}).json()
    assert closed["closed_at"]
    opened = service.request("organiser", "PATCH", f"/v1/tracks/{track}", json={"closed": False}).json()
    assert (opened["closed_at"], opened["title"]) == (None, "New")


@pytest.mark.parametrize(
    "change", [{"title": None}, {"measures": None}, {"name": "other"}, {"closed": "maybe"}]
)
def test_invalid_patch_is_refused(service, track: str, change) -> None:
    answer = service.request("organiser", "PATCH", f"/v1/tracks/{track}", json=change)
    assert (answer.status_code, answer.json()["code"]) == (422, "request-invalid")


def test_patch_with_an_outdated_etag_is_refused(service, track: str) -> None:
    path = f"/v1/tracks/{track}"
    old = service.request("organiser", "GET", path).headers["etag"]
    first = service.request("organiser", "PATCH", path, json={"title": "one"}, headers={"If-Match": old})
    late = service.request("organiser", "PATCH", path, json={"title": "two"}, headers={"If-Match": old})
    assert first.status_code == 200
    assert (late.status_code, late.json()["code"]) == (412, "track-changed")
    new = {"If-Match": first.headers["etag"]}
    assert service.request("organiser", "PATCH", path, json={"title": "two"}, headers=new).status_code == 200
    assert (
        service.request(
            "organiser", "PATCH", path, json={"title": "3"}, headers={"If-Match": "*"}
        ).status_code
        == 200
    )


@pytest.mark.parametrize(
    ("named", "status"),
    [('"other", {}', 200), ('{},"other"', 200), ('"other", *', 200), ('"other"', 412), ("W/{}", 412)],
)
def test_if_match_accepts_a_list_of_etags(service, named: str, status: int) -> None:
    path = f"/v1/tracks/{service.create_track()}"
    header = {"If-Match": named.format(service.request("organiser", "GET", path).headers["etag"])}
    answer = service.request("organiser", "PATCH", path, json={"title": "new"}, headers=header)
    assert answer.status_code == status


def test_known_etag_gets_not_modified(service, track: str) -> None:
    submission = service.accepted_submission(track)
    service.run_jobs()
    for path in (
        f"/v1/tracks/{track}",
        f"/v1/tracks/{track}/leaderboard",
        f"/v1/tracks/{track}/qrels/1",
        submission["links"]["self"],
        submission["links"]["scores"],
        f"/v1/jobs/{submission['jobs'][0]['id']}",
        "/v1/measures",
        "/v1/errors",
    ):
        first = service.request("participant", "GET", path)
        assert re.fullmatch(r'"[0-9a-f]+"', first.headers["etag"]), path
        for known in (first.headers["etag"], f'"other", W/{first.headers["etag"]}', "*"):
            again = service.request("participant", "GET", path, headers={"If-None-Match": known})
            assert (again.status_code, again.content) == (304, b""), (path, known)
            assert again.headers["etag"] == first.headers["etag"]
        assert (
            service.request("participant", "GET", path, headers={"If-None-Match": '"x"'}).status_code == 200
        )


def test_board_etag_changes_with_the_board(service, track: str) -> None:
    path = f"/v1/tracks/{track}/leaderboard"
    tags = [service.request("participant", "GET", path).headers["etag"]]
    service.accepted_submission(track)
    service.run_jobs()
    tags.append(service.request("participant", "GET", path).headers["etag"])
    service.publish(track, relevance=CORRECTED)
    tags.append(service.request("participant", "GET", path).headers["etag"])
    assert len(set(tags)) == 3


def test_equal_scores_share_a_rank(service, track: str) -> None:
    for who, ranking in (("participant", "cba"), ("other participant", "abc"), ("organiser", "abc")):
        service.accepted_submission(track, run_file(("t1", ranking), ("t2", "bac")), who=who)
    service.run_jobs()
    board = service.get("participant", f"/v1/tracks/{track}/leaderboard?measure=AP")
    assert [(row["rank"], row["team"]) for row in board["rows"]] == [
        (1, "bob"),
        (1, "organisers"),
        (3, "alice"),
    ]


def test_board_is_paginated(service, track: str) -> None:
    for _ in range(3):
        service.accepted_submission(track)
    service.run_jobs()
    path: str | None = f"/v1/tracks/{track}/leaderboard?measure=nDCG%4010&limit=2"
    seen, pages = [], 0
    while path:
        answer = service.request("participant", "GET", path)
        seen += [row["submission"] for row in answer.json()["rows"]]
        path, pages = answer.json()["next"], pages + 1
        assert (path is not None) == ("link" in answer.headers)
    assert (len(set(seen)), len(seen), pages) == (3, 3, 2)


def test_list_pages_neither_repeat_nor_skip_items(service, track: str) -> None:
    made = [service.accepted_submission(track)["id"] for _ in range(5)]
    path: str | None = f"/v1/tracks/{track}/submissions?limit=2"
    seen = []
    while path:
        answer = service.request("participant", "GET", path)
        page = answer.json()
        seen += [item["id"] for item in page["items"]]
        if page["next"]:
            assert answer.headers["link"] == f'<{page["next"]}>; rel="next"'
        path = page["next"]
    assert seen == made[::-1]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "limit=x", "limit=99999999999999999999999", "cursor=%00", "cursor="]
)
def test_invalid_limit_or_cursor_is_refused(service, query: str) -> None:
    answer = service.request("participant", "GET", f"/v1/tracks?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "request-invalid")


@pytest.mark.parametrize("cursor", ["x", "9" * 30, "-1", "1.5", "%F0%9F%A7%AA"])
@pytest.mark.parametrize(
    "list_", ["/v1/tracks", "/v1/tokens", "/v1/jobs", "/v1/tracks/{}/qrels", "/v1/tracks/{}/leaderboard"]
)
def test_invented_cursor_causes_no_server_error(service, track: str, list_: str, cursor: str) -> None:
    answer = service.request("admin", "GET", f"{list_.format(track)}?cursor={cursor}")
    assert answer.status_code in (200, 422)


@pytest.mark.parametrize(
    "id", ["x", "a" * 200, "9" * 100, "%2e%2e%2f%2e%2e", "%F0%9F%A7%AA", "%ff%fe", "'; drop table tracks; --"]
)
@pytest.mark.parametrize(
    "path", ["/v1/tracks/{}", "/v1/submissions/{}", "/v1/runs/{}", "/v1/jobs/{}", "/v1/tracks/{}/leaderboard"]
)
def test_unknown_id_is_not_found(service, path: str, id: str) -> None:
    answer = service.request("admin", "GET", path.format(id))
    assert answer.status_code == 404
    assert answer.json()["code"].endswith("-unknown")


@pytest.mark.parametrize("id", ["%00", "a" * 201, "a%0Ab"])
def test_invalid_id_is_refused(service, id: str) -> None:
    answer = service.request("admin", "GET", f"/v1/tracks/{id}")
    assert (answer.status_code, answer.json()["code"]) == (422, "request-invalid")
