"""Resources of the contract.

They are built from the views of the backend and the declarations of the libraries.
"""

import inspect
from collections.abc import Mapping
from typing import Any, TypeVar

from cupel_audits import Audit as AuditKind
from cupel_audits.execution import Result
from cupel_backend import qrels_versions, submissions
from cupel_backend.audits import audit_requests
from cupel_backend.audits.audit_parts import Provenance
from cupel_backend.scores import evaluations, leaderboards, score_explanations
from cupel_contract.audit_resources import (
    AuditDetailResource,
    AuditKindResource,
    AuditParameterResource,
    AuditReportResource,
    AuditResource,
)
from cupel_contract.error_codes import ErrorCode
from cupel_contract.leaderboard_resources import LeaderboardResource
from cupel_contract.measure_resources import (
    MeasureParameterResource,
    MeasureResource,
    ParsedMeasureResource,
)
from cupel_contract.problem_resources import ErrorCodeResource, ErrorItem, FileWarnings
from cupel_contract.qrels_resources import QrelsResource
from cupel_contract.resource_base import Resource
from cupel_contract.score_resources import (
    PendingExplanations,
    ScoreResource,
    TopicScore,
    TopicScoresResource,
)
from cupel_contract.states import ErrorCodeKind
from cupel_contract.submission_resources import SubmissionResource
from cupel_measures.catalogue.parser import Measure
from cupel_measures.findings import Finding, FindingKind, Findings
from cupel_measures.grammar.registry import REQUIRED, Declaration
from cupel_measures.grammar.syntax import shown

R = TypeVar("R", bound=Resource)

FINDING_FIELDS = ("code", "message", "remedy", "file", "line", "column", "topic", "sample")


def build(resource: type[R], view: object, **values: Any) -> R:
    """Build a resource from the attributes of `view` and from `values`.

    `values` take precedence.
    """
    attributes = {name: getattr(view, name) for name in resource.model_fields if hasattr(view, name)}
    return resource.model_validate(attributes | values)


# Files and error codes


def error_item(finding: Finding) -> ErrorItem:
    """Build the item of a finding in a file."""
    return ErrorItem(**{name: getattr(finding, name) for name in FINDING_FIELDS})


def file_warnings(findings: Findings) -> FileWarnings:
    """Build the warnings about an accepted file."""
    return FileWarnings(warnings=tuple(map(error_item, findings.warnings)), totals=findings.totals)


def problem_code(declared: ErrorCode, status: int) -> ErrorCodeResource:
    """Build the description of a problem's code."""
    return ErrorCodeResource(
        code=declared.code,
        kind=ErrorCodeKind.PROBLEM,
        status=status,
        meaning=declared.meaning,
        remedy=declared.remedy,
    )


def finding_code(declared: FindingKind) -> ErrorCodeResource:
    """Build the resource that describes the code of a finding in an uploaded file."""
    return build(ErrorCodeResource, declared, kind=declared.severity)


# Qrels and submissions


def qrels_version(view: qrels_versions.QrelsVersion) -> QrelsResource:
    """Build a qrels version."""
    return build(QrelsResource, view, findings=file_warnings(view.findings))


def submission(view: submissions.Submission) -> SubmissionResource:
    """Build a submission with its links."""
    path = f"/v1/submissions/{view.id}"
    links = {
        "self": path,
        "scores": f"{path}/scores",
        "events": f"{path}/events",
        "run": f"/v1/runs/{view.run.id}",
        "file": f"/v1/runs/{view.run.id}/file",
        "leaderboard": f"/v1/tracks/{view.track}/leaderboard",
    }
    return build(SubmissionResource, view, findings=file_warnings(view.findings), links=links)


# Scores and leaderboards


def topic_scores(submission: str, view: evaluations.TopicScores) -> TopicScoresResource:
    """Build the values of a measure on each topic."""
    pairs = zip(view.topics, view.values, strict=True)
    topics = tuple(TopicScore(topic=topic, value=value) for topic, value in pairs)
    score = ScoreResource.model_validate(view.score)
    return TopicScoresResource(
        submission=submission, score=score, topics=topics, unjudged_topics=view.unjudged_topics
    )


def pending_explanations(view: score_explanations.RequestedExplanations) -> PendingExplanations:
    """Build the explanations that are being computed, with their link."""
    path = f"/v1/submissions/{view.submission}/explanations?qrels={view.qrels}"
    return build(PendingExplanations, view, links={"explanations": path})


def leaderboard(view: leaderboards.Leaderboard, next_page: str | None) -> LeaderboardResource:
    """Build a page of a leaderboard; `next_page` is the address of the following page."""
    return build(LeaderboardResource, view, next=next_page)


# Measures


def measure(declared: Declaration) -> MeasureResource:
    """Build a measure from its declaration."""
    parameters = tuple(
        MeasureParameterResource(
            name=parameter.name,
            required=parameter.default is REQUIRED,
            default=_default(parameter.default),
        )
        for parameter in declared.parameters.values()
    )
    bounds = tuple(bound if abs(bound) != float("inf") else None for bound in declared.bounds)
    return build(
        MeasureResource,
        declared,
        aliases=tuple(declared.aliases),
        parameters=parameters,
        bounds=bounds,
        exact=declared.exact is not None,
    )


def _default(value: object) -> str | None:
    return None if value is REQUIRED or value is None else shown(value)


def parsed_measure(parsed: Measure) -> ParsedMeasureResource:
    """Build a measure as parsed from its text."""
    return ParsedMeasureResource(text=str(parsed), declared=measure(parsed.declaration))


# Audits


def audit_kind(kind: type[AuditKind]) -> AuditKindResource:
    """Build an audit kind with its parameters."""
    parameters = tuple(
        AuditParameterResource(
            name=name,
            expects=setting.parameter.kind.expects,
            default=_default(setting.parameter.default),
            about=setting.about,
        )
        for name, setting in kind.settings.items()
    )
    documentation = inspect.getdoc(kind) or ""
    return build(
        AuditKindResource,
        kind,
        texts=kind.needs_texts,
        documentation=documentation,
        parameters=parameters,
    )


def audit(view: audit_requests.AuditView) -> AuditResource:
    """Build an audit with its links."""
    return build(AuditResource, view, **_audit_values(view))


def audit_detail(view: audit_requests.AuditView) -> AuditDetailResource:
    """Build an audit with its links and the submissions that it covers."""
    return build(AuditDetailResource, view, **_audit_values(view))


def _audit_values(view: audit_requests.AuditView) -> Mapping[str, Any]:
    path = f"/v1/audits/{view.id}"
    links = {"self": path, "report": f"{path}/report", "events": f"{path}/events"}
    return {"submissions": len(view.runs), "links": links}


def audit_report(result: Result, provenance: Provenance) -> AuditReportResource:
    """Build the report of an audit."""
    return AuditReportResource.model_validate(result.as_data() | {"provenance": vars(provenance)})
