"""Audits: studies of how far a track's judgments and leaderboard can be trusted."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, JsonValue

from cupel_contract.resource_base import LARGEST_INTEGER, RequestBody, Resource
from cupel_contract.states import AuditState

LARGEST_SEED = 2**63 - 1


class AuditParameterResource(Resource):
    """A parameter of an audit kind."""

    name: str = Field(description="name of the parameter in `parameters` of a request")
    expects: str = Field(description="description of the valid values")
    default: str | None = Field(None, description="the default as text; null: no default")
    about: str = Field(description="what the parameter sets, as a sentence")

    EXAMPLE = {
        "name": "ratios",
        "expects": "percentages, separated by commas",
        "default": "90,70,50,30,10",
        "about": "Shares of the judgments to keep.",
    }


class AuditKindResource(Resource):
    """An audit kind: the question that it answers, and its parameters."""

    name: str = Field(description="name of the kind in requests")
    title: str = Field(description="title of the kind's reports")
    answers: str = Field(description="the question that the audit answers")
    source: str = Field(description="the publication that describes the method")
    documentation: str = Field(description="full description of the method")
    texts: bool = Field(
        description="whether the kind needs texts of documents. Such a kind runs only offline, by `cupel "
        "audit`"
    )
    parameters: tuple[AuditParameterResource, ...] = Field(description="parameters of the kind")

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

    submission: str = Field(description="id of the submission")
    name: str = Field(description="name of the run in the report")
    team: str = Field(description="team that submitted the run")

    EXAMPLE = {"submission": "sub_0192f0c5", "name": "aster-bm25", "team": "aster"}


class AuditProgress(Resource):
    """Progress of an audit; totals are null until the runs and judgments are gathered."""

    trials: int | None = Field(
        None, description="number of all trials; null until the runs and judgments are gathered"
    )
    trials_done: int = Field(description="number of finished trials")
    parts: int | None = Field(
        None, description="number of all parts; null until the runs and judgments are gathered"
    )
    parts_done: int = Field(description="number of finished parts")

    EXAMPLE = {"trials": 50, "trials_done": 50, "parts": 5, "parts_done": 5}


class AuditPartFailure(Resource):
    """A part of an audit whose attempts all failed.

    Part 0 gathers the runs and judgments.
    """

    part: int = Field(description="number of the part, from 1; 0: the gathering of runs and judgments")
    error: str = Field(description="error of the last attempt")
    job: str = Field(description="id of the job whose attempts all failed")

    EXAMPLE = {"part": 3, "error": "the worker ran out of memory", "job": "job_0192f0e7"}


class AuditAlert(Resource):
    """An alert that an audit raised."""

    alert: str = Field(description="id of the alert")
    number: str = Field(description="name of the number that is out of bounds")
    value: float = Field(description="value of the number in the report of the audit")
    below: float | None = Field(
        None, description="lower bound: smaller values raise the alert; null: no lower bound"
    )
    above: float | None = Field(
        None, description="upper bound: greater values raise the alert; null: no upper bound"
    )

    EXAMPLE = {"alert": "alt_0192f0f0", "number": "tau(AP)@50", "value": 0.84, "below": 0.9, "above": None}


class AuditResource(Resource):
    """An audit of a track: its request, its progress and its result."""

    id: str = Field(description="id of the audit")
    track: str = Field(description="name of the audited track")
    kind: str = Field(description="name of the audit kind")
    parameters: dict[str, Any] = Field(description="values of all parameters of the kind, by name")
    measures: tuple[str, ...] = Field(description="canonical texts of the audited measures")
    seed: int = Field(description="random seed")
    qrels: int = Field(description="number of the audited qrels version")
    qrels_digest: str = Field(description="SHA-256 of the audited judgments, in hexadecimal digits")
    other: int | None = Field(None, description="the qrels version that `qrels` is compared with")
    submissions: int = Field(description="number of audited submissions")
    team: str = Field(description="the team that requested the audit")
    schedule: str | None = Field(None, description="the schedule that requested the audit, if any")
    state: AuditState = Field(description="state of the audit")
    progress: AuditProgress = Field(description="numbers of finished trials and parts")
    failures: tuple[AuditPartFailure, ...] = Field(description="parts whose attempts all failed")
    problems: tuple[str, ...] = Field(description="reasons why the audit cannot be done, as sentences")
    digest: str | None = Field(None, description="digest of the result; null until the audit is done")
    verdict: tuple[str, ...] = Field(description="the findings, as sentences")
    numbers: dict[str, float | int | None] = Field(
        description="numbers of the report by name; null: undefined"
    )
    alerts: tuple[AuditAlert, ...] = Field((), description="alerts that the audit raised")
    created_at: datetime = Field(description="time of the request")
    cancelled_at: datetime | None = Field(
        None, description="time of the cancellation; null if the audit was not cancelled"
    )
    concluded_at: datetime | None = Field(
        None, description="time at which the report was completed; null until then"
    )
    links: dict[str, str] = Field(description="addresses of this audit, its report and its events")

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

    kind: str = Field(description="name of the audit kind")
    parameters: dict[str, Any] = Field(description="values of all parameters of the kind, by name")
    seed: int = Field(description="random seed")
    about: dict[str, Any] = Field(description="the audited track, judgments and runs")
    trials: int = Field(description="number of all trials")
    done: int = Field(
        description="number of finished trials; the report is partial until all trials are finished"
    )
    report: dict[str, Any] = Field(
        description="verdict, numbers by name, tables, plots, interpretation, undefined values, warnings"
    )
    digest: str = Field(description="digest of the report without `provenance`, in hexadecimal digits")
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

    audit: str = Field(description="id of the audit")
    value: float | None = Field(None, description="value of the number; null if it is undefined")
    qrels: int = Field(description="number of the audited qrels version")
    qrels_digest: str = Field(description="SHA-256 of the audited judgments, in hexadecimal digits")
    at: datetime = Field(description="time at which the report was completed")

    EXAMPLE = {
        "audit": "aud_0192f0e5",
        "value": 0.84,
        "qrels": 1,
        "qrels_digest": "9f2c51",
        "at": "2026-03-10T08:01:40Z",
    }


class AuditHistoryResource(Resource):
    """The values of one number in the reports of an audit kind, oldest first."""

    track: str = Field(description="name of the track")
    kind: str = Field(description="name of the audit kind")
    number: str = Field(description="name of the number")
    points: tuple[AuditHistoryPoint, ...] = Field(
        description="a value for each finished audit whose report has the number, oldest first"
    )

    EXAMPLE = {
        "track": "health-2026",
        "kind": "downsampling",
        "number": "tau(AP)@50",
        "points": [AuditHistoryPoint.EXAMPLE],
    }


_Version = Annotated[int | None, Field(ge=1, le=LARGEST_INTEGER)]


class AuditRequest(RequestBody):
    """An audit to request. GET /v1/audits/kinds lists the kinds and their parameters."""

    kind: str = Field(max_length=200, description="name of an audit kind")
    parameters: dict[str, JsonValue] = Field(
        {},
        max_length=100,
        description="parameters of the kind by name; omitted parameters have their defaults",
    )
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
