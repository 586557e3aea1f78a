"""Error codes of the API: each with its kind, its meaning and its remedy.

The module imports only `states`.

The codes of findings in uploaded files (runs, judgments) belong to the readers of `cupel_measures`.
"""

from dataclasses import dataclass
from enum import StrEnum

from cupel_contract.states import TokenScope


class ProblemKind(StrEnum):
    """Why a request is refused. The gateway maps each kind to one HTTP status."""

    MALFORMED = "malformed"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not-found"
    METHOD_NOT_ALLOWED = "method-not-allowed"
    TIMED_OUT = "timed-out"
    CONFLICT = "conflict"
    STALE = "stale"
    TOO_LARGE = "too-large"
    UNSUPPORTED = "unsupported"
    INVALID = "invalid"
    TOO_MANY = "too-many"
    INTERNAL = "internal"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True)
class ErrorCode:
    """A stable code of the API, the kind of refusal, what it means, and what to do."""

    code: str
    kind: ProblemKind
    meaning: str
    remedy: str


_K = ProblemKind

_DECLARED = (
    # The request as such
    ErrorCode(
        "body-malformed",
        _K.MALFORMED,
        "the body of the request cannot be parsed",
        "check its syntax and its Content-Type",
    ),
    ErrorCode(
        "content-type-unsupported",
        _K.UNSUPPORTED,
        "the Content-Type of the body is not supported at this address",
        "send the type that the detail names",
    ),
    ErrorCode(
        "body-too-large",
        _K.TOO_LARGE,
        "the body of the request is larger than this address accepts",
        "send a smaller body",
    ),
    ErrorCode(
        "body-slow",
        _K.TIMED_OUT,
        "the body of the request stopped arriving",
        "send it again over a better connection",
    ),
    ErrorCode(
        "form-invalid",
        _K.INVALID,
        "the form lacks a part, or has a part twice",
        "send the parts that the detail names",
    ),
    ErrorCode(
        "request-invalid",
        _K.INVALID,
        "fields of the request are invalid",
        "correct the fields that `errors` lists",
    ),
    ErrorCode("field-missing", _K.INVALID, "a required field is missing", "add the field"),
    ErrorCode("field-unknown", _K.INVALID, "there is no such field", "remove the field, or check its name"),
    ErrorCode(
        "field-invalid", _K.INVALID, "the value of a field is invalid", "see the schema in /openapi.json"
    ),
    ErrorCode(
        "path-unknown", _K.NOT_FOUND, "there is nothing at this address", "see the paths in /openapi.json"
    ),
    ErrorCode(
        "method-not-allowed",
        _K.METHOD_NOT_ALLOWED,
        "method not allowed at this address",
        "use a method that the Allow header names",
    ),
    ErrorCode(
        "cursor-unknown",
        _K.INVALID,
        "invalid cursor",
        "follow the `next` link of the previous page, or omit the cursor to start again",
    ),
    ErrorCode(
        "key-invalid", _K.INVALID, "the Idempotency-Key is invalid", "use 1 to 255 printable characters"
    ),
    ErrorCode(
        "key-reused",
        _K.INVALID,
        "the Idempotency-Key was used for another request",
        "use a new key for each new request",
    ),
    # The service
    ErrorCode(
        "internal-error",
        _K.INTERNAL,
        "the service failed; the request is not the cause",
        "report the `request_id` to the operators",
    ),
    ErrorCode(
        "not-ready",
        _K.UNAVAILABLE,
        "the service cannot work now: its database or object store is unreachable or out of date",
        "try again soon; operators: read the log, and see `cupel admin migrate --help`",
    ),
    ErrorCode(
        "database-busy",
        _K.UNAVAILABLE,
        "the database does not respond",
        "send the same request again later, with the same Idempotency-Key if it takes one",
    ),
    ErrorCode(
        "storage-failed",
        _K.UNAVAILABLE,
        "the service cannot store or read files now; nothing was changed",
        "send the same request again later; operators: read the log",
    ),
    ErrorCode(
        "content-missing",
        _K.UNAVAILABLE,
        "the content of a stored file is missing",
        "tell the operators, who can restore it from a backup",
    ),
    ErrorCode(
        "content-damaged",
        _K.UNAVAILABLE,
        "the content of a stored file does not match its digest",
        "tell the operators, who can restore it from a backup",
    ),
    ErrorCode(
        "checkers-busy",
        _K.UNAVAILABLE,
        "too many uploads are being checked",
        "send the file again later",
    ),
    ErrorCode(
        "check-ended",
        _K.INVALID,
        "checking the file exceeded the limits of memory or time, or the checker failed",
        "check that it is the right file, and try it offline with `cupel validate`",
    ),
    # Tokens
    ErrorCode(
        "token-refused",
        _K.UNAUTHENTICATED,
        "the token is missing, unknown, expired or revoked",
        "send `Authorization: Bearer cupel_...` with a valid token; an admin can issue one",
    ),
    ErrorCode(
        "token-unknown",
        _K.NOT_FOUND,
        "there is no such token that you may see",
        "list your tokens with GET /v1/tokens",
    ),
    ErrorCode(
        "token-forbidden",
        _K.FORBIDDEN,
        "only admins may manage tokens of another team, or of a scope higher than that of the caller",
        "ask an admin",
    ),
    ErrorCode(
        "team-invalid",
        _K.INVALID,
        "the name of the team is invalid",
        "use 1 to 64 letters, digits, dots, dashes and underscores, starting with a letter or digit",
    ),
    ErrorCode("scope-invalid", _K.INVALID, "there is no such scope", f"use one of {', '.join(TokenScope)}"),
    ErrorCode(
        "expiry-invalid",
        _K.INVALID,
        "the expiry is in the past, or later than the expiry of the token that sends the request",
        "send another instant, in UTC",
    ),
    ErrorCode("label-invalid", _K.INVALID, "the label is invalid", "remove its control characters"),
    # Tracks
    ErrorCode("track-unknown", _K.NOT_FOUND, "there is no such track", "list tracks with GET /v1/tracks"),
    ErrorCode("track-exists", _K.CONFLICT, "a track of this name exists", "choose another name"),
    ErrorCode(
        "track-forbidden",
        _K.FORBIDDEN,
        "only organisers of the team that owns the track may do this",
        "use an organiser's token of that team",
    ),
    ErrorCode(
        "track-invalid",
        _K.INVALID,
        "the description of the track is invalid",
        "correct what the detail names",
    ),
    ErrorCode(
        "track-changed",
        _K.STALE,
        "the track has changed since you read it",
        "read it again, then repeat the change",
    ),
    ErrorCode(
        "track-closed",
        _K.CONFLICT,
        "the track accepts no more submissions",
        "ask its organisers whether it will open again",
    ),
    ErrorCode(
        "aspects-invalid",
        _K.INVALID,
        "the declared aspects are invalid",
        "correct everything that `errors` lists",
    ),
    ErrorCode(
        "measure-invalid",
        _K.INVALID,
        "the measure cannot be used here",
        "see GET /v1/measures for the available measures",
    ),
    ErrorCode(
        "profile-unknown",
        _K.INVALID,
        "there is no such profile",
        "use one of cupel, trec_eval-9, trec_eval-10",
    ),
    # Judgments
    ErrorCode(
        "qrels-unknown",
        _K.NOT_FOUND,
        "the track has no such qrels version that you may see",
        "list its versions with GET /v1/tracks/{track}/qrels",
    ),
    ErrorCode(
        "qrels-not-published",
        _K.NOT_FOUND,
        "the track has no such published qrels version that you may see",
        "omit the version to use the current one, or list all versions with GET /v1/tracks/{track}/qrels",
    ),
    ErrorCode(
        "qrels-invalid",
        _K.INVALID,
        "the judgments cannot be used",
        "correct everything that `errors` lists, and upload them again",
    ),
    ErrorCode(
        "qrels-older",
        _K.CONFLICT,
        "a later version is already published",
        "upload the judgments again; the new version gets a higher number",
    ),
    ErrorCode(
        "qrels-forbidden",
        _K.FORBIDDEN,
        "only organisers may do this with judgments",
        "use an organiser's token of the track's team",
    ),
    # Submissions and runs
    ErrorCode("submission-unknown", _K.NOT_FOUND, "there is no such submission", "check the id"),
    ErrorCode(
        "submission-forbidden",
        _K.FORBIDDEN,
        "submissions of other teams are visible only on the leaderboard",
        "use a token of that team, or of the track's organisers",
    ),
    ErrorCode(
        "run-invalid",
        _K.INVALID,
        "the run cannot be used; nothing was stored",
        "correct everything that `errors` lists, and send it again",
    ),
    ErrorCode("run-unknown", _K.NOT_FOUND, "there is no such run that you may see", "check the id"),
    ErrorCode(
        "upload-too-large",
        _K.TOO_LARGE,
        "the file is larger than the service accepts",
        "compress it, or ask the operator for a higher limit",
    ),
    ErrorCode(
        "too-many-open",
        _K.TOO_MANY,
        "too many submissions of the team to this track are not scored yet",
        "wait for some of them, or withdraw one",
    ),
    # Scores and explanations
    ErrorCode(
        "score-unknown",
        _K.NOT_FOUND,
        "the submission has no such score yet",
        "wait until it is scored; only measures of the track's plan are computed",
    ),
    ErrorCode(
        "about-unknown",
        _K.INVALID,
        "there is no such part of an explanation",
        "use some of ties, judgments, scale, parts, profiles",
    ),
    ErrorCode(
        "too-many-explanations",
        _K.TOO_MANY,
        "the team waits for too many explanations",
        "wait for some of them",
    ),
    # Jobs
    ErrorCode("job-unknown", _K.NOT_FOUND, "there is no such job that you may see", "check the id"),
    ErrorCode(
        "job-state-unknown", _K.INVALID, "there is no such job state", "use queued, running, done or dead"
    ),
    ErrorCode(
        "job-not-dead",
        _K.CONFLICT,
        "only a dead job can be revived",
        "no action needed: the job is queued, running or done",
    ),
    ErrorCode(
        "job-revival-forbidden",
        _K.FORBIDDEN,
        "only organisers of a track may revive its jobs",
        "ask an organiser",
    ),
    ErrorCode(
        "job-list-forbidden", _K.FORBIDDEN, "only organisers may list jobs", "use an organiser's token"
    ),
    # Audits, schedules, alerts
    ErrorCode(
        "audit-unknown",
        _K.NOT_FOUND,
        "there is no such audit that you may see",
        "list the audits of a track with GET /v1/tracks/{track}/audits",
    ),
    ErrorCode(
        "audit-forbidden",
        _K.FORBIDDEN,
        "only organisers of a track may audit it",
        "use an organiser's token of the track's team",
    ),
    ErrorCode(
        "audit-invalid", _K.INVALID, "the audit request is invalid", "correct everything that `errors` lists"
    ),
    ErrorCode(
        "audit-over", _K.CONFLICT, "the audit is already done, failed or cancelled", "request a new audit"
    ),
    ErrorCode(
        "audit-part-unknown",
        _K.NOT_FOUND,
        "the audit has no such part",
        "see `failures` of the audit for the numbers of failed parts",
    ),
    ErrorCode(
        "audit-not-begun",
        _K.NOT_FOUND,
        "no trial of the audit is done yet",
        "wait until `progress` shows a finished trial",
    ),
    ErrorCode(
        "audit-table-unknown",
        _K.NOT_FOUND,
        "the report has no such table",
        "use a table that the detail names",
    ),
    ErrorCode(
        "audit-page-unavailable",
        _K.UNAVAILABLE,
        "the service cannot make HTML pages of audits, because packages for figures are not installed",
        "use /report or /report.csv, or ask the operators to install the packages that the detail names",
    ),
    ErrorCode(
        "too-many-audits",
        _K.TOO_MANY,
        "too many audits of the track are not done yet",
        "wait for some of them, or cancel them",
    ),
    ErrorCode(
        "schedule-unknown",
        _K.NOT_FOUND,
        "there is no such schedule that you may see",
        "list the schedules with GET /v1/tracks/{track}/schedules",
    ),
    ErrorCode("schedule-invalid", _K.INVALID, "the schedule is invalid", "correct what the detail names"),
    ErrorCode(
        "alert-unknown",
        _K.NOT_FOUND,
        "there is no such alert that you may see",
        "list the alerts with GET /v1/tracks/{track}/alerts",
    ),
    ErrorCode("alert-invalid", _K.INVALID, "the alert is invalid", "correct what the detail names"),
)

ERROR_CODES = {declared.code: declared for declared in _DECLARED}
"""Every error code of the API by its name."""
