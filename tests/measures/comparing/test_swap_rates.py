"""Tests of swap rates (Voorhees and Buckley 2002): hand-worked counts, and the fitted exponential."""

import math

import numpy as np
import pytest

from cupel_measures.comparing.swap_rates import ExponentialDecline, count_swaps, fit_decline


class TestCounts:
    def test_swap_counts_equal_hand_worked_counts(self) -> None:
        """The differences .1, .2 and .1 on the first set become -.05, .15 and .2 on the second: one swap."""
        result = count_swaps([0.30, 0.20, 0.10], [0.20, 0.25, 0.05], width=0.05, bins=4)
        assert result.compared.tolist() == [0, 0, 2, 1]  # .2 is in the last bin, which has no upper bound
        assert result.swapped.tolist() == [0, 0, 1, 0]

    def test_swap_count_does_not_depend_on_the_order_of_systems(self) -> None:
        rng = np.random.default_rng(3)
        first, second, order = rng.random(9), rng.random(9), rng.permutation(9)
        expected = count_swaps(first, second, width=0.1, bins=6)
        other = count_swaps(first[order], second[order], width=0.1, bins=6)
        assert expected.compared.tolist() == other.compared.tolist()
        assert expected.swapped.tolist() == other.swapped.tolist()
        assert int(expected.compared.sum()) == 36

    def test_difference_at_a_bin_bound_is_in_the_upper_bin(self) -> None:
        """0.3 / 0.1 is a little less than 3 in floats."""
        assert 0.3 / 0.1 < 3
        assert count_swaps([0.3, 0.0], [0.0, 0.0], width=0.1, bins=9).compared.tolist().index(1) == 3
        within_rounding = count_swaps([0.03 - 2e-12, 0.0], [0.0, 0.0], width=0.01, bins=9)
        assert within_rounding.compared.tolist().index(1) == 3

    def test_systems_that_tie_on_the_first_set_are_not_counted(self) -> None:
        result = count_swaps([0.1 + 0.2, 0.3], [0.0, 1.0], width=0.01, bins=2)  # equal except for rounding
        assert result.compared.tolist() == [0, 0]

    def test_systems_that_tie_on_the_second_set_are_not_swapped(self) -> None:
        result = count_swaps([0.4, 0.3], [0.5, 0.5], width=0.2, bins=2)
        assert (result.compared.tolist(), result.swapped.tolist()) == ([1, 0], [0, 0])

    def test_other_systems_are_refused(self) -> None:
        with pytest.raises(ValueError, match="same systems"):
            count_swaps([0.1, 0.2], [0.1], width=0.1, bins=2)


class TestExponential:
    @pytest.mark.parametrize(
        ("a", "b"), [(0.5, 0.04), (0.3, 0.5), (0.45, 0.0002), (0.45, 7e-6), (0.45, 3e-6)]
    )
    def test_exact_rates_give_their_parameters(self, a: float, b: float) -> None:
        sizes = [2, 5, 10, 15, 25]
        result = fit_decline(sizes, [a * math.exp(-b * n) for n in sizes], [100.0] * 5)
        assert result is not None
        assert result.at(50) == pytest.approx(a * math.exp(-b * 50), abs=2e-6)

    def test_fit_uses_weights(self) -> None:
        """A rate of weight 0 has no influence."""
        with_it = fit_decline([1, 2, 3], [0.4, 0.9, 0.1], [1, 0, 1])
        assert with_it == fit_decline([1, 3], [0.4, 0.1], [1, 1])
        assert with_it is not None
        assert with_it.at(2) == pytest.approx(0.2, abs=1e-5)  # through both points: the rate halves per topic

    def test_fit_never_rises(self) -> None:
        result = fit_decline([1, 2, 3], [0.1, 0.2, 0.3], [1, 1, 1])
        assert result is not None
        assert result.b == 0
        assert result.at(10) == pytest.approx(0.2)

    def test_steep_decline_is_found_between_the_last_slopes_of_the_grid(self) -> None:
        found = fit_decline([1, 2], [0.5, 0.5 * math.exp(-9.7)], [1, 1])
        assert found is not None
        assert found.b == pytest.approx(9.7, abs=1e-3)

    def test_rates_are_rounded_to_6_decimals(self) -> None:
        assert ExponentialDecline(0.5, 0.04).at(1) == 0.480395  # 0.4803947...

    def test_steepest_fit_falls_by_the_factor_e_to_the_10(self) -> None:
        found = fit_decline([1, 2], [0.5, 0.0], [1, 1])
        assert found is not None
        assert found.b == pytest.approx(10, rel=1e-9)

    def test_fit_without_swaps_is_0(self) -> None:
        result = fit_decline([5, 10], [0, 0], [3, 3])
        assert result is not None
        assert result.at(50) == 0

    @pytest.mark.parametrize(
        ("sizes", "weights"), [([], []), ([5], [1]), ([5, 10], [1, 0]), ([5, 5], [1, 1])]
    )
    def test_fit_needs_two_sizes(self, sizes: list[int], weights: list[float]) -> None:
        assert fit_decline(sizes, [0.1] * len(sizes), weights) is None
