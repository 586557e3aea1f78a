"""Tests of the significance analysis of leaderboards with known differences."""

import numpy as np
import pytest

from cupel_measures.comparing.all_pairs import randomised_hsd
from cupel_measures.comparing.board_analysis import analyse


def make_scores(shifts: list[float], topics: int = 40, spread: float = 0.05, seed: int = 1) -> np.ndarray:  # type: ignore[type-arg]
    rng = np.random.default_rng(seed)
    return rng.normal(0.3, 0.1, (topics, 1)) + rng.normal(0, spread, (topics, len(shifts))) + shifts


def test_different_systems_share_no_group() -> None:
    [found] = analyse([make_scores([0.0, 0.3, 0.6])], replicates=500)
    assert [standing.groups for standing in found.standings] == [(2,), (1,), (0,)]
    assert [standing.tied_for_first for standing in found.standings] == [False, False, True]
    assert [standing.rank.value for standing in found.standings] == [3, 2, 1]
    assert (found.separable, found.neighbours) == (2, 2)


def test_equal_systems_are_tied_for_first() -> None:
    [found] = analyse([make_scores([0.0, 0.0, 0.0, -0.5])], replicates=500)
    assert [standing.tied_for_first for standing in found.standings] == [True, True, True, False]
    assert {standing.groups for standing in found.standings[:3]} == {(0,)}
    assert found.separable == 1
    assert all((standing.rank.high or 0) - (standing.rank.low or 0) >= 1 for standing in found.standings[:3])


def test_groups_are_those_of_the_test() -> None:
    scores = make_scores(list(np.linspace(0, 0.1, 8)), topics=25)
    [found] = analyse([scores], replicates=800, seed=3)
    test = randomised_hsd(scores, replicates=800, seed=3)
    for a, b, apart in zip(test.first, test.second, test.differs, strict=True):
        shared = set(found.standings[a].groups) & set(found.standings[b].groups)
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
    assert board.standings[0].tied_for_first
    assert board.standings[0].groups == (0,)
    [single] = analyse([np.array([[0.1, 0.9]])], replicates=50)
    assert single.undefined == "there is only one topic"
    assert [s.tied_for_first for s in single.standings] == [True, True]
    assert single.smallest_difference is None
    [nan] = analyse([np.array([[np.nan, 0.9], [0.1, 0.2]])], replicates=50)
    assert nan.undefined == "a score is undefined or infinite"
    [same] = analyse([np.full((10, 3), 0.1)], replicates=50)
    assert same.undefined is None
    assert same.smallest_difference is None  # nothing varies: what could be seen is not known
    assert [s.rank.value for s in same.standings] == [2, 2, 2]
    assert analyse([np.zeros((0, 2))], replicates=50)[0].undefined == "there are no scores"
    assert analyse([], replicates=50) == []


def test_weak_scale_has_a_warning() -> None:
    [found] = analyse([make_scores([0, 1])], scales=["neither"], replicates=50)
    assert found.warnings == (
        "Tukey's HSD needs an interval scale, but the measure has neither an interval nor an ordinal scale",
    )


def test_equal_systems_have_no_smallest_difference() -> None:
    [found] = analyse([np.repeat(np.linspace(0, 1, 8)[:, None], 2, axis=1)])
    assert (found.undefined, found.smallest_difference) == (None, None)
