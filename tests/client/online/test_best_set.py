"""Tests of the sentences below a leaderboard."""

from cupel_client.online.board_commands import _outside_best_set, _summarise
from cupel_contract.leaderboard_resources import LeaderboardAnalysis, LeaderboardRowResource


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


def test_summary_says_whether_a_possible_difference_is_detected() -> None:
    example = LeaderboardAnalysis.model_validate(LeaderboardAnalysis.EXAMPLE)
    assert _summarise(example, "P@1").endswith(
        "With 50 topics, a paired t-test at alpha 0.05 (a single test) detects, at the spread pooled over "
        "all pairs, a true difference of 0.031 with power 0.8, and smaller ones less often."
    )
    few = example.model_copy(update={"smallest_difference": 1.5, "topics": 3})
    assert _summarise(few, "P@1").endswith("no possible true difference with power 0.8.")
    assert "a true difference of 1.5 with" in _summarise(few, "NumRet")
