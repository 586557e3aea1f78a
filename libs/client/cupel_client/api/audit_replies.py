"""What the service answers about audits, as typed values."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class AuditSetting:
    """A parameter of a kind of audit; default: as it may be written."""

    name: str
    expects: str
    about: str
    default: str | None = None


@dataclass(frozen=True)
class AuditKind:
    """A kind of audit; texts: whether it needs those of documents, and so is for `cupel audit` alone."""

    name: str
    title: str
    answers: str
    source: str
    documentation: str
    texts: bool
    parameters: tuple[AuditSetting, ...]


@dataclass(frozen=True)
class AuditProgress:
    """Trials and parts that are done, of how many; None until it is known what is audited."""

    trials: int | None
    trials_done: int
    parts: int | None
    parts_done: int


@dataclass(frozen=True)
class AuditFailure:
    """A part that was given up; 0 is the gathering of what is audited."""

    part: int
    error: str
    job: str


@dataclass(frozen=True)
class Audited:
    """A submission that is audited, under the name that the report gives it."""

    submission: str
    name: str
    team: str


@dataclass(frozen=True)
class Raised:
    """An alert that an audit raised."""

    alert: str
    number: str
    value: float
    below: float | None = None
    above: float | None = None


@dataclass(frozen=True)
class Audit:
    """An audit; state is queued, running, done, failed or cancelled. runs: not in lists and events."""

    id: str
    track: str
    kind: str
    parameters: dict[str, Any]
    measures: tuple[str, ...]
    seed: int
    qrels: int
    qrels_digest: str
    other: int | None
    submissions: int
    team: str
    schedule: str | None
    state: str
    progress: AuditProgress
    failures: tuple[AuditFailure, ...]
    problems: tuple[str, ...]
    digest: str | None
    verdict: tuple[str, ...]
    numbers: dict[str, float | None]
    created_at: datetime
    cancelled_at: datetime | None = None
    concluded_at: datetime | None = None
    alerts: tuple[Raised, ...] = ()
    runs: tuple[Audited, ...] = ()


@dataclass(frozen=True)
class AuditPoint:
    """A number, as one audit found it; None where it was undefined."""

    audit: str
    value: float | None
    qrels: int
    qrels_digest: str
    at: datetime


@dataclass(frozen=True)
class AuditHistory:
    """A number of the audits of one kind, oldest first."""

    track: str
    kind: str
    number: str
    points: tuple[AuditPoint, ...]


@dataclass(frozen=True)
class Schedule:
    """Audits made again and again: by cron expression, with so many new runs, or with every new version."""

    id: str
    track: str
    request: dict[str, Any]
    cron: str | None
    zone: str | None
    runs: int | None
    due_at: datetime | None
    problem: str | None
    created_at: datetime
    paused_at: datetime | None = None


@dataclass(frozen=True)
class Alert:
    """A rule on a number of a kind's reports; raised: None while there is no audit of the kind."""

    id: str
    track: str
    kind: str
    number: str
    below: float | None
    above: float | None
    raised: bool | None
    value: float | None
    audit: str | None
    judged_at: datetime | None
    created_at: datetime
