"""Explanations of scores over HTTP: request, computation by jobs, storage."""

from typing import Any

import pytest

from cupel_measures.explaining.explained_parts import ABOUT
from support.service.gateway_service import CORRECTED, run_file

TIED = b"t1 Q0 a 1 5 r\nt1 Q0 b 1 5 r\nt1 Q0 u 1 1 r\nt2 Q0 b 1 1 r\n"


@pytest.fixture
def submission_url(service, track: str) -> str:
    """The URL of a scored submission."""
    link = service.accepted_submission(track, TIED)["links"]["self"]
    service.run_jobs()
    return str(link)


def request_explanation(service, submission_url: str, who: str = "participant", **body: Any) -> Any:
    answer = service.request(who, "POST", f"{submission_url}/explanations", json=body)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == answer.json()["links"]["explanations"]
    return answer.json()


def test_scores_are_explained_by_jobs(service, submission_url: str) -> None:
    accepted = request_explanation(service, submission_url, measures=["nDCG@10", "CAM(of=P@2)"])
    assert accepted["measures"] == ["nDCG@10", "CAM(of=P@2,aspects=[relevance,credibility])"]
    assert [(job["kind"], job["state"]) for job in accepted["jobs"]] == [("explain", "queued")] * 2
    assert service.get("participant", accepted["links"]["explanations"])["explanations"] == []
    service.run_jobs()
    for job in accepted["jobs"]:
        assert service.get("participant", f"/v1/jobs/{job['id']}")["state"] == "done"
    body = service.get("participant", accepted["links"]["explanations"])
    assert [item["measure"] for item in body["explanations"]] == accepted["measures"]
    assert all(list(item["parts"]) == list(ABOUT) for item in body["explanations"])


def test_explanation_matches_the_score_and_its_provenance(service, submission_url: str) -> None:
    request_explanation(service, submission_url, measures=["nDCG@10"])
    service.run_jobs()
    body = service.get("participant", f"{submission_url}/explanations")
    topic_scores = service.get("participant", f"{submission_url}/scores/topics?measure=nDCG@10")
    score = topic_scores["score"]
    for name in ("qrels", "qrels_digest", "run_digest", "profile", "scoring_version"):
        assert body[name] == score[name]
    assert body["topics"] == [item["topic"] for item in topic_scores["topics"]]
    (explanation,) = body["explanations"]
    assert explanation["parts"]["scale"] == score["scale"]
    assert explanation["parts"]["judgments"]["as_lowest"] == score["value"]
    assert explanation["parts"]["judgments"]["unjudged"]["relevance"] == (1 / 3 + 0) / 2
    ties = explanation["parts"]["ties"]
    assert ties["value"] == score["value"]
    assert ties["by_topic"]["value"] == [item["value"] for item in topic_scores["topics"]]
    assert ties["least"] < ties["greatest"] == 1.0
    assert explanation["parts"]["parts"] is None


def test_repeated_explanation_request_reuses_the_jobs(service, submission_url: str) -> None:
    body = {"measures": ["AP"], "about": ["scale", "ties"]}
    first = request_explanation(service, submission_url, **body)
    assert request_explanation(service, submission_url, **body)["jobs"] == first["jobs"]
    service.run_jobs()
    etag = service.request("participant", "GET", f"{submission_url}/explanations").headers["etag"]
    again = request_explanation(service, submission_url, measures=["MAP"], about=["ties", "scale"])[
        "jobs"
    ]  # the same request, spelled differently
    assert [job["id"] for job in again] == [job["id"] for job in first["jobs"]]
    service.run_jobs()
    same = service.request(
        "participant", "GET", f"{submission_url}/explanations", headers={"If-None-Match": etag}
    )
    assert same.status_code == 304


def test_explanation_parts_requested_separately_are_merged(service, submission_url: str) -> None:
    for about in (["scale"], ["judgments", "scale"]):
        request_explanation(service, submission_url, measures=["AP"], about=about)
        service.run_jobs()
        (explanation,) = service.get("participant", f"{submission_url}/explanations?measure=AP")[
            "explanations"
        ]
        assert sorted(explanation["parts"]) == sorted(about)


def test_explanation_without_measures_covers_the_plan(service, submission_url: str, track: str) -> None:
    plan = service.get("participant", f"/v1/tracks/{track}")["measures"]
    assert len(request_explanation(service, submission_url, about=["scale"])["jobs"]) == len(plan)
    request_explanation(service, submission_url, measures=["RR"], about=["scale"])
    service.run_jobs()
    explanations = service.get("participant", f"{submission_url}/explanations")["explanations"]
    assert [item["measure"] for item in explanations] == [*plan, "RR"]
    (explanation,) = service.get("participant", f"{submission_url}/explanations", params={"measure": "RR"})[
        "explanations"
    ]
    assert explanation["measure"] == "RR"


def test_explanations_are_kept_per_qrels_version(service, submission_url: str, track: str) -> None:
    request_explanation(service, submission_url, measures=["AP"])
    service.publish(track, relevance=CORRECTED)
    assert service.get("participant", f"{submission_url}/explanations")["explanations"] == []
    accepted = request_explanation(service, submission_url, measures=["AP"], qrels=1)
    service.run_jobs()
    (explanation,) = service.get("participant", accepted["links"]["explanations"])["explanations"]
    assert service.get("participant", accepted["links"]["explanations"])["qrels"] == 1
    scores = service.get("participant", f"{submission_url}/scores?measure=AP&qrels=1")["scores"]
    assert explanation["parts"]["judgments"]["as_lowest"] == scores[0]["value"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
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
def test_invalid_explanation_request_is_refused(
    service, submission_url: str, body: dict[str, Any], status: int, code: str
) -> None:
    answer = service.request("participant", "POST", f"{submission_url}/explanations", json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_explanation_without_published_judgments_is_refused(service) -> None:
    submission_url = service.accepted_submission(service.create_track())["links"]["self"]
    body = service.get("participant", f"{submission_url}/explanations")
    assert (body["qrels"], body["topics"], body["explanations"]) == (None, [], [])
    answer = service.request("participant", "POST", f"{submission_url}/explanations", json={})
    assert answer.json()["code"] == "qrels-not-published"


def test_scores_and_boards_report_their_scale(service) -> None:
    track = service.create_track(measures=["nDCG@10", "P@10", "NumRet"])
    service.publish(track)
    submission_url = service.accepted_submission(track, run_file())["links"]["self"]
    service.run_jobs()
    scores = {
        item["measure"]: item["scale"]
        for item in service.get("participant", f"{submission_url}/scores")["scores"]
    }
    assert {measure: scale["type"] for measure, scale in scores.items()} == {
        "nDCG@10": "neither",
        "P@10": "interval",
        "NumRet": "count",
    }
    assert scores["P@10"]["warning"] is None
    assert "mean" in scores["P@10"]["operations"]
    assert "mean" not in scores["nDCG@10"]["operations"]
    assert "a mean over topics requires an interval scale" in scores["nDCG@10"]["warning"]
    for measure, scale in scores.items():
        board = service.get("participant", f"/v1/tracks/{track}/leaderboard", params={"measure": measure})
        assert board["scale"] == scale
