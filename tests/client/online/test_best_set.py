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
    [sentence] = _outside_best_set(rows, 0.05)
    assert sentence == (
        "b is outside the set: the one-sided test at 0.05 rejects that no other submission is better. The "
        "test does not say which submission is better, and is not corrected for the number of submissions "
        "tested."
    )
    [several] = _outside_best_set([*rows, row("d", (1, 4), False)], 0.01)
    assert several.startswith(
        "b, d are outside the set: for each, the one-sided test at 0.01 rejects that no"
    )
    assert not list(_outside_best_set(rows[:1], 0.05))


def test_summary_says_whether_a_possible_difference_is_detected() -> None:
    example = LeaderboardAnalysis.model_validate(LeaderboardAnalysis.EXAMPLE)
    assert _summarise(example, "P@1").endswith(
        "With 50 topics, a paired t-test at alpha 0.05 (a single test) detects, at the spread pooled over "
        "all pairs, a true difference of 0.031 with power 0.8, and smaller ones less often."
    )
    single = example.model_copy(update={"in_best_set": 1})
    assert (
        f"the first of {example.submissions} submissions has the highest true mean with 95% confidence "
        "(multiple comparisons with the best)" in _summarise(single, "P@1")
    )
    few = example.model_copy(update={"smallest_difference": 1.5, "topics": 3})
    assert _summarise(few, "P@1").endswith("no possible true difference with power 0.8.")
    assert "a true difference of 1.5 with" in _summarise(few, "NumRet")
