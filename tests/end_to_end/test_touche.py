"""Tests of leaderboards on Touche 2022 (two aspects, irregular runs) against the library."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cupel_client.api.client import Client
from cupel_contract.leaderboard_resources import LeaderboardResource
from cupel_measures.scoring.evaluator import aggregate
from support.data.real_runs import Load, touche
from support.service.service_processes import services
from support.service.service_sizes import SizeName, place

MEASURES = ("TOMA(of=nDCG@5)", "CAM(of=nDCG@5)", "nDCG@5", "nDCG(aspect=quality)@5")


@pytest.fixture(scope="module")
def load(shared: Path) -> Load:
    return touche(shared, MEASURES)


@pytest.fixture(scope="module")
def offline(load: Load) -> dict[str, dict[str, float]]:
    """Return measure -> name of the run -> score, computed by the library."""
    scores = {name_of(path): load.offline(path).values for path in load.runs}
    return {
        text: {run: aggregate(measure, values[measure]) for run, values in scores.items()}
        for text, measure in zip(MEASURES, load.bound, strict=True)
    }


@pytest.fixture(scope="module")
def boards(
    size: SizeName, load: Load, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, LeaderboardResource]]:
    """Yield measure -> leaderboard, after all teams have submitted their runs."""
    with (
        place(size) as at,
        services(tmp_path_factory.mktemp("touche"), **at) as start,
        start().client() as client,
    ):
        client.publish_qrels(load.track, load.upload(client))
        for submission in [submit(client, load.track, path) for path in load.runs]:
            *_, last = client.watch_submission(submission)
            assert last.state == "scored"
        yield {text: client.leaderboard(load.track, measure=text) for text in MEASURES}


def submit(client: Client, track: str, path: Path) -> str:
    """Submit a run with a token of its team; return the id of the submission."""
    token = client.issue_token(path.parent.parent.name, "participant").token
    with Client(client.url, token) as team:
        return team.submit(track, path, name=name_of(path)).id


def name_of(path: Path) -> str:
    """Return a unique name of a run: its team and file name, because teams use the same file names."""
    return f"{path.parent.parent.name}-{path.name}"


@pytest.mark.parametrize("measure", MEASURES)
def test_leaderboard_scores_equal_offline_scores(
    boards: dict[str, LeaderboardResource], offline: dict[str, dict[str, float]], measure: str
) -> None:
    assert len(boards[measure].rows) == 21
    assert not boards[measure].unscored
    assert {row.name: row.score for row in boards[measure].rows} == offline[measure]


@pytest.mark.parametrize("measure", MEASURES)
def test_leaderboard_is_sorted_and_tied_runs_share_a_rank(
    boards: dict[str, LeaderboardResource], offline: dict[str, dict[str, float]], measure: str
) -> None:
    scores = offline[measure].values()
    for row in boards[measure].rows:
        assert row.rank == 1 + sum(score > row.score for score in scores)
    assert [row.rank for row in boards[measure].rows] == sorted(row.rank for row in boards[measure].rows)


def test_leaderboard_names_qrels_version_and_profile(
    boards: dict[str, LeaderboardResource],
) -> None:
    board = boards["TOMA(of=nDCG@5)"]
    assert board.measure == "TOMA(of=nDCG@5,aspects=[relevance,quality])"
    assert (board.qrels, board.profile) == (1, "cupel")
