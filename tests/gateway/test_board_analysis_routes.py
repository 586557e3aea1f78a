"""Significance analysis of a leaderboard over HTTP."""

from typing import Any

from support.service.gateway_service import run_file


def read_board(service, track: str, **query: Any) -> Any:
    return service.get("other participant", f"/v1/tracks/{track}/leaderboard", params=query)


def test_finished_analysis_changes_the_etag_of_the_board(service, track: str) -> None:
    path = f"/v1/tracks/{track}/leaderboard?measure=AP"
    for number, orders in enumerate((("abc", "bac"), ("bca", "ab"), ("c", "a"))):
        service.accepted_submission(track, run_file(("t1", orders[0]), ("t2", orders[1]), tag=f"r{number}"))
    service.run_jobs("score")
    answer = service.request("participant", "GET", path)
    pending = answer.json()["analysis"]
    assert (pending["state"], pending["submissions"], pending["seed"]) == ("pending", 3, None)
    assert all(row["groups"] == [] and row["interval"] is None for row in answer.json()["rows"])
    known = {"If-None-Match": answer.headers["etag"]}
    assert service.request("participant", "GET", path, headers=known).status_code == 304
    service.run_jobs(with_analyses=True)
    done = service.request("participant", "GET", path, headers=known)
    assert done.status_code == 200
    analysis = done.json()["analysis"]
    assert (analysis["state"], analysis["undefined"], analysis["neighbours"]) == ("done", None, 2)
    assert (analysis["alpha"], analysis["replicates"], analysis["topics"]) == (0.05, 10_000, 2)
    assert analysis["in_best_set"] == sum(row["in_best_set"] for row in done.json()["rows"])
    assert analysis["method"] == "max-t/2"
    for row in done.json()["rows"]:
        assert row["interval"][0] <= row["score"] <= row["interval"][1]
        assert row["rank_interval"][0] <= row["rank"] <= row["rank_interval"][1]
        assert row["in_best_set"] or row["rank"] > 1
    later = {"If-None-Match": done.headers["etag"]}
    assert service.request("participant", "GET", path, headers=later).status_code == 304


def test_analysis_of_fewer_than_two_submissions_is_undefined(service, track: str) -> None:
    assert read_board(service, track)["analysis"]["undefined"] == "no submission is ranked yet"
    service.accepted_submission(track)
    service.run_jobs(with_analyses=True)
    single = read_board(service, track)
    assert (single["analysis"]["state"], single["analysis"]["undefined"]) == (
        "undefined",
        "only one submission is ranked",
    )
    assert len(single["rows"][0]["interval"]) == 2
    assert single["rows"][0]["rank_interval"] is None
    assert single["rows"][0]["in_best_set"] is None
