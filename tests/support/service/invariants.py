"""Invariants of a service after any fault: each submission is scored once, and all rows are consistent."""

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from cupel_client.api.client import Client
from cupel_contract.leaderboard_resources import LeaderboardResource
from cupel_measures.catalogue.parser import parse
from cupel_measures.scoring.evaluator import aggregate
from support.data.real_runs import Load
from support.patience import until

BY_TOPIC = ("AP", "nDCG@10", "Bpref")

HandedIn = Mapping[str, Path]
"""Path of the submitted run by id of the accepted submission."""

Query = Callable[..., list[tuple[Any, ...]]]
"""A function that returns the rows of an SQL query."""


def assert_all_scored(client: Client, load: Load, handed_in: HandedIn) -> None:
    """Assert that qrels version 1 is current and that every submission is scored under it."""
    *_, version = client.watch_qrels(load.track, 1)
    assert (version.state, version.progress.dead) == ("current", 0)
    assert version.progress.scored == version.progress.total == len(handed_in)
    for submission in handed_in:
        assert [job.state for job in client.submission(submission).jobs] == ["done"]


def assert_scored_as_offline(client: Client, load: Load, handed_in: HandedIn) -> None:
    """Assert that scores, and per-topic scores of some measures, are bit-equal to those of the library."""
    for submission, path in handed_in.items():
        expected = load.offline(path).values
        for measure, score in zip(load.bound, client.scores(submission), strict=True):
            value = aggregate(measure, expected[measure])
            assert score.measure == str(measure)
            assert score.value == (value if math.isfinite(value) else None), (path.name, measure)
        for text in set(BY_TOPIC) & set(load.measures):
            scores = client.topic_scores(submission, text).topics
            assert [topic.topic for topic in scores] == list(load.collection.qrels.topics)
            measure = parse(text).bound(load.collection.aspects)
            assert [score.value for score in scores] == expected[measure].tolist(), (path.name, measure)


def assert_analysed(client: Client, load: Load) -> None:
    """Wait for the significance analysis of each leaderboard, and assert that it covers all rows."""
    for text in load.measures:
        board = until(lambda: _analysed_board(client, load.track, text), limit=120)  # noqa: B023  (called at once)
        assert board.analysis is not None
        assert (board.analysis.state == "done") == (board.analysis.undefined is None)
        assert board.analysis.submissions == len(board.rows)
        assert all(bool(row.groups) == (board.analysis.state == "done") for row in board.rows)


def _analysed_board(client: Client, track: str, measure: str) -> LeaderboardResource | None:
    """Return the leaderboard; None if its analysis is not finished."""
    board = client.leaderboard(track, measure=measure)
    return None if board.analysis is None or board.analysis.state == "pending" else board


def assert_board_complete(client: Client, load: Load, handed_in: HandedIn) -> None:
    """Assert that the leaderboards rank every submission exactly once, and nothing else."""
    for text in load.measures[:2]:
        board = client.leaderboard(load.track, measure=text)
        assert not board.unscored
        assert sorted(row.submission for row in board.rows) == sorted(handed_in)


OPEN = "SELECT id FROM jobs WHERE finished_at IS NULL AND dead_at IS NULL"
OPEN_EVALUATIONS = f"{OPEN} AND kind = 'evaluate'"

INCOMPLETE_SCORES = """
    SELECT submissions.id, count(scores.measure) FROM submissions
    JOIN tracks ON tracks.id = submissions.track_id
    JOIN qrels ON qrels.track_id = tracks.id AND qrels.number = tracks.current
    LEFT JOIN scores ON scores.submission_id = submissions.id AND scores.qrels_id = qrels.id
    GROUP BY submissions.id, tracks.measures::text
    HAVING count(scores.measure) <> json_array_length(tracks.measures::text::json)"""

VIOLATIONS = {
    "a submission that is not scored once by each measure of the track": INCOMPLETE_SCORES,
    "scores of a submission that were not written together": """
        SELECT submission_id, qrels_id FROM scores GROUP BY submission_id, qrels_id
        HAVING count(DISTINCT scored_at) > 1""",
    "scores without their submission or judgments": """
        SELECT scores.submission_id FROM scores
        LEFT JOIN submissions ON submissions.id = submission_id LEFT JOIN qrels ON qrels.id = qrels_id
        WHERE submissions.id IS NULL OR qrels.id IS NULL""",
    "a submission without its run": """
        SELECT submissions.id FROM submissions LEFT JOIN runs ON runs.id = run_id WHERE runs.id IS NULL""",
    "a submission without an evaluation job": """
        SELECT id FROM submissions
        WHERE id NOT IN (SELECT submission_id FROM jobs WHERE kind = 'evaluate')""",
    "a run without a submission": "SELECT id FROM runs WHERE id NOT IN (SELECT run_id FROM submissions)",
    "a submission without its idempotency key, or with several: it was created twice": """
        SELECT submissions.id FROM submissions LEFT JOIN keys ON submission_id = submissions.id
        GROUP BY submissions.id HAVING count(keys.key) <> 1""",
    "a key without its submission": """
        SELECT key FROM keys WHERE submission_id NOT IN (SELECT id FROM submissions)""",
    "a job that is not done": """
        SELECT id FROM jobs
        WHERE finished_at IS NULL OR dead_at IS NOT NULL OR lease_until IS NOT NULL OR error IS NOT NULL""",
    "a job of an unknown kind": """
        SELECT id FROM jobs
        WHERE kind NOT IN ('evaluate', 'explain', 'analyse', 'audit', 'audit part')""",
    "an evaluation or explanation without its submission": """
        SELECT jobs.id FROM jobs LEFT JOIN submissions ON submissions.id = submission_id
        WHERE kind IN ('evaluate', 'explain') AND submissions.id IS NULL""",
    "an evaluation without its judgments": """
        SELECT jobs.id FROM jobs LEFT JOIN qrels ON qrels.id = qrels_id
        WHERE kind = 'evaluate' AND qrels.id IS NULL""",
    "two evaluations of a submission under the same judgments": """
        SELECT submission_id, qrels_id FROM jobs WHERE kind = 'evaluate'
        GROUP BY submission_id, qrels_id HAVING count(*) > 1""",
    "an analysis job of a leaderboard that does not exist": """
        SELECT jobs.id FROM jobs LEFT JOIN qrels ON qrels.id = (payload ->> 'qrels')::int
        WHERE kind = 'analyse' AND (qrels.id IS NULL OR qrels.track_id IS DISTINCT FROM jobs.track_id)""",
    "an analysis job that counts as unfinished scoring": """
        SELECT id FROM jobs WHERE kind = 'analyse' AND (submission_id IS NOT NULL OR qrels_id IS NOT NULL)""",
    "two analysis jobs of one leaderboard": """
        SELECT payload ->> 'qrels', payload ->> 'measure' FROM jobs WHERE kind = 'analyse'
        GROUP BY 1, 2 HAVING count(*) > 1""",
    "an analysis without its job": """
        SELECT qrels_id, measure FROM analyses EXCEPT
        SELECT (payload ->> 'qrels')::int, payload ->> 'measure' FROM jobs WHERE kind = 'analyse'""",
    "a job that was never claimed, or charged more often than claimed": """
        SELECT id FROM jobs WHERE attempts < 1 OR attempts > token""",
}
"""Queries that must return no row, by description of the violation."""

AUDIT_VIOLATIONS = {
    "a done audit without all of its trials": """
        SELECT audits.id FROM audits LEFT JOIN audit_parts ON audit_id = audits.id
        WHERE concluded_at IS NOT NULL
        GROUP BY audits.id, audits.trials HAVING sum(audit_parts.done) <> audits.trials""",
    "parts that leave trials out, or overlap": """
        SELECT audits.id FROM audits JOIN audit_parts ON audit_id = audits.id
        GROUP BY audits.id, audits.trials
        HAVING sum(audit_parts.trials) <> audits.trials OR count(DISTINCT first) <> count(*)""",
    "a part with more finished trials than trials": "SELECT audit_id FROM audit_parts WHERE done > trials",
    "an ended audit with open jobs": """
        SELECT audits.id FROM audits JOIN audit_parts ON audit_id = audits.id
        JOIN jobs ON jobs.id = audit_parts.job_id
        WHERE (concluded_at IS NOT NULL OR cancelled_at IS NOT NULL) AND finished_at IS NULL""",
    "an audit that is done and also cancelled or refused": """
        SELECT id FROM audits
        WHERE concluded_at IS NOT NULL AND (cancelled_at IS NOT NULL OR refused IS NOT NULL)""",
}
"""Queries on audits that must return no row, in SQL that every supported database understands."""

BLOBS = """
    SELECT raw_blob FROM runs UNION SELECT ranking_blob FROM runs UNION SELECT blob FROM qrels
    UNION SELECT subject_blob FROM audits WHERE subject_blob IS NOT NULL"""


def assert_consistent(query: Query, blobs: Iterable[str]) -> None:
    """Assert that all rows are consistent, and that the blobs that they name are in the bucket."""
    assert_no_rows(query, VIOLATIONS)
    assert_audits_consistent(query)
    missing = {key for (key,) in query(BLOBS)} - set(blobs)
    assert not missing, f"rows name missing blobs: {missing}"


def assert_audits_consistent(query: Query) -> None:
    """Assert that all rows on audits are consistent."""
    assert_no_rows(query, AUDIT_VIOLATIONS)


def assert_no_rows(query: Query, violations: Mapping[str, str]) -> None:
    for description, text in violations.items():
        assert not (rows := query(text)), f"{description}: {rows[:5]}"


def assert_sound(
    client: Client, load: Load, handed_in: HandedIn, *, query: Query, blobs: Iterable[str], sample: int = 6
) -> None:
    """Wait until all jobs have ended, and assert all of the above; recompute the scores of `sample` runs.

    Wait for the leaderboards first, because a leaderboard that was just analysed is queued again later.
    """
    until(lambda: not query(OPEN_EVALUATIONS), limit=120)
    assert_analysed(client, load)
    until(lambda: not query(OPEN), limit=120)
    submitted = query(
        "SELECT submissions.id FROM submissions JOIN tracks ON tracks.id = track_id WHERE tracks.name = %s",
        load.track,
    )
    assert sorted(id for (id,) in submitted) == sorted(handed_in), "not the accepted submissions"
    assert_all_scored(client, load, handed_in)
    assert_consistent(query, blobs)
    assert_board_complete(client, load, handed_in)
    assert_scored_as_offline(client, load, dict(islice(handed_in.items(), sample)))
