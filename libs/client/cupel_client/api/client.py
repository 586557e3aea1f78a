"""A client of the Cupel service: typed, patient with networks, safe to repeat.

with Client("https://cupel.example.org", token="cupel_...") as cupel:
    submission = cupel.submit("health-2026", Path("bm25.run.gz"))
    for state in cupel.watch_submission(submission.id):
        print(state.state)
    print(cupel.leaderboard("health-2026", measure="nDCG@10").rows)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from cupel_client.api.audit_calls import AuditCalls
from cupel_client.api.transport import ServiceError as ServiceError
from cupel_client.api.transport import Unreachable as Unreachable
from cupel_client.api.transport import body as request_body
from cupel_client.api.transport import parse, part
from cupel_client.api.uploads import no_progress, streamed
from cupel_contract.leaderboard_resources import LeaderboardResource
from cupel_contract.measure_resources import MeasureResource
from cupel_contract.problem_resources import ErrorCodeResource
from cupel_contract.qrels_resources import QrelsDiffResource, QrelsResource
from cupel_contract.score_resources import (
    ExplanationCreate,
    ExplanationList,
    PendingExplanations,
    ScoreResource,
    TopicScoresResource,
)
from cupel_contract.service_resources import CallerResource, ServiceResource
from cupel_contract.submission_resources import JobResource, RunResource, SubmissionResource
from cupel_contract.token_resources import IssuedTokenResource, TokenCreate, TokenResource
from cupel_contract.track_resources import TrackChange, TrackCreate, TrackResource

CHECKING_SECONDS = 300.0  # the answer to an upload holds the verdict on the whole file


class Client(AuditCalls):
    """A service at `url`, asked with `token`.

    A request that may safely be repeated is sent up to `attempts` times where the network fails or
    the service is busy. All methods raise ServiceError.
    """

    # The service

    def service(self) -> ServiceResource:
        """Return version, profiles and limits of the service."""
        return parse(ServiceResource, self._json("GET", "/v1"))

    def me(self) -> CallerResource:
        """The team and scope that the token stands for."""
        return parse(CallerResource, self._json("GET", "/v1/me"))

    def measures(self) -> list[MeasureResource]:
        """Return every measure of the service."""
        return [parse(MeasureResource, item) for item in self._json("GET", "/v1/measures")["items"]]

    def error_codes(self) -> list[ErrorCodeResource]:
        """Return every error code of the service, with its meaning and remedy."""
        return [parse(ErrorCodeResource, item) for item in self._json("GET", "/v1/errors")["items"]]

    # Tokens

    def issue_token(
        self, team: str, scope: str, *, label: str = "", expires_at: str | None = None
    ) -> IssuedTokenResource:
        """Make a token; its text is in the answer's `token`, this once."""
        values = {"team": team, "scope": scope, "label": label, "expires_at": expires_at}
        body = request_body(TokenCreate, values)
        return parse(IssuedTokenResource, self._json("POST", "/v1/tokens", json=body))

    def tokens(self) -> Iterator[TokenResource]:
        """The team's tokens; all of them to an admin."""
        return self._all(TokenResource, "/v1/tokens")

    def revoke_token(self, prefix: str) -> None:
        """End a token for good."""
        self._send("DELETE", f"/v1/tokens/{part(prefix)}")

    # Tracks

    def create_track(self, name: str, **description: Any) -> TrackResource:
        """Make a track; description: title, aspects, measures, and label_sets, profile, depth if wanted."""
        body = request_body(TrackCreate, {"name": name, **description})
        return parse(TrackResource, self._json("POST", "/v1/tracks", json=body))

    def track(self, name: str) -> TrackResource:
        return parse(TrackResource, self._json("GET", f"/v1/tracks/{part(name)}"))

    def tracks(self) -> Iterator[TrackResource]:
        """All tracks, newest first."""
        return self._all(TrackResource, "/v1/tracks")

    def change_track(self, name: str, **changes: Any) -> TrackResource:
        """Change title, measures or closed; refused if somebody changes the track at the same moment."""
        path = f"/v1/tracks/{part(name)}"
        body = request_body(TrackChange, changes)
        etag = self._send("GET", path).headers["ETag"]
        return parse(TrackResource, self._json("PATCH", path, json=body, headers={"If-Match": etag}))

    # Qrels

    def upload_qrels(self, track: str, collection: bytes, files: Mapping[str, bytes]) -> QrelsResource:
        """Upload judgments as a draft; collection: a collection file that names `files`."""
        parts = [("collection", ("collection", collection)), *(("files", item) for item in files.items())]
        path = f"/v1/tracks/{part(track)}/qrels"
        return parse(QrelsResource, self._json("POST", path, files=parts, timeout=CHECKING_SECONDS))

    def publish_qrels(self, track: str, number: int) -> QrelsResource:
        """Start publishing a version; `watch_qrels` tells when it is current."""
        return parse(QrelsResource, self._json("POST", f"{_qrels(track, number)}/publish", repeatable=True))

    def qrels_version(self, track: str, number: int) -> QrelsResource:
        return parse(QrelsResource, self._json("GET", _qrels(track, number)))

    def qrels_versions(self, track: str) -> Iterator[QrelsResource]:
        """The track's versions, newest first."""
        return self._all(QrelsResource, f"/v1/tracks/{part(track)}/qrels")

    def qrels_diff(self, track: str, number: int, *, base: int, measure: str) -> QrelsDiffResource:
        """What moved from version `base` to version `number`."""
        asked = {"from": base, "measure": measure}
        return parse(QrelsDiffResource, self._json("GET", f"{_qrels(track, number)}/diff", params=asked))

    # Submissions and runs

    def submit(
        self,
        track: str,
        run: Path | bytes | BinaryIO,
        *,
        name: str | None = None,
        key: str | None = None,
        progress: Callable[[int], None] = no_progress,
    ) -> SubmissionResource:
        """Hand in a run file, plain or compressed; a large plain one is compressed on the way.

        name: default, the file's. key: an Idempotency-Key (default: a new one, so that repeating
        after a network failure can't hand in twice). progress: told the bytes read, as they go.
        """
        body = streamed(run, progress)
        asked = {"name": name if name is not None else body.name}
        headers = {"Idempotency-Key": key or uuid4().hex, "Content-Type": "application/octet-stream"}
        path = f"/v1/tracks/{part(track)}/submissions"
        answer = self._json("POST", path, params=asked, headers=headers, body=body, timeout=CHECKING_SECONDS)
        return parse(SubmissionResource, answer)

    def submission(self, id: str) -> SubmissionResource:
        return parse(SubmissionResource, self._json("GET", f"/v1/submissions/{part(id)}"))

    def submissions(self, track: str) -> Iterator[SubmissionResource]:
        """One's own submissions to the track, newest first; all of them to its organisers."""
        return self._all(SubmissionResource, f"/v1/tracks/{part(track)}/submissions")

    def withdraw(self, id: str) -> SubmissionResource:
        """Take a submission off the boards."""
        return parse(SubmissionResource, self._json("DELETE", f"/v1/submissions/{part(id)}"))

    def run(self, id: str) -> RunResource:
        return parse(RunResource, self._json("GET", f"/v1/runs/{part(id)}"))

    def download(self, run: str, to: BinaryIO) -> None:
        """Write a run's file, as it was sent, to `to`."""
        with self._streaming(f"/v1/runs/{part(run)}/file") as answer:
            for block in answer.iter_bytes():
                to.write(block)

    # Scores

    def scores(
        self, submission: str, *, measures: Sequence[str] = (), qrels: int | None = None
    ) -> list[ScoreResource]:
        """Scores by `measures` (default: the plan) under a qrels version (default: the current one)."""
        asked = {"measure": list(measures), "qrels": qrels}
        answer = self._json("GET", f"/v1/submissions/{part(submission)}/scores", params=asked)
        return [parse(ScoreResource, one) for one in answer["scores"]]

    def topic_scores(self, submission: str, measure: str, *, qrels: int | None = None) -> TopicScoresResource:
        """The value of `measure` on every topic."""
        asked = {"measure": measure, "qrels": qrels}
        return parse(
            TopicScoresResource,
            self._json("GET", f"/v1/submissions/{part(submission)}/scores/topics", params=asked),
        )

    def explain(
        self,
        submission: str,
        *,
        measures: Sequence[str] = (),
        about: Sequence[str] = (),
        qrels: int | None = None,
    ) -> PendingExplanations:
        """Have scores by `measures` (default: the plan) explained, by jobs: `watch_job` tells of each.

        about: some of ties, judgments, scale, parts, profiles (default: all). Asking again changes nothing.
        """
        values = {"measures": list(measures), "about": list(about), "qrels": qrels}
        body = request_body(ExplanationCreate, values)
        path = f"/v1/submissions/{part(submission)}/explanations"
        return parse(PendingExplanations, self._json("POST", path, json=body, repeatable=True))

    def explanations(
        self, submission: str, *, measures: Sequence[str] = (), qrels: int | None = None
    ) -> ExplanationList:
        """What is there for `measures` (default: whatever is) under a version (default: the current one)."""
        asked = {"measure": list(measures), "qrels": qrels}
        answer = self._json("GET", f"/v1/submissions/{part(submission)}/explanations", params=asked)
        return parse(ExplanationList, answer)

    def leaderboard(
        self, track: str, *, measure: str | None = None, qrels: int | None = None
    ) -> LeaderboardResource:
        """The whole board: measure default, the plan's first; qrels default, the current version."""
        asked = {"measure": measure, "qrels": qrels, "limit": 500}
        pages = [self._json("GET", f"/v1/tracks/{part(track)}/leaderboard", params=asked)]
        while following := pages[-1]["next"]:
            pages.append(self._json("GET", following))
        if len({(page.get("analysis") or {}).get("computed_at") for page in pages}) > 1:
            return self.leaderboard(track, measure=measure, qrels=qrels)  # the analysis came in between
        rows = [row for page in pages for row in page["rows"]]
        return parse(LeaderboardResource, pages[0] | {"rows": rows, "next": None})

    # Jobs

    def job(self, id: str) -> JobResource:
        return parse(JobResource, self._json("GET", f"/v1/jobs/{part(id)}"))

    def jobs(self, *, state: str | None = None) -> Iterator[JobResource]:
        """Jobs of one's own tracks (all to an admin), maybe only those in one state."""
        return self._all(JobResource, "/v1/jobs", state=state)

    def revive_job(self, id: str) -> JobResource:
        """Give a dead job another go."""
        return parse(JobResource, self._json("POST", f"/v1/jobs/{part(id)}/revive"))

    # Watching

    def watch_submission(self, id: str) -> Iterator[SubmissionResource]:
        """Every state of a submission until nothing is left to score, the last one included."""
        return self.watch(SubmissionResource, f"/v1/submissions/{part(id)}/events")

    def watch_qrels(self, track: str, number: int) -> Iterator[QrelsResource]:
        """Every state of a version until it is current or superseded."""
        return self.watch(QrelsResource, f"{_qrels(track, number)}/events")

    def watch_job(self, id: str) -> Iterator[JobResource]:
        """Every state of a job until it is done or dead."""
        return self.watch(JobResource, f"/v1/jobs/{part(id)}/events")


def _qrels(track: str, number: int) -> str:
    return f"/v1/tracks/{part(track)}/qrels/{number}"
