"""Explanations of scores over HTTP: asked for, computed by jobs, kept."""

from typing import Any

import pytest

from cupel_measures.explaining import ABOUT
from support.service.gateway_service import CORRECTED, run_file

TIED = b"t1 Q0 a 1 5 r\nt1 Q0 b 1 5 r\nt1 Q0 u 1 1 r\nt2 Q0 b 1 1 r\n"


@pytest.fixture
def sent(service, track: str) -> str:
    """The address of a scored submission."""
    link = service.submitted(track, TIED)["links"]["self"]
    service.work()
    return str(link)


def ask(service, sent: str, who: str = "participant", **wanted: Any) -> Any:
    answer = service.ask(who, "POST", f"{sent}/explanations", json=wanted)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == answer.json()["links"]["explanations"]
    return answer.json()


def test_scores_are_explained_by_jobs(service, sent: str) -> None:
    asked = ask(service, sent, measures=["nDCG@10", "CAM(of=P@2)"])
    assert asked["measures"] == ["nDCG@10", "CAM(of=P@2,aspects=[relevance,credibility])"]
    assert [(job["kind"], job["state"]) for job in asked["jobs"]] == [("explain", "queued")] * 2
    assert service.get("participant", asked["links"]["explanations"])["explanations"] == []
    service.work()
    for job in asked["jobs"]:
        assert service.get("participant", f"/v1/jobs/{job['id']}")["state"] == "done"
    told = service.get("participant", asked["links"]["explanations"])
    assert [one["measure"] for one in told["explanations"]] == asked["measures"]
    assert all(list(one["told"]) == list(ABOUT) for one in told["explanations"])


def test_what_is_told_is_about_the_score_and_says_what_it_depends_on(service, sent: str) -> None:
    ask(service, sent, measures=["nDCG@10"])
    service.work()
    told = service.get("participant", f"{sent}/explanations")
    by_topic = service.get("participant", f"{sent}/scores/topics?measure=nDCG@10")
    score = by_topic["score"]
    for name in ("qrels", "qrels_digest", "run_digest", "profile", "scoring_version"):
        assert told[name] == score[name]
    assert told["topics"] == [one["topic"] for one in by_topic["topics"]]
    (told_of,) = told["explanations"]
    assert told_of["told"]["scale"] == score["scale"]
    assert told_of["told"]["judgments"]["as_lowest"] == score["value"]
    assert told_of["told"]["judgments"]["unjudged"]["relevance"] == (1 / 3 + 0) / 2
    ties = told_of["told"]["ties"]
    assert ties["value"] == score["value"]
    assert ties["by_topic"]["value"] == [one["value"] for one in by_topic["topics"]]
    assert ties["least"] < ties["greatest"] == 1.0
    assert told_of["told"]["parts"] is None


def test_asking_again_changes_nothing(service, sent: str) -> None:
    wanted = {"measures": ["AP"], "about": ["scale", "ties"]}
    first = ask(service, sent, **wanted)
    assert ask(service, sent, **wanted)["jobs"] == first["jobs"]
    service.work()
    etag = service.ask("participant", "GET", f"{sent}/explanations").headers["etag"]
    again = ask(service, sent, measures=["MAP"], about=["ties", "scale"])["jobs"]  # in other words
    assert [job["id"] for job in again] == [job["id"] for job in first["jobs"]]
    service.work()
    same = service.ask("participant", "GET", f"{sent}/explanations", headers={"If-None-Match": etag})
    assert same.status_code == 304


def test_parts_are_asked_for_apart_and_come_together(service, sent: str) -> None:
    for about in (["scale"], ["judgments", "scale"]):
        ask(service, sent, measures=["AP"], about=about)
        service.work()
        (told_of,) = service.get("participant", f"{sent}/explanations?measure=AP")["explanations"]
        assert sorted(told_of["told"]) == sorted(about)


def test_without_measures_the_plan_is_explained(service, sent: str, track: str) -> None:
    plan = service.get("participant", f"/v1/tracks/{track}")["measures"]
    assert len(ask(service, sent, about=["scale"])["jobs"]) == len(plan)
    ask(service, sent, measures=["RR"], about=["scale"])
    service.work()
    told = service.get("participant", f"{sent}/explanations")["explanations"]
    assert [one["measure"] for one in told] == [*plan, "RR"]
    (only,) = service.get("participant", f"{sent}/explanations", params={"measure": "RR"})["explanations"]
    assert only["measure"] == "RR"


def test_an_explanation_is_of_one_qrels_version(service, sent: str, track: str) -> None:
    ask(service, sent, measures=["AP"])
    service.publish(track, relevance=CORRECTED)
    assert service.get("participant", f"{sent}/explanations")["explanations"] == []
    asked = ask(service, sent, measures=["AP"], qrels=1)
    service.work()
    (told_of,) = service.get("participant", asked["links"]["explanations"])["explanations"]
    assert service.get("participant", asked["links"]["explanations"])["qrels"] == 1
    scores = service.get("participant", f"{sent}/scores?measure=AP&qrels=1")["scores"]
    assert told_of["told"]["judgments"]["as_lowest"] == scores[0]["value"]


@pytest.mark.parametrize(
    ("wanted", "status", "code"),
    [
        ({"measures": ["nDGC"]}, 422, "measure-invalid"),
        ({"measures": ["AP(aspect=taste)"]}, 422, "measure-invalid"),
        ({"measures": [""]}, 422, "measure-invalid"),
        ({"about": ["everything"]}, 422, "about-unknown"),
        ({"qrels": 2}, 404, "qrels-not-published"),
        ({"qrels": 0}, 422, "request-invalid"),
        ({"measure": ["AP"]}, 422, "request-invalid"),
    ],
)
def test_what_can_not_be_explained_is_refused(
    service, sent: str, wanted: dict[str, Any], status: int, code: str
) -> None:
    answer = service.ask("participant", "POST", f"{sent}/explanations", json=wanted)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_without_judgments_there_is_nothing_to_explain(service) -> None:
    sent = service.submitted(service.track())["links"]["self"]
    told = service.get("participant", f"{sent}/explanations")
    assert (told["qrels"], told["topics"], told["explanations"]) == (None, [], [])
    answer = service.ask("participant", "POST", f"{sent}/explanations", json={})
    assert answer.json()["code"] == "qrels-not-published"


def test_scores_and_boards_tell_what_their_scale_allows(service) -> None:
    track = service.track(measures=["nDCG@10", "P@10", "NumRet"])
    service.publish(track)
    sent = service.submitted(track, run_file())["links"]["self"]
    service.work()
    scores = {one["measure"]: one["scale"] for one in service.get("participant", f"{sent}/scores")["scores"]}
    assert {measure: scale["type"] for measure, scale in scores.items()} == {
        "nDCG@10": "neither",
        "P@10": "interval",
        "NumRet": "count",
    }
    assert scores["P@10"]["warning"] is None
    assert "mean" in scores["P@10"]["operations"]
    assert "mean" not in scores["nDCG@10"]["operations"]
    assert "a mean over topics asks for more" in scores["nDCG@10"]["warning"]
    for measure, scale in scores.items():
        board = service.get("participant", f"/v1/tracks/{track}/leaderboard", params={"measure": measure})
        assert board["scale"] == scale
