"""States, token scopes and other enumerations of the API.

The module imports only the standard library.
"""

from enum import StrEnum
from typing import Any, Self


class OpenEnum(StrEnum):
    """An enumeration of words that a newer service may extend.

    A client keeps an unknown word as it is, so that the rest of the resource stays readable.
    """

    @classmethod
    def _missing_(cls, value: object) -> Any:
        return cls._unknown(value) if isinstance(value, str) else None

    @classmethod
    def _unknown(cls, value: str) -> Self:
        member = str.__new__(cls, value)
        member._name_ = value
        member._value_ = value
        return member


class SubmissionState(OpenEnum):
    """The state of a submission under the qrels version that its leaderboard shows."""

    WAITING = "waiting"  # the track has no published judgments yet
    QUEUED = "queued"  # some measures are still to be computed
    SCORED = "scored"  # every measure of the plan has a score
    PARTLY = "partly"  # only some measures of the plan have a score
    DEAD = "dead"  # no measure has a score, and no further attempt is made
    WITHDRAWN = "withdrawn"


class JobState(OpenEnum):
    """The state of a queued job."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"  # every attempt failed


class QrelsState(OpenEnum):
    """The state of a qrels version."""

    DRAFT = "draft"
    PUBLISHING = "publishing"
    CURRENT = "current"
    SUPERSEDED = "superseded"


class AuditState(OpenEnum):
    """The state of an audit."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class AnalysisState(OpenEnum):
    """The state of the significance analysis of a leaderboard."""

    DONE = "done"
    PENDING = "pending"
    UNDEFINED = "undefined"


class MeasurementScale(OpenEnum):
    """The measurement scale of a measure's values."""

    INTERVAL = "interval"
    ORDINAL = "ordinal"
    NEITHER = "neither"
    COUNT = "count"


class TokenScope(OpenEnum):
    """The scope of a token. Each scope includes the ones before it."""

    PARTICIPANT = "participant"
    ORGANISER = "organiser"
    ADMIN = "admin"


class ErrorCodeKind(OpenEnum):
    """The kind of an error code: a refused request, or a finding in an uploaded file."""

    PROBLEM = "problem"
    ERROR = "error"
    WARNING = "warning"


OPEN_SUBMISSION_STATES = frozenset({SubmissionState.WAITING, SubmissionState.QUEUED, SubmissionState.PARTLY})
"""Submissions in these states may still get scores."""

FINAL_JOB_STATES = frozenset({JobState.DONE, JobState.DEAD})
"""Jobs in these states change only when they are revived."""

FINAL_QRELS_STATES = frozenset({QrelsState.CURRENT, QrelsState.SUPERSEDED})
"""Publishing has ended for qrels versions in these states."""

FINAL_AUDIT_STATES = frozenset({AuditState.DONE, AuditState.FAILED, AuditState.CANCELLED})
"""Audits in these states compute nothing more."""
