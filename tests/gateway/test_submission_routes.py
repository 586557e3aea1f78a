"""Handing in runs over HTTP: the verdict, the answer to a repeated request, and what is refused."""

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


def test_a_run_is_accepted_scored_and_ranked(service, track: str) -> None:
    answer = service.submit(track, params={"name": "first.run"})
    assert answer.status_code == 202
    submission = answer.json()
    assert answer.headers["location"] == submission["links"]["self"]
    assert submission["state"] == "queued"
    assert (submission["run"]["topics"], submission["run"]["documents"]) == (2, 6)
    service.work()
    assert service.get("participant", answer.headers["location"])["state"] == "scored"
    (row,) = service.get("other participant", submission["links"]["leaderboard"])["rows"]
    assert (row["rank"], row["team"], row["name"], row["score"]) == (1, "alice", "first.run", 1.0)


def test_scores_come_whole_and_by_topic(service, track: str) -> None:
    submission = service.submitted(track, run_file(("t1", "cba"), ("t2", "bac")))
    service.work()
    links = submission["links"]
    scores = {one["measure"]: one for one in service.get("participant", links["scores"])["scores"]}
    assert list(scores) == service.get("participant", f"/v1/tracks/{track}")["measures"]
    by_topic = service.get("participant", links["scores"] + "/topics?measure=nDCG@10")
    values = {one["topic"]: one["value"] for one in by_topic["topics"]}
    assert values["t2"] == 1.0
    assert 0 < values["t1"] < 1
    assert by_topic["score"] == scores["nDCG@10"]
    assert by_topic["score"]["value"] == (values["t1"] + values["t2"]) / 2
    assert (scores["AP"]["exact"], scores["nDCG@10"]["exact"]) == ("19/24", None)  # of 7/12 and 1
    only = service.get("participant", links["scores"], params={"measure": ["AP", "nDCG@10"]})["scores"]
    assert [one["measure"] for one in only] == ["AP", "nDCG@10"]


def test_a_malformed_run_gets_every_error_with_its_line_and_nothing_is_kept(service, track: str) -> None:
    answer = service.submit(track, MALFORMED)
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["code"] == "run-invalid"
    assert {one["line"] for one in problem["errors"]} == {2, 3, 4}
    assert all(one["message"] and one["remedy"] for one in problem["errors"])
    assert len(problem["errors"]) == 3
    assert all(problem["totals"][one["code"]] == 1 for one in problem["errors"])
    assert service.get("participant", f"/v1/tracks/{track}/submissions")["items"] == []


def test_ids_that_differ_by_leading_zeros_are_hinted_at(service, track: str) -> None:
    problem = service.submit(track, run_file(("t01", "abc"), ("t02", "abc"))).json()
    assert problem["code"] == "run-invalid"
    assert "t1" in json.dumps(problem["errors"]) or "t01" in json.dumps(problem["errors"])


def test_warnings_come_with_the_acceptance(service, track: str) -> None:
    submission = service.submitted(track, run_file(("t1", "abc"), ("t9", "abc")))
    codes = {one["code"] for one in submission["findings"]["warnings"]}
    assert len(codes) >= 2  # a topic of the track is missing, and one is not of the track
    assert codes <= {one["code"] for one in service.get("stranger", "/v1/errors")["items"]}


def zipped(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("run.txt", content)
    return file.getvalue()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zstandard.compress, zipped])
def test_a_compressed_run_is_the_same_run_and_comes_back_as_it_was_sent(service, track: str, pack) -> None:
    plain, packed = service.submitted(track), service.submitted(track, sent := pack(run_file()))
    assert packed["run"]["digest"] == plain["run"]["digest"]
    answer = service.ask("participant", "GET", packed["links"]["file"])
    assert answer.content == sent
    assert answer.headers["content-disposition"].startswith("attachment")
    known = {"If-None-Match": answer.headers["etag"]}
    assert service.ask("participant", "GET", packed["links"]["file"], headers=known).status_code == 304


def test_a_chunked_body_is_as_good_as_one_of_known_length(service, track: str) -> None:
    def pieces() -> Iterator[bytes]:
        yield from run_file().splitlines(keepends=True)

    assert service.submit(track, pieces()).status_code == 202


def test_the_same_key_answers_with_the_first_submission(service, track: str) -> None:
    key = {"Idempotency-Key": f"{track}-once"}
    first, again = (service.submit(track, headers=key) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    assert len(service.get("participant", f"/v1/tracks/{track}/submissions")["items"]) == 1


def test_a_key_belongs_to_one_request_of_one_team(service, track: str) -> None:
    key = {"Idempotency-Key": f"{track}-mine"}
    first = service.submit(track, headers=key).json()
    other = service.submit(track, run_file(("t1", "cab")), headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    assert service.submit(track, headers=key, who="other participant").json()["id"] != first["id"]


def test_a_refused_run_frees_its_key(service, track: str) -> None:
    key = {"Idempotency-Key": f"{track}-try"}
    assert service.submit(track, MALFORMED, headers=key).status_code == 422
    assert service.submit(track, headers=key).status_code == 202


@pytest.mark.parametrize("key", ["", "a" * 256, "tab\there"])
def test_a_key_has_to_be_short_and_plain(service, track: str, key: str) -> None:
    answer = service.submit(track, headers={"Idempotency-Key": key})
    assert (answer.status_code, answer.json()["code"]) == (422, "key-invalid")
    assert service.submit(track, headers={"Idempotency-Key": track.ljust(255, "x")}).status_code == 202


def test_without_a_key_the_same_content_is_a_new_submission_and_warned(service, track: str) -> None:
    first, again = service.submitted(track), service.submitted(track)
    assert first["id"] != again["id"]
    assert again["findings"]["totals"].get("run-content-repeated") == 1


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "application/json", "application/JSON"])
def test_a_form_is_no_run(service, track: str, kind: str) -> None:
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
def test_what_is_no_run_is_refused_with_reasons_and_never_fails(service, track: str, content: bytes) -> None:
    answer = service.submit(track, content)
    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] == "run-invalid"
    assert answer.json()["errors"]


def test_an_empty_body_is_no_run(service, track: str) -> None:
    answer = service.ask("participant", "POST", f"/v1/tracks/{track}/submissions", content=b"")
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
def test_any_file_name_is_only_a_name(service, track: str, name: str) -> None:
    answer = service.submit(track, params={"name": name})
    assert answer.status_code == 202
    assert len(answer.json()["name"]) <= 200
    assert "/" not in answer.json()["name"]
    assert service.ask("participant", "GET", answer.json()["links"]["file"]).content == run_file()


def test_a_closed_track_takes_nothing(service, track: str) -> None:
    service.ask("organiser", "PATCH", f"/v1/tracks/{track}", json={"closed": True})
    answer = service.submit(track)
    assert (answer.status_code, answer.json()["code"]) == (409, "track-closed")


def test_a_withdrawn_submission_leaves_the_board_and_stays_known(service, track: str) -> None:
    submission = service.submitted(track)
    service.work()
    for _ in range(2):
        withdrawn = service.ask("participant", "DELETE", submission["links"]["self"])
        assert (withdrawn.status_code, withdrawn.json()["state"]) == (200, "withdrawn")
    assert service.get("participant", submission["links"]["leaderboard"])["rows"] == []
    assert service.get("participant", submission["links"]["self"])["withdrawn_at"]


def test_a_score_that_is_not_there_yet_is_not_found(service, track: str) -> None:
    submission = service.submitted(track)
    assert service.get("participant", submission["links"]["scores"])["scores"] == []
    answer = service.ask("participant", "GET", submission["links"]["scores"] + "/topics?measure=AP")
    assert (answer.status_code, answer.json()["code"]) == (404, "score-unknown")


@pytest.mark.parametrize(
    "measure", ["nDGC@10", "P", "AP(rel=", "AP(aspect=beauty)", "__import__('os')", "\ud7ff"]
)
def test_a_wrong_measure_is_explained(service, track: str, measure: str) -> None:
    submission = service.submitted(track)
    answer = service.ask("participant", "GET", submission["links"]["scores"], params={"measure": measure})
    assert (answer.status_code, answer.json()["code"]) == (422, "measure-invalid")


def test_a_failed_evaluation_is_seen_and_can_be_revived(service, track: str) -> None:
    from cupel_backend import job_execution
    from cupel_backend.scores import rescoring

    def broken(system: object, claim: object) -> None:
        raise RuntimeError("out of order")

    submission = service.submitted(track)
    job_execution.run_jobs(service.system, rescoring.QUEUE, {"evaluate": broken})
    here = submission["links"]["self"]
    assert service.get("participant", here)["state"] == "dead"
    (dead,) = [
        one
        for one in service.get("organiser", "/v1/jobs?state=dead&limit=500")["items"]
        if one["submission"] == submission["id"]
    ]
    assert "out of order" in dead["error"]
    assert service.ask("organiser", "POST", f"/v1/jobs/{dead['id']}/revive").json()["state"] == "queued"
    again = service.ask("organiser", "POST", f"/v1/jobs/{dead['id']}/revive")
    assert (again.status_code, again.json()["code"]) == (409, "job-not-dead")
    service.work()
    assert service.get("participant", here)["state"] == "scored"
