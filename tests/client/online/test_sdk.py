"""Tests of the Python client against a gateway process and against failing connections."""

import io
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import zstandard

from cupel_client.api.client import Client, ServiceError, Unreachable
from support.patience import seconds

ASPECTS = {"relevance": {"labels": [0, 1, 2]}}
JUDGMENTS = "".join(f"t{t} 0 d{d} {d % 3}\n" for t in range(3) for d in range(9)).encode()
COLLECTION = b"qrels: [{file: a.txt, aspect: relevance}]"

names = (f"sdk-{number}" for number in count(1))


def run_of(documents: int, tag: str = "run") -> bytes:
    lines = (f"t{t} Q0 d{d} {d} {documents - d} {tag}\n" for t in range(3) for d in range(documents))
    return "".join(lines).encode()


@pytest.fixture
def house(server) -> Iterator[Client]:
    with server.client("house", "organiser") as client:
        yield client


@pytest.fixture
def alice(server) -> Iterator[Client]:
    with server.client("alice") as client:
        yield client


@pytest.fixture
def track(house: Client) -> str:
    name = next(names)
    house.create_track(name, title="x", aspects=ASPECTS, measures=["nDCG@10", "AP"])
    version = house.upload_qrels(name, COLLECTION, {"a.txt": JUDGMENTS})
    house.publish_qrels(name, version.number)
    assert list(house.watch_qrels(name, version.number))[-1].state == "current"
    return name


def test_submission_is_scored_and_ranked(alice: Client, track: str, worker: None, tmp_path: Path) -> None:
    path = tmp_path / "mine.run"
    path.write_bytes(run_of(9))
    submission = alice.submit(track, path)
    assert (submission.name, submission.team, submission.run.topics) == ("mine.run", "alice", 3)
    states = [state.state for state in alice.watch_submission(submission.id)]
    assert states[-1] == "scored"
    (row,) = alice.leaderboard(track).rows
    assert row.submission == submission.id
    assert [score.measure for score in alice.scores(submission.id)] == ["nDCG@10", "AP"]
    by_topic = alice.topic_scores(submission.id, "AP")
    assert [one.topic for one in by_topic.topics] == ["t0", "t1", "t2"]


def test_explanations_agree_with_scores(alice: Client, track: str, worker: None) -> None:
    submission = alice.submit(track, run_of(9)).id
    assert list(alice.watch_submission(submission))[-1].state == "scored"
    request = alice.explain(submission, measures=["MAP", "P@3"], about=["judgments", "scale"])
    assert request.measures == ("AP", "P@3")
    assert {list(alice.watch_job(job.id))[-1].state for job in request.jobs} == {"done"}
    stored = alice.explanations(submission, measures=request.measures, qrels=request.qrels)
    parts: dict[str, Any] = {item.measure: item.told for item in stored.explanations}
    (score,) = alice.scores(submission, measures=["AP"])
    assert parts["AP"]["judgments"]["as_lowest"] == score.value
    assert (stored.run_digest, stored.qrels_digest) == (score.run_digest, score.qrels_digest)
    assert score.scale is not None
    assert parts["AP"]["scale"]["warning"] == score.scale.warning
    assert parts["P@3"]["scale"]["type"] == "interval"
    assert alice.leaderboard(track, measure="AP").scale == score.scale


def test_large_plain_file_is_compressed_for_the_upload(alice: Client, track: str) -> None:
    content = run_of(5000)
    seen: list[Any] = []
    large = alice.submit(track, content, name="large", progress=seen.append)
    assert sum(seen) == len(content)
    assert large.run.bytes < len(content) / 3
    sent = io.BytesIO()
    alice.download(large.run.id, sent)
    assert zstandard.ZstdDecompressor().decompressobj().decompress(sent.getvalue()) == content
    packed = alice.submit(track, zstandard.compress(content), name="packed")
    assert packed.run.digest == large.run.digest


def test_refusal_lists_errors_with_their_lines(alice: Client, track: str) -> None:
    with pytest.raises(ServiceError) as refused:
        alice.submit(track, b"t0 Q0 d1 1 5 r\nt0 Q0 d1 2 4 r\nnonsense\n")
    problem = refused.value
    assert (problem.status, problem.code) == (422, "run-invalid")
    assert {error.line for error in problem.errors} == {2, 3}
    assert problem.request_id
    assert sum(problem.totals.values()) >= 2


def test_lists_include_all_pages(house: Client, alice: Client, track: str) -> None:
    made = [alice.submit(track, run_of(9)).id for _ in range(60)]
    assert [one.id for one in alice.submissions(track)] == made[::-1]
    assert track in {one.name for one in house.tracks()}


def test_the_same_key_hands_in_once(alice: Client, track: str) -> None:
    first, again = (alice.submit(track, run_of(9), key=f"{track}-k") for _ in range(2))
    assert first.id == again.id


def test_client_refuses_an_unknown_field_of_a_change(house: Client, track: str) -> None:
    assert house.change_track(track, title="new").title == "new"
    with pytest.raises(ServiceError) as refused:
        house.change_track(track, colour="red")
    assert (refused.value.status, refused.value.code) == (422, "request-invalid")
    assert [error.field for error in refused.value.errors] == ["body.colour"]


def test_resources_have_the_fields_and_states_of_the_service(house: Client, alice: Client) -> None:
    name = next(names)
    house.create_track(name, title="x", aspects=ASPECTS, measures=["AP"])
    submission = alice.submit(name, run_of(9))
    assert (submission.state, submission.state.name) == ("waiting", "WAITING")
    assert submission.profile_effects.keys() == {"single_precision", "rank_column"}
    alert = house.add_alert(name, "downsampling", "tau(AP)@50", below=0.9)
    assert alert.team == "house"
    assert {code.code for code in house.error_codes()} >= {"track-unknown", "run-columns"}
    assert house.service().name == "cupel"
    assert "nDCG" in {measure.name for measure in house.measures()}


def test_tokens_are_made_and_ended(server, house: Client) -> None:
    made = house.issue_token("house", "participant", label="ci")
    assert made.token
    with Client(server.url, made.token) as other:
        assert other.me().scope == "participant"
        house.revoke_token(made.prefix)
        with pytest.raises(ServiceError) as refused:
            other.me()
    assert refused.value.code == "token-refused"
    assert made.prefix in {token.prefix for token in house.tokens()}


def test_a_watch_goes_on_where_a_killed_gateway_left_it(server, alice: Client, track: str) -> None:
    from cupel_backend import job_execution
    from cupel_backend.job_handlers import HANDLERS
    from cupel_backend.scores import rescoring

    submission = alice.submit(track, run_of(9))
    states = alice.watch_submission(submission.id)
    assert next(states).state == "queued"
    server.stop(signal.SIGKILL)
    while job_execution.run_jobs(server.system, rescoring.QUEUE, HANDLERS):  # a turn may end before the job
        pass
    server.start()
    assert [state.state for state in states] == ["scored"]


def test_a_run_sent_to_a_gateway_that_dies_is_handed_in_once(server, alice: Client, track: str) -> None:
    sent = threading.Event()

    def kill_and_start(_: int) -> None:
        if not sent.is_set():
            sent.set()
            server.stop(signal.SIGKILL)
            server.start()

    submission = alice.submit(track, run_of(5000), progress=kill_and_start)
    assert sent.is_set()
    assert [one.id for one in alice.submissions(track)] == [submission.id]


class Moody(BaseHTTPRequestHandler):
    """Handler that counts requests, fails the first ones, and then answers."""

    moods: list[str]
    asked: list[str]
    url: str

    def _answer(self) -> None:
        self.asked.append(f"{self.command} {self.headers.get('Idempotency-Key', '')}".strip())
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        mood = self.moods.pop(0) if self.moods else "200"
        if mood == "break":
            self.connection.close()
            return
        status, _, after = mood.partition(" ")
        self.send_response(int(status))
        if after:
            self.send_header("Retry-After", after)
        body = b'{"team": "a", "scope": "admin", "prefix": "p", "items": [], "next": null, "code": "moody"}'
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def moody() -> Iterator[type[Moody]]:
    handler: type[Moody] = type("Today", (Moody,), {"moods": [], "asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        handler.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield handler
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("mood", ["503 0", "429 0", "409 0", "503"])
def test_what_passes_is_asked_again(moody: type[Moody], mood: str) -> None:
    moody.moods += [mood, mood]
    with Client(moody.url) as client:
        assert client.me().team == "a"
    assert len(moody.asked) == 3


def test_a_conflict_that_passes_is_the_services_failure(moody: type[Moody], cupel) -> None:
    moody.moods += ["409 0"] * 6 + ["409"]
    assert cupel("track", "list", CUPEL_URL=moody.url).exit_code == 3
    assert cupel("track", "list", CUPEL_URL=moody.url).exit_code == 2


def test_what_does_not_pass_is_asked_once(moody: type[Moody]) -> None:
    moody.moods += ["409", "500"]
    with Client(moody.url) as client:
        for status in (409, 500):
            with pytest.raises(ServiceError) as refused:
                client.me()
            assert (refused.value.status, refused.value.code) == (status, "moody")
    assert len(moody.asked) == 2


def test_a_broken_answer_is_asked_for_again_only_where_that_is_safe(moody: type[Moody]) -> None:
    moody.moods += ["break", "200", "break"]
    with Client(moody.url) as client:
        assert client.me().team == "a"
        with pytest.raises(Unreachable):
            client.issue_token("a", "admin")
    assert moody.asked == ["GET", "GET", "POST"]


def test_patience_ends(moody: type[Moody]) -> None:
    moody.moods += ["503 0"] * 10
    with Client(moody.url, attempts=3) as client, pytest.raises(ServiceError) as refused:
        client.me()
    assert refused.value.status == 503
    assert len(moody.asked) == 3


def test_counts_of_several_gateways_are_added_up(server, alice: Client) -> None:
    import httpx

    def counted() -> float:
        text = httpx.get(f"{server.url}/metrics", timeout=seconds(60)).text
        line = 'cupel_requests_total{method="GET",route="/v1/me",status="200"} '
        return sum(float(one.removeprefix(line)) for one in text.splitlines() if one.startswith(line))

    alice.me()
    before = counted()
    assert before >= 1
    server.stop()
    server.start()
    alice.me()
    assert counted() == before + 1
