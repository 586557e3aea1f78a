"""Tests of qrels versions: drafts, publishing, rescoring and the switch of the current version."""

import threading

import pytest

from cupel_backend import jobs, qrels_versions, scheduler_steps, submissions, tracks
from cupel_backend.access import Principal
from cupel_backend.infrastructure.errors import Conflict, Forbidden, Invalid, NotFound
from cupel_backend.infrastructure.system import System
from cupel_backend.scores import evaluations, leaderboards, rescoring
from support.backend_cast import (
    ADMIN,
    ALICE,
    BOB,
    COLLECTION,
    CORRECTED,
    CREDIBILITY,
    GOOD,
    ORGANISER,
    POOR,
    RELEVANCE,
    STRANGER,
    Clock,
    end,
    make_track,
    publish_qrels,
    run_file,
    submit,
    upload_qrels,
    work_off,
)


@pytest.fixture(autouse=True)
def track(system: System) -> None:
    make_track(system)


def evaluate_next(system: System) -> None:
    claim = jobs.claim_next(system, "score")
    assert claim is not None
    evaluations.evaluate(system, claim)


def fail_next(system: System, clock: Clock) -> None:
    """Let the next evaluation fail until it is dead."""
    for _ in range(3):
        claim = jobs.claim_next(system, "score")
        assert claim is not None
        jobs.fail(system, claim, "no")
        clock.forward(10)


def state(system: System, number: int) -> str:
    return qrels_versions.get(system, ORGANISER, "track", number).state


def progress(system: System, number: int) -> rescoring.RescoringProgress:
    return qrels_versions.get(system, ORGANISER, "track", number).progress


def board_scores(system: System, number: int | None = None) -> dict[str, float]:
    board = leaderboards.read_board(system, ALICE, "track", measure="nDCG@2", qrels=number)
    assert board is not None
    return {row.submission: row.score for row in board.rows}


def test_upload_creates_a_draft_visible_to_organisers_only(system: System) -> None:
    version = upload_qrels(system)
    assert (version.number, version.state) == (1, "draft")
    judgments = {"relevance": 5, "credibility": 5}
    counts = {"topics": 2, "unjudged_topics": [], "documents": 5, "judgments": judgments}
    assert version.counts == counts
    assert [version.number for version in qrels_versions.list_(system, ORGANISER, "track").items] == [1]
    for other in (ALICE, STRANGER):
        assert qrels_versions.list_(system, other, "track").items == ()
        with pytest.raises(NotFound):
            qrels_versions.get(system, other, "track", 1)
        with pytest.raises(NotFound):
            leaderboards.read_board(system, other, "track", qrels=1)


def test_upload_and_publish_require_organiser_of_the_track(system: System) -> None:
    upload_qrels(system)
    for other in (ALICE, STRANGER):
        with pytest.raises(Forbidden):
            qrels_versions.upload(system, other, "track", collection=COLLECTION, files={})
        with pytest.raises(Forbidden):
            qrels_versions.publish(system, other, "track", 1)
    assert qrels_versions.publish(system, ADMIN, "track", 1).state == "current"


def test_upload_reports_every_error_of_every_file(system: System) -> None:
    files = {"relevance.txt": b"t1 0 a 7\n", "credibility.txt": b"t1 0 a so-so\nt1 0\n"}
    with pytest.raises(Invalid) as refusal:
        qrels_versions.upload(system, ORGANISER, "track", collection=COLLECTION, files=files)
    found = {(finding.file, finding.line) for finding in refusal.value.findings.errors}
    assert {("relevance.txt", 1), ("credibility.txt", 1), ("credibility.txt", 2)} <= found
    assert qrels_versions.list_(system, ORGANISER, "track").items == ()


def test_upload_names_missing_file(system: System) -> None:
    with pytest.raises(Invalid) as refusal:
        qrels_versions.upload(
            system, ORGANISER, "track", collection=COLLECTION, files={"../relevance.txt": RELEVANCE}
        )
    assert any("credibility.txt" in finding.message for finding in refusal.value.findings.errors)


def test_upload_refuses_collection_file_that_is_not_text(system: System) -> None:
    with pytest.raises(Invalid):
        qrels_versions.upload(system, ORGANISER, "track", collection=b"\xff\xfe\x00", files={})


def test_first_version_is_current_at_once_without_submissions(system: System) -> None:
    before = leaderboards.read_board(system, ALICE, "track")
    assert before is not None
    assert publish_qrels(system).state == "current"
    after = leaderboards.read_board(system, ALICE, "track", known=before.etag)
    assert after is not None
    assert after.qrels == 1


def test_publishing_scores_earlier_submissions(system: System) -> None:
    received = submit(system, ALICE)
    assert (received.state, received.jobs) == ("waiting", ())
    board = leaderboards.read_board(system, ALICE, "track")
    assert board is not None
    assert (board.qrels, board.rows, [row.submission for row in board.unscored]) == (None, (), [received.id])
    assert publish_qrels(system).state == "publishing"
    assert submissions.get(system, ALICE, received.id).state == "queued"
    assert work_off(system) == 1
    assert state(system, 1) == "current"
    assert board_scores(system) == {received.id: 1.0}


def test_version_becomes_current_after_every_submission_is_scored(system: System) -> None:
    publish_qrels(system)
    good, poor = submit(system, ALICE, run_file(GOOD)), submit(system, BOB, run_file(POOR))
    work_off(system)
    old = board_scores(system)
    version = publish_qrels(system, relevance=CORRECTED)
    assert (version.state, version.progress) == ("publishing", rescoring.RescoringProgress(2, 0, 0))
    evaluate_next(system)
    assert board_scores(system) == old
    assert qrels_versions.get(system, ALICE, "track", 2).progress == rescoring.RescoringProgress(2, 1, 0)
    evaluate_next(system)
    assert [state(system, 1), state(system, 2)] == ["superseded", "current"]
    assert board_scores(system) != old
    assert board_scores(system, 1) == old
    assert set(old) == {good.id, poor.id}


def test_submission_during_publishing_is_scored_under_both_versions(system: System) -> None:
    publish_qrels(system)
    submit(system, ALICE)
    work_off(system)
    publish_qrels(system, relevance=CORRECTED)
    meanwhile = submit(system, BOB, run_file(POOR))
    assert len(meanwhile.jobs) == 2
    assert work_off(system) == 3
    assert state(system, 2) == "current"
    for number in (1, 2):
        assert meanwhile.id in board_scores(system, number)


def test_dead_job_does_not_block_the_switch_and_is_listed_as_unscored(system: System, clock: Clock) -> None:
    publish_qrels(system)
    received = submit(system, ALICE)
    work_off(system)
    publish_qrels(system, relevance=CORRECTED)
    fail_next(system, clock)
    scheduler_steps.tick(system)
    assert state(system, 2) == "current"
    board = leaderboards.read_board(system, ALICE, "track")
    assert board is not None
    assert board.rows == ()
    assert [(row.submission, "failed" in row.reason) for row in board.unscored] == [(received.id, True)]
    assert qrels_versions.get(system, ALICE, "track", 2).progress == rescoring.RescoringProgress(1, 0, 1)


def test_revived_job_adds_its_submission_to_the_board(system: System, clock: Clock) -> None:
    publish_qrels(system)
    received = submit(system, ALICE)
    fail_next(system, clock)
    assert submissions.get(system, ALICE, received.id).state == "dead"
    jobs.revive(system, ORGANISER, received.jobs[0].id)
    work_off(system)
    assert submissions.get(system, ALICE, received.id).state == "scored"
    assert board_scores(system) == {received.id: 1.0}


def test_later_version_supersedes_an_unfinished_one(system: System) -> None:
    publish_qrels(system)
    submit(system, ALICE)
    work_off(system)
    publish_qrels(system, relevance=CORRECTED)
    third = publish_qrels(system, relevance=RELEVANCE)
    assert (third.number, state(system, 2)) == (3, "superseded")
    work_off(system)
    assert [state(system, number) for number in (1, 2, 3)] == ["superseded", "superseded", "current"]
    assert qrels_versions.get(system, ALICE, "track", 2).progress == rescoring.RescoringProgress(1, 0, 0)
    unfinished = leaderboards.read_board(system, ORGANISER, "track", qrels=2)
    assert unfinished is not None
    assert unfinished.rows == ()
    with pytest.raises(NotFound):
        board_scores(system, 2)


@pytest.mark.parametrize("principal", [ALICE, STRANGER])
def test_publishing_version_is_visible_to_organisers_only(system: System, principal: Principal) -> None:
    publish_qrels(system)
    received = submit(system, ALICE)
    work_off(system)
    publish_qrels(system, relevance=CORRECTED)
    submit(system, BOB, run_file(POOR))  # an open evaluation delays the switch
    evaluate_next(system)
    for forbidden in (
        lambda: leaderboards.read_board(system, principal, "track", qrels=2),
        lambda: qrels_versions.diff(system, principal, "track", 2, base=1, measure="AP"),
        lambda: qrels_versions.diff(system, principal, "track", 1, base=2, measure="AP"),
        lambda: evaluations.read_scores(system, ALICE, received.id, qrels=2),
    ):
        with pytest.raises(NotFound):
            forbidden()
    for organiser in (ORGANISER, ADMIN):
        assert leaderboards.read_board(system, organiser, "track", qrels=2) is not None
        assert qrels_versions.diff(system, organiser, "track", 2, base=1, measure="AP").rows
    work_off(system)
    assert leaderboards.read_board(system, principal, "track", qrels=2) is not None


def test_submission_state_ignores_other_versions(system: System, clock: Clock) -> None:
    publish_qrels(system)
    received = submit(system, ALICE)
    work_off(system)

    def state_now() -> str:
        return submissions.get(system, ALICE, received.id).state

    publish_qrels(system, relevance=CORRECTED)
    assert state_now() == "scored"
    fail_next(system, clock)
    publish_qrels(system, relevance=CORRECTED)
    work_off(system)
    assert state(system, 3) == "current"
    assert state_now() == "scored"


def test_submission_is_partly_scored_while_measures_are_missing(system: System, clock: Clock) -> None:
    publish_qrels(system)
    received = submit(system, ALICE)
    work_off(system)
    tracks.change(system, ORGANISER, "track", changes={"measures": ["AP", "P@2"]})
    assert progress(system, 1) == rescoring.RescoringProgress(1, 0, 0)
    fail_next(system, clock)
    assert progress(system, 1) == rescoring.RescoringProgress(1, 0, 1)
    assert submissions.get(system, ALICE, received.id).state == "partly"
    tracks.change(system, ORGANISER, "track", changes={"measures": ["AP"]})
    assert submissions.get(system, ALICE, received.id).state == "scored"


def test_publishing_is_idempotent_and_refuses_older_versions(system: System) -> None:
    upload_qrels(system)
    publish_qrels(system, relevance=CORRECTED)
    assert qrels_versions.publish(system, ORGANISER, "track", 2).state == "current"
    with pytest.raises(Conflict, match="version 2"):
        qrels_versions.publish(system, ORGANISER, "track", 1)


def test_withdrawn_submission_does_not_block_the_switch(system: System) -> None:
    publish_qrels(system)
    received = submit(system, ALICE)
    work_off(system)
    publish_qrels(system, relevance=CORRECTED)
    submissions.withdraw(system, ALICE, received.id)
    assert state(system, 2) == "current"
    assert progress(system, 2) == rescoring.RescoringProgress(0, 0, 0)


def test_tick_makes_a_switch_that_a_worker_missed(system: System) -> None:
    publish_qrels(system)
    submit(system, ALICE)
    work_off(system)
    publish_qrels(system, relevance=CORRECTED)
    claim = jobs.claim_next(system, "score")
    assert claim is not None
    with system.engine.execution_options(writes=True).begin() as connection:
        jobs.finish(connection, claim, now=system.now())  # the worker dies before it switches the version
    assert state(system, 2) == "publishing"
    scheduler_steps.tick(system)
    assert state(system, 2) == "current"


def test_tick_makes_a_missed_switch_to_the_first_version(system: System) -> None:
    submit(system, ALICE)
    publish_qrels(system)
    claim = jobs.claim_next(system, "score")
    assert claim is not None
    end(system, claim)  # the worker dies before it switches the version
    assert state(system, 1) == "publishing"
    scheduler_steps.tick(system)
    assert state(system, 1) == "current"


def test_concurrent_submissions_all_reach_the_new_board(system: System) -> None:
    publish_qrels(system)
    for number in range(3):
        submit(system, ALICE, run_file(tag=f"before{number}"))
    work_off(system)
    stop = threading.Event()
    sent: list[str] = []

    def keep_submitting() -> None:
        while not stop.is_set():
            sent.append(submit(system, BOB, run_file(POOR, tag=f"b{len(sent)}")).id)

    def keep_working() -> None:
        while not stop.is_set():
            work_off(system)

    threads = [
        threading.Thread(target=keep_submitting),
        *(threading.Thread(target=keep_working) for _ in "12"),
    ]
    for thread in threads:
        thread.start()
    for relevance in (CORRECTED, RELEVANCE, CORRECTED):
        publish_qrels(system, relevance=relevance)
    stop.set()
    for thread in threads:
        thread.join()
    work_off(system)
    scheduler_steps.tick(system)
    assert state(system, 4) == "current"
    assert len(board_scores(system)) == 3 + len(sent)


def test_diff_shows_rank_changes_between_versions(system: System) -> None:
    publish_qrels(system)
    good, poor = submit(system, ALICE, run_file(GOOD)), submit(system, BOB, run_file(POOR))
    work_off(system)
    publish_qrels(system, relevance=CORRECTED)
    work_off(system)
    late = submit(system, BOB, run_file(GOOD, tag="late"))
    work_off(system)
    diff = qrels_versions.diff(system, ALICE, "track", 2, base=1, measure="ndcg_cut_2")
    ranks = {row.submission: (row.old_rank, row.new_rank) for row in diff.rows}
    assert ranks == {good.id: (1, 2), poor.id: (2, 1), late.id: (None, 2)}
    assert diff.measure == "nDCG@2"
    with pytest.raises(NotFound):
        qrels_versions.diff(system, ALICE, "track", 2, base=7, measure="AP")


def test_findings_are_visible_to_organisers_only(system: System) -> None:
    files = {"relevance.txt": RELEVANCE, "credibility.txt": CREDIBILITY, "extra.txt": b"", "": b""}
    version = qrels_versions.upload(system, ORGANISER, "track", collection=COLLECTION, files=files)
    assert version.findings.totals == {"collection-file-unused": 2}
    qrels_versions.publish(system, ORGANISER, "track", 1)
    assert not qrels_versions.get(system, ALICE, "track", 1).findings.warnings


def test_versions_are_listed_in_pages(system: System) -> None:
    for _ in range(3):
        upload_qrels(system)
    first = qrels_versions.list_(system, ORGANISER, "track", limit=2)
    rest = qrels_versions.list_(system, ORGANISER, "track", limit=2, cursor=first.next)
    assert [version.number for version in (*first.items, *rest.items)] == [3, 2, 1]
    assert tracks.get(system, ORGANISER, "track").publishing is None
