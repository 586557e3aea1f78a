"""What the API answers with about audits, as typed models."""

import inspect
from datetime import datetime
from typing import Any, Self

from pydantic import Field

from cupel_audits import SETTINGS
from cupel_audits import Audit as Kind
from cupel_audits.execution import Result
from cupel_backend.audits import audit_requests
from cupel_backend.audits.audit_parts import Provenance
from cupel_gateway.response_models import View, attributes
from cupel_measures.grammar.syntax import shown


class AuditSetting(View):
    """A parameter of a kind of audit."""

    name: str
    expects: str
    default: str | None = Field(description="as it may be written; null: none")
    about: str


class AuditKind(View):
    """A declared kind of audit."""

    name: str
    title: str
    answers: str = Field(description="its question")
    source: str
    documentation: str
    texts: bool = Field(
        description="whether it needs the texts of documents: then it is for `cupel audit` alone"
    )
    parameters: list[AuditSetting]

    @classmethod
    def of(cls, kind: type[Kind]) -> Self:
        settings = [
            AuditSetting(
                name=name,
                expects=one.parameter.kind.expects,
                default=None if one.parameter.default is None else shown(one.parameter.default),
                about=one.about,
            )
            for name, one in SETTINGS[kind.name].items()
        ]
        told = {"documentation": inspect.getdoc(kind) or "", "parameters": settings}
        return cls.model_validate(attributes(cls, kind) | told)


class Audited(View):
    """A submission that is audited, under the name that the report gives it."""

    submission: str
    name: str
    team: str


class AuditProgress(View):
    """How far an audit is; null until its subject is gathered."""

    trials: int | None
    trials_done: int
    parts: int | None
    parts_done: int


class AuditFailure(View):
    """A part that was given up; part 0 is the gathering of the subject."""

    part: int
    error: str
    job: str


class Raised(View):
    """An alert that an audit raised."""

    alert: str
    number: str
    value: float
    below: float | None
    above: float | None


class Audit(View):
    """A study of how far a track's judgments and its board can be trusted."""

    id: str
    track: str
    kind: str
    parameters: dict[str, Any]
    measures: list[str]
    seed: int
    qrels: int
    qrels_digest: str
    other: int | None = Field(description="the qrels version that those are compared with")
    submissions: int = Field(description="how many are audited")
    team: str
    schedule: str | None = Field(description="what made it, if it was not a person")
    state: audit_requests.State
    progress: AuditProgress
    failures: list[AuditFailure]
    problems: list[str] = Field(description="why it can't be done, in sentences")
    digest: str | None = Field(description="of the result, once all is done, as for verdict and numbers")
    verdict: list[str]
    numbers: dict[str, float | int | None] = Field(description="null: undefined")
    alerts: list[Raised] = Field(description="those that it raised")
    created_at: datetime
    cancelled_at: datetime | None
    concluded_at: datetime | None
    links: dict[str, str]

    @classmethod
    def of(cls, view: audit_requests.AuditView) -> Self:
        here = f"/v1/audits/{view.id}"
        links = {"self": here, "report": f"{here}/report", "events": f"{here}/events"}
        told = {"submissions": len(view.runs), "links": links}
        return cls.model_validate(attributes(cls, view) | told)


class AuditDetail(Audit):
    """An audit, with what it is of."""

    runs: list[Audited] = Field(description="in the order of the report")


class AuditReport(View):
    """What the trials that are done say. All but `provenance` is the same whenever it is asked for again."""

    kind: str
    parameters: dict[str, Any]
    seed: int
    about: dict[str, Any] = Field(description="what was audited")
    trials: int
    done: int = Field(description="of the trials; fewer than all: a partial report")
    report: dict[str, Any] = Field(
        description="verdict (sentences), numbers by name, tables, plots, reading, undefined, warnings"
    )
    digest: str
    provenance: dict[str, Any]

    @classmethod
    def of(cls, result: Result, provenance: Provenance) -> Self:
        return cls.model_validate(result.as_data() | {"provenance": vars(provenance)})


class AuditPoint(View):
    """A number, as one audit found it."""

    audit: str
    value: float | None
    qrels: int
    qrels_digest: str
    at: datetime


class AuditHistory(View):
    """A number of the audits of one kind, oldest first."""

    track: str
    kind: str
    number: str
    points: list[AuditPoint]


class Schedule(View):
    """Audits that are made again and again. Neither cron nor runs: with every new current qrels version."""

    id: str
    track: str
    request: dict[str, Any] = Field(description="as for POST /v1/tracks/{track}/audits")
    cron: str | None
    zone: str | None
    runs: int | None = Field(description="with so many new runs, once they are scored")
    due_at: datetime | None = Field(description="by its cron expression")
    problem: str | None = Field(description="why it made no audit when it was last due")
    team: str
    created_at: datetime
    paused_at: datetime | None


class Alert(View):
    """A rule on a number of a kind's reports, and how the newest audit of the kind was judged by it."""

    id: str
    track: str
    kind: str
    number: str
    below: float | None
    above: float | None
    raised: bool | None = Field(description="null: there is no audit yet")
    value: float | None = Field(description="null also where the report has none")
    audit: str | None
    judged_at: datetime | None
    team: str
    created_at: datetime
