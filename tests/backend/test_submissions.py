"""Tests of submissions: checks, quotas, idempotency keys and visibility."""

import gzip
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from cupel_backend import idempotency_keys, jobs, submissions, submitted_runs, tracks
from cupel_backend.access import Principal
from cupel_backend.infrastructure.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Problem,
    TooLarge,
    TooMany,
)
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import jobs as job_rows
from cupel_backend.infrastructure.tables import runs as run_rows
from cupel_backend.infrastructure.tables import scores
from cupel_backend.infrastructure.tables import submissions as submission_rows
from cupel_backend.scores import evaluations, leaderboards
from cupel_backend.submissions import Submission
from support.backend_cast import (
    ADMIN,
    ALICE,
    BOB,
    GOOD,
    ORGANISER,
    POOR,
    STRANGER,
    Clock,
    make_track,
    publish_qrels,
    run_file,
    submit,
    work_off,
)


@pytest.fixture(autouse=True)
def track(system: System) -> None:
    make_track(system)
    publish_qrels(system)


def count(system: System) -> list[int]:
    """Return the numbers of submissions, runs, jobs and files that are being received."""
    with system.engine.connect() as connection:
        tables = (submission_rows, run_rows, job_rows)
        rows = [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables]
    return [*rows, len(list(system.settings.incoming.iterdir()))]


def codes(submission: Submission) -> set[str]:
    return set(submission.findings.totals)


def test_submission_is_queued_then_scored(system: System) -> None:
    received = submit(system, ALICE, run_file(GOOD, tag="run"))
    assert (received.state, received.run.tag, received.run.topics, received.run.documents) == (
        "queued",
        "run",
        2,
        6,
    )
    assert work_off(system) == 1
    assert submissions.get(system, ALICE, received.id).state == "scored"
    [ndcg, ap, p] = evaluations.read_scores(system, ALICE, received.id)
    assert (ndcg.measure, ndcg.value) == ("nDCG@2", 1.0)
    assert (ap.measure, p.measure, ap.qrels, ap.topics, ap.missing_topics) == ("AP", "P@1", 1, 2, 0)
    assert ap.run_digest == received.run.digest


def test_open_file_returns_the_submitted_bytes(system: System) -> None:
    content = gzip.compress(run_file())
    received = submit(system, ALICE, content, name="run.txt.gz")
    with submitted_runs.open_file(system, ALICE, received.run.id) as stream:
        assert stream.read() == content
    assert submitted_runs.get(system, ALICE, received.run.id).bytes == len(content)


def test_refused_run_stores_nothing(system: System) -> None:
    content = run_file() + b"t1 Q0 a 9 0.5 run\nt2 Q0 z nine high run\n"
    with pytest.raises(Invalid) as refusal:
        submit(system, ALICE, content)
    assert {finding.line for finding in refusal.value.findings.errors} >= {7, 8}
    assert count(system) == [0, 0, 0, 0]


def test_run_without_topics_of_the_track_is_refused(system: System) -> None:
    with pytest.raises(Invalid) as refusal:
        submit(system, ALICE, run_file([("q1", "abc")]))
    assert "run-topics-none" in refusal.value.findings.totals


def test_missing_topics_are_reported_and_counted(system: System) -> None:
    received = submit(system, ALICE, run_file([("t1", "abc"), ("t9", "abc")]))
    assert {"run-topics-missing", "run-topics-extra"} <= codes(received)
    work_off(system)
    assert evaluations.read_scores(system, ALICE, received.id)[0].missing_topics == 1
    short = submit(system, ALICE, run_file([("t1", "a"), ("t2", "b")], tag="short"))
    work_off(system)
    assert evaluations.read_scores(system, ALICE, short.id)[0].missing_topics == 0


def test_run_with_few_judged_documents_has_a_warning(system: System) -> None:
    assert "run-few-judged" in codes(submit(system, ALICE, run_file([("t1", "axyz"), ("t2", "uvwb")])))
    assert "run-few-judged" not in codes(submit(system, ALICE, run_file(GOOD)))


def test_profile_effects_are_reported(system: System) -> None:
    content = b"t1 Q0 a 1 1.00000000001 r\nt1 Q0 b 2 1.0 r\nt2 Q0 a 2 5 r\nt2 Q0 b 1 4 r\n"
    effects = submit(system, ALICE, content).profile_effects
    assert effects["single_precision"] == {"count": 1, "topics": ["t1"]}
    assert effects["rank_column"] == {"count": 1, "topics": ["t2"]}


def test_repeated_content_is_a_new_submission_with_a_warning(system: System) -> None:
    first, second = submit(system, ALICE), submit(system, ALICE)
    assert first.id != second.id
    assert first.run == second.run
    assert "run-content-repeated" in codes(second)
    assert "run-content-repeated" not in codes(first)
    assert "run-content-repeated" not in codes(submit(system, BOB))


def test_findings_of_an_upload_without_a_name_name_no_temporary_file(system: System) -> None:
    assert "run-tag" not in codes(submit(system, ALICE, run_file(GOOD, tag="mine"), name=""))
    assert "run-tag" in codes(submit(system, ALICE, run_file(POOR, tag="mine"), name="other.txt"))
    for name in ("", "mine.gz"):
        with pytest.raises(Invalid) as refused:
            submit(system, ALICE, gzip.compress(run_file())[:20], name=name)
        assert [finding.file for finding in refused.value.findings] == [name or None]


def test_tag_of_another_run_of_the_team_has_a_warning(system: System) -> None:
    submit(system, ALICE, run_file(GOOD, tag="same"))
    assert "run-tag-repeated" in codes(submit(system, ALICE, run_file(POOR, tag="same")))
    assert "run-tag-repeated" not in codes(submit(system, BOB, run_file(POOR, tag="same")))


def test_repeated_key_returns_the_first_submission(system: System) -> None:
    first = submit(system, ALICE, key="k")
    before = count(system)
    assert submit(system, ALICE, key="k").id == first.id
    assert count(system) == before
    assert submit(system, BOB, key="k").id != first.id


@pytest.mark.parametrize("change", [{"content": run_file(POOR)}, {"name": "other.txt"}])
def test_key_of_a_different_request_is_refused(system: System, change: dict[str, str]) -> None:
    submit(system, ALICE, key="k")
    with pytest.raises(Invalid) as refusal:
        submit(system, ALICE, key="k", **change)  # type: ignore[arg-type]
    assert refusal.value.code == "key-reused"


def test_key_of_a_refused_run_can_be_reused(system: System) -> None:
    with pytest.raises(Invalid):
        submit(system, ALICE, b"not a run\n", key="k")
    assert submit(system, ALICE, key="k").state == "queued"


def test_concurrent_requests_with_one_key_store_one_submission(system: System) -> None:
    answers: list[str] = []

    def send() -> None:
        try:
            answers.append(submit(system, ALICE, key="k").id)
        except Problem as problem:
            answers.append(problem.code)

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count(system) == [1, 1, 1, 0]
    assert len(answers) == 6
    assert len(set(answers)) == 1


def test_overtaken_request_with_the_same_key_returns_the_stored_submission(system: System) -> None:
    first = submissions.begin(system, ALICE, "track", key="k")
    first.write(run_file())
    answers: list[str] = []

    class Slow:
        def check(self, request: Mapping[str, object]) -> dict[str, object]:
            answers.append(submit(system, ALICE, key="k").id)
            return system.checkers.check(request)

    slow = replace(system, checkers=Slow())  # type: ignore[arg-type]
    assert submissions.receive(slow, ALICE, first, name="run.txt", key="k").id == answers[0]
    assert count(system)[0] == 1


@pytest.mark.parametrize("change", [{"content": run_file(POOR)}, {"track": "other"}])
def test_overtaken_request_with_a_key_of_a_different_request_is_refused(
    system: System, change: dict[str, str]
) -> None:
    make_track(system, "other")
    first = submissions.begin(system, ALICE, "track", key="k")
    first.write(run_file())

    class Slow:
        def check(self, request: Mapping[str, object]) -> dict[str, object]:
            submit(system, ALICE, key="k", **change)  # type: ignore[arg-type]
            return system.checkers.check(request)

    with pytest.raises(Invalid) as refusal:
        submissions.receive(replace(system, checkers=Slow()), ALICE, first, name="run.txt", key="k")  # type: ignore[arg-type]
    first.discard()
    assert refusal.value.code == "key-reused"
    assert count(system)[0] == 1


def test_control_characters_are_removed_from_names_and_tags(system: System) -> None:
    content = run_file(tag="r\x1b[2J\x9bn")
    received = submit(system, ALICE, content, name="a\x1b\x00\x9bb.txt")
    assert (received.name, received.run.tag) == ("ab.txt", "r\ufffd[2J\ufffdn")


def test_keys_expire_after_two_days(system: System, clock: Clock) -> None:
    first = submit(system, ALICE, key="k")
    clock.forward(49 * 3600)
    assert idempotency_keys.remove_expired(system) == 1
    assert submit(system, ALICE, key="k").id != first.id


def test_upload_over_the_limit_is_refused_before_and_during_reading(
    open_at: Callable[..., System],
) -> None:
    system = open_at(upload_megabytes=1)
    with pytest.raises(TooLarge):
        submissions.begin(system, ALICE, "track", length=2_000_000)
    with pytest.raises(TooLarge):
        submit(system, ALICE, b"x" * 2_000_000)
    assert count(system) == [0, 0, 0, 0]


def test_file_that_expands_beyond_the_limit_is_refused(open_at: Callable[..., System]) -> None:
    system = open_at(expanded_megabytes=1)
    lines = "".join(f"t1 Q0 document{number} 1 {-number} tag\n" for number in range(60_000))
    with pytest.raises(Invalid) as refusal:
        submit(system, ALICE, gzip.compress(lines.encode()))
    assert any(code.startswith("limit-") for code in refusal.value.findings.totals)


def test_team_with_too_many_unscored_submissions_is_refused(open_at: Callable[..., System]) -> None:
    system = open_at(open_submissions=2)
    for tag in ("a", "b"):
        submit(system, ALICE, run_file(tag=tag))
    with pytest.raises(TooMany) as refusal:
        submit(system, ALICE, run_file(tag="c"))
    assert refusal.value.retry_after
    submit(system, BOB, run_file(tag="c"))
    work_off(system)
    submit(system, ALICE, run_file(tag="c"))


def test_upload_begun_before_closing_is_accepted(system: System, clock: Clock) -> None:
    upload = submissions.begin(system, ALICE, "track")
    upload.write(run_file())
    clock.forward(1)
    tracks.change(system, ORGANISER, "track", changes={"closed": True})
    assert submissions.receive(system, ALICE, upload).received_at < clock()
    with pytest.raises(Conflict, match="closed"):
        submit(system, ALICE)


def test_repeated_request_is_answered_after_the_track_closed(system: System) -> None:
    first = submit(system, ALICE, key="k")
    tracks.change(system, ORGANISER, "track", changes={"closed": True})
    assert submit(system, ALICE, key="k").id == first.id
    with pytest.raises(Conflict):
        submit(system, ALICE, key="another")


def test_repeated_request_is_answered_when_the_quota_is_used_up(
    open_at: Callable[..., System],
) -> None:
    system = open_at(open_submissions=1)
    first = submit(system, ALICE, key="k")
    assert submit(system, ALICE, key="k").id == first.id
    with pytest.raises(TooMany):
        submit(system, ALICE, key="another")


def test_quota_applies_to_concurrent_uploads_and_without_judgments(
    open_at: Callable[..., System],
) -> None:
    system = open_at(open_submissions=1)
    make_track(system, "new")
    uploads = [submissions.begin(system, ALICE, "new") for _ in "ab"]
    for upload in uploads:
        upload.write(run_file())
    submissions.receive(system, ALICE, uploads[0])
    with pytest.raises(TooMany):
        submissions.receive(system, ALICE, uploads[1])
    uploads[1].discard()
    with pytest.raises(TooMany):
        submissions.begin(system, ALICE, "new")
    submissions.withdraw(system, ALICE, submissions.list_(system, ALICE, "new").items[0].id)
    submit(system, ALICE, track="new")


def test_rescoring_does_not_count_against_the_quota(open_at: Callable[..., System]) -> None:
    system = open_at(open_submissions=1)
    submit(system, ALICE)
    work_off(system)
    publish_qrels(system)
    submit(system, ALICE, run_file(POOR))


@pytest.mark.parametrize("key", ["", "k" * 256, "k\n"])
def test_invalid_key_is_refused(system: System, key: str) -> None:
    with pytest.raises(Invalid):
        submit(system, ALICE, key=key)


def test_begin_raises_not_found_for_unknown_track(system: System) -> None:
    with pytest.raises(NotFound):
        submissions.begin(system, ALICE, "nowhere")


def test_submission_is_visible_to_its_team_organisers_and_admins(system: System) -> None:
    received = submit(system, ALICE)
    for principal in (ALICE, ORGANISER, ADMIN):
        assert submissions.get(system, principal, received.id).id == received.id
        assert submitted_runs.get(system, principal, received.run.id).id == received.run.id
        assert len(submissions.list_(system, principal, "track").items) == 1


@pytest.mark.parametrize("principal", [BOB, STRANGER])
def test_submission_is_not_visible_to_other_teams(system: System, principal: Principal) -> None:
    received = submit(system, ALICE)
    for forbidden in (
        lambda: submissions.get(system, principal, received.id),
        lambda: submissions.withdraw(system, principal, received.id),
        lambda: evaluations.read_scores(system, principal, received.id),
        lambda: evaluations.read_topic_scores(system, principal, received.id, measure="AP"),
    ):
        with pytest.raises(Forbidden):
            forbidden()
    for hidden in (
        lambda: submitted_runs.get(system, principal, received.run.id),
        lambda: submitted_runs.open_file(system, principal, received.run.id),
        lambda: jobs.get(system, principal, received.jobs[0].id),
    ):
        with pytest.raises(NotFound):
            hidden()
    assert submissions.list_(system, principal, "track").items == ()


def test_withdrawn_submission_is_stored_but_not_scored_or_ranked(system: System) -> None:
    received = submit(system, ALICE)
    for _ in range(2):
        assert submissions.withdraw(system, ALICE, received.id).state == "withdrawn"
    work_off(system)
    assert evaluations.read_scores(system, ALICE, received.id) == ()
    board = leaderboards.read_board(system, ALICE, "track")
    assert board is not None
    assert (board.rows, board.unscored) == ((), ())
    assert submitted_runs.get(system, ALICE, received.run.id).id == received.run.id


def test_topic_scores_follow_the_order_of_topics(system: System) -> None:
    received = submit(system, ALICE, run_file([("t1", "cab"), ("t2", "ba")]))
    work_off(system)
    topic_scores = evaluations.read_topic_scores(system, ALICE, received.id, measure="P_1")
    assert (topic_scores.topics, topic_scores.values) == (("t1", "t2"), [0.0, 1.0])
    assert (topic_scores.score.measure, topic_scores.score.value) == ("P@1", 0.5)


def test_missing_score_raises_not_found(system: System) -> None:
    received = submit(system, ALICE)
    assert evaluations.read_scores(system, ALICE, received.id) == ()
    with pytest.raises(NotFound, match="yet"):
        evaluations.read_topic_scores(system, ALICE, received.id, measure="AP")


def test_evaluation_that_runs_twice_stores_each_score_once(system: System, clock: Clock) -> None:
    submit(system, ALICE)
    slow = jobs.claim_next(system, "score")
    assert slow is not None
    clock.forward(21)
    jobs.sweep(system)
    assert work_off(system) == 1
    with pytest.raises(jobs.LeaseLost):
        evaluations.evaluate(system, slow)
    with system.engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(scores)).scalar() == 3


def test_submission_is_accepted_while_the_broker_is_unreachable(open_at: Callable[..., System]) -> None:
    system = open_at(broker="redis://localhost:1/0")
    received = submit(system, ALICE)
    assert received.state == "queued"
    assert work_off(system) == 1
