"""Judgments over HTTP: upload, publication, and the comparison of versions."""

import pytest

from support.service.gateway_service import COLLECTION, CORRECTED, CREDIBILITY, RELEVANCE, run_file


def test_uploaded_judgments_are_a_draft_until_published(service) -> None:
    track = service.create_track()
    answer = service.upload(track)
    assert answer.status_code == 201
    draft = answer.json()
    assert (draft["number"], draft["state"]) == (1, "draft")
    assert draft["counts"]
    assert service.get("participant", f"/v1/tracks/{track}/leaderboard")["qrels"] is None
    published = service.request("organiser", "POST", answer.headers["location"] + "/publish")
    assert published.status_code == 202
    assert published.headers["location"] == answer.headers["location"]
    service.run_jobs()
    assert service.get("participant", answer.headers["location"])["state"] == "current"
    assert service.get("participant", f"/v1/tracks/{track}/leaderboard")["qrels"] == 1


def test_corrected_judgments_rescore_submissions_and_report_rank_changes(service, track: str) -> None:
    service.accepted_submission(track, run_file(("t1", "abc"), ("t2", "bac")), name="old-favourite")
    service.accepted_submission(
        track, run_file(("t1", "cba"), ("t2", "abc")), who="other participant", name="late-winner"
    )
    service.run_jobs()
    assert service.publish(track, relevance=CORRECTED) == 2
    diff = service.get("participant", f"/v1/tracks/{track}/qrels/2/diff?from=1&measure=nDCG@10")
    rows = {row["name"]: row for row in diff["rows"]}
    assert (rows["old-favourite"]["old_rank"], rows["old-favourite"]["new_rank"]) == (1, 2)
    assert (rows["late-winner"]["old_rank"], rows["late-winner"]["new_rank"]) == (2, 1)
    assert rows["late-winner"]["new_score"] > rows["late-winner"]["old_score"]
    assert (
        service.get("participant", f"/v1/tracks/{track}/leaderboard?qrels=1")["rows"][0]["name"]
        == "old-favourite"
    )
    assert service.get("participant", f"/v1/tracks/{track}/leaderboard")["rows"][0]["name"] == "late-winner"
    assert service.get("participant", f"/v1/tracks/{track}/qrels/1")["state"] == "superseded"


def test_republishing_is_a_no_op_and_older_version_is_refused(service, track: str) -> None:
    older = service.upload(track).json()["number"]
    service.publish(track, relevance=CORRECTED)
    again = service.request("organiser", "POST", f"/v1/tracks/{track}/qrels/{older + 1}/publish")
    assert (again.status_code, again.json()["state"]) == (202, "current")
    back = service.request("organiser", "POST", f"/v1/tracks/{track}/qrels/{older}/publish")
    assert (back.status_code, back.json()["code"]) == (409, "qrels-older")


def test_all_errors_are_reported_with_file_and_line(service) -> None:
    track = service.create_track()
    answer = service.upload(track, relevance=b"t1 0 a 7\nt1 0 b\nt1 0 c 1\nt1 0 c 2\n")
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["code"] == "qrels-invalid"
    assert {(item["file"], item["line"]) for item in problem["errors"]} >= {
        ("qrels/relevance.txt", 1),
        ("qrels/relevance.txt", 2),
        ("qrels/relevance.txt", 4),
    }
    assert service.get("organiser", f"/v1/tracks/{track}/qrels")["items"] == []


NO_SUBTOPICS_MESSAGE = (
    "alpha_nDCG@10: it needs judgments by subtopic, and this collection has none; "
    "add a qrels file with layout: subtopics"
)
SUBTOPIC_JUDGMENTS = b"t1 s1 a 1\nt2 s1 b 1\n"
COLLECTION_WITH_SUBTOPICS = COLLECTION + b"  - {file: subtopics.txt, layout: subtopics}\n"


def parts_with_subtopics() -> list[tuple[str, tuple[str, bytes]]]:
    return [
        part("collection", "c", COLLECTION_WITH_SUBTOPICS),
        *GOOD,
        part("files", "subtopics.txt", SUBTOPIC_JUDGMENTS),
    ]


class TestPlanAndJudgments:
    """Measures that cannot be computed from the judgments are refused before any job runs."""

    def test_judgments_without_subtopics_are_refused_if_the_plan_needs_them(self, service) -> None:
        track = service.create_track(measures=["nDCG@10", "alpha_nDCG@10", "StRecall@5"])
        answer = service.upload(track)
        assert (answer.status_code, answer.json()["code"]) == (422, "qrels-invalid")
        first, second = answer.json()["errors"]
        assert (first["code"], first["message"]) == ("qrels-measure", NO_SUBTOPICS_MESSAGE)
        assert second["message"].startswith("StRecall@5: it needs judgments by subtopic")
        assert service.get("organiser", f"/v1/tracks/{track}/qrels")["items"] == []
        answer = service.upload(track, parts=parts_with_subtopics())
        assert answer.status_code == 201, answer.text
        assert (
            service.request("organiser", "POST", answer.headers["location"] + "/publish").status_code == 202
        )
        received = service.accepted_submission(track)
        service.run_jobs()
        scores = service.get("participant", f"/v1/submissions/{received['id']}/scores")["scores"]
        assert [item["measure"] for item in scores] == ["nDCG@10", "alpha_nDCG@10", "StRecall@5"]

    def test_draft_is_refused_if_the_extended_plan_does_not_fit(self, service) -> None:
        track = service.create_track()
        address = service.upload(track).headers["location"]
        body = {"measures": ["nDCG@10", "alpha_nDCG@10"]}
        assert service.request("organiser", "PATCH", f"/v1/tracks/{track}", json=body).status_code == 200
        answer = service.request("organiser", "POST", address + "/publish")
        assert (answer.status_code, answer.json()["code"]) == (422, "qrels-invalid")
        assert [item["message"] for item in answer.json()["errors"]] == [NO_SUBTOPICS_MESSAGE]
        assert service.get("organiser", address)["state"] == "draft"

    def test_plan_change_is_refused_if_published_judgments_do_not_fit(self, service, track: str) -> None:
        body = {"measures": ["nDCG@10", "alpha_nDCG@10"]}
        answer = service.request("organiser", "PATCH", f"/v1/tracks/{track}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "measure-invalid")
        assert answer.json()["detail"] == NO_SUBTOPICS_MESSAGE
        assert "alpha_nDCG@10" not in service.get("organiser", f"/v1/tracks/{track}")["measures"]

    def test_single_observed_class_is_refused_at_upload(self, service) -> None:
        track = service.create_track(measures=["TOMA(of=AP,label_set=observed)"])
        answer = service.upload(track, parts=ONE_CLASS)
        assert (answer.status_code, answer.json()["code"]) == (422, "qrels-invalid")
        [error] = answer.json()["errors"]
        assert error["message"].endswith("at least two classes are needed")


def part(name: str, file: str, content: bytes) -> tuple[str, tuple[str, bytes]]:
    return name, (file, content)


GOOD = [part("files", "qrels/relevance.txt", RELEVANCE), part("files", "qrels/credibility.txt", CREDIBILITY)]


ONE_CLASS = [
    part("collection", "c", COLLECTION),
    part("files", "qrels/relevance.txt", b"t1 0 a 2\n"),
    part("files", "qrels/credibility.txt", b"t1 0 a high\n"),
]


def test_document_scores_become_labels_of_an_aspect(service) -> None:
    aspects = {"relevance": {"labels": [0, 1, 2]}, "popularity": {"labels": [0, 1, 2]}}
    track = service.create_track(
        aspects=aspects, measures=["P(aspect=popularity,rel=2)@1", "TOMA(of=nDCG@10)"]
    )
    text = (
        b"qrels:\n  - {file: qrels/relevance.txt, aspect: relevance}\n"
        b"  - {file: pagerank.txt, layout: scores, aspect: popularity, shares: [0.25, 0.5]}\n"
    )
    parts = [part("collection", "c", text), GOOD[0]]
    refused = service.upload(track, parts=[*parts, part("files", "pagerank.txt", b"a 0.5\nb x\nc\n")])
    assert (refused.status_code, refused.json()["code"]) == (422, "qrels-invalid")
    assert [(item["file"], item["line"], item["code"]) for item in refused.json()["errors"]] == [
        ("pagerank.txt", 2, "scores-number"),
        ("pagerank.txt", 3, "qrels-columns"),
    ]
    answer = service.upload(track, parts=[*parts, part("files", "pagerank.txt", b"b 9\na 5\nx 1\ny 0\n")])
    assert answer.status_code == 201, answer.text
    assert answer.json()["counts"]["judgments"] == {"relevance": 5, "popularity": 5}
    assert service.request("organiser", "POST", answer.headers["location"] + "/publish").status_code == 202
    received = service.accepted_submission(track, run_file(("t1", "abc"), ("t2", "bac")))
    service.run_jobs()
    scores = service.get("participant", f"/v1/submissions/{received['id']}/scores")["scores"]
    assert scores[0]["value"] == 0.5  # b has the best label, and a the second best


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        (GOOD, "form-invalid"),
        ([part("collection", "c", COLLECTION)], "qrels-invalid"),
        ([part("collection", "c", COLLECTION), GOOD[0], GOOD[0]], "form-invalid"),
        (
            [part("collection", "c", b"qrels: [{file: ../../../etc/passwd, aspect: relevance}]"), *GOOD],
            "qrels-invalid",
        ),
        (
            [part("collection", "c", b"qrels: [{file: /etc/passwd, aspect: relevance}]"), *GOOD],
            "qrels-invalid",
        ),
        ([part("collection", "c", b"{not: [yaml"), *GOOD], "qrels-invalid"),
        ([part("collection", "c", b"\xff\xfe\x00"), *GOOD], "qrels-invalid"),
        ([part("collection", "c", b""), *GOOD], "qrels-invalid"),
        ([part("collection", "c", b"a: &a [*a]\nqrels: *a"), *GOOD], "qrels-invalid"),
        ([part("collection", "c", b"!!python/object/apply:os.system ['true']"), *GOOD], "qrels-invalid"),
        ([part("collection", "c", b"[" * 5000), *GOOD], "qrels-invalid"),
    ],
)
def test_invalid_form_is_refused(service, parts, code: str) -> None:
    answer = service.upload(service.create_track(), parts=parts)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text


@pytest.mark.parametrize(
    "name", ["../../evil.txt", "/etc/cron.d/evil", "日本語 🧪.txt", 'qu"ote.txt', "a" * 300]
)
def test_part_name_never_reaches_the_file_system(service, tmp_path, name: str) -> None:
    import json

    text = json.dumps({"qrels": [{"file": name, "aspect": "relevance"}]}).encode()
    parts = [part("collection", "c.json", text), part("files", name, RELEVANCE)]
    answer = service.upload(service.create_track(), parts=parts)
    assert answer.status_code in (201, 422), answer.text
    root = service.system.settings.data
    assert not list(root.rglob("*evil*"))
    assert not list(root.parent.glob("evil*"))


@pytest.mark.parametrize(
    ("kind", "content", "status"),
    [
        ("application/json", b"{}", 415),
        ("multipart/form-data", b"x", 400),
        ("multipart/form-data; boundary=x", b"nonsense", 400),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: nothing\r\n\r\n--x--", 400),
        ("multipart/form-data; boundary=x", b"", 422),
    ],
)
def test_body_that_is_not_a_form_is_refused(service, kind: str, content: bytes, status: int) -> None:
    answer = service.request(
        "organiser",
        "POST",
        f"/v1/tracks/{service.create_track()}/qrels",
        content=content,
        headers={"Content-Type": kind},
    )
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("number", ["0", "-1", "2147483648", "9" * 100, "x", "%C2%B2"])
def test_invalid_version_number_is_refused(service, track: str, number: str) -> None:
    answer = service.request("organiser", "GET", f"/v1/tracks/{track}/qrels/{number}")
    assert (answer.status_code, answer.json()["code"]) == (422, "request-invalid")


def test_unknown_version_is_not_found(service, track: str) -> None:
    for path in ("qrels/77", "qrels/77/events"):
        answer = service.request("organiser", "GET", f"/v1/tracks/{track}/{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "qrels-unknown")
    for path in ("leaderboard?qrels=77", "qrels/1/diff?from=77&measure=AP"):
        answer = service.request("organiser", "GET", f"/v1/tracks/{track}/{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "qrels-not-published")


def test_too_many_files_are_refused_with_the_limit(service) -> None:
    track = service.create_track()
    many = [part("files", f"{number}.txt", b"") for number in range(100)]
    answer = service.upload(track, parts=[part("collection", "c", COLLECTION), *many])
    assert answer.status_code == 400
    assert "Maximum number of files is 100." in answer.json()["detail"]
    assert service.upload(track, parts=[part("collection", "c", COLLECTION), *many[1:]]).status_code == 422


@pytest.mark.parametrize("who", ["participant", "other organiser"])
def test_forbidden_upload_is_refused_before_the_body_is_read(service, who: str) -> None:
    track = service.create_track()
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = service.request(who, "POST", f"/v1/tracks/{track}/qrels", content=b"nonsense", headers=kind)
    assert (answer.status_code, answer.json()["code"]) == (403, "qrels-forbidden")


def test_track_judged_by_subtopic_only_needs_no_aspects(service) -> None:
    body = {"name": "by-subtopic", "title": "Answers", "measures": ["alpha_nDCG@5"]}
    assert service.request("organiser", "POST", "/v1/tracks", json=body).status_code == 201
    collection = b"qrels: [{file: d, layout: subtopics}]\ntopics: t\n"
    judged = b"t1 s a 1\nt1 s b 0\nt2 s b 1\n"
    parts = [
        ("collection", ("c.yaml", collection)),
        ("files", ("d", judged)),
        ("files", ("t", b"t1\nt2\nt3\n")),
    ]
    answer = service.upload("by-subtopic", parts=parts)
    assert answer.status_code == 201, answer.text
    assert (answer.json()["counts"]["topics"], answer.json()["counts"]["unjudged_topics"]) == (2, ["t3"])
    assert list(answer.json()["findings"]["totals"]) == ["qrels-topic-without-judgments"]
    service.request("organiser", "POST", answer.headers["location"] + "/publish")
    sent = service.accepted_submission("by-subtopic", run_file(("t1", "ab"), ("t2", "b"), ("t3", "a")))
    service.run_jobs()
    found = service.get("participant", f"/v1/submissions/{sent['id']}/scores/topics?measure=alpha_nDCG@5")
    assert (found["score"]["value"], found["score"]["topics"]) == (1.0, 2)
    assert [item["topic"] for item in found["topics"]] == ["t1", "t2"]
    assert found["unjudged_topics"] == ["t3"]
