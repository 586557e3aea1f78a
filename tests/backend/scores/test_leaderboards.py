"""Tests of leaderboards: ranking by exact scores, pages and etags."""

from fractions import Fraction

import pytest
from sqlalchemy import update

from cupel_backend import submissions, tracks
from cupel_backend.infrastructure.database import writing
from cupel_backend.infrastructure.errors import Invalid, NotFound
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import scores
from cupel_backend.scores import leaderboards
from cupel_backend.scores.leaderboards import Leaderboard
from cupel_measures.scoring.exact import to_text
from support.backend_cast import (
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


@pytest.fixture(autouse=True)
def track(system: System) -> None:
    make_track(system)
    publish_qrels(system)


def board(system: System, **query: object) -> Leaderboard:
    page = leaderboards.read_board(system, BOB, "track", **query)  # type: ignore[arg-type]
    assert page is not None
    return page


def test_equal_scores_share_a_rank_in_order_of_receipt(system: System, clock: Clock) -> None:
    sent = []
    for number, ranking in enumerate([POOR, GOOD, POOR, GOOD]):
        clock.forward(1)
        sent.append(submit(system, ALICE, run_file(ranking, tag=f"r{number}")).id)
    work_off(system)
    rows = board(system).rows
    assert [row.rank for row in rows] == [1, 1, 3, 3]
    assert [row.submission for row in rows] == [sent[1], sent[3], sent[0], sent[2]]


def test_scores_are_ranked_on_full_precision(system: System, clock: Clock) -> None:
    sent = [submit(system, ALICE, run_file(tag=f"r{number}")).id for number in range(3)]
    work_off(system)
    values = [0.1, 0.1 + 2**-54, 0.1 + 2**-52]
    with system.engine.execution_options(writes=True).begin() as connection:
        for id, value in zip(sent, values, strict=True):
            is_its_score = (scores.c.submission_id == id, scores.c.measure == "nDCG@2")
            connection.execute(update(scores).where(*is_its_score).values(value=value))
    rows = board(system, measure="nDCG@2").rows
    assert [row.score for row in rows] == sorted(values, reverse=True)
    assert [row.rank for row in rows] == [1, 2, 2] if values[0] == values[1] else [1, 2, 3]


def ranked(system: System, measure: str) -> list[tuple[int, str, float, str | None]]:
    """Return (rank, tag, score, exact) of each row."""
    rows = board(system, measure=measure).rows
    return [(row.rank, row.tag, row.score, row.exact) for row in rows]


def run_with_second_at(rank: int, tag: str) -> bytes:
    """Return a run that ranks the best document of t1 first and the second best at `rank`."""
    documents = ["a", *(f"u{number}" for number in range(rank - 2)), "b"]
    lines = [f"t1 Q0 {document} 1 {9999 - place} {tag}" for place, document in enumerate(documents)]
    return "\n".join(lines).encode()


def test_exact_scores_that_round_to_one_float_are_not_tied(system: System) -> None:
    tracks.change(system, ORGANISER, "track", changes={"measures": ["RBTO@250", "RBP(p=1/3)"]})
    for rank, tag in ((200, "last"), (100, "second"), (90, "first"), (100, "second too")):
        submit(system, ALICE, run_with_second_at(rank, tag.replace(" ", "_")))
    work_off(system)
    rows = ranked(system, "RBTO@250")
    assert [row[:2] for row in rows] == [(1, "first"), (2, "second"), (2, "second_too"), (4, "last")]
    assert len({score for _, _, score, _ in rows}) == 1
    # Labels 0, 1, 2 are digits in base 3: 2 * 3^249 for a, 3^(250 - rank) for b; mean of two topics.
    assert [exact for *_, exact in rows] == [
        to_text(Fraction(2 * 3**249 + 3 ** (250 - rank), 2)) for rank in (90, 100, 100, 200)
    ]
    assert [row[:2] for row in ranked(system, "RBP(p=1/3)")] == [row[:2] for row in rows]


def test_scores_that_differ_only_by_rounding_are_tied(system: System, clock: Clock) -> None:
    tracks.change(system, ORGANISER, "track", changes={"measures": ["P@10"]})
    publish_qrels(system, relevance=b"".join(b"t%d 0 %c 1\n" % (t, d) for t in (1, 2) for d in b"abc"))
    for ranking in ([("t1", "a"), ("t2", "ab")], [("t1", "abc")], [("t1", "abc"), ("t2", "c")]):
        clock.forward(1)
        submit(system, ALICE, run_file(ranking, tag=f"r{len(ranking)}{len(ranking[0][1])}"))
    work_off(system)
    assert ranked(system, "P@10") == [
        (1, "r23", 0.2, "1/5"),
        (2, "r21", 0.15000000000000002, "3/20"),  # (0.1 + 0.2) / 2 in floats
        (2, "r13", 0.15, "3/20"),
    ]


def test_board_with_a_score_without_exact_value_is_ranked_by_floats(system: System) -> None:
    tracks.change(system, ORGANISER, "track", changes={"measures": ["RBTO@250"]})
    sent = [submit(system, ALICE, run_with_second_at(rank, f"r{rank}")).id for rank in (200, 100, 90)]
    work_off(system)
    assert [row.rank for row in board(system).rows] == [1, 2, 3]
    with writing(system.engine) as connection:
        old = update(scores).where(scores.c.submission_id == sent[1]).values(exact=None, exact_key=None)
        connection.execute(old)
    assert [(row.rank, row.submission) for row in board(system).rows] == [(1, id) for id in sent]
    assert [row.exact is None for row in board(system).rows] == [False, True, False]
    publish_qrels(system)
    work_off(system)
    assert [row.submission for row in board(system).rows] == sent[::-1]


def test_pages_of_an_exact_board_are_consecutive(system: System) -> None:
    tracks.change(system, ORGANISER, "track", changes={"measures": ["RBTO@250"]})
    for rank in (60, 55, 60, 50):
        submit(system, ALICE, run_with_second_at(rank, f"r{rank}"))
    work_off(system)
    pages = [board(system, limit=1, cursor=str(place)).rows for place in range(4)]
    assert [(row.rank, row.tag) for rows in pages for row in rows] == [
        (1, "r50"),
        (2, "r55"),
        (3, "r60"),
        (3, "r60"),
    ]


def test_exact_scores_of_thousands_of_digits_are_not_stored(system: System) -> None:
    changes = {"measures": ["RBP(p=0.999)", "RBP(p=0.999)@100", "nDCG@2"]}
    tracks.change(system, ORGANISER, "track", changes=changes)
    submit(system, ALICE)
    work_off(system)
    kept = {measure: ranked(system, measure)[0][3] is not None for measure in changes["measures"]}
    assert kept == {"RBP(p=0.999)": False, "RBP(p=0.999)@100": True, "nDCG@2": False}


def test_board_shows_everything_it_depends_on(system: System) -> None:
    submit(system, ALICE)
    work_off(system)
    shown = board(system)
    assert (shown.track, shown.measure, shown.qrels, shown.profile) == ("track", "nDCG@2", 1, "cupel")
    assert shown.qrels_digest
    assert shown.scoring_version == 1
    assert shown.rows[0].team == "alice"


def test_unscored_submission_is_listed_with_the_reason(system: System) -> None:
    scored = submit(system, ALICE)
    work_off(system)
    waiting = submit(system, BOB)
    shown = board(system)
    assert [row.submission for row in shown.rows] == [scored.id]
    assert [(row.submission, row.reason) for row in shown.unscored] == [(waiting.id, "waiting to be scored")]
    other = board(system, measure="P@2")
    assert (other.rows, len(other.unscored)) == ((), 2)
    assert other.unscored[0].reason == "not scored by this measure"


def test_board_accepts_every_name_of_a_measure(system: System) -> None:
    submit(system, ALICE)
    work_off(system)
    assert board(system, measure="ndcg_cut_2").rows == board(system).rows


@pytest.mark.parametrize("measure", ["", "nDGC", "AP P@1", "AP(aspect=taste)", "AP(" * 50])
def test_invalid_measure_is_refused(system: System, measure: str) -> None:
    with pytest.raises(Invalid):
        board(system, measure=measure)


def test_unknown_version_is_not_found(system: System) -> None:
    with pytest.raises(NotFound):
        board(system, qrels=2)


def test_pages_cover_the_board_without_gap_or_repetition(system: System) -> None:
    for number in range(7):
        submit(system, ALICE, run_file(GOOD if number % 2 else POOR, tag=f"r{number}"))
    work_off(system)
    all_rows = board(system).rows
    paged: list[leaderboards.LeaderboardRow] = []
    cursor = None
    while True:
        shown = board(system, limit=3, cursor=cursor)
        paged += shown.rows
        cursor = shown.next
        if cursor is None:
            break
    assert tuple(paged) == all_rows
    assert board(system, limit=len(all_rows)).next is None
    assert board(system, limit=0).rows == all_rows[:1]
    submit(system, BOB)
    assert [len(board(system, cursor=cursor).unscored) for cursor in ("0", "1")] == [1, 0]


@pytest.mark.parametrize("cursor", ["-1", "1.0", "\u0661", "1234567890"])
def test_invalid_cursor_is_refused(system: System, cursor: str) -> None:
    with pytest.raises(Invalid):
        board(system, cursor=cursor)


def test_equal_scores_are_ordered_by_receipt_and_not_by_completion(system: System, clock: Clock) -> None:
    uploads = []
    for tag in ("first", "second"):
        clock.forward(1)
        upload = submissions.begin(system, ALICE, "track")
        upload.write(run_file(tag=tag))
        uploads.append(upload)
    for upload in reversed(uploads):
        submissions.receive(system, ALICE, upload)
        upload.discard()
    work_off(system)
    assert [row.tag for row in board(system).rows] == ["first", "second"]


def test_undefined_score_is_listed_as_unscored(system: System) -> None:
    sent = [submit(system, ALICE, run_file(tag=f"r{number}")).id for number in range(2)]
    work_off(system)
    with writing(system.engine) as connection:
        connection.execute(update(scores).where(scores.c.submission_id == sent[0]).values(value=None))
    shown = board(system)
    assert [row.submission for row in shown.rows] == [sent[1]]
    [unscored] = shown.unscored
    assert (unscored.submission, unscored.reason) == (sent[0], "the measure is undefined for this run")


def test_etag_changes_with_the_board(system: System) -> None:
    etag = board(system).etag
    assert leaderboards.read_board(system, BOB, "track", known=etag) is None
    for change in (
        lambda: submit(system, ALICE),
        lambda: work_off(system),
        lambda: submissions.withdraw(system, ALICE, submit(system, ALICE).id),
        lambda: (publish_qrels(system), work_off(system)),
    ):
        change()
        shown = leaderboards.read_board(system, BOB, "track", known=etag)
        assert shown is not None
        etag = shown.etag
    assert leaderboards.read_board(system, BOB, "track", known=etag, measure="AP") is not None


def test_etag_is_stable_while_the_board_is_unchanged(system: System) -> None:
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
        assert leaderboards.read_board(system, BOB, "track", known=etag) is None
    tracks.change(system, ORGANISER, "track", changes={"measures": ["AP"]})
    assert leaderboards.read_board(system, BOB, "track", known=etag) is not None
