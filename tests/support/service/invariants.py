"""Invariants after any fault: each submission is scored once and correctly, and rows are consistent."""

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

SubmittedFiles = Mapping[str, Path]
"""Id of each accepted submission -> the submitted run file."""

Query = Callable[..., list[tuple[Any, ...]]]
"""Returns the rows of an SQL query."""


def assert_all_scored(client: Client, load: Load, submitted: SubmittedFiles) -> None:
    """Assert that the first version is current and that all of its evaluations succeeded."""
    *_, version = client.watch_qrels(load.track, 1)
    assert (version.state, version.progress.dead) == ("current", 0)
    assert version.progress.scored == version.progress.total == len(submitted)
    for submission in submitted:
        assert [job.state for job in client.submission(submission).jobs] == ["done"]


def assert_scored_as_offline(client: Client, load: Load, submitted: SubmittedFiles) -> None:
    """Assert that all scores, and the topic scores of BY_TOPIC, are bit-identical to the library's."""
    for submission, path in submitted.items():
        expected = load.offline(path).values
        for measure, score in zip(load.bound, client.scores(submission), strict=True):
            value = aggregate(measure, expected[measure])
            assert score.measure == str(measure)
            assert score.value == (value if math.isfinite(value) else None), (path.name, measure)
        for text in set(BY_TOPIC) & set(load.measures):
            scores = client.topic_scores(submission, text).topics
            assert [score.topic for score in scores] == list(load.collection.qrels.topics)
            measure = parse(text).bound(load.collection.aspects)
            assert [score.value for score in scores] == expected[measure].tolist(), (path.name, measure)


def assert_analysed(client: Client, load: Load) -> None:
    """Assert that every leaderboard of the plan gets an analysis of all its submissions."""
    for text in load.measures:
        board = until(lambda: _analysed_board(client, load.track, text), limit=120)  # noqa: B023  (called at once)
        assert board.analysis is not None
        assert (board.analysis.state == "done") == (board.analysis.undefined is None)
        assert board.analysis.submissions == len(board.rows)
        assert all(bool(row.groups) == (board.analysis.state == "done") for row in board.rows)


def _analysed_board(client: Client, track: str, measure: str) -> LeaderboardResource | None:
    board = client.leaderboard(track, measure=measure)
    return None if board.analysis is None or board.analysis.state == "pending" else board


def assert_board_complete(client: Client, load: Load, submitted: SubmittedFiles) -> None:
    """Assert that the leaderboards list each submission exactly once."""
    for text in load.measures[:2]:
        board = client.leaderboard(load.track, measure=text)
        assert not board.unscored
        assert sorted(row.submission for row in board.rows) == sorted(submitted)


OPEN = "SELECT id FROM jobs WHERE finished_at IS NULL AND dead_at IS NULL"
OPEN_EVALUATIONS = f"{OPEN} AND kind = 'evaluate'"


OF_THE_PLAN = """
    SELECT submissions.id, count(scores.measure) FROM submissions
    JOIN tracks ON tracks.id = submissions.track_id
    JOIN qrels ON qrels.track_id = tracks.id AND qrels.number = tracks.current
    LEFT JOIN scores ON scores.submission_id = submissions.id AND scores.qrels_id = qrels.id
    GROUP BY submissions.id, tracks.measures::text
    HAVING count(scores.measure) <> json_array_length(tracks.measures::text::json)"""

INVALID_ROWS = {
    "a submission without exactly one score by each measure of the plan": OF_THE_PLAN,
    "scores of a submission that were not written in one transaction": """
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
    "a submission without exactly one idempotency key, so it may have been created twice": """
        SELECT submissions.id FROM submissions LEFT JOIN keys ON submission_id = submissions.id
        GROUP BY submissions.id HAVING count(keys.key) <> 1""",
    "a key without its submission": """
        SELECT key FROM keys WHERE submission_id NOT IN (SELECT id FROM submissions)""",
    "a job that did not succeed": """
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
    "an analysis of a leaderboard that does not exist": """
        SELECT jobs.id FROM jobs LEFT JOIN qrels ON qrels.id = (payload ->> 'qrels')::int
        WHERE kind = 'analyse' AND (qrels.id IS NULL OR qrels.track_id IS DISTINCT FROM jobs.track_id)""",
    "an analysis job that belongs to a submission or a version of the qrels": """
        SELECT id FROM jobs WHERE kind = 'analyse' AND (submission_id IS NOT NULL OR qrels_id IS NOT NULL)""",
    "two analysis jobs for one leaderboard": """
        SELECT payload ->> 'qrels', payload ->> 'measure' FROM jobs WHERE kind = 'analyse'
        GROUP BY 1, 2 HAVING count(*) > 1""",
    "a stored analysis without a job": """
        SELECT qrels_id, measure FROM analyses EXCEPT
        SELECT (payload ->> 'qrels')::int, payload ->> 'measure' FROM jobs WHERE kind = 'analyse'""",
    "a job that was never claimed, or with more attempts than claims": """
        SELECT id FROM jobs WHERE attempts < 1 OR attempts > token""",
}
"""Description of invalid rows -> query that finds such rows in all tracks."""

INVALID_AUDIT_ROWS = {
    "a done audit without all of its trials": """
        SELECT audits.id FROM audits LEFT JOIN audit_parts ON audit_id = audits.id
        WHERE concluded_at IS NOT NULL
        GROUP BY audits.id, audits.trials HAVING sum(audit_parts.done) <> audits.trials""",
    "an audit whose parts overlap or do not cover all trials": """
        SELECT audits.id FROM audits JOIN audit_parts ON audit_id = audits.id
        GROUP BY audits.id, audits.trials
        HAVING sum(audit_parts.trials) <> audits.trials OR count(DISTINCT first) <> count(*)""",
    "a part with more finished trials than trials": "SELECT audit_id FROM audit_parts WHERE done > trials",
    "an unfinished job of a finished audit": """
        SELECT audits.id FROM audits JOIN audit_parts ON audit_id = audits.id
        JOIN jobs ON jobs.id = audit_parts.job_id
        WHERE (concluded_at IS NOT NULL OR cancelled_at IS NOT NULL) AND finished_at IS NULL""",
    "an audit that is both done and cancelled or refused": """
        SELECT id FROM audits
        WHERE concluded_at IS NOT NULL AND (cancelled_at IS NOT NULL OR refused IS NOT NULL)""",
}
"""The same for the tables of audits, in SQL that SQLite and PostgreSQL understand."""

BLOBS = """
    SELECT raw_blob FROM runs UNION SELECT ranking_blob FROM runs UNION SELECT blob FROM qrels
    UNION SELECT subject_blob FROM audits WHERE subject_blob IS NOT NULL"""


def assert_rows_consistent(query: Query, blobs: Iterable[str]) -> None:
    """Assert that the rows are valid and that the blobs that they name exist."""
    assert_no_rows(query, INVALID_ROWS)
    assert_audits_consistent(query)
    missing = {key for (key,) in query(BLOBS)} - set(blobs)
    assert not missing, f"missing blobs that rows name: {missing}"


def assert_audits_consistent(query: Query) -> None:
    """Assert that the rows of audits are valid."""
    assert_no_rows(query, INVALID_AUDIT_ROWS)


def assert_no_rows(query: Query, queries: Mapping[str, str]) -> None:
    for description, text in queries.items():
        assert not (rows := query(text)), f"{description}: {rows[:5]}"


def assert_consistent(
    client: Client,
    load: Load,
    submitted: SubmittedFiles,
    *,
    query: Query,
    blobs: Iterable[str],
    sample: int = 6,
) -> None:
    """Wait for all jobs, then assert all invariants of this module.

    sample: number of submissions whose scores are compared with the library's. Wait for analyses before other
    jobs, because the next job of a leaderboard that was just analysed is queued only after a pause.
    """
    until(lambda: not query(OPEN_EVALUATIONS), limit=120)
    assert_analysed(client, load)
    until(lambda: not query(OPEN), limit=120)
    rows = query(
        "SELECT submissions.id FROM submissions JOIN tracks ON tracks.id = track_id WHERE tracks.name = %s",
        load.track,
    )
    assert sorted(id for (id,) in rows) == sorted(submitted), (
        "the stored submissions differ from the accepted ones"
    )
    assert_all_scored(client, load, submitted)
    assert_rows_consistent(query, blobs)
    assert_board_complete(client, load, submitted)
    assert_scored_as_offline(client, load, dict(islice(submitted.items(), sample)))
