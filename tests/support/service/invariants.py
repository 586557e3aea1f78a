"""What must hold after whatever happened: every submission is scored once, as offline, and all is sound."""

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
"""Id of each accepted submission -> the run that was handed in."""

Query = Callable[..., list[tuple[Any, ...]]]
"""Rows straight from the database."""


def assert_all_scored(client: Client, load: Load, handed_in: HandedIn) -> None:
    """The first version is current, and nothing is left to do for it."""
    *_, version = client.watch_qrels(load.track, 1)
    assert (version.state, version.progress.dead) == ("current", 0)
    assert version.progress.scored == version.progress.total == len(handed_in)
    for submission in handed_in:
        assert [job.state for job in client.submission(submission).jobs] == ["done"]


def assert_scored_as_offline(client: Client, load: Load, handed_in: HandedIn) -> None:
    """Every score, and some of the values behind them, are those of the library to the last bit."""
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
    """Every board of the plan says what its order is worth, of all that it ranks, sooner or later."""
    for text in load.measures:
        board = until(lambda: _with_worth(client, load.track, text), limit=120)  # noqa: B023  (at once)
        assert board.analysis is not None
        assert (board.analysis.state == "done") == (board.analysis.undefined is None)
        assert board.analysis.submissions == len(board.rows)
        assert all(bool(row.groups) == (board.analysis.state == "done") for row in board.rows)


def _with_worth(client: Client, track: str, measure: str) -> LeaderboardResource | None:
    board = client.leaderboard(track, measure=measure)
    return None if board.analysis is None or board.analysis.state == "pending" else board


def assert_board_complete(client: Client, load: Load, handed_in: HandedIn) -> None:
    """Every submission is on the board, once, and nobody else."""
    for text in load.measures[:2]:
        board = client.leaderboard(load.track, measure=text)
        assert not board.unscored
        assert sorted(row.submission for row in board.rows) == sorted(handed_in)


OPEN = "SELECT id FROM jobs WHERE finished_at IS NULL AND dead_at IS NULL"
OPEN_EVALUATIONS = f"{OPEN} AND kind = 'evaluate'"


OF_THE_PLAN = """
    SELECT submissions.id, count(scores.measure) FROM submissions
    JOIN tracks ON tracks.id = submissions.track_id
    JOIN qrels ON qrels.track_id = tracks.id AND qrels.number = tracks.current
    LEFT JOIN scores ON scores.submission_id = submissions.id AND scores.qrels_id = qrels.id
    GROUP BY submissions.id, tracks.measures::text
    HAVING count(scores.measure) <> json_array_length(tracks.measures::text::json)"""

NONE_OF_THESE = {
    "a submission that is not scored once by each measure of the plan": OF_THE_PLAN,
    "scores of a submission that were not written at once": """
        SELECT submission_id, qrels_id FROM scores GROUP BY submission_id, qrels_id
        HAVING count(DISTINCT scored_at) > 1""",
    "scores without their submission or judgments": """
        SELECT scores.submission_id FROM scores
        LEFT JOIN submissions ON submissions.id = submission_id LEFT JOIN qrels ON qrels.id = qrels_id
        WHERE submissions.id IS NULL OR qrels.id IS NULL""",
    "a submission without its run": """
        SELECT submissions.id FROM submissions LEFT JOIN runs ON runs.id = run_id WHERE runs.id IS NULL""",
    "a submission that nobody was to evaluate": """
        SELECT id FROM submissions
        WHERE id NOT IN (SELECT submission_id FROM jobs WHERE kind = 'evaluate')""",
    "a run without a submission": "SELECT id FROM runs WHERE id NOT IN (SELECT run_id FROM submissions)",
    "a submission without its key, or with several: it was made twice": """
        SELECT submissions.id FROM submissions LEFT JOIN keys ON submission_id = submissions.id
        GROUP BY submissions.id HAVING count(keys.key) <> 1""",
    "a key without its submission": """
        SELECT key FROM keys WHERE submission_id NOT IN (SELECT id FROM submissions)""",
    "a job that was not done": """
        SELECT id FROM jobs
        WHERE finished_at IS NULL OR dead_at IS NOT NULL OR lease_until IS NOT NULL OR error IS NOT NULL""",
    "a job of a kind that nobody knows": """
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
    "an analysis of a board that there is not": """
        SELECT jobs.id FROM jobs LEFT JOIN qrels ON qrels.id = (payload ->> 'qrels')::int
        WHERE kind = 'analyse' AND (qrels.id IS NULL OR qrels.track_id IS DISTINCT FROM jobs.track_id)""",
    "an analysis that scoring would be waiting for": """
        SELECT id FROM jobs WHERE kind = 'analyse' AND (submission_id IS NOT NULL OR qrels_id IS NOT NULL)""",
    "two jobs for the analysis of one board": """
        SELECT payload ->> 'qrels', payload ->> 'measure' FROM jobs WHERE kind = 'analyse'
        GROUP BY 1, 2 HAVING count(*) > 1""",
    "an analysis that is kept, but was never asked for": """
        SELECT qrels_id, measure FROM analyses EXCEPT
        SELECT (payload ->> 'qrels')::int, payload ->> 'measure' FROM jobs WHERE kind = 'analyse'""",
    "a job that was never claimed, or charged more often than claimed": """
        SELECT id FROM jobs WHERE attempts < 1 OR attempts > token""",
}
"""What no row may be: sentence -> a query for such rows, of all tracks."""

NO_AUDIT_IS = {
    "a done audit without all of its trials": """
        SELECT audits.id FROM audits LEFT JOIN audit_parts ON audit_id = audits.id
        WHERE concluded_at IS NOT NULL
        GROUP BY audits.id, audits.trials HAVING sum(audit_parts.done) <> audits.trials""",
    "parts that leave trials out, or overlap": """
        SELECT audits.id FROM audits JOIN audit_parts ON audit_id = audits.id
        GROUP BY audits.id, audits.trials
        HAVING sum(audit_parts.trials) <> audits.trials OR count(DISTINCT first) <> count(*)""",
    "a part with more trials than it has": "SELECT audit_id FROM audit_parts WHERE done > trials",
    "an audit that is over, with jobs that are not": """
        SELECT audits.id FROM audits JOIN audit_parts ON audit_id = audits.id
        JOIN jobs ON jobs.id = audit_parts.job_id
        WHERE (concluded_at IS NOT NULL OR cancelled_at IS NOT NULL) AND finished_at IS NULL""",
    "an audit that is done, and cancelled or refused": """
        SELECT id FROM audits
        WHERE concluded_at IS NOT NULL AND (cancelled_at IS NOT NULL OR refused IS NOT NULL)""",
}
"""What no row about an audit may be, likewise, in words of every database."""

BLOBS = """
    SELECT raw_blob FROM runs UNION SELECT ranking_blob FROM runs UNION SELECT blob FROM qrels
    UNION SELECT subject_blob FROM audits WHERE subject_blob IS NOT NULL"""


def assert_no_loose_ends(query: Query, blobs: Iterable[str]) -> None:
    """All rows fit together, and the blobs that they name are in the bucket."""
    assert_none(query, NONE_OF_THESE)
    assert_audits_fit(query)
    missing = {key for (key,) in query(BLOBS)} - set(blobs)
    assert not missing, f"rows name blobs that are not there: {missing}"


def assert_audits_fit(query: Query) -> None:
    """All rows about audits fit together."""
    assert_none(query, NO_AUDIT_IS)


def assert_none(query: Query, sentences: Mapping[str, str]) -> None:
    for sentence, text in sentences.items():
        assert not (rows := query(text)), f"{sentence}: {rows[:5]}"


def assert_sound(
    client: Client, load: Load, handed_in: HandedIn, *, query: Query, blobs: Iterable[str], sample: int = 6
) -> None:
    """All of the above, once nothing is open any more; only a sample of the scores is computed anew.

    Boards are waited for first: an analysis of one that had just been analysed is queued only later.
    """
    until(lambda: not query(OPEN_EVALUATIONS), limit=120)
    assert_analysed(client, load)
    until(lambda: not query(OPEN), limit=120)
    there = query(
        "SELECT submissions.id FROM submissions JOIN tracks ON tracks.id = track_id WHERE tracks.name = %s",
        load.track,
    )
    assert sorted(id for (id,) in there) == sorted(handed_in), "not what was accepted"
    assert_all_scored(client, load, handed_in)
    assert_no_loose_ends(query, blobs)
    assert_board_complete(client, load, handed_in)
    assert_scored_as_offline(client, load, dict(islice(handed_in.items(), sample)))
