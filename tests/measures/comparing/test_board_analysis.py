"""Tests of the significance analysis of leaderboards with known differences."""

import numpy as np
import pytest

from cupel_measures.comparing.board_analysis import analyse
from cupel_measures.comparing.simultaneous.max_t import max_t


def make_scores(shifts: list[float], topics: int = 40, spread: float = 0.05, seed: int = 1) -> np.ndarray:  # type: ignore[type-arg]
    rng = np.random.default_rng(seed)
    return rng.normal(0.3, 0.1, (topics, 1)) + rng.normal(0, spread, (topics, len(shifts))) + shifts


def test_different_systems_share_no_group() -> None:
    [result] = analyse([make_scores([0.0, 0.3, 0.6])], replicates=500)
    assert [standing.groups for standing in result.standings] == [(2,), (1,), (0,)]
    assert [standing.in_best_set for standing in result.standings] == [False, False, True]
    assert [standing.rank.value for standing in result.standings] == [3, 2, 1]
    assert (result.separable, result.neighbours) == (2, 2)


def test_equal_systems_are_in_best_set() -> None:
    [result] = analyse([make_scores([0.0, 0.0, 0.0, -0.5])], replicates=500)
    assert [standing.in_best_set for standing in result.standings] == [True, True, True, False]
    assert {standing.groups for standing in result.standings[:3]} == {(0,)}
    assert result.separable == 1
    assert all((standing.rank.high or 0) - (standing.rank.low or 0) >= 1 for standing in result.standings[:3])


def test_groups_equal_the_groups_of_the_test() -> None:
    scores = make_scores(list(np.linspace(0, 0.1, 8)), topics=25)
    [result] = analyse([scores], replicates=800, seed=3)
    test = max_t(scores, replicates=800, seed=3)
    for a, b, apart in zip(test.first, test.second, test.differs, strict=True):
        shared = set(result.standings[a].groups) & set(result.standings[b].groups)
        assert bool(shared) != apart


def test_exact_results_do_not_depend_on_order_or_other_measures() -> None:
    first, second = make_scores([0, 0.1, 0.2]), make_scores([0.2, 0.1, 0], seed=2)
    both = analyse([first, second], replicates=400)
    assert both[1] == analyse([second], replicates=400)[0]
    assert [s.mean for s in analyse([first[:, ::-1]], replicates=400)[0].standings] == [
        s.mean for s in both[0].standings[::-1]
    ]


@pytest.mark.filterwarnings("error")
def test_degenerate_boards_have_a_reason() -> None:
    [board] = analyse([np.ones((10, 1))], replicates=50)
    assert board.undefined == "there are fewer than two systems"
    assert board.standings[0].in_best_set
    assert board.standings[0].groups == (0,)
    [single] = analyse([np.array([[0.1, 0.9]])], replicates=50)
    assert single.undefined == "there is only one topic"
    assert [s.in_best_set for s in single.standings] == [True, True]
    assert single.smallest_difference is None
    [nan] = analyse([np.array([[np.nan, 0.9], [0.1, 0.2]])], replicates=50)
    assert nan.undefined == "a score is undefined or infinite"
    [same] = analyse([np.full((10, 3), 0.1)], replicates=50)
    assert same.undefined is None
    assert same.smallest_difference is None  # no variance, so no estimate
    assert [s.rank.value for s in same.standings] == [2, 2, 2]
    assert analyse([np.zeros((0, 2))], replicates=50)[0].undefined == "there are no scores"
    assert analyse([], replicates=50) == []


def test_weak_scale_has_a_warning() -> None:
    [result] = analyse([make_scores([0, 1])], scales=["neither"], replicates=50)
    assert result.warnings == (
        "the max-T test needs an interval scale, "
        "but the measure has neither an interval nor an ordinal scale (disputed: Sakai 2020; Moffat 2022)",
    )


def test_equal_systems_have_no_smallest_difference() -> None:
    [result] = analyse([np.repeat(np.linspace(0, 1, 8)[:, None], 2, axis=1)])
    assert (result.undefined, result.smallest_difference) == (None, None)


def test_rank_intervals_count_significantly_better_and_worse_systems() -> None:
    # Two systems are clearly better than the other two. Within each half, means differ by chance only.
    [result] = analyse([make_scores([0.5, 0.5, 0.0, 0.0])], replicates=500)
    assert [(s.rank.low, s.rank.high) for s in result.standings] == [(1, 2), (1, 2), (3, 4), (3, 4)]
    assert [s.in_best_set for s in result.standings] == [True, True, False, False]


@pytest.mark.parametrize("seed", range(20))
def test_parts_of_an_analysis_agree(seed: int) -> None:
    scores = make_scores(list(np.linspace(0, 0.08, 9)), topics=15, seed=seed)
    [result] = analyse([scores], replicates=300)
    best = max(range(9), key=lambda system: result.standings[system].mean.value or 0)
    assert result.standings[best].in_best_set
    for standing in result.standings:
        assert standing.rank.low is not None
        assert standing.rank.high is not None
        assert standing.rank.low <= (standing.rank.value or 0) <= standing.rank.high
        if standing.in_best_set:  # no other system is significantly better
            assert standing.rank.low == 1


@pytest.mark.parametrize("topics", [5, 6])
def test_board_with_too_few_topics_excludes_no_system(topics: int) -> None:
    [result] = analyse([make_scores([0.0, 0.3, 9.0], topics=topics, spread=0.01)], replicates=500)
    ranks = [(standing.rank.low, standing.rank.high) for standing in result.standings]
    if topics == 6:
        assert (result.warnings, ranks) == ((), [(3, 3), (2, 2), (1, 1)])
        return
    assert ranks == [(1, 3)] * 3
    assert {standing.groups for standing in result.standings} == {(0,)}
    assert all(standing.in_best_set for standing in result.standings)
    assert result.separable == 0
    assert result.warnings == (
        "with 5 topics p of the max-T test is at least 0.0625, so no difference can be significant at 0.05, "
        "and rank intervals and the best set exclude no system",
    )
