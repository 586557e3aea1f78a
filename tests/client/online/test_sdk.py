"""Tests of the Python client with a gateway process, and with a server that fails."""

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

from cupel_client.api import transport
from cupel_client.api.client import Client, ServiceError, Unreachable
from support.patience import seconds, until

ASPECTS = {"relevance": {"labels": [0, 1, 2]}}
JUDGMENTS = "".join(f"t{t} 0 d{d} {d % 3}\n" for t in range(3) for d in range(9)).encode()
COLLECTION = b"qrels: [{file: a.txt, aspect: relevance}]"

names = (f"sdk-{number}" for number in count(1))


def run_of(documents: int, tag: str = "run") -> bytes:
    lines = (f"t{t} Q0 d{d} {d} {documents - d} {tag}\n" for t in range(3) for d in range(documents))
    return "".join(lines).encode()


@pytest.fixture
def organiser(server) -> Iterator[Client]:
    with server.client("house", "organiser") as client:
        yield client


@pytest.fixture
def alice(server) -> Iterator[Client]:
    with server.client("alice") as client:
        yield client


@pytest.fixture
def track(organiser: Client) -> str:
    name = next(names)
    organiser.create_track(name, title="x", aspects=ASPECTS, measures=["nDCG@10", "AP"])
    version = organiser.upload_qrels(name, COLLECTION, {"a.txt": JUDGMENTS})
    organiser.publish_qrels(name, version.number)
    assert list(organiser.watch_qrels(name, version.number))[-1].state == "current"
    return name


def test_submitted_run_is_scored_and_ranked(alice: Client, track: str, worker: None, tmp_path: Path) -> None:
    path = tmp_path / "mine.run"
    path.write_bytes(run_of(9))
    submission = alice.submit(track, path)
    assert (submission.name, submission.team, submission.run.topics) == ("mine.run", "alice", 3)
    states = [state.state for state in alice.watch_submission(submission.id)]
    assert states[-1] == "scored"
    (row,) = alice.leaderboard(track).rows
    assert row.submission == submission.id
    assert [score.measure for score in alice.scores(submission.id)] == ["nDCG@10", "AP"]
    topic_scores = alice.topic_scores(submission.id, "AP")
    assert [score.topic for score in topic_scores.topics] == ["t0", "t1", "t2"]


def test_scores_have_explanations_and_scale_types(alice: Client, track: str, worker: None) -> None:
    submission = alice.submit(track, run_of(9)).id
    assert list(alice.watch_submission(submission))[-1].state == "scored"
    requested = alice.explain(submission, measures=["MAP", "P@3"], about=["judgments", "scale"])
    assert requested.measures == ("AP", "P@3")
    assert {list(alice.watch_job(job.id))[-1].state for job in requested.jobs} == {"done"}
    found = alice.explanations(submission, measures=requested.measures, qrels=requested.qrels)
    explanations: dict[str, Any] = {
        explanation.measure: explanation.parts for explanation in found.explanations
    }
    (score,) = alice.scores(submission, measures=["AP"])
    assert explanations["AP"]["judgments"]["as_lowest"] == score.value
    assert (found.run_digest, found.qrels_digest) == (score.run_digest, score.qrels_digest)
    assert score.scale is not None
    assert explanations["AP"]["scale"]["warning"] == score.scale.warning
    assert explanations["P@3"]["scale"]["type"] == "interval"
    assert alice.leaderboard(track, measure="AP").scale == score.scale


def test_large_plain_file_is_compressed_for_the_upload(alice: Client, track: str) -> None:
    content = run_of(5000)
    progress: list[Any] = []
    large = alice.submit(track, content, name="large", progress=progress.append)
    assert sum(progress) == len(content)
    assert large.run.bytes < len(content) / 3
    stored = io.BytesIO()
    alice.download(large.run.id, stored)
    assert zstandard.ZstdDecompressor().decompressobj().decompress(stored.getvalue()) == content
    compressed = alice.submit(track, zstandard.compress(content), name="packed")
    assert compressed.run.digest == large.run.digest


def test_invalid_run_raises_an_error_with_code_and_lines(alice: Client, track: str) -> None:
    with pytest.raises(ServiceError) as refused:
        alice.submit(track, b"t0 Q0 d1 1 5 r\nt0 Q0 d1 2 4 r\nnonsense\n")
    problem = refused.value
    assert (problem.status, problem.code) == (422, "run-invalid")
    assert {error.line for error in problem.errors} == {2, 3}
    assert problem.request_id
    assert sum(problem.totals.values()) >= 2


def test_lists_read_all_pages(organiser: Client, alice: Client, track: str) -> None:
    ids = [alice.submit(track, run_of(9)).id for _ in range(60)]
    assert [submission.id for submission in alice.submissions(track)] == ids[::-1]
    assert track in {listed.name for listed in organiser.tracks()}


def test_repeated_idempotency_key_creates_one_submission(alice: Client, track: str) -> None:
    first, second = (alice.submit(track, run_of(9), key=f"{track}-k") for _ in range(2))
    assert first.id == second.id


def test_unknown_field_of_a_change_is_refused(organiser: Client, track: str) -> None:
    assert organiser.change_track(track, title="new").title == "new"
    with pytest.raises(ServiceError) as refused:
        organiser.change_track(track, colour="red")
    assert (refused.value.status, refused.value.code) == (422, "request-invalid")
    assert [error.field for error in refused.value.errors] == ["body.colour"]


def test_resources_have_the_fields_and_states_of_the_service(organiser: Client, alice: Client) -> None:
    name = next(names)
    organiser.create_track(name, title="x", aspects=ASPECTS, measures=["AP"])
    submission = alice.submit(name, run_of(9))
    assert (submission.state, submission.state.name) == ("waiting", "WAITING")
    assert submission.profile_effects.keys() == {"single_precision", "rank_column"}
    alert = organiser.add_alert(name, "downsampling", "tau(AP)@50", below=0.9)
    assert alert.team == "house"
    assert {code.code for code in organiser.error_codes()} >= {"track-unknown", "run-columns"}
    assert organiser.service().name == "cupel"
    assert "nDCG" in {measure.name for measure in organiser.measures()}


def test_tokens_are_issued_and_revoked(server, organiser: Client) -> None:
    issued = organiser.issue_token("house", "participant", label="ci")
    assert issued.token
    with Client(server.url, issued.token) as other:
        assert other.me().scope == "participant"
        organiser.revoke_token(issued.prefix)
        with pytest.raises(ServiceError) as refused:
            other.me()
    assert refused.value.code == "token-refused"
    assert issued.prefix in {token.prefix for token in organiser.tokens()}


def test_watch_continues_after_the_gateway_was_killed(server, alice: Client, track: str) -> None:
    from cupel_backend import job_execution
    from cupel_backend.job_handlers import HANDLERS
    from cupel_backend.scores import rescoring

    submission = alice.submit(track, run_of(9))
    states = alice.watch_submission(submission.id)
    assert next(states).state == "queued"
    server.stop(signal.SIGKILL)
    while job_execution.run_jobs(
        server.system, rescoring.QUEUE, HANDLERS
    ):  # `run_jobs` may return before the job ends
        pass
    server.start()
    assert [state.state for state in states] == ["scored"]


def test_upload_interrupted_by_a_killed_gateway_creates_one_submission(
    server, alice: Client, track: str
) -> None:
    killed = threading.Event()

    def restart_gateway(_: int) -> None:
        if not killed.is_set():
            killed.set()
            server.stop(signal.SIGKILL)
            server.start()

    submission = alice.submit(track, run_of(5000), progress=restart_gateway)
    assert killed.is_set()
    assert [listed.id for listed in alice.submissions(track)] == [submission.id]


class FailingHandler(BaseHTTPRequestHandler):
    """Handler that records requests, and fails the first ones with `failures`, one entry per request.

    failures: "break" to close the connection, or a status, optionally followed by a Retry-After value.
    """

    failures: list[str]
    requests: list[str]
    ports: set[int]
    """Ports of the client, one for each connection."""
    url: str

    def _respond(self) -> None:
        self.ports.add(self.client_address[1])
        self.requests.append(f"{self.command} {self.headers.get('Idempotency-Key', '')}".strip())
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        failure = self.failures.pop(0) if self.failures else "200"
        if failure == "break":
            self.connection.close()
            return
        status, _, retry_after = failure.partition(" ")
        self.send_response(int(status))
        if retry_after:
            self.send_header("Retry-After", retry_after)
        body = b'{"team": "a", "scope": "admin", "prefix": "p", "items": [], "next": null, "code": "failed"}'
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _respond  # noqa: N815

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def failing() -> Iterator[type[FailingHandler]]:
    attributes: dict[str, object] = {"failures": [], "requests": [], "ports": set()}
    handler: type[FailingHandler] = type("Handler", (FailingHandler,), attributes)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        handler.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield handler
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("failure", ["503 0", "429 0", "409 0", "503"])
def test_temporary_failure_is_retried(failing: type[FailingHandler], failure: str) -> None:
    failing.failures += [failure, failure]
    with Client(failing.url) as client:
        assert client.me().team == "a"
    assert len(failing.requests) == 3


def test_exit_code_distinguishes_temporary_and_permanent_conflicts(
    failing: type[FailingHandler], cupel
) -> None:
    failing.failures += ["409 0"] * 6 + ["409"]
    assert cupel("track", "list", CUPEL_URL=failing.url).exit_code == 3
    assert cupel("track", "list", CUPEL_URL=failing.url).exit_code == 2


def test_permanent_failure_is_not_retried(failing: type[FailingHandler]) -> None:
    failing.failures += ["409", "500"]
    with Client(failing.url) as client:
        for status in (409, 500):
            with pytest.raises(ServiceError) as refused:
                client.me()
            assert (refused.value.status, refused.value.code) == (status, "failed")
    assert len(failing.requests) == 2


def test_broken_connection_is_retried_only_for_idempotent_requests(failing: type[FailingHandler]) -> None:
    failing.failures += ["break", "200", "break"]
    with Client(failing.url) as client:
        assert client.me().team == "a"
        with pytest.raises(Unreachable):
            client.issue_token("a", "admin")
    assert failing.requests == ["GET", "GET", "POST"]


@pytest.mark.parametrize(("limit", "connections"), [(60.0, 1), (0.0, 2)])
def test_connection_that_was_idle_for_too_long_is_not_used_again(
    failing: type[FailingHandler], monkeypatch: pytest.MonkeyPatch, limit: float, connections: int
) -> None:
    """A request on a connection that the gateway closes at the same time would be lost."""
    monkeypatch.setattr(failing, "protocol_version", "HTTP/1.1")
    monkeypatch.setattr(transport, "MAX_IDLE_SECONDS", limit)
    with Client(failing.url) as client:
        client.me()
        client.me()
    assert len(failing.ports) == connections


def test_retries_end_after_the_given_number_of_attempts(failing: type[FailingHandler]) -> None:
    failing.failures += ["503 0"] * 10
    with Client(failing.url, attempts=3) as client, pytest.raises(ServiceError) as refused:
        client.me()
    assert refused.value.status == 503
    assert len(failing.requests) == 3


def test_metrics_sum_the_counts_of_all_gateway_processes(server, alice: Client) -> None:
    import httpx

    def count_requests() -> float:
        text = httpx.get(f"{server.url}/metrics", timeout=seconds(60)).text
        prefix = 'cupel_requests_total{method="GET",route="/v1/me",status="200"} '
        return sum(float(line.removeprefix(prefix)) for line in text.splitlines() if line.startswith(prefix))

    alice.me()
    server.stop()  # a running gateway may count a request only after its response
    server.start()
    before = count_requests()
    assert before >= 1
    alice.me()
    until(lambda: count_requests() == before + 1)
