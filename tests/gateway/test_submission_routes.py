"""Submissions over HTTP: validation, scoring, idempotency keys, and refused runs."""

import bz2
import gzip
import io
import json
import zipfile
from collections.abc import Iterator

import pytest
import zstandard

from support.service.gateway_service import run_file

MALFORMED = b"""t1 Q0 a 1 3.0 run
t1 Q0 b 2
t1 Q0 c 3 abc run
t1 Q0 a 4 1.0 run
"""


def test_accepted_run_is_scored_and_ranked(service, track: str) -> None:
    answer = service.submit(track, params={"name": "first.run"})
    assert answer.status_code == 202
    submission = answer.json()
    assert answer.headers["location"] == submission["links"]["self"]
    assert submission["state"] == "queued"
    assert (submission["run"]["topics"], submission["run"]["documents"]) == (2, 6)
    service.run_jobs()
    assert service.get("participant", answer.headers["location"])["state"] == "scored"
    (row,) = service.get("other participant", submission["links"]["leaderboard"])["rows"]
    assert (row["rank"], row["team"], row["name"], row["score"]) == (1, "alice", "first.run", 1.0)


def test_scores_are_returned_overall_and_by_topic(service, track: str) -> None:
    submission = service.accepted_submission(track, run_file(("t1", "cba"), ("t2", "bac")))
    service.run_jobs()
    links = submission["links"]
    scores = {item["measure"]: item for item in service.get("participant", links["scores"])["scores"]}
    assert list(scores) == service.get("participant", f"/v1/tracks/{track}")["measures"]
    topic_scores = service.get("participant", links["scores"] + "/topics?measure=nDCG@10")
    values = {item["topic"]: item["value"] for item in topic_scores["topics"]}
    assert values["t2"] == 1.0
    assert 0 < values["t1"] < 1
    assert topic_scores["score"] == scores["nDCG@10"]
    assert topic_scores["score"]["value"] == (values["t1"] + values["t2"]) / 2
    assert (scores["AP"]["exact"], scores["nDCG@10"]["exact"]) == ("19/24", None)  # the mean of 7/12 and 1
    only = service.get("participant", links["scores"], params={"measure": ["AP", "nDCG@10"]})["scores"]
    assert [item["measure"] for item in only] == ["AP", "nDCG@10"]


def test_malformed_run_is_refused_with_all_errors_and_not_stored(service, track: str) -> None:
    answer = service.submit(track, MALFORMED)
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["code"] == "run-invalid"
    assert {item["line"] for item in problem["errors"]} == {2, 3, 4}
    assert all(item["message"] and item["remedy"] for item in problem["errors"])
    assert len(problem["errors"]) == 3
    assert all(problem["totals"][item["code"]] == 1 for item in problem["errors"])
    assert service.get("participant", f"/v1/tracks/{track}/submissions")["items"] == []


def test_topic_ids_with_leading_zeros_are_mentioned_in_the_error(service, track: str) -> None:
    problem = service.submit(track, run_file(("t01", "abc"), ("t02", "abc"))).json()
    assert problem["code"] == "run-invalid"
    assert "t1" in json.dumps(problem["errors"]) or "t01" in json.dumps(problem["errors"])


def test_accepted_submission_includes_warnings(service, track: str) -> None:
    submission = service.accepted_submission(track, run_file(("t1", "abc"), ("t9", "abc")))
    codes = {item["code"] for item in submission["findings"]["warnings"]}
    assert len(codes) >= 2  # one topic of the track is missing, and one topic is unknown
    assert codes <= {item["code"] for item in service.get("stranger", "/v1/errors")["items"]}


def zipped(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("run.txt", content)
    return file.getvalue()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zstandard.compress, zipped])
def test_compressed_run_has_the_same_digest_and_is_downloaded_as_sent(service, track: str, pack) -> None:
    plain, packed = (
        service.accepted_submission(track),
        service.accepted_submission(track, sent := pack(run_file())),
    )
    assert packed["run"]["digest"] == plain["run"]["digest"]
    answer = service.request("participant", "GET", packed["links"]["file"])
    assert answer.content == sent
    assert answer.headers["content-disposition"].startswith("attachment")
    known = {"If-None-Match": answer.headers["etag"]}
    assert service.request("participant", "GET", packed["links"]["file"], headers=known).status_code == 304


def test_chunked_body_is_accepted(service, track: str) -> None:
    def pieces() -> Iterator[bytes]:
        yield from run_file().splitlines(keepends=True)

    assert service.submit(track, pieces()).status_code == 202


def test_repeated_key_returns_the_first_submission(service, track: str) -> None:
    key = {"Idempotency-Key": f"{track}-once"}
    first, again = (service.submit(track, headers=key) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    assert len(service.get("participant", f"/v1/tracks/{track}/submissions")["items"]) == 1


def test_key_is_bound_to_one_request_and_one_team(service, track: str) -> None:
    key = {"Idempotency-Key": f"{track}-mine"}
    first = service.submit(track, headers=key).json()
    other = service.submit(track, run_file(("t1", "cab")), headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    assert service.submit(track, headers=key, who="other participant").json()["id"] != first["id"]


def test_key_of_a_refused_run_can_be_used_again(service, track: str) -> None:
    key = {"Idempotency-Key": f"{track}-try"}
    assert service.submit(track, MALFORMED, headers=key).status_code == 422
    assert service.submit(track, headers=key).status_code == 202


@pytest.mark.parametrize("key", ["", "a" * 256, "tab\there"])
def test_invalid_key_is_refused(service, track: str, key: str) -> None:
    answer = service.submit(track, headers={"Idempotency-Key": key})
    assert (answer.status_code, answer.json()["code"]) == (422, "key-invalid")
    assert service.submit(track, headers={"Idempotency-Key": track.ljust(255, "x")}).status_code == 202


def test_repeated_content_without_key_is_a_new_submission_with_warning(service, track: str) -> None:
    first, again = service.accepted_submission(track), service.accepted_submission(track)
    assert first["id"] != again["id"]
    assert again["findings"]["totals"].get("run-content-repeated") == 1


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "application/json", "application/JSON"])
def test_form_is_refused_as_a_run(service, track: str, kind: str) -> None:
    answer = service.submit(track, headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["code"]) == (415, "content-type-unsupported")
    assert "--data-binary" in answer.json()["detail"]


@pytest.mark.parametrize(
    "content",
    [
        b"\n",
        b"\x00\x01\x02\x03",
        b"t1 Q0 \xff\xfe 1 1.0 run\n",
        b"\x7fELF\x02\x01\x01" + bytes(100),
        b"%PDF-1.7 not a run",
        b"\x1f\x8b\x08\x00 broken",
        gzip.compress(run_file(), mtime=0)[:-12],
        b"PK\x03\x04 broken",
        b"\x28\xb5\x2f\xfd broken",
        b"BZh9 broken",
        zipped(b""),
        b"\xef\xbb\xbf",
        b"#\n# ir_metadata.start\n#  - {\n# ir_metadata.end\n",
        b"a" * 100_000,
    ],
)
def test_content_that_is_not_a_run_is_refused_with_errors(service, track: str, content: bytes) -> None:
    answer = service.submit(track, content)
    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] == "run-invalid"
    assert answer.json()["errors"]


def test_empty_body_is_refused(service, track: str) -> None:
    answer = service.request("participant", "POST", f"/v1/tracks/{track}/submissions", content=b"")
    assert (answer.status_code, answer.json()["code"]) == (422, "run-invalid")


@pytest.mark.parametrize(
    "name",
    [
        "../../../etc/passwd",
        "..\\..\\windows.run",
        "überprüfung 日本語 🧪.run",
        'quo"te;name=.run',
        "a" * 1000,
        "new\nline\r\nX-Evil: 1",
        "nul\x00byte",
        "%2e%2e%2f",
        "\u202egpj.nur",
    ],
)
def test_file_name_is_sanitised(service, track: str, name: str) -> None:
    answer = service.submit(track, params={"name": name})
    assert answer.status_code == 202
    assert len(answer.json()["name"]) <= 200
    assert "/" not in answer.json()["name"]
    assert service.request("participant", "GET", answer.json()["links"]["file"]).content == run_file()


def test_closed_track_refuses_submissions(service, track: str) -> None:
    service.request("organiser", "PATCH", f"/v1/tracks/{track}", json={"closed": True})
    answer = service.submit(track)
    assert (answer.status_code, answer.json()["code"]) == (409, "track-closed")


def test_withdrawn_submission_leaves_the_board_but_can_be_read(service, track: str) -> None:
    submission = service.accepted_submission(track)
    service.run_jobs()
    for _ in range(2):
        withdrawn = service.request("participant", "DELETE", submission["links"]["self"])
        assert (withdrawn.status_code, withdrawn.json()["state"]) == (200, "withdrawn")
    assert service.get("participant", submission["links"]["leaderboard"])["rows"] == []
    assert service.get("participant", submission["links"]["self"])["withdrawn_at"]


def test_topic_scores_before_scoring_are_not_found(service, track: str) -> None:
    submission = service.accepted_submission(track)
    assert service.get("participant", submission["links"]["scores"])["scores"] == []
    answer = service.request("participant", "GET", submission["links"]["scores"] + "/topics?measure=AP")
    assert (answer.status_code, answer.json()["code"]) == (404, "score-unknown")


@pytest.mark.parametrize(
    "measure", ["nDGC@10", "P", "AP(rel=", "AP(aspect=beauty)", "__import__('os')", "\ud7ff"]
)
def test_invalid_measure_is_refused(service, track: str, measure: str) -> None:
    submission = service.accepted_submission(track)
    answer = service.request("participant", "GET", submission["links"]["scores"], params={"measure": measure})
    assert (answer.status_code, answer.json()["code"]) == (422, "measure-invalid")


def test_dead_evaluation_job_is_listed_and_can_be_revived(service, track: str) -> None:
    from cupel_backend import job_execution
    from cupel_backend.scores import rescoring

    def fail(system: object, claim: object) -> None:
        raise RuntimeError("failed on purpose")

    submission = service.accepted_submission(track)
    job_execution.run_jobs(service.system, rescoring.QUEUE, {"evaluate": fail})
    url = submission["links"]["self"]
    assert service.get("participant", url)["state"] == "dead"
    (dead,) = [
        item
        for item in service.get("organiser", "/v1/jobs?state=dead&limit=500")["items"]
        if item["submission"] == submission["id"]
    ]
    assert "failed on purpose" in dead["error"]
    assert service.request("organiser", "POST", f"/v1/jobs/{dead['id']}/revive").json()["state"] == "queued"
    again = service.request("organiser", "POST", f"/v1/jobs/{dead['id']}/revive")
    assert (again.status_code, again.json()["code"]) == (409, "job-not-dead")
    service.run_jobs()
    assert service.get("participant", url)["state"] == "scored"
