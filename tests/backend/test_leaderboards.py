"""Leaderboards: a pure function of scores, ranked on full precision."""

import pytest
from sqlalchemy import update

from backend.cast import (
    ALICE,
    BOB,
    GOOD,
    ORGANISER,
    POOR,
    Clock,
    make_track,
    publish_qrels,
    run_file,
    submit,
    work_off,
)
from cupel_backend import leaderboards, submissions, tracks
from cupel_backend.errors import Invalid, NotFound
from cupel_backend.leaderboards import Board
from cupel_backend.system import System
from cupel_backend.tables import scores


@pytest.fixture(autouse=True)
def track(system: System) -> None:
    make_track(system)
    publish_qrels(system)


def board(system: System, **asked: object) -> Board:
    found = leaderboards.board(system, BOB, "track", **asked)  # type: ignore[arg-type]
    assert found is not None
    return found


def test_equal_scores_share_a_rank_and_are_listed_by_time_of_receipt(system: System, clock: Clock) -> None:
    sent = []
    for number, ranking in enumerate([POOR, GOOD, POOR, GOOD]):
        clock.forward(1)
        sent.append(submit(system, ALICE, run_file(ranking, tag=f"r{number}")).id)
    work_off(system)
    rows = board(system).rows
    assert [row.rank for row in rows] == [1, 1, 3, 3]
    assert [row.submission for row in rows] == [sent[1], sent[3], sent[0], sent[2]]


def test_scores_that_print_alike_are_ranked_on_full_precision(system: System, clock: Clock) -> None:
    sent = [submit(system, ALICE, run_file(tag=f"r{number}")).id for number in range(3)]
    work_off(system)
    values = [0.1, 0.1 + 2**-54, 0.1 + 2**-52]
    with system.engine.execution_options(writes=True).begin() as connection:
        for id, value in zip(sent, values, strict=True):
            here = (scores.c.submission_id == id, scores.c.measure == "AP")
            connection.execute(update(scores).where(*here).values(value=value))
    rows = board(system, measure="AP").rows
    assert [row.score for row in rows] == sorted(values, reverse=True)
    assert [row.rank for row in rows] == [1, 2, 2] if values[0] == values[1] else [1, 2, 3]


def test_a_board_shows_all_that_it_depends_on(system: System) -> None:
    submit(system, ALICE)
    work_off(system)
    shown = board(system)
    assert (shown.track, shown.measure, shown.qrels, shown.profile) == ("track", "nDCG@2", 1, "cupel")
    assert shown.qrels_digest
    assert shown.scoring_version == 1
    assert shown.rows[0].team == "alice"


def test_what_is_not_scored_is_not_ranked_but_listed_with_the_reason(system: System) -> None:
    scored = submit(system, ALICE)
    work_off(system)
    waiting = submit(system, BOB)
    shown = board(system)
    assert [row.submission for row in shown.rows] == [scored.id]
    assert [(one.submission, one.reason) for one in shown.unscored] == [(waiting.id, "waiting to be scored")]
    other = board(system, measure="P@2")
    assert (other.rows, len(other.unscored)) == ((), 2)
    assert other.unscored[0].reason == "not scored by this measure"


def test_a_measure_may_be_asked_for_by_any_of_its_names(system: System) -> None:
    submit(system, ALICE)
    work_off(system)
    assert board(system, measure="ndcg_cut_2").rows == board(system).rows


@pytest.mark.parametrize("measure", ["", "nDGC", "AP P@1", "AP(aspect=taste)", "AP(" * 50])
def test_a_measure_that_can_not_be_is_refused(system: System, measure: str) -> None:
    with pytest.raises(Invalid):
        board(system, measure=measure)


def test_a_version_that_is_not_there_is_not_found(system: System) -> None:
    with pytest.raises(NotFound):
        board(system, qrels=2)


def test_pages_follow_one_another_without_gap_or_repetition(system: System) -> None:
    for number in range(7):
        submit(system, ALICE, run_file(GOOD if number % 2 else POOR, tag=f"r{number}"))
    work_off(system)
    whole = board(system).rows
    paged: list[leaderboards.Row] = []
    cursor = None
    while True:
        shown = board(system, limit=3, cursor=cursor)
        paged += shown.rows
        cursor = shown.next
        if cursor is None:
            break
    assert tuple(paged) == whole
    with pytest.raises(Invalid):
        board(system, cursor="-1")


def test_the_etag_holds_until_the_board_may_look_different(system: System) -> None:
    etag = board(system).etag
    assert leaderboards.board(system, BOB, "track", known=etag) is None
    for change in (
        lambda: submit(system, ALICE),
        lambda: work_off(system),
        lambda: submissions.withdraw(system, ALICE, submit(system, ALICE).id),
        lambda: (publish_qrels(system), work_off(system)),
    ):
        change()
        shown = leaderboards.board(system, BOB, "track", known=etag)
        assert shown is not None
        etag = shown.etag
    assert leaderboards.board(system, BOB, "track", known=etag, measure="AP") is not None


def test_the_etag_holds_while_the_board_stays_as_it_is(system: System) -> None:
    gone = submit(system, ALICE)
    submit(system, ALICE, run_file(POOR))
    submissions.withdraw(system, ALICE, gone.id)
    etag = board(system).etag
    for change in (
        lambda: submissions.withdraw(system, ALICE, gone.id),
        lambda: tracks.change(system, ORGANISER, "track", changes={}),
        lambda: tracks.change(system, ORGANISER, "track", changes={"title": "Another"}),
        lambda: tracks.change(system, ORGANISER, "track", changes={"measures": ["nDCG@2", "AP", "P@1"]}),
        lambda: tracks.change(system, ORGANISER, "track", changes={"closed": True}),
    ):
        change()
        assert leaderboards.board(system, BOB, "track", known=etag) is None
    tracks.change(system, ORGANISER, "track", changes={"measures": ["AP"]})
    assert leaderboards.board(system, BOB, "track", known=etag) is not None
