"""A Python client of the Cupel service, with typed resources and safe retries.

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
from cupel_client.api.uploads import file_body, no_progress
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

CHECKING_SECONDS = 300.0  # the service checks the whole file before it responds to an upload


class Client(AuditCalls):
    """A client of the service at `url`; every request carries `token`.

    Requests that are safe to repeat are sent up to `attempts` times if the network fails or the service
    is busy. All methods raise ServiceError if a request is refused or fails.
    """

    # The service

    def service(self) -> ServiceResource:
        """Return version, profiles and limits of the service."""
        return parse(ServiceResource, self._json("GET", "/v1"))

    def me(self) -> CallerResource:
        """Return the team and scope of the token."""
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
        """Issue a token. Only this response has its secret, as `token`."""
        values = {"team": team, "scope": scope, "label": label, "expires_at": expires_at}
        body = request_body(TokenCreate, values)
        return parse(IssuedTokenResource, self._json("POST", "/v1/tokens", json=body))

    def tokens(self) -> Iterator[TokenResource]:
        """Iterate over the tokens of the team, newest first; an admin sees all tokens."""
        return self._all(TokenResource, "/v1/tokens")

    def revoke_token(self, prefix: str) -> None:
        """Revoke a token permanently."""
        self._send("DELETE", f"/v1/tokens/{part(prefix)}")

    # Tracks

    def create_track(self, name: str, **description: Any) -> TrackResource:
        """Create a track.

        description: title, aspects and measures; optionally label_sets, profile and depth. Aspects may be
        omitted if all judgments will be by subtopic.
        """
        body = request_body(TrackCreate, {"name": name, **description})
        return parse(TrackResource, self._json("POST", "/v1/tracks", json=body))

    def track(self, name: str) -> TrackResource:
        """Return a track."""
        return parse(TrackResource, self._json("GET", f"/v1/tracks/{part(name)}"))

    def tracks(self) -> Iterator[TrackResource]:
        """Iterate over all tracks, newest first."""
        return self._all(TrackResource, "/v1/tracks")

    def change_track(self, name: str, **changes: Any) -> TrackResource:
        """Change the title, the measures or the field `closed` of a track.

        The service refuses the change if the track was changed at the same time.
        """
        path = f"/v1/tracks/{part(name)}"
        body = request_body(TrackChange, changes)
        etag = self._send("GET", path).headers["ETag"]
        return parse(TrackResource, self._json("PATCH", path, json=body, headers={"If-Match": etag}))

    # Qrels

    def upload_qrels(self, track: str, collection: bytes, files: Mapping[str, bytes]) -> QrelsResource:
        """Upload judgments as a draft version.

        collection: the bytes of a collection file. files: the content of each qrels file, by its name in the
        collection file.
        """
        parts = [("collection", ("collection", collection)), *(("files", item) for item in files.items())]
        path = f"/v1/tracks/{part(track)}/qrels"
        return parse(QrelsResource, self._json("POST", path, files=parts, timeout=CHECKING_SECONDS))

    def publish_qrels(self, track: str, number: int) -> QrelsResource:
        """Start to publish a qrels version. `watch_qrels` follows the progress."""
        return parse(QrelsResource, self._json("POST", f"{_qrels(track, number)}/publish", repeatable=True))

    def qrels_version(self, track: str, number: int) -> QrelsResource:
        """Return a qrels version."""
        return parse(QrelsResource, self._json("GET", _qrels(track, number)))

    def qrels_versions(self, track: str) -> Iterator[QrelsResource]:
        """Iterate over the qrels versions of a track, newest first."""
        return self._all(QrelsResource, f"/v1/tracks/{part(track)}/qrels")

    def qrels_diff(self, track: str, number: int, *, base: int, measure: str) -> QrelsDiffResource:
        """Return how scores and ranks change between two qrels versions.

        The scores are by `measure`; the change is from version `base` to version `number`.
        """
        params = {"from": base, "measure": measure}
        return parse(QrelsDiffResource, self._json("GET", f"{_qrels(track, number)}/diff", params=params))

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
        """Submit a run file, plain or compressed.

        Large plain files are compressed while they are sent.

        name: name to display (default: the name of the file). key: Idempotency-Key of the request (default: a
        new key). Retries after a network failure send the same key, so the run is submitted only once.
        progress: called with the size of each block that is read, in bytes.
        """
        body = file_body(run, progress)
        params = {"name": name if name is not None else body.name}
        headers = {"Idempotency-Key": key or uuid4().hex, "Content-Type": "application/octet-stream"}
        path = f"/v1/tracks/{part(track)}/submissions"
        reply = self._json(
            "POST", path, params=params, headers=headers, content=body, timeout=CHECKING_SECONDS
        )
        return parse(SubmissionResource, reply)

    def submission(self, id: str) -> SubmissionResource:
        """Return a submission."""
        return parse(SubmissionResource, self._json("GET", f"/v1/submissions/{part(id)}"))

    def submissions(self, track: str) -> Iterator[SubmissionResource]:
        """Iterate over the team's submissions to a track, newest first.

        Organisers of the track see the submissions of all teams.
        """
        return self._all(SubmissionResource, f"/v1/tracks/{part(track)}/submissions")

    def withdraw(self, id: str) -> SubmissionResource:
        """Withdraw a submission from the leaderboards."""
        return parse(SubmissionResource, self._json("DELETE", f"/v1/submissions/{part(id)}"))

    def run(self, id: str) -> RunResource:
        """Return a run."""
        return parse(RunResource, self._json("GET", f"/v1/runs/{part(id)}"))

    def download(self, run: str, to: BinaryIO) -> None:
        """Write the file of a run to `to`, exactly as it was sent."""
        with self._streaming(f"/v1/runs/{part(run)}/file") as response:
            for block in response.iter_bytes():
                to.write(block)

    # Scores

    def scores(
        self, submission: str, *, measures: Sequence[str] = (), qrels: int | None = None
    ) -> list[ScoreResource]:
        """Return the scores by `measures` (default: the measures of the track).

        qrels: number of a qrels version (default: the current one).
        """
        params = {"measure": list(measures), "qrels": qrels}
        reply = self._json("GET", f"/v1/submissions/{part(submission)}/scores", params=params)
        return [parse(ScoreResource, item) for item in reply["scores"]]

    def topic_scores(self, submission: str, measure: str, *, qrels: int | None = None) -> TopicScoresResource:
        """Return the value of `measure` on every topic for a submission."""
        params = {"measure": measure, "qrels": qrels}
        return parse(
            TopicScoresResource,
            self._json("GET", f"/v1/submissions/{part(submission)}/scores/topics", params=params),
        )

    def explain(
        self,
        submission: str,
        *,
        measures: Sequence[str] = (),
        about: Sequence[str] = (),
        qrels: int | None = None,
    ) -> PendingExplanations:
        """Request explanations of the scores of a submission by `measures`.

        By default, these are the measures of the track.

        about: some of ties, judgments, scale, parts, profiles (default: all). qrels: number of a qrels
        version (default: the current one). The service computes each explanation in a job, which
        `watch_job` follows. Repeating the request changes nothing.
        """
        values = {"measures": list(measures), "about": list(about), "qrels": qrels}
        body = request_body(ExplanationCreate, values)
        path = f"/v1/submissions/{part(submission)}/explanations"
        return parse(PendingExplanations, self._json("POST", path, json=body, repeatable=True))

    def explanations(
        self, submission: str, *, measures: Sequence[str] = (), qrels: int | None = None
    ) -> ExplanationList:
        """Return the computed explanations of the scores by `measures`.

        By default, these are all measures.

        qrels: number of a qrels version (default: the current one).
        """
        params = {"measure": list(measures), "qrels": qrels}
        reply = self._json("GET", f"/v1/submissions/{part(submission)}/explanations", params=params)
        return parse(ExplanationList, reply)

    def leaderboard(
        self, track: str, *, measure: str | None = None, qrels: int | None = None
    ) -> LeaderboardResource:
        """Return all pages of a leaderboard as one resource.

        measure: measure that orders the leaderboard (default: the first measure of the track). qrels: number
        of a qrels version (default: the current one).
        """
        params = {"measure": measure, "qrels": qrels, "limit": 500}
        pages = [self._json("GET", f"/v1/tracks/{part(track)}/leaderboard", params=params)]
        while next_page := pages[-1]["next"]:
            pages.append(self._json("GET", next_page))
        if len({(page.get("analysis") or {}).get("computed_at") for page in pages}) > 1:
            # The analysis was stored while the pages were read, so they differ. Read them again.
            return self.leaderboard(track, measure=measure, qrels=qrels)
        rows = [row for page in pages for row in page["rows"]]
        return parse(LeaderboardResource, pages[0] | {"rows": rows, "next": None})

    # Jobs

    def job(self, id: str) -> JobResource:
        """Return a job."""
        return parse(JobResource, self._json("GET", f"/v1/jobs/{part(id)}"))

    def jobs(self, *, state: str | None = None) -> Iterator[JobResource]:
        """Iterate over the jobs of the team's tracks, optionally only those in `state`.

        An admin sees all jobs.
        """
        return self._all(JobResource, "/v1/jobs", state=state)

    def revive_job(self, id: str) -> JobResource:
        """Queue a dead job again."""
        return parse(JobResource, self._json("POST", f"/v1/jobs/{part(id)}/revive"))

    # Watching

    def watch_submission(self, id: str) -> Iterator[SubmissionResource]:
        """Iterate over the states of a submission until its scoring has ended."""
        return self.watch(SubmissionResource, f"/v1/submissions/{part(id)}/events")

    def watch_qrels(self, track: str, number: int) -> Iterator[QrelsResource]:
        """Iterate over the states of a qrels version until it is current or superseded."""
        return self.watch(QrelsResource, f"{_qrels(track, number)}/events")

    def watch_job(self, id: str) -> Iterator[JobResource]:
        """Iterate over the states of a job until it is done or dead."""
        return self.watch(JobResource, f"/v1/jobs/{part(id)}/events")


def _qrels(track: str, number: int) -> str:
    return f"/v1/tracks/{part(track)}/qrels/{number}"
