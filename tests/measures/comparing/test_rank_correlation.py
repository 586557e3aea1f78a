"""Tests of rank correlations against scipy 1.17.1 and hand-worked examples."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from cupel_measures.comparing.rank_correlation import overlap, tau_ap, tau_b, tau_b_by_topic

vectors = st.integers(2, 9).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 2)
)


def test_tau_b_equals_hand_worked_values() -> None:
    assert tau_b((1, 2, 3, 4, 5), (1, 3, 2, 4, 4)).value == pytest.approx(0.737865, abs=1e-6)
    first = [[0.1, 0.2, 0.3, 0.4], [0.5, 0.5, 0.2, 0.1], [0.3, 0.3, 0.3, 0.3]]
    second = [[0.1, 0.3, 0.2, 0.4], [0.6, 0.3, 0.3, 0.3], [0.1, 0.2, 0.3, 0.4]]
    result = tau_b_by_topic(first, second)
    assert result.topics == (pytest.approx(0.666667, abs=1e-6), pytest.approx(0.516398, abs=1e-6), None)
    assert result.value == pytest.approx(0.591532, abs=1e-6)
    assert result.undefined_topics == 1
    overall = tau_b(np.mean(first, axis=0).round(12), np.mean(second, axis=0).round(12))
    assert overall.value == pytest.approx(-0.516398, abs=1e-6)


@given(vectors)
def test_tau_b_equals_scipy(both: tuple[list[int], list[int]]) -> None:
    result = tau_b(*both)
    expected = kendalltau(*both).statistic
    if math.isnan(expected):
        assert result.value is None
        assert result.undefined
    else:
        assert result.value == pytest.approx(expected, abs=1e-12)


@given(vectors)
def test_tau_b_is_symmetric_and_depends_only_on_the_order(both: tuple[list[int], list[int]]) -> None:
    x, y = both
    assert tau_b(x, y).value == tau_b(y, x).value
    assert tau_b([value**3 + 1 for value in x], y).value == tau_b(x, y).value
    if len(set(x)) > 1:
        assert tau_b(x, [2.5 * value for value in x]).value == 1.0
        assert tau_b(x, [-value for value in x]).value == -1.0


def test_exact_scores_with_equal_floats_are_not_tied() -> None:
    large = [3**250, 3**250 + 1, 3**250 + 2]
    assert float(large[0]) == float(large[2])
    assert tau_b(large, [1, 2, 3]).value == 1.0
    assert tau_b([Fraction(1, 3), Fraction(1, 2), 1], large).value == 1.0


def test_tau_ap_equals_hand_worked_values() -> None:
    truth = [4, 3, 2, 1]  # systems a, b, c, d
    assert tau_ap(truth, truth).value == 1.0
    assert tau_ap(truth, [1, 2, 3, 4]).value == -1.0
    # Order b, a, c, d. Of the systems above place 2, 0 of 1 are correct; above place 3, 2 of 2; above place
    # 4, 3 of 3.
    assert tau_ap(truth, [3, 4, 2, 1]).value == pytest.approx(2 / 3 * (0 + 1 + 1) - 1)
    # Order a, b, d, c. Places 2 and 3 are correct, and 2 of 3 systems above place 4 are correct. So a swap at
    # lower places costs less.
    assert tau_ap(truth, [4, 3, 1, 2]).value == pytest.approx(2 / 3 * (1 + 1 + 2 / 3) - 1)
    assert tau_ap([1], [1]).undefined


@given(vectors.filter(lambda both: len(both[0]) <= 6))
def test_tau_ap_with_ties_is_the_mean_over_all_orders(both: tuple[list[int], list[int]]) -> None:
    truth, estimate = both
    n = len(truth)

    def strict(order_of_truth: tuple[int, ...], order: tuple[int, ...]) -> float:
        place = {system: at for at, system in enumerate(order_of_truth)}
        right = [sum(place[order[j]] < place[order[i]] for j in range(i)) / i for i in range(1, n)]
        return 2 / (n - 1) * sum(right) - 1

    def orders(scores: list[int]) -> list[tuple[int, ...]]:
        return [
            order
            for order in itertools.permutations(range(n))
            if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
        ]

    some = orders(truth)[:40], orders(estimate)[:40]
    if len(orders(truth)) <= 40 and len(orders(estimate)) <= 40:
        every = [strict(first, second) for first in some[0] for second in some[1]]
        assert tau_ap(truth, estimate).value == pytest.approx(math.fsum(every) / len(every), abs=1e-9)


def test_overlap_equals_hand_worked_values() -> None:
    # The orders a, b, c and a, c, b agree by 1, 1/2 and 1 at depths 1, 2 and 3.
    expected = 1 * 0.9**3 + 0.1 / 0.9 * (0.9 + 0.5 * 0.9**2 + 0.9**3)
    assert overlap([3, 2, 1], [3, 1, 2]).value == pytest.approx(expected, abs=1e-12)
    # a and b tied, then c, against a, b, c. The agreement is 2 * 1 / (2 + 1) at depth 1, then 1 and 1.
    expected = 1 * 0.5**3 + 0.5 / 0.5 * (2 / 3 * 0.5 + 0.5**2 + 0.5**3)
    assert overlap([2, 2, 1], [3, 2, 1], p=0.5).value == pytest.approx(expected, abs=1e-12)
    assert overlap([3, 2, 1], [30, 20, 10]).value == pytest.approx(1.0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        overlap([1], [1], p=1)
    assert overlap([], []).undefined


def test_undefined_correlations_have_a_reason() -> None:
    with pytest.raises(ValueError, match="the first measure has 2 systems, the second 3"):
        tau_b([1, 2], [1, 2, 3])
    assert tau_b([1, 1], [1, 2]).undefined == "all systems score the same under one of the two measures"
    assert tau_b([], []).value is None
    assert tau_b_by_topic([[1, 1]], [[1, 2]]).undefined


def test_nan_makes_correlations_undefined() -> None:
    for correlation in (tau_b, tau_ap, overlap):
        for both in (([1.0, math.nan, 2.0], [1.0, 2.0, 3.0]), ([1.0, 2.0], [math.nan, 1.0])):
            result = correlation(*both)
            assert (result.value, result.undefined) == (None, "a score is undefined")
    assert tau_b_by_topic([[1.0, math.nan], [1.0, 2.0]], [[1.0, 2.0], [1.0, 2.0]]).topics == (None, 1.0)
