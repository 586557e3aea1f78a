"""Touche 2022: two aspects and real, untidy runs; the boards of the service are those of the library."""

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
    """Measure -> file of the run -> score."""
    scores = {named(path): load.offline(path).values for path in load.runs}
    return {
        text: {run: aggregate(measure, values[measure]) for run, values in scores.items()}
        for text, measure in zip(MEASURES, load.bound, strict=True)
    }


@pytest.fixture(scope="module")
def board(
    size: SizeName, load: Load, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, LeaderboardResource]]:
    """Measure -> leaderboard, after every team handed in its runs."""
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
    """Hand in a run with a token of its team."""
    token = client.issue_token(path.parent.parent.name, "participant").token
    with Client(client.url, token) as team:
        return team.submit(track, path, name=named(path)).id


def named(path: Path) -> str:
    """Teams use the same file names."""
    return f"{path.parent.parent.name}-{path.name}"


@pytest.mark.parametrize("measure", MEASURES)
def test_the_board_has_every_run_with_the_score_it_has_offline(
    board: dict[str, LeaderboardResource], offline: dict[str, dict[str, float]], measure: str
) -> None:
    assert len(board[measure].rows) == 21
    assert not board[measure].unscored
    assert {row.name: row.score for row in board[measure].rows} == offline[measure]


@pytest.mark.parametrize("measure", MEASURES)
def test_the_board_is_in_the_order_of_the_scores_and_equal_ones_share_a_rank(
    board: dict[str, LeaderboardResource], offline: dict[str, dict[str, float]], measure: str
) -> None:
    better = offline[measure].values()
    for row in board[measure].rows:
        assert row.rank == 1 + sum(score > row.score for score in better)
    assert [row.rank for row in board[measure].rows] == sorted(row.rank for row in board[measure].rows)


def test_a_board_says_under_which_judgments_and_rules_it_was_made(
    board: dict[str, LeaderboardResource],
) -> None:
    one = board["TOMA(of=nDCG@5)"]
    assert one.measure == "TOMA(of=nDCG@5,aspects=[relevance,quality])"
    assert (one.qrels, one.profile) == (1, "cupel")
