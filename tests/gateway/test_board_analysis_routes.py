"""What a board's order is worth, over HTTP."""

from typing import Any

from support.service.gateway_service import run_file


def board(service, track: str, **asked: Any) -> Any:
    return service.get("other participant", f"/v1/tracks/{track}/leaderboard", params=asked)


def test_a_board_is_pending_then_analysed_under_another_etag(service, track: str) -> None:
    path = f"/v1/tracks/{track}/leaderboard?measure=AP"
    for number, orders in enumerate((("abc", "bac"), ("bca", "ab"), ("c", "a"))):
        service.submitted(track, run_file(("t1", orders[0]), ("t2", orders[1]), tag=f"r{number}"))
    service.work("score")
    answer = service.ask("participant", "GET", path)
    pending = answer.json()["analysis"]
    assert (pending["state"], pending["submissions"], pending["seed"]) == ("pending", 3, None)
    assert all(row["groups"] == [] and row["interval"] is None for row in answer.json()["rows"])
    known = {"If-None-Match": answer.headers["etag"]}
    assert service.ask("participant", "GET", path, headers=known).status_code == 304
    service.work(analysing=True)
    done = service.ask("participant", "GET", path, headers=known)
    assert done.status_code == 200
    told = done.json()["analysis"]
    assert (told["state"], told["undefined"], told["neighbours"]) == ("done", None, 2)
    assert (told["alpha"], told["replicates"], told["topics"]) == (0.05, 10_000, 2)
    assert told["tied_for_first"] == sum(row["tied_for_first"] for row in done.json()["rows"])
    assert "Tukey" in told["method"]
    for row in done.json()["rows"]:
        assert row["interval"][0] <= row["score"] <= row["interval"][1]
        assert row["rank_interval"][0] <= row["rank"] <= row["rank_interval"][1]
        assert row["groups"][0] == "a" or not row["tied_for_first"]
    later = {"If-None-Match": done.headers["etag"]}
    assert service.ask("participant", "GET", path, headers=later).status_code == 304


def test_a_board_without_anything_to_compare_is_undefined(service, track: str) -> None:
    assert board(service, track)["analysis"]["undefined"] == "no submission is ranked yet"
    service.submitted(track)
    service.work(analysing=True)
    alone = board(service, track)
    assert (alone["analysis"]["state"], alone["analysis"]["undefined"]) == (
        "undefined",
        "only one submission is ranked",
    )
    assert len(alone["rows"][0]["interval"]) == 2
    assert alone["rows"][0]["rank_interval"] is None
    assert alone["rows"][0]["tied_for_first"] is None
