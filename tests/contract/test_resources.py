"""Tests of resources: examples, tolerance of other versions, and agreement with the backend."""

import dataclasses
import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cupel_contract
from cupel_backend import access, jobs, qrels_versions, submissions, submitted_runs, tracks
from cupel_backend.audits import audit_alerts, audit_requests, audit_schedules, audit_views
from cupel_backend.scores import board_analyses, evaluations, leaderboards, rescoring, score_explanations
from cupel_contract import (
    audit_resources,
    audit_rule_resources,
    leaderboard_resources,
    qrels_resources,
    score_resources,
    service_resources,
    submission_resources,
    token_resources,
    track_resources,
)
from cupel_contract.resource_base import RequestBody, Resource, ResourceList
from cupel_contract.states import OpenEnum, SubmissionState
from cupel_contract.submission_resources import JobResource, SubmissionResource
from cupel_measures.explaining.scale_notes import ScaleNote

MODULES = [
    importlib.import_module(f"cupel_contract.{module.name}")
    for module in pkgutil.iter_modules(cupel_contract.__path__)
]


def declared(base: type) -> list[Any]:
    """Return all classes of the contract that are derived from `base`."""
    found = {
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__
    }
    return sorted(found - {base, ResourceList}, key=lambda resource: resource.__name__)


VIEWS: list[tuple[type[Resource], type, set[str]]] = [
    (service_resources.CallerResource, access.Principal, set()),
    (token_resources.TokenResource, access.Token, set()),
    (track_resources.TrackResource, tracks.Track, set()),
    (qrels_resources.QrelsResource, qrels_versions.QrelsVersion, set()),
    (qrels_resources.PublishingProgress, rescoring.RescoringProgress, set()),
    (qrels_resources.QrelsDiffResource, qrels_versions.QrelsDiff, set()),
    (qrels_resources.RankChangeResource, qrels_versions.RankChange, set()),
    (submission_resources.JobResource, jobs.Job, set()),
    (submission_resources.RunResource, submitted_runs.SubmittedRun, set()),
    (submission_resources.SubmissionResource, submissions.Submission, {"links"}),
    (score_resources.ScaleResource, ScaleNote, set()),
    (score_resources.ScoreResource, evaluations.ScoreView, set()),
    (score_resources.ExplanationResource, score_explanations.ExplanationView, set()),
    (score_resources.ExplanationList, score_explanations.SubmissionExplanations, set()),
    (score_resources.PendingExplanations, score_explanations.RequestedExplanations, {"links"}),
    (leaderboard_resources.LeaderboardRowResource, leaderboards.LeaderboardRow, set()),
    (leaderboard_resources.UnscoredSubmissionResource, leaderboards.UnscoredSubmission, set()),
    (leaderboard_resources.LeaderboardAnalysis, board_analyses.StoredAnalysis, set()),
    (leaderboard_resources.LeaderboardResource, leaderboards.Leaderboard, set()),
    (audit_resources.AuditDetailResource, audit_views.AuditView, {"links", "submissions"}),
    (audit_resources.AuditProgress, audit_views.PartsProgress, set()),
    (audit_resources.AuditPartFailure, audit_views.PartFailure, set()),
    (audit_resources.AuditAlert, audit_views.RaisedAlert, set()),
    (audit_resources.AuditHistoryPoint, audit_requests.HistoryPoint, set()),
    (audit_rule_resources.ScheduleResource, audit_schedules.Schedule, set()),
    (audit_rule_resources.AlertResource, audit_alerts.Alert, set()),
]
"""Resource, the backend's view, and the fields that the gateway adds."""


@pytest.mark.parametrize(
    ("resource", "view", "added"), VIEWS, ids=lambda value: getattr(value, "__name__", "")
)
def test_every_field_is_an_attribute_of_the_backend_view(
    resource: type[Resource], view: type, added: set[str]
) -> None:
    attributes = {field.name for field in dataclasses.fields(view)}
    assert set(resource.model_fields) - added <= attributes


@pytest.mark.parametrize("resource", declared(Resource), ids=lambda resource: resource.__name__)
def test_example_of_a_resource_is_valid_and_has_every_field(resource: type[Resource]) -> None:
    assert resource.EXAMPLE.keys() == resource.model_fields.keys()
    example = resource.model_validate(resource.EXAMPLE)
    assert json.loads(example.model_dump_json()) == resource.EXAMPLE


@pytest.mark.parametrize("body", declared(RequestBody), ids=lambda body: body.__name__)
def test_example_of_a_request_body_is_valid(body: type[RequestBody]) -> None:
    assert body.model_validate(body.EXAMPLE).model_dump(mode="json", exclude_unset=True) == body.EXAMPLE


@pytest.mark.parametrize("resource", declared(Resource), ids=lambda resource: resource.__name__)
def test_resource_ignores_unknown_fields(resource: type[Resource]) -> None:
    newer = resource.EXAMPLE | {"field_of_a_newer_service": [1]}
    assert resource.model_validate(newer) == resource.model_validate(resource.EXAMPLE)


@pytest.mark.parametrize("resource", declared(Resource), ids=lambda resource: resource.__name__)
def test_resource_accepts_absent_fields_that_may_be_null(resource: type[Resource]) -> None:
    required = {
        name: resource.EXAMPLE[name] for name, field in resource.model_fields.items() if field.is_required()
    }
    resource.model_validate(required)


def test_unknown_state_is_kept() -> None:
    submission = SubmissionResource.model_validate(SubmissionResource.EXAMPLE | {"state": "archived"})
    assert submission.state == "archived"
    assert json.loads(submission.model_dump_json())["state"] == "archived"
    assert [state.value for state in SubmissionState][:2] == ["waiting", "queued"]


def test_state_must_be_text() -> None:
    with pytest.raises(ValueError, match=r"state"):
        JobResource.model_validate(JobResource.EXAMPLE | {"state": 3})


def test_states_equal_their_words() -> None:
    for enumeration in OpenEnum.__subclasses__():
        for member in enumeration:
            assert (str(member), f"{member}", json.dumps(member)) == (
                member.value, member.value, f'"{member.value}"'
            )  # fmt: skip
            assert {member} == {member.value}


def test_request_body_refuses_unknown_fields_and_half_surrogates() -> None:
    wrong = [{"colour": "red"}, {"title": "\ud800"}]
    for body in wrong:
        with pytest.raises(ValueError, match=r"colour|surrogate"):
            track_resources.TrackChange.model_validate(body)


def test_states_and_error_codes_do_not_import_pydantic() -> None:
    folder = Path(cupel_contract.__file__).parent.parent
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); import cupel_contract.states, "
        "cupel_contract.error_codes; print('pydantic' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
