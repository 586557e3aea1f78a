"""Tests of the sentence on submissions that only the best set excludes."""

from cupel_client.online.board_commands import _outside_best_set
from cupel_contract.leaderboard_resources import LeaderboardRowResource


def row(name: str, rank_interval: tuple[float, float], in_best_set: bool) -> LeaderboardRowResource:
    example = LeaderboardRowResource.model_validate(LeaderboardRowResource.EXAMPLE)
    return example.model_copy(
        update={"name": name, "rank_interval": rank_interval, "in_best_set": in_best_set}
    )


def test_only_submissions_without_a_significant_pair_are_named() -> None:
    rows = [row("a", (1, 3), True), row("b", (1, 4), False), row("c", (2, 4), False)]
    [sentence] = _outside_best_set(rows)
    assert sentence == (
        "b is outside the set by the one-sided test against the best, though no single pair by the test of "
        "the groups shows that it is worse. Being outside is not a test that a submission is worse."
    )
    [several] = _outside_best_set([*rows, row("d", (1, 4), False)])
    assert several.startswith("b, d are outside the set")
    assert several.endswith("Being outside is not a test that submissions are worse.")
    assert not list(_outside_best_set(rows[:1]))
