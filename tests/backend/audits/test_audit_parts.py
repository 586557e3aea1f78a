"""Tests of the execution of audits: agreement with the library, parts and reports."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import update

from cupel_audits import execution, read_audit, report
from cupel_audits.kinds.downsampling import Downsampling
from cupel_audits.subject_files import NamedQrels, assemble_subject, view_of
from cupel_backend import job_execution, jobs, scheduler_steps
from cupel_backend.audits import audit_parts, audit_requests
from cupel_backend.infrastructure.database import writing
from cupel_backend.infrastructure.errors import Conflict, NotFound
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import qrels
from cupel_backend.job_handlers import HANDLERS
from cupel_backend.scores import rescoring
from cupel_measures.catalogue.parser import parse
from cupel_measures.reading.collection_files import parse_collection
from cupel_measures.reading.qrels_files import QrelsFile, build_qrels, pack_qrels, unscaled
from cupel_measures.reading.run_files import read_run
from support.audit_cast import QRELS, SMALL, prepare_audit, request_audit, run
from support.backend_cast import (
    ADMIN,
    ALICE,
    ASPECTS,
    BOB,
    COLLECTION,
    CREDIBILITY,
    ORGANISER,
    Clock,
    end,
    make_track,
    publish_qrels,
    submit,
    work_off,
)


def digest(system: System, audit: audit_requests.AuditView) -> str:
    return str(audit_parts.read_report(system, BOB, audit.id)[0].as_data()["digest"])


def report_digest(result: execution.Result) -> str:
    assert result.report is not None
    return report.digest(result.report.as_data())


def offline(folder: Path, audit: audit_requests.AuditView) -> str:
    """Return the digest of the library's report on the same files."""
    files = {"relevance.txt": QRELS, "credibility.txt": CREDIBILITY}
    qrels = parse_collection(json.dumps({"aspects": ASPECTS, **yaml.safe_load(COLLECTION)}), files).qrels
    runs = []
    for number in range(5):
        path = folder / f"run{number}.txt"
        path.write_bytes(run(number))
        runs.append((path.name, view_of(read_run(path).ranking, qrels, depth=1000)))
    kind = read_audit(audit.kind, audit.parameters)
    measures = [parse(text) for text in audit.measures]
    teams = [row.team for row in audit.runs]
    subject = assemble_subject(NamedQrels("mine", qrels), runs, measures, teams=teams, depth=1000)
    trials = range(kind.trials(subject))
    results = dict(execution.run_trials(kind, subject, audit.seed, trials))
    return report_digest(execution.result(kind, subject.about, audit.seed, len(trials), results))


def test_audit_is_bit_equal_to_the_library(system: System, sent: list[str], tmp_path: Path) -> None:
    audit = request_audit(system, part_trials=None)
    assert (audit.state, audit.progress.trials, audit.qrels) == ("queued", None, 1)
    assert [row.submission for row in audit.runs] == sent
    assert [row.name for row in audit.runs] == [f"run{number}.txt" for number in range(5)]
    assert len(audit.measures) == 3
    work_off(system)
    done = audit_requests.get(system, BOB, audit.id)
    assert (done.state, done.failures, done.problems) == ("done", (), ())
    assert (done.progress.trials, done.progress.trials_done) == (6, 6)
    assert done.progress.parts == done.progress.parts_done == 6
    result = audit_parts.read_report(system, BOB, audit.id)[0]
    assert result.report is not None
    assert result.as_data()["digest"] == done.digest
    assert done.verdict == result.report.verdict
    assert done.numbers == result.report.numbers
    assert report_digest(result) == offline(tmp_path, audit)


def test_result_does_not_depend_on_size_and_order_of_parts(system: System, sent: list[str]) -> None:
    reference = prepare_audit(system, part_trials=None, seed=5)
    work_off(system)
    audit = prepare_audit(system, seed=5)
    claims = [jobs.claim_next(system, audit_requests.QUEUE) for _ in range(6)]
    with pytest.raises(NotFound) as none_yet:
        audit_parts.read_report(system, BOB, audit.id)[0]
    assert none_yet.value.code == "audit-not-begun"
    for claim in reversed(claims):
        assert claim is not None
        assert audit_requests.get(system, BOB, audit.id).state == "running"
        audit_parts.run_part(system, claim)
        partial = audit_parts.read_report(system, BOB, audit.id)[0]
        assert partial.done == audit_requests.get(system, BOB, audit.id).progress.trials_done
    assert audit_requests.get(system, BOB, audit.id).digest == digest(system, reference)


def test_part_that_runs_twice_counts_once(system: System, sent: list[str], clock: Clock) -> None:
    audit = prepare_audit(system)
    first = jobs.claim_next(system, audit_requests.QUEUE)
    assert first is not None
    clock.forward(60)
    jobs.sweep(system)
    work_off(system)
    done = audit_requests.get(system, BOB, audit.id)
    assert (done.state, done.progress.trials_done) == ("done", 6)
    with pytest.raises(jobs.LeaseLost):
        audit_parts.run_part(system, first)
    assert audit_requests.get(system, BOB, audit.id) == done


def test_part_is_postponed_for_scoring_and_continues(
    system: System, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = prepare_audit(system, seed=5)
    work_off(system)
    monkeypatch.setattr(audit_parts, "POLL_SECONDS", 0.0)
    audit = prepare_audit(system, seed=5, part_trials=3)
    submit(system, ALICE, run(0), name="late.txt")
    assert job_execution.run_jobs(system, audit_requests.QUEUE, HANDLERS)  # the part is not finished
    postponed = audit_requests.get(system, BOB, audit.id)
    assert postponed.progress.trials_done == 1
    waiting = [job for job in jobs.list_(system, ADMIN).items if job.state == "queued"]
    assert {job.attempts for job in waiting} == {0}
    work_off(system)
    assert audit_requests.get(system, BOB, audit.id).digest == digest(system, reference)


def test_cancelled_audit_stops_within_a_part_and_keeps_results(
    system: System, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_parts, "POLL_SECONDS", 0.0)
    audit = prepare_audit(system, part_trials=6, parameters=SMALL | {"repeats": 24})
    real = execution.run_trials

    def cancel_at_trial_1(*given: Any) -> Any:
        for trial, result in real(*given):
            if trial == 1:
                audit_requests.cancel(system, ORGANISER, audit.id)
            yield trial, result

    monkeypatch.setattr(execution, "run_trials", cancel_at_trial_1)
    claim = jobs.claim_next(system, audit_requests.QUEUE)
    assert claim is not None
    audit_parts.run_part(system, claim)
    stopped = audit_requests.get(system, BOB, audit.id)
    assert (stopped.state, stopped.progress.trials_done) == ("cancelled", 2)
    assert jobs.claim_next(system, audit_requests.QUEUE) is None
    assert audit_parts.read_report(system, BOB, audit.id)[0].done == 2
    assert audit_requests.cancel(system, ORGANISER, audit.id) == stopped
    scheduler_steps.tick(system)
    assert audit_requests.get(system, BOB, audit.id) == stopped
    with pytest.raises(Conflict):
        audit_requests.rerun(system, ORGANISER, audit.id, 1)


def test_failed_part_shows_its_error_and_can_be_rerun(open_at: Callable[..., System]) -> None:
    system = open_at(attempts=1)
    make_track(system)
    publish_qrels(system, relevance=QRELS)
    for number in range(2):
        submit(system, ALICE, run(number))
    work_off(system)
    audit = prepare_audit(system)
    claim = jobs.claim_next(system, audit_requests.QUEUE)
    assert claim is not None
    jobs.fail(system, claim, "ZeroDivisionError: division by zero")
    work_off(system)
    failed = audit_requests.get(system, BOB, audit.id)
    assert (failed.state, failed.progress.parts_done) == ("failed", 5)
    assert [(failure.part, failure.error) for failure in failed.failures] == [
        (1, "ZeroDivisionError: division by zero")
    ]
    assert audit_parts.read_report(system, BOB, audit.id)[0].done == 5
    with pytest.raises(Conflict):
        audit_requests.rerun(system, ORGANISER, audit.id, 2)
    with pytest.raises(NotFound):
        audit_requests.rerun(system, ORGANISER, audit.id, 7)
    assert audit_requests.rerun(system, ORGANISER, audit.id, 1).state == "running"
    work_off(system)
    assert audit_requests.get(system, BOB, audit.id).state == "done"


def test_tick_concludes_audit_of_a_dead_worker(
    system: System, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = request_audit(system)
    with monkeypatch.context() as dying:
        dying.setattr(audit_parts, "conclude", lambda *_: False)
        work_off(system)
    assert audit_requests.get(system, BOB, audit.id).state == "running"
    scheduler_steps.tick(system)
    assert audit_requests.get(system, BOB, audit.id).state == "done"


def test_failing_report_is_a_problem_of_its_audit_only(
    system: System, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    audit, other = request_audit(system), request_audit(system, kind="correlation", parameters={})
    with monkeypatch.context() as broken:
        broken.setattr(Downsampling, "report", lambda *_: 1 / 0)
        work_off(system)
        scheduler_steps.tick(system)
    failed = audit_requests.get(system, BOB, audit.id)
    assert failed.state == "failed"
    assert failed.problems == ("the report failed (ZeroDivisionError: division by zero)",)
    with pytest.raises(NotFound, match="failed: the report failed"):
        audit_parts.read_report(system, BOB, audit.id)
    assert audit_requests.get(system, BOB, other.id).state == "done"


def test_board_analysis_does_not_wait_for_a_large_audit(
    system: System, sent: list[str], clock: Clock
) -> None:
    prepare_audit(system, parameters=SMALL | {"repeats": 20})
    publish_qrels(system, relevance=QRELS.replace(b" 2\n", b" 1\n"))
    while (scoring := jobs.claim_next(system, rescoring.QUEUE)) is not None:
        HANDLERS[scoring.kind](system, scoring)
    scheduler_steps.tick(system)
    taken = []
    while (claim := jobs.claim_next(system, audit_requests.QUEUE)) is not None:
        taken.append((claim.kind, claim.payload.get("qrels")))
        end(system, claim)
        clock.forward(0.1)
    assert taken.count((audit_requests.PART, None)) == 20
    newest = max(version for _, version in taken if version is not None)
    assert sum(version == newest for _, version in taken[:12]) == 3  # of the plan


def test_audit_that_an_earlier_release_prepared_with_unjudged_topics_fails(
    system: System, sent: list[str]
) -> None:
    audit = prepare_audit(system)
    fewer = b"".join(line + b"\n" for line in QRELS.splitlines() if not line.startswith(b"t2"))
    judged_less = build_qrels([unscaled("relevance")], [QrelsFile.plain("q", fewer, "relevance")])
    path = system.settings.incoming / "fewer"
    path.write_bytes(pack_qrels(judged_less))
    blob = system.blobs.put_file(path, sha256(path.read_bytes()).hexdigest())
    # The prepared subject gets more topics than are judged.
    with writing(system.engine) as connection:
        connection.execute(update(qrels).values(blob=blob))
    work_off(system)
    failed = audit_requests.get(system, BOB, audit.id)
    assert (failed.state, failed.problems) == ("failed", (audit_parts.OTHER_TOPICS,))


def test_problems_of_the_subject_are_reported(system: System, sent: list[str]) -> None:
    audit = request_audit(system, submissions=sent[:1], parameters={"aspect": "beauty"})
    work_off(system)
    failed = audit_requests.get(system, BOB, audit.id)
    assert failed.state == "failed"
    assert failed.problems == (
        "the audit compares runs, but only one is given: give two or more",
        "aspect: unknown aspect 'beauty'; use one of relevance, credibility",
    )
    with pytest.raises(Conflict):
        audit_requests.cancel(system, ORGANISER, audit.id)
    with pytest.raises(Conflict, match="is done, failed or cancelled"):
        audit_requests.rerun(system, ORGANISER, audit.id, 0)


def test_audit_with_too_many_trials_fails(system: System, sent: list[str]) -> None:
    audit = request_audit(system, parameters=SMALL | {"repeats": 20_001})
    work_off(system)
    problem = "the audit has 20,001 trials; the limit is 20,000"
    assert audit_requests.get(system, BOB, audit.id).problems == (problem,)


@pytest.mark.parametrize(("limit", "state"), [(6, "done"), (5, "failed")])
def test_limit_of_trials(
    system: System, sent: list[str], monkeypatch: pytest.MonkeyPatch, limit: int, state: str
) -> None:
    monkeypatch.setattr(audit_parts, "MAX_TRIALS", limit)
    audit = request_audit(system)
    work_off(system)
    assert audit_requests.get(system, BOB, audit.id).state == state


def test_export_table_as_csv(system: System, sent: list[str]) -> None:
    audit = request_audit(system)
    work_off(system)
    result = audit_parts.read_report(system, BOB, audit.id)[0]
    assert result.report is not None
    assert audit_parts.export_table(result, "points") == result.report.tables[0].as_csv()
    with pytest.raises(NotFound, match="unknown table 'x'; use one of "):
        audit_parts.export_table(result, "x")
