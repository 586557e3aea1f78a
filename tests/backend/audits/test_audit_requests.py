"""Tests of requests for audits: validation, comparison, limits and visibility."""

from collections.abc import Callable
from typing import Any

import pytest

from cupel_backend import job_execution, jobs, submissions
from cupel_backend.audits import audit_parts, audit_requests, audit_subjects
from cupel_backend.infrastructure.errors import Conflict, Forbidden, Invalid, NotFound, TooMany
from cupel_backend.infrastructure.system import System
from cupel_backend.job_handlers import HANDLERS
from cupel_backend.scores import rescoring
from support.audit_cast import QRELS, SMALL, prepare_audit, request_audit, run
from support.backend_cast import (
    ADMIN,
    ALICE,
    BOB,
    ORGANISER,
    STRANGER,
    Clock,
    make_track,
    publish_qrels,
    submit,
    work_off,
)


def digest(system: System, audit: audit_requests.AuditView) -> str:
    return str(audit_parts.read_report(system, BOB, audit.id)[0].as_data()["digest"])


def test_audit_can_be_cancelled_before_preparation_but_not_when_done(system: System, sent: list[str]) -> None:
    audit = request_audit(system)
    claim = jobs.claim_next(system, audit_requests.QUEUE)
    assert claim is not None
    audit_requests.cancel(system, ORGANISER, audit.id)
    audit_parts.prepare_audit(system, claim)
    assert audit_requests.get(system, BOB, audit.id).progress.parts is None
    done = request_audit(system)
    work_off(system)
    with pytest.raises(Conflict):
        audit_requests.cancel(system, ORGANISER, done.id)


def test_cancelling_ends_the_dead_and_the_queued_jobs_but_not_the_running_ones(
    open_at: Callable[..., System],
) -> None:
    system = open_at(attempts=1)
    make_track(system)
    publish_qrels(system, relevance=QRELS)
    for number in range(2):
        submit(system, ALICE, run(number))
    work_off(system)
    audit, other = prepare_audit(system), request_audit(system)
    failed, running = (jobs.claim_next(system, audit_requests.QUEUE) for _ in range(2))
    assert failed is not None
    assert running is not None
    jobs.fail(system, failed, "ZeroDivisionError: division by zero")
    assert [job.id for job in jobs.list_(system, ADMIN, state="dead").items] == [failed.id]
    cancelled = audit_requests.cancel(system, ORGANISER, audit.id)
    assert (cancelled.state, cancelled.failures) == ("cancelled", ())
    ended = jobs.get(system, ADMIN, failed.id)
    assert (ended.state, ended.error, ended.finished_at) == ("done", None, system.now())
    assert jobs.list_(system, ADMIN, state="dead").items == ()
    assert [job.id for job in jobs.list_(system, ADMIN, state="running").items] == [running.id]
    with pytest.raises(Conflict):
        jobs.revive(system, ADMIN, failed.id)
    work_off(system)
    assert audit_requests.get(system, BOB, audit.id).progress.trials_done == 0
    assert audit_requests.get(system, BOB, other.id).state == "done"


def test_version_is_compared_with_the_previous_one_by_default(system: System, sent: list[str]) -> None:
    def compare(**given: Any) -> audit_requests.AuditView:
        return request_audit(system, kind="qrels_versions", parameters={}, **given)

    with pytest.raises(Invalid, match="no version was current before version 1; publish another version"):
        compare()
    for _ in range(2):
        publish_qrels(system, relevance=QRELS.replace(b" 2\n", b" 1\n"))
        work_off(system)
    audits = [compare(), compare(qrels=2), compare(other=1)]
    assert [(audit.qrels, audit.other) for audit in audits] == [(3, 2), (2, 1), (3, 1)]
    with pytest.raises(Invalid, match="version 3 cannot be compared with itself"):
        compare(other=3)
    assert request_audit(system).other is None


def test_subject_is_fixed_at_the_request(system: System, sent: list[str]) -> None:
    reference = request_audit(system, seed=1)
    work_off(system)
    audit = request_audit(system, seed=1)
    submissions.withdraw(system, ALICE, sent[0])
    submit(system, ALICE, run(1), name="again.txt")
    work_off(system)
    assert digest(system, audit) == digest(system, reference)
    assert (
        len(request_audit(system).runs) == 5
    )  # the withdrawn run is replaced by the same file of another team


def test_repeated_run_is_audited_once_and_names_are_unique(system: System, sent: list[str]) -> None:
    submit(system, ALICE, run(0), name="the same run.txt")
    submit(system, BOB, run(0), name="run0.txt")
    work_off(system)
    names = [row.name for row in request_audit(system).runs]
    assert names == ["alice/run0.txt", "bob/run0.txt", *(f"run{number}.txt" for number in range(1, 5))]


def test_request_is_refused_with_every_problem(system: System, sent: list[str]) -> None:
    with pytest.raises(Invalid) as refused:
        request_audit(
            system,
            parameters={"ratios": [0], "repeat": 3},
            measures=["nDCG@10", "nonsense"],
            submissions=["sub_none"],
        )
    assert refused.value.code == "audit-invalid"
    messages = [error.message for error in refused.value.findings.errors]
    assert len(messages) == 4
    assert messages[0].startswith("ratios: ")
    assert "did you mean repeats" in messages[1]
    assert messages[3] == "submission 'sub_none' is withdrawn, or is not a submission to the track"
    with pytest.raises(Invalid, match="unknown audit 'downsamplin'; did you mean downsampling"):
        request_audit(system, kind="downsamplin")
    with pytest.raises(NotFound):
        request_audit(system, qrels=9)


def test_open_audits_of_a_track_are_limited(
    system: System, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_requests, "MAX_OPEN", 2)
    first, _ = request_audit(system), request_audit(system)
    with pytest.raises(TooMany) as refusal:
        request_audit(system)
    assert refusal.value.retry_after
    audit_requests.cancel(system, ORGANISER, first.id)
    assert request_audit(system).state == "queued"


def test_runs_of_an_audit_are_limited(
    system: System, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_subjects, "MAX_RUNS", 4)
    words = "5 runs exceed the limit of 4 per audit; list fewer submissions"
    for selection in ([], sent):
        with pytest.raises(Invalid, match=words):
            request_audit(system, submissions=selection)
    assert len(request_audit(system, submissions=sent[:4]).runs) == 4
    submit(system, ALICE, run(0), name="the same run as the first.txt")
    work_off(system)
    monkeypatch.setattr(audit_subjects, "MAX_RUNS", 5)
    assert len(request_audit(system).runs) == 5  # a team's repeated run counts once


def test_history_has_the_newest_audits_only(system: System, sent: list[str]) -> None:
    ids = []
    for _ in range(3):
        ids.append(request_audit(system).id)
        work_off(system)
    request_audit(system)  # not done, so it has no numbers
    points = audit_requests.read_history(
        system, BOB, "track", kind="downsampling", number="tau(AP)@50", limit=3
    )
    assert [point.audit for point in points] == ids
    points = audit_requests.read_history(
        system, BOB, "track", kind="downsampling", number="tau(AP)@50", limit=2
    )
    assert [point.audit for point in points] == ids[1:]


def test_default_comparison_skips_versions_that_were_never_current(system: System, sent: list[str]) -> None:
    for relevance in (b" 1\n", b" 0\n"):
        publish_qrels(system, relevance=QRELS.replace(b" 2\n", relevance))
    work_off(system)  # version 3 supersedes version 2
    audit = request_audit(system, kind="qrels_versions", parameters={})
    assert (audit.qrels, audit.other) == (3, 1)


def test_track_without_judgments_or_scores_is_refused(system: System) -> None:
    make_track(system)
    with pytest.raises(NotFound, match="no current qrels version yet"):
        request_audit(system)
    publish_qrels(system, relevance=QRELS)
    with pytest.raises(Invalid, match="no submission is scored under qrels version 1"):
        request_audit(system)


def test_request_requires_organiser_and_reading_does_not(system: System, sent: list[str]) -> None:
    for who in (ALICE, STRANGER):
        with pytest.raises(Forbidden):
            audit_requests.request(system, who, "track", kind="downsampling")
    audit = audit_requests.request(system, ADMIN, "track", kind="downsampling", parameters=SMALL)
    work_off(system)
    assert audit_requests.get(system, STRANGER, audit.id).state == "done"
    with pytest.raises(Forbidden):
        audit_requests.cancel(system, ALICE, audit.id)


def test_audit_of_a_publishing_version_is_visible_to_organisers_only(system: System, sent: list[str]) -> None:
    publish_qrels(system, relevance=QRELS.replace(b"a 0", b"a 1"))
    audit = request_audit(system, qrels=2, submissions=sent)
    with pytest.raises(NotFound):
        audit_requests.get(system, BOB, audit.id)
    assert audit_requests.list_(system, BOB, "track").items == ()
    assert audit_requests.list_(system, ORGANISER, "track").items == (audit,)
    while job_execution.run_jobs(system, rescoring.QUEUE, HANDLERS):
        pass
    assert audit_requests.get(system, BOB, audit.id).qrels == 2


def test_list_and_history_of_audits(system: System, sent: list[str], clock: Clock) -> None:
    ids = []
    for _ in range(3):
        clock.forward(60)
        ids.append(request_audit(system).id)
        work_off(system)
    first = audit_requests.list_(system, BOB, "track", limit=2)
    assert [audit.id for audit in first.items] == ids[:0:-1]
    assert [audit.id for audit in audit_requests.list_(system, BOB, "track", cursor=first.next).items] == ids[
        :1
    ]
    assert audit_requests.list_(system, BOB, "track", kind="pool_depth").items == ()
    points = audit_requests.read_history(system, BOB, "track", kind="downsampling", number="tau(AP)@50")
    assert [point.audit for point in points] == ids
    assert len({point.value for point in points}) == 1
    assert audit_requests.read_history(system, BOB, "track", kind="downsampling", number="nothing") == ()
