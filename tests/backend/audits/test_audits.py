"""Audits: the same result as offline, whatever happens to those who work on them, and each part once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cupel_audits import execution, read_audit, report
from cupel_audits.kinds.downsampling import Downsampling
from cupel_audits.subject_files import NamedQrels, assemble_subject, view_of
from cupel_backend import job_execution, jobs, scheduler_steps, submissions
from cupel_backend.audits import audit_parts, audit_requests
from cupel_backend.infrastructure.errors import Conflict, Forbidden, Invalid, NotFound
from cupel_backend.infrastructure.system import System
from cupel_backend.job_handlers import HANDLERS
from cupel_backend.scores import rescoring
from cupel_measures.catalogue.parser import parse
from cupel_measures.reading.collection_files import parse_collection
from cupel_measures.reading.run_files import read_run
from support.backend_cast import (
    ADMIN,
    ALICE,
    ASPECTS,
    BOB,
    COLLECTION,
    CREDIBILITY,
    ORGANISER,
    STRANGER,
    Clock,
    end,
    make_track,
    publish_qrels,
    run_file,
    submit,
    work_off,
)

TOPICS = 6
LETTERS = "abcdefghijkl"
ORDERS = ("fcebdaghijkl", "cfbeadlkjihg", "adbecfgihlkj", "abcdefghijkl", "lkjihgfedcba")
QRELS = "".join(
    f"t{topic} 0 {d} {(place * (topic + 3)) % 3}\n"
    for topic in range(TOPICS)
    for place, d in enumerate(LETTERS)
).encode()
SMALL = {"repeats": 6, "ratios": [50, 10], "method": "uniform"}


def run(number: int) -> bytes:
    order = ORDERS[number]
    turned = [order[topic:] + order[:topic] for topic in range(TOPICS)]
    return run_file([(f"t{topic}", one) for topic, one in enumerate(turned)], tag=f"r{number}")


@pytest.fixture
def sent(system: System) -> list[str]:
    """A judged track with five scored submissions."""
    make_track(system)
    publish_qrels(system, relevance=QRELS)
    ids = [submit(system, (ALICE, BOB)[one % 2], run(one), name=f"run{one}.txt").id for one in range(5)]
    work_off(system)
    return ids


def ask(system: System, **changes: Any) -> audit_requests.AuditView:
    given: dict[str, Any] = {"kind": "downsampling", "parameters": SMALL, "part_trials": 1}
    return audit_requests.request(system, ORGANISER, "track", **(given | changes))


def gathered(system: System, **changes: Any) -> audit_requests.AuditView:
    """An audit whose parts wait."""
    audit = ask(system, **changes)
    claim = jobs.claim_next(system, audit_requests.QUEUE)
    assert claim is not None
    HANDLERS[claim.kind](system, claim)
    return audit_requests.get(system, BOB, audit.id)


def digest(system: System, audit: audit_requests.AuditView) -> str:
    return str(audit_parts.read_report(system, BOB, audit.id)[0].as_data()["digest"])


def report_digest(result: execution.Result) -> str:
    assert result.report is not None
    return report.digest(result.report.as_data())


def offline(folder: Path, audit: audit_requests.AuditView) -> str:
    """The digest of the library's report on the same files."""
    files = {"relevance.txt": QRELS, "credibility.txt": CREDIBILITY}
    qrels = parse_collection(json.dumps({"aspects": ASPECTS, **yaml.safe_load(COLLECTION)}), files).qrels
    runs = []
    for number in range(5):
        path = folder / f"run{number}.txt"
        path.write_bytes(run(number))
        runs.append((path.name, view_of(read_run(path).ranking, qrels, depth=1000)))
    kind = read_audit(audit.kind, audit.parameters)
    measures = [parse(text) for text in audit.measures]
    teams = [one.team for one in audit.runs]
    subject = assemble_subject(NamedQrels("mine", qrels), runs, measures, teams=teams, depth=1000)
    trials = range(kind.trials(subject))
    found = dict(execution.run_trials(kind, subject, audit.seed, trials))
    return report_digest(execution.result(kind, subject.about, audit.seed, len(trials), found))


def test_an_audit_says_what_the_library_says_of_the_same_files_to_the_last_bit(
    system: System, sent: list[str], tmp_path: Path
) -> None:
    audit = ask(system, part_trials=None)
    assert (audit.state, audit.progress.trials, audit.qrels) == ("queued", None, 1)
    assert [one.submission for one in audit.runs] == sent
    assert [one.name for one in audit.runs] == [f"run{number}.txt" for number in range(5)]
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


def test_parts_of_any_size_in_any_order_and_a_partial_report_on_the_way(
    system: System, sent: list[str]
) -> None:
    whole = gathered(system, part_trials=None, seed=5)
    work_off(system)
    audit = gathered(system, seed=5)
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
    assert audit_requests.get(system, BOB, audit.id).digest == digest(system, whole)


def test_a_part_that_two_workers_do_counts_once(system: System, sent: list[str], clock: Clock) -> None:
    audit = gathered(system)
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


def test_a_part_gives_way_to_scores_and_goes_on_where_it_stopped(
    system: System, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = gathered(system, seed=5)
    work_off(system)
    monkeypatch.setattr(audit_parts, "LOOK_SECONDS", 0.0)
    audit = gathered(system, seed=5, part_trials=3)
    submit(system, ALICE, run(0), name="late.txt")
    assert job_execution.run_jobs(system, audit_requests.QUEUE, HANDLERS)  # there is more
    given_way = audit_requests.get(system, BOB, audit.id)
    assert given_way.progress.trials_done == 1
    waiting = [one for one in jobs.list_(system, ADMIN).items if one.state == "queued"]
    assert {one.attempts for one in waiting} == {0}
    work_off(system)
    assert audit_requests.get(system, BOB, audit.id).digest == digest(system, whole)


def test_a_cancelled_audit_stops_within_a_part_and_keeps_what_is_done(
    system: System, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_parts, "LOOK_SECONDS", 0.0)
    audit = gathered(system, part_trials=6, parameters=SMALL | {"repeats": 24})
    real = execution.run_trials

    def cancelled_meanwhile(*given: Any) -> Any:
        for trial, result in real(*given):
            if trial == 1:
                audit_requests.cancel(system, ORGANISER, audit.id)
            yield trial, result

    monkeypatch.setattr(execution, "run_trials", cancelled_meanwhile)
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


def test_an_audit_can_be_cancelled_before_it_is_gathered_but_not_when_it_is_done(
    system: System, sent: list[str]
) -> None:
    audit = ask(system)
    claim = jobs.claim_next(system, audit_requests.QUEUE)
    assert claim is not None
    audit_requests.cancel(system, ORGANISER, audit.id)
    audit_parts.prepare_audit(system, claim)
    assert audit_requests.get(system, BOB, audit.id).progress.parts is None
    done = ask(system)
    work_off(system)
    with pytest.raises(Conflict):
        audit_requests.cancel(system, ORGANISER, done.id)


def test_a_part_that_failed_says_why_and_can_be_done_again(open_at: Callable[..., System]) -> None:
    system = open_at(attempts=1)
    make_track(system)
    publish_qrels(system, relevance=QRELS)
    for number in range(2):
        submit(system, ALICE, run(number))
    work_off(system)
    audit = gathered(system)
    claim = jobs.claim_next(system, audit_requests.QUEUE)
    assert claim is not None
    jobs.fail(system, claim, "ZeroDivisionError: division by zero")
    work_off(system)
    failed = audit_requests.get(system, BOB, audit.id)
    assert (failed.state, failed.progress.parts_done) == ("failed", 5)
    assert [(one.part, one.error) for one in failed.failures] == [(1, "ZeroDivisionError: division by zero")]
    assert audit_parts.read_report(system, BOB, audit.id)[0].done == 5
    with pytest.raises(Conflict):
        audit_requests.rerun(system, ORGANISER, audit.id, 2)
    with pytest.raises(NotFound):
        audit_requests.rerun(system, ORGANISER, audit.id, 7)
    assert audit_requests.rerun(system, ORGANISER, audit.id, 1).state == "running"
    work_off(system)
    assert audit_requests.get(system, BOB, audit.id).state == "done"


def test_a_worker_that_dies_before_it_concludes_is_no_loss(
    system: System, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = ask(system)
    with monkeypatch.context() as dying:
        dying.setattr(audit_parts, "conclude", lambda *_: False)
        work_off(system)
    assert audit_requests.get(system, BOB, audit.id).state == "running"
    scheduler_steps.tick(system)
    assert audit_requests.get(system, BOB, audit.id).state == "done"


def test_an_audit_whose_report_fails_says_so_and_stops_nothing_else(
    system: System, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    audit, other = ask(system), ask(system, kind="correlation", parameters={})
    with monkeypatch.context() as broken:
        broken.setattr(Downsampling, "report", lambda *_: 1 / 0)
        work_off(system)
        scheduler_steps.tick(system)
    failed = audit_requests.get(system, BOB, audit.id)
    assert failed.state == "failed"
    assert failed.problems == ("its report could not be made (ZeroDivisionError: division by zero)",)
    with pytest.raises(NotFound, match="came to nothing: its report could not"):
        audit_parts.read_report(system, BOB, audit.id)
    assert audit_requests.get(system, BOB, other.id).state == "done"


def test_a_version_is_compared_with_the_one_before_unless_another_is_given(
    system: System, sent: list[str]
) -> None:
    def compare(**given: Any) -> audit_requests.AuditView:
        return ask(system, kind="qrels_versions", parameters={}, **given)

    with pytest.raises(Invalid, match="none was current before qrels 1: publish a second one"):
        compare()
    for _ in range(2):
        publish_qrels(system, relevance=QRELS.replace(b" 2\n", b" 1\n"))
        work_off(system)
    asked = [compare(), compare(qrels=2), compare(other=1)]
    assert [(one.qrels, one.other) for one in asked] == [(3, 2), (2, 1), (3, 1)]
    with pytest.raises(Invalid, match="qrels 3 are compared with themselves"):
        compare(other=3)
    assert ask(system).other is None


def test_a_board_is_analysed_before_a_large_audit_of_its_track_is_done(
    system: System, sent: list[str], clock: Clock
) -> None:
    gathered(system, parameters=SMALL | {"repeats": 20})
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


def test_what_is_audited_is_fixed_when_it_is_asked_for(system: System, sent: list[str]) -> None:
    whole = ask(system, seed=1)
    work_off(system)
    audit = ask(system, seed=1)
    submissions.withdraw(system, ALICE, sent[0])
    submit(system, ALICE, run(1), name="again.txt")
    work_off(system)
    assert digest(system, audit) == digest(system, whole)
    assert len(ask(system).runs) == 5  # without the withdrawn one, with one by another team of the same file


def test_a_run_handed_in_twice_is_audited_once_and_equal_names_are_told_apart(
    system: System, sent: list[str]
) -> None:
    submit(system, ALICE, run(0), name="the same run.txt")
    submit(system, BOB, run(0), name="run0.txt")
    work_off(system)
    names = [one.name for one in ask(system).runs]
    assert names == ["alice/run0.txt", "bob/run0.txt", *(f"run{number}.txt" for number in range(1, 5))]


def test_nonsense_is_refused_with_every_sentence(system: System, sent: list[str]) -> None:
    with pytest.raises(Invalid) as refused:
        ask(
            system,
            parameters={"ratios": [0], "repeat": 3},
            measures=["nDCG@10", "nonsense"],
            submissions=["sub_none"],
        )
    assert refused.value.code == "audit-invalid"
    said = [one.message for one in refused.value.findings.errors]
    assert len(said) == 4
    assert said[0].startswith("ratios: ")
    assert "did you mean repeats" in said[1]
    assert said[3] == "the track has no submission 'sub_none' that is not withdrawn"
    with pytest.raises(Invalid, match="there is no audit 'downsamplin'; did you mean downsampling"):
        ask(system, kind="downsamplin")
    with pytest.raises(NotFound):
        ask(system, qrels=9)


def test_a_subject_that_can_not_be_audited_is_said_in_sentences(system: System, sent: list[str]) -> None:
    audit = ask(system, submissions=sent[:1], parameters={"aspect": "beauty"})
    work_off(system)
    failed = audit_requests.get(system, BOB, audit.id)
    assert failed.state == "failed"
    assert failed.problems == (
        "the audit compares runs, but there is only one: give two or more",
        "aspect: there is no 'beauty'; there are relevance, credibility",
    )
    with pytest.raises(Conflict):
        audit_requests.cancel(system, ORGANISER, audit.id)
    with pytest.raises(Conflict, match="is over"):
        audit_requests.rerun(system, ORGANISER, audit.id, 0)


def test_an_audit_of_too_many_trials_is_not_begun(system: System, sent: list[str]) -> None:
    audit = ask(system, parameters=SMALL | {"repeats": 20_001})
    work_off(system)
    said = "it has 20,001 trials, and at most 20,000 are done here: ask for fewer"
    assert audit_requests.get(system, BOB, audit.id).problems == (said,)


def test_a_track_without_judgments_or_scores_has_nothing_to_audit(system: System) -> None:
    make_track(system)
    with pytest.raises(NotFound, match="no judgments"):
        ask(system)
    publish_qrels(system, relevance=QRELS)
    with pytest.raises(Invalid, match="no submission is scored under qrels version 1"):
        ask(system)


def test_organisers_ask_and_everybody_who_sees_the_board_reads(system: System, sent: list[str]) -> None:
    for who in (ALICE, STRANGER):
        with pytest.raises(Forbidden):
            audit_requests.request(system, who, "track", kind="downsampling")
    audit = audit_requests.request(system, ADMIN, "track", kind="downsampling", parameters=SMALL)
    work_off(system)
    assert audit_requests.get(system, STRANGER, audit.id).state == "done"
    with pytest.raises(Forbidden):
        audit_requests.cancel(system, ALICE, audit.id)


def test_an_audit_of_judgments_that_are_not_public_is_for_organisers(system: System, sent: list[str]) -> None:
    publish_qrels(system, relevance=QRELS.replace(b"a 0", b"a 1"))
    audit = ask(system, qrels=2, submissions=sent)
    with pytest.raises(NotFound):
        audit_requests.get(system, BOB, audit.id)
    assert audit_requests.list_(system, BOB, "track").items == ()
    assert audit_requests.list_(system, ORGANISER, "track").items == (audit,)
    while job_execution.run_jobs(system, rescoring.QUEUE, HANDLERS):
        pass
    assert audit_requests.get(system, BOB, audit.id).qrels == 2


def test_audits_are_listed_by_kind_newest_first_and_their_numbers_over_time(
    system: System, sent: list[str], clock: Clock
) -> None:
    ids = []
    for _ in range(3):
        clock.forward(60)
        ids.append(ask(system).id)
        work_off(system)
    first = audit_requests.list_(system, BOB, "track", limit=2)
    assert [one.id for one in first.items] == ids[:0:-1]
    assert [one.id for one in audit_requests.list_(system, BOB, "track", cursor=first.next).items] == ids[:1]
    assert audit_requests.list_(system, BOB, "track", kind="pool_depth").items == ()
    points = audit_requests.read_history(system, BOB, "track", kind="downsampling", number="tau(AP)@50")
    assert [one.audit for one in points] == ids
    assert len({one.value for one in points}) == 1
    assert audit_requests.read_history(system, BOB, "track", kind="downsampling", number="nothing") == ()


def test_a_table_of_the_report_as_csv(system: System, sent: list[str]) -> None:
    audit = ask(system)
    work_off(system)
    result = audit_parts.read_report(system, BOB, audit.id)[0]
    assert result.report is not None
    assert audit_parts.export_table(result, "points") == result.report.tables[0].as_csv()
    with pytest.raises(NotFound, match="there is no table 'x'; there are "):
        audit_parts.export_table(result, "x")
