"""Tests of board analyses: their values, and the states that boards show."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import func, update

from cupel_backend import jobs, qrels_versions, scheduler_steps, submissions, tracks
from cupel_backend.infrastructure.database import writing
from cupel_backend.infrastructure.errors import Forbidden, NotFound
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import analyses as rows
from cupel_backend.infrastructure.tables import scores
from cupel_backend.scores import board_analyses, evaluations, leaderboards
from cupel_backend.scores.leaderboards import Leaderboard
from cupel_measures.comparing import board_analysis
from cupel_measures.comparing.corrections import letters
from support.analysed_boards import ORDERS, QRELS, TOPICS, board, open_jobs, run, score
from support.backend_cast import (
    ADMIN,
    ALICE,
    BOB,
    ORGANISER,
    STRANGER,
    Clock,
    make_track,
    publish_qrels,
    run_file,
    submit,
    work_off,
)


def offline(system: System, shown: Leaderboard) -> tuple[board_analysis.BoardAnalysis, list[str]]:
    """Return the library's analysis of a board's runs, and the submissions in the order of its columns."""
    digests = {
        row.submission: submissions.get(system, ADMIN, row.submission).run.digest for row in shown.rows
    }
    ids = sorted(digests, key=digests.__getitem__)
    scores_by_topic = [
        evaluations.read_topic_scores(system, ADMIN, id, measure=shown.measure, qrels=shown.qrels).values
        for id in ids
    ]
    seed = shown.analysis.seed
    assert seed is not None
    [analysis] = board_analysis.analyse([np.array(scores_by_topic).T], scales=[shown.scale.type], seed=seed)
    return analysis, ids


def test_intervals_are_clipped_to_the_range_of_the_measure(system: System) -> None:
    """P@1 is 1 on 11 of 12 topics, so the t interval is 11/12 +- 2.2 / 12."""
    rankings = [(f"t{topic}", "fcebda" if topic else "adbecf") for topic in range(TOPICS)]
    submit(system, ALICE, run_file(rankings))
    submit(system, ALICE, run(3))
    work_off(system, analysing=True)
    best = board(system, measure="P@1").rows[0]
    assert best.interval == (pytest.approx(11 / 12 - 2.200985 / 12), 1)


def test_analysis_is_bit_equal_to_the_library(system: System) -> None:
    for number in range(5):
        submit(system, ALICE, run(number))
    work_off(system, analysing=True)
    for measure in ("nDCG@2", "AP", "P@1"):
        shown = board(system, measure=measure)
        analysis, ids = offline(system, shown)
        assert shown.analysis.state == "done"
        assert shown.analysis.separable == analysis.separable
        assert (shown.analysis.neighbours, shown.analysis.submissions) == (4, 5)
        assert shown.analysis.smallest_difference == analysis.smallest_difference
        assert shown.analysis.warnings == analysis.warnings
        assert shown.analysis.topics == TOPICS
        assert shown.analysis.in_best_set == sum(standing.in_best_set for standing in analysis.standings)
        for row in shown.rows:
            expected = analysis.standings[ids.index(row.submission)]
            assert row.interval == (expected.mean.low, expected.mean.high)
            assert expected.rank.low is not None
            assert expected.rank.high is not None
            assert row.rank_interval == (expected.rank.low, expected.rank.high)
            assert expected.rank.low <= row.rank <= expected.rank.high
            assert row.groups == tuple(map(letters, expected.groups))
            assert row.in_best_set == expected.in_best_set
        assert shown.rows[0].in_best_set


def test_analysis_does_not_depend_on_teams_or_order_of_submission(system: System, clock: Clock) -> None:
    make_track(system, "other")
    publish_qrels(system, "other", relevance=QRELS)
    for number in range(4):
        clock.forward(1)
        submit(system, ALICE, run(number))
        submit(system, BOB, run(3 - number), track="other")
    work_off(system, analysing=True)
    worth = []
    for name in ("track", "other"):
        shown = leaderboards.read_board(system, BOB, name, measure="AP")
        assert shown is not None
        rows = [(row.tag, row.interval, row.rank_interval, row.groups) for row in shown.rows]
        worth.append((replace(shown.analysis, computed_at=None), sorted(rows)))
    assert worth[0] == worth[1]


def test_changed_board_is_pending_until_it_is_analysed(system: System) -> None:
    sent = [submit(system, ALICE, run(number)).id for number in range(2)]
    work_off(system, analysing=True)
    first = board(system)
    assert first.analysis.state == "done"
    submit(system, BOB, run(2))
    score(system)
    changed = board(system)
    assert (changed.analysis.state, changed.analysis.submissions) == ("pending", 3)
    assert all(row.groups == () and row.interval is None for row in changed.rows)
    work_off(system, analysing=True)
    second = board(system, known=changed.etag)
    assert (second.analysis.state, second.analysis.neighbours) == ("done", 2)
    submissions.withdraw(system, ALICE, sent[0])
    assert board(system).analysis.state == "pending"
    scheduler_steps.tick(system)
    work_off(system, analysing=True)
    last = board(system)
    assert (last.analysis.state, last.analysis.submissions) == ("done", 2)
    assert all(row.groups for row in last.rows)


def test_withdrawn_run_restores_the_earlier_analysis(system: System) -> None:
    for number in range(2):
        submit(system, ALICE, run(number))
    work_off(system, analysing=True)
    before = board(system)
    gone = submit(system, BOB, run(2)).id
    work_off(system, analysing=True)
    submissions.withdraw(system, BOB, gone)
    scheduler_steps.tick(system)
    work_off(system, analysing=True)
    after = board(system)
    assert after.rows == before.rows
    assert replace(after.analysis, computed_at=None) == replace(before.analysis, computed_at=None)


def test_board_with_fewer_than_two_submissions_is_undefined(system: System) -> None:
    assert board(system).analysis.state == "undefined"
    assert board(system).analysis.undefined == "no submission is ranked yet"
    submit(system, ALICE, run(0))
    work_off(system, analysing=True)
    alone = board(system)
    assert (alone.analysis.state, alone.analysis.undefined) == (
        "undefined",
        "only one submission is ranked",
    )
    assert alone.analysis.in_best_set is None
    (row,) = alone.rows
    assert row.interval is not None
    assert (row.rank_interval, row.groups, row.in_best_set) == (None, (), None)


def test_rank_interval_has_whole_ranks_and_contains_the_rank(system: System) -> None:
    submit(system, ALICE, run(0))
    same = [(f"t{topic}", ORDERS[3]) for topic in range(TOPICS)]
    for number in range(3):
        submit(system, ALICE, run_file(same, tag=f"same{number}"))
    work_off(system, analysing=True)
    rows = board(system, measure="nDCG@2").rows
    assert [row.rank for row in rows] == [1, 2, 2, 2]
    assert [row.rank_interval for row in rows] == [(1, 1), (2, 4), (2, 4), (2, 4)]


def test_board_with_one_topic_is_undefined(system: System) -> None:
    make_track(system, "single", aspects={"relevance": {"labels": [0, 1]}})
    collection = b"qrels: [{file: q, aspect: relevance}]"
    qrels_versions.upload(system, ORGANISER, "single", collection=collection, files={"q": b"t1 0 a 1\n"})
    qrels_versions.publish(system, ORGANISER, "single", 1)
    for number in range(2):
        submit(system, ALICE, run(number), track="single")
    work_off(system, analysing=True)
    shown = leaderboards.read_board(system, BOB, "single")
    assert shown is not None
    assert (shown.analysis.state, shown.analysis.undefined) == ("undefined", "there is only one topic")
    assert {(row.interval, row.rank_interval, row.in_best_set) for row in shown.rows} == {(None,) * 3}


def test_board_with_too_many_submissions_is_not_compared(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_analyses, "MAX_SUBMISSIONS", 2)
    for number in range(2):
        submit(system, ALICE, run(number))
    work_off(system, analysing=True)
    assert board(system).analysis.state == "done"
    submit(system, ALICE, run(2))
    work_off(system, analysing=True)
    assert board(system).analysis.undefined == "the leaderboard has more than 2 submissions"
    assert not open_jobs(system)


def test_undefined_scores_are_not_analysed(system: System) -> None:
    sent = [submit(system, ALICE, run(number)).id for number in range(3)]
    score(system)
    with writing(system.engine) as connection:
        connection.execute(update(scores).where(scores.c.submission_id == sent[0]).values(value=None))
    work_off(system, analysing=True)
    assert (board(system).analysis.state, board(system).analysis.submissions) == ("done", 2)


def test_each_version_has_its_own_analysis(system: System) -> None:
    for number in range(3):
        submit(system, ALICE, run(number))
    work_off(system, analysing=True)
    old = board(system, measure="AP")
    publish_qrels(system, relevance=QRELS.replace(b"a 0", b"a 2"))
    score(system)
    assert board(system, measure="AP").analysis.state == "pending"
    work_off(system, analysing=True)
    new = board(system, measure="AP")
    assert (new.qrels, new.analysis.state) == (2, "done")
    assert new.analysis.seed != old.analysis.seed
    submit(system, BOB, run(3))
    work_off(system, analysing=True)
    kept = board(system, measure="AP", qrels=1)
    assert (kept.rows, kept.analysis) == (old.rows, old.analysis)
    assert board(system, measure="AP").analysis.submissions == 4


def test_boards_outside_the_plan_are_analysed(system: System) -> None:
    for number in range(2):
        submit(system, ALICE, run(number))
    work_off(system, analysing=True)
    tracks.change(system, ORGANISER, "track", changes={"measures": ["AP", "num_rel_ret", "GMAP"]})
    work_off(system, analysing=True)
    submissions.withdraw(system, ALICE, submit(system, ALICE, run(2)).id)
    work_off(system, analysing=True)
    assert board(system, measure="P@1").analysis.state == "done"
    assert board(system, measure="P@7").analysis.undefined == "no submission is ranked yet"


@pytest.mark.parametrize("measure", ["NumRelRet", "GMAP", "AP"])
def test_intervals_contain_the_shown_score(system: System, measure: str) -> None:
    tracks.change(system, ORGANISER, "track", changes={"measures": [measure]})
    for number in range(3):
        submit(system, ALICE, run(number))
    cut = run_file([(f"t{topic}", "fc" if topic % 3 else "fcb") for topic in range(TOPICS)], tag="cut")
    submit(system, ALICE, cut)
    work_off(system, analysing=True)
    shown = board(system)
    assert shown.analysis.state == "done"
    for row in shown.rows:
        assert row.interval is not None
        low, high = row.interval
        assert low <= row.score * (1 + 1e-12)
        assert row.score <= high * (1 + 1e-12)
        assert math.isfinite(low)
    assert (shown.analysis.smallest_difference is None) == (measure == "GMAP")


def test_pages_show_the_analysis_of_the_whole_board(system: System) -> None:
    for number in range(4):
        submit(system, ALICE, run(number))
    work_off(system, analysing=True)
    complete = board(system)
    pages = [board(system, limit=1, cursor=str(place)) for place in range(4)]
    assert tuple(row for page in pages for row in page.rows) == complete.rows
    assert {page.analysis for page in pages} == {complete.analysis}


def test_new_analysis_changes_the_etag_once(
    system: System,
) -> None:
    for number in range(2):
        submit(system, ALICE, run(number))
    score(system)
    etag = board(system).etag
    assert leaderboards.read_board(system, BOB, "track", known=etag) is None
    work_off(system, analysing=True)
    etag = board(system, known=etag).etag
    for _ in range(3):
        scheduler_steps.tick(system)
        assert work_off(system, analysing=True) == 0
    assert leaderboards.read_board(system, BOB, "track", known=etag) is None


def test_analysis_of_a_publishing_version_is_not_visible(system: System) -> None:
    submit(system, ALICE, run(0))
    work_off(system, analysing=True)
    publish_qrels(system, relevance=QRELS.replace(b"a 0", b"a 2"))
    with pytest.raises(NotFound):
        board(system, qrels=2)
    work_off(system, analysing=True)
    ids = [job.id for job in jobs.list_(system, ADMIN).items if job.kind == board_analyses.ANALYSE]
    for who in (BOB, STRANGER):
        with pytest.raises((NotFound, Forbidden)):
            jobs.get(system, who, ids[0])


def test_analyses_of_older_releases_are_computed_again(system: System) -> None:
    for number in range(3):
        submit(system, ALICE, run(number))
    work_off(system, analysing=True)
    expected = board(system)
    etag = expected.etag
    old = {  # as stored by a release before max-t/2
        "method": "groups by randomised Tukey HSD",
        "tied_for_first": 3,
        "standings": [
            {"interval": [0, 1], "rank_interval": [1.0, 2.5], "groups": ["a"], "tied_for_first": True}
        ],
    }
    with writing(system.engine) as connection:
        connection.execute(update(rows).values(basis=func.substr(rows.c.basis, 10), data=old))
    outdated = board(system, limit=2)
    assert outdated.analysis.state == "pending"
    assert all(row.groups == () and row.in_best_set is None for row in outdated.rows)
    scheduler_steps.tick(system)
    work_off(system, analysing=True)
    again = board(system)
    assert again.rows == expected.rows
    assert replace(again.analysis, computed_at=None) == replace(expected.analysis, computed_at=None)
    assert again.analysis.method == board_analysis.METHOD
    assert again.etag != etag
    scheduler_steps.tick(system)
    assert work_off(system, analysing=True) == 0
