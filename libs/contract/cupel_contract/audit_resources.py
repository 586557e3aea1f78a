"""Audits: studies of how far a track's judgments and leaderboard can be trusted."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, JsonValue

from cupel_contract.resource_base import LARGEST_INTEGER, RequestBody, Resource
from cupel_contract.states import AuditState

LARGEST_SEED = 2**63 - 1


class AuditParameterResource(Resource):
    """A parameter of an audit kind."""

    name: str
    expects: str = Field(description="description of the valid values")
    default: str | None = Field(None, description="the default as text; null: no default")
    about: str

    EXAMPLE = {
        "name": "ratios",
        "expects": "percentages, separated by commas",
        "default": "90,70,50,30,10",
        "about": "Shares of the judgments to keep.",
    }


class AuditKindResource(Resource):
    """An audit kind: the question that it answers, and its parameters."""

    name: str
    title: str
    answers: str = Field(description="the question that the audit answers")
    source: str = Field(description="the publication that describes the method")
    documentation: str
    texts: bool = Field(
        description="whether the kind needs texts of documents. Such a kind runs only offline, by `cupel "
        "audit`"
    )
    parameters: tuple[AuditParameterResource, ...]

    EXAMPLE = {
        "name": "downsampling",
        "title": "Downsampling of judgments",
        "answers": "How stable is the order of the runs with fewer judgments?",
        "source": "Buckley and Voorhees, SIGIR 2004",
        "documentation": "Repeat the evaluation with random subsets of the judgments.",
        "texts": False,
        "parameters": [AuditParameterResource.EXAMPLE],
    }


class AuditedSubmissionResource(Resource):
    """An audited submission, with its name in the report."""

    submission: str
    name: str
    team: str

    EXAMPLE = {"submission": "sub_0192f0c5", "name": "aster-bm25", "team": "aster"}


class AuditProgress(Resource):
    """Progress of an audit; totals are null until the runs and judgments are gathered."""

    trials: int | None = None
    trials_done: int
    parts: int | None = None
    parts_done: int

    EXAMPLE = {"trials": 50, "trials_done": 50, "parts": 5, "parts_done": 5}


class AuditPartFailure(Resource):
    """A part of an audit whose attempts all failed.

    Part 0 gathers the runs and judgments.
    """

    part: int
    error: str
    job: str

    EXAMPLE = {"part": 3, "error": "the worker ran out of memory", "job": "job_0192f0e7"}


class AuditAlert(Resource):
    """An alert that an audit raised."""

    alert: str
    number: str
    value: float
    below: float | None = None
    above: float | None = None

    EXAMPLE = {"alert": "alt_0192f0f0", "number": "tau(AP)@50", "value": 0.84, "below": 0.9, "above": None}


class AuditResource(Resource):
    """An audit of a track: its request, its progress and its result."""

    id: str
    track: str
    kind: str
    parameters: dict[str, Any]
    measures: tuple[str, ...]
    seed: int
    qrels: int
    qrels_digest: str
    other: int | None = Field(None, description="the qrels version that `qrels` is compared with")
    submissions: int = Field(description="number of audited submissions")
    team: str = Field(description="the team that requested the audit")
    schedule: str | None = Field(None, description="the schedule that requested the audit, if any")
    state: AuditState
    progress: AuditProgress
    failures: tuple[AuditPartFailure, ...]
    problems: tuple[str, ...] = Field(description="reasons why the audit cannot be done, as sentences")
    digest: str | None = Field(None, description="digest of the result; null until the audit is done")
    verdict: tuple[str, ...] = Field(description="the findings, as sentences")
    numbers: dict[str, float | int | None] = Field(
        description="numbers of the report by name; null: undefined"
    )
    alerts: tuple[AuditAlert, ...] = Field((), description="alerts that the audit raised")
    created_at: datetime
    cancelled_at: datetime | None = None
    concluded_at: datetime | None = None
    links: dict[str, str]

    EXAMPLE = {
        "id": "aud_0192f0e5",
        "track": "health-2026",
        "kind": "downsampling",
        "parameters": {"ratios": [90, 50, 10], "repeats": 10},
        "measures": ["AP"],
        "seed": 0,
        "qrels": 1,
        "qrels_digest": "9f2c51",
        "other": None,
        "submissions": 30,
        "team": "organisers",
        "schedule": None,
        "state": "done",
        "progress": AuditProgress.EXAMPLE,
        "failures": [],
        "problems": [],
        "digest": "77be03",
        "verdict": ["With half of the judgments, Kendall's tau to the full order is 0.84 (AP)."],
        "numbers": {"tau(AP)@50": 0.84},
        "alerts": [AuditAlert.EXAMPLE],
        "created_at": "2026-03-10T08:00:00Z",
        "cancelled_at": None,
        "concluded_at": "2026-03-10T08:01:40Z",
        "links": {
            "self": "/v1/audits/aud_0192f0e5",
            "report": "/v1/audits/aud_0192f0e5/report",
            "events": "/v1/audits/aud_0192f0e5/events",
        },
    }


class AuditDetailResource(AuditResource):
    """An audit with the submissions that it covers."""

    runs: tuple[AuditedSubmissionResource, ...] = Field(
        description="audited submissions, in the order of the report"
    )

    EXAMPLE = AuditResource.EXAMPLE | {"runs": [AuditedSubmissionResource.EXAMPLE]}


class AuditReportResource(Resource):
    """The report of an audit.

    The same trials give the same report, except for `provenance`.
    """

    kind: str
    parameters: dict[str, Any]
    seed: int
    about: dict[str, Any] = Field(description="the audited track, judgments and runs")
    trials: int
    done: int = Field(
        description="number of finished trials; the report is partial until all trials are finished"
    )
    report: dict[str, Any] = Field(
        description="verdict, numbers by name, tables, plots, interpretation, undefined values, warnings"
    )
    digest: str
    provenance: dict[str, Any] = Field(description="when and with which versions the report was computed")

    EXAMPLE = {
        "kind": "downsampling",
        "parameters": {"ratios": [90, 50, 10], "repeats": 10},
        "seed": 0,
        "about": {"track": "health-2026", "runs": 30, "topics": 50},
        "trials": 50,
        "done": 50,
        "report": {
            "verdict": ["With half of the judgments, Kendall's tau to the full order is 0.84 (AP)."],
            "numbers": {"tau(AP)@50": 0.84},
            "tables": [],
        },
        "digest": "77be03",
        "provenance": {"concluded_at": "2026-03-10T08:01:40Z"},
    }


class AuditHistoryPoint(Resource):
    """The value of the number in the report of one audit."""

    audit: str
    value: float | None = Field(None, description="value of the number; null if it is undefined")
    qrels: int
    qrels_digest: str
    at: datetime

    EXAMPLE = {
        "audit": "aud_0192f0e5",
        "value": 0.84,
        "qrels": 1,
        "qrels_digest": "9f2c51",
        "at": "2026-03-10T08:01:40Z",
    }


class AuditHistoryResource(Resource):
    """The values of one number in the reports of an audit kind, oldest first."""

    track: str
    kind: str
    number: str
    points: tuple[AuditHistoryPoint, ...]

    EXAMPLE = {
        "track": "health-2026",
        "kind": "downsampling",
        "number": "tau(AP)@50",
        "points": [AuditHistoryPoint.EXAMPLE],
    }


_Version = Annotated[int | None, Field(ge=1, le=LARGEST_INTEGER)]


class AuditRequest(RequestBody):
    """An audit to request. GET /v1/audits/kinds lists the kinds and their parameters."""

    kind: str = Field(max_length=200)
    parameters: dict[str, JsonValue] = Field({}, max_length=100)
    measures: list[Annotated[str, Field(max_length=1000)]] = Field(
        [], max_length=200, description="measures of the audit; default: the track's plan"
    )
    seed: int | None = Field(
        None, ge=0, le=LARGEST_SEED, description="random seed; default: derived from the qrels digest"
    )
    qrels: _Version = Field(None, description="a published version; default: the current one")
    other: _Version = Field(
        None,
        description="a version to compare with; default, if the kind compares versions: the previous one",
    )
    submissions: list[Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f]*$")]] = Field(
        [],
        max_length=1000,
        description="submissions to audit; default: all that are scored and not withdrawn",
    )
    part_trials: int | None = Field(
        None,
        ge=1,
        le=LARGEST_INTEGER,
        description="maximum number of trials in a part; the service increases it if there would be more "
        "than 1,000 parts",
    )

    EXAMPLE = {"kind": "downsampling", "parameters": {"ratios": [90, 50, 10]}, "measures": ["AP"]}
