"""Tests of topics without judgments: they have no score, also after an upgrade."""

from typing import Any

import numpy as np
import pytest
from sqlalchemy import select, update

from cupel_backend import jobs, qrels_versions, scheduler_steps
from cupel_backend.infrastructure.database import reading, writing
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import VECTOR, analyses, explanations, qrels, scores
from cupel_backend.scores import evaluations, judged_topics, leaderboards, score_explanations
from support.backend_cast import (
    ADMIN,
    ALICE,
    COLLECTION,
    CREDIBILITY,
    GOOD,
    ORGANISER,
    POOR,
    RELEVANCE,
    make_track,
    run_file,
    submit,
    work_off,
)

FILES = {"relevance.txt": RELEVANCE, "credibility.txt": CREDIBILITY, "topics.txt": b"t0\nt1\nt2\nt3\n"}
WITH_TOPICS = COLLECTION + b"topics: topics.txt\n"


@pytest.fixture
def submissions(system: System) -> list[str]:
    """Return the ids of two scored submissions to a track that lists topics t0 to t3 and judges t1 and t2."""
    make_track(system, measures=["nDCG@2", "P@1", "NumQ"])
    version = qrels_versions.upload(system, ORGANISER, "track", collection=WITH_TOPICS, files=FILES)
    qrels_versions.publish(system, ORGANISER, "track", version.number)
    rankings = {"good": [*GOOD, ("t3", "a")], "poor": POOR}
    ids = [submit(system, ALICE, run_file(ranking, tag=tag)).id for tag, ranking in rankings.items()]
    work_off(system, analysing=True)
    return ids


def views_of(system: System, ids: list[str]) -> dict[str, Any]:
    """Return the values that users see."""
    board = leaderboards.read_board(system, ADMIN, "track", measure="nDCG@2")
    assert board is not None
    views: dict[str, Any] = {
        "board": [(row.rank, row.submission, row.score, row.exact) for row in board.rows]
    }
    views["analysis"] = (board.analysis.state, board.analysis.topics)
    for id in ids:
        found = evaluations.read_scores(system, ADMIN, id)
        views[id] = [(s.measure, s.value, s.exact, s.topics, s.missing_topics) for s in found]
        views[f"topics of {id}"] = evaluations.read_topic_scores(system, ADMIN, id, measure="P@1").values
    return views


def test_scores_are_over_judged_topics(system: System, submissions: list[str]) -> None:
    good, _ = submissions
    values = {score.measure: score.value for score in evaluations.read_scores(system, ADMIN, good)}
    assert values == {"nDCG@2": 1.0, "P@1": 1.0, "NumQ": 2.0}
    by_topic = evaluations.read_topic_scores(system, ADMIN, good, measure="P@1")
    assert (by_topic.topics, by_topic.values) == (("t1", "t2"), [1.0, 1.0])
    assert by_topic.unjudged_topics == ("t0", "t3")
    (score, *_) = evaluations.read_scores(system, ADMIN, good)
    assert (score.topics, score.missing_topics) == (2, 0)
    version = qrels_versions.get(system, ADMIN, "track", 1)
    assert (version.counts["topics"], version.counts["unjudged_topics"]) == (2, ["t0", "t3"])
    assert version.findings.totals == {"qrels-topic-without-judgments": 2}


def store_as_an_earlier_release(system: System) -> None:
    """Store rows of a release that scored unjudged topics: 0 on t0 and t3, and means over four topics."""
    with writing(system.engine) as connection:
        row = connection.execute(select(qrels)).one()
        counts = {name: count for name, count in row.counts.items() if name != "unjudged_topics"}
        earlier = {"topics": ["t0", "t1", "t2", "t3"], "counts": counts | {"topics": 4}}
        connection.execute(update(qrels).values(earlier))
        for score in connection.execute(select(scores)).all():
            vector = np.concatenate([[0.0], np.frombuffer(score.vector, VECTOR), [0.0]]).astype(VECTOR)
            is_score = [scores.c.submission_id == score.submission_id, scores.c.measure == score.measure]
            values = {
                "vector": vector.tobytes(),
                "value": score.value / 2,
                "exact": "1/7",
                "missing_topics": 2,
            }
            connection.execute(update(scores).where(*is_score).values(values))


def test_scores_of_an_earlier_release_are_recomputed(system: System, submissions: list[str]) -> None:
    score_explanations.request(system, ALICE, submissions[0], measures=["P@1"], about=["ties"])
    work_off(system, analysing=True)
    expected = views_of(system, submissions)
    before = leaderboards.read_board(system, ADMIN, "track", measure="nDCG@2")
    store_as_an_earlier_release(system)
    assert views_of(system, submissions) != expected
    scheduler_steps.recompute_outdated_scores(system)
    with reading(system.engine) as connection:
        for table in (scores, explanations, analyses):
            assert connection.execute(select(table)).all() == []
    board = leaderboards.read_board(system, ADMIN, "track", measure="nDCG@2")
    assert board is not None
    assert before is not None
    assert board.etag != before.etag
    assert [row.reason for row in board.unscored] == ["waiting to be scored"] * 2
    work_off(system, analysing=True)
    assert views_of(system, submissions) == expected


def test_recomputing_happens_once(system: System, submissions: list[str]) -> None:
    assert judged_topics.recompute_versions(system) == 0
    store_as_an_earlier_release(system)
    assert judged_topics.recompute_versions(system) == 2
    assert judged_topics.recompute_versions(system) == 0
    work_off(system, analysing=True)
    assert judged_topics.recompute_versions(system) == 0
    assert all(job.state == "done" for job in jobs.list_(system, ADMIN).items)


def test_versions_that_judge_all_topics_keep_their_rows(system: System) -> None:
    make_track(system)
    version = qrels_versions.upload(
        system,
        ORGANISER,
        "track",
        collection=COLLECTION,
        files={k: v for k, v in FILES.items() if k != "topics.txt"},
    )
    qrels_versions.publish(system, ORGANISER, "track", version.number)
    submit(system, ALICE)
    work_off(system, analysing=True)
    with writing(system.engine) as connection:
        counts = connection.execute(select(qrels.c.counts)).scalar_one()
        del counts["unjudged_topics"]
        connection.execute(update(qrels).values(counts=counts))
        stored = [tuple(row) for row in connection.execute(select(scores))]
    assert judged_topics.recompute_versions(system) == 0
    with reading(system.engine) as connection:
        assert [tuple(row) for row in connection.execute(select(scores))] == stored
        assert connection.execute(select(qrels.c.counts)).scalar_one()["unjudged_topics"] == []
