"""Tests of comparisons with a margin; scipy.stats (1.17) is the independent tool."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cupel_measures.comparing.closeness.margins import (
    MarginOutcome,
    MarginTest,
    OneSided,
    compare_with_margin,
)
from cupel_measures.comparing.closeness.typical_values import TypicalValues, typical_values
from cupel_measures.comparing.resampling import EXACT
from cupel_measures.model import Floats

RNG = np.random.default_rng(7)


def outcome(differences: Floats, margin: float, **options: object) -> MarginOutcome:
    """Compare one system with a baseline of zeros."""
    column = np.asarray(differences, dtype=np.float64)[:, None]
    [result] = compare_with_margin(column, np.zeros_like(column), margin=margin, **options)  # type: ignore[arg-type]
    return result


def one_sided(result: MarginOutcome) -> OneSided:
    assert result.tests is not None
    return result.tests


class TestOneSidedTests:
    def test_t_equals_scipy(self) -> None:
        differences = RNG.normal(0.01, 0.05, 30)
        result = one_sided(outcome(differences, 0.02))
        for p, bound, alternative in (
            (result.p_better, 0, "greater"),
            (result.p_no_worse, -0.02, "greater"),
            (result.p_no_better, 0.02, "less"),
            (result.p_worse, 0, "less"),
        ):
            expected = stats.ttest_1samp(differences, bound, alternative=alternative)
            assert p == pytest.approx(expected.pvalue, rel=1e-12)
        interval = stats.ttest_1samp(differences, 0).confidence_interval(0.9)
        assert result.interval == pytest.approx((interval.low, interval.high), rel=1e-12)

    @pytest.mark.parametrize("topics", [5, 9])
    def test_sign_flips_equal_the_exact_permutation_test_of_scipy(self, topics: int) -> None:
        differences = RNG.normal(0.02, 0.05, topics)
        result = one_sided(outcome(differences, 0.03, test="sign-flip"))
        for p, bound, alternative in (
            (result.p_better, 0, "greater"),
            (result.p_no_worse, -0.03, "greater"),
            (result.p_no_better, 0.03, "less"),
            (result.p_worse, 0, "less"),
        ):
            expected = stats.permutation_test(
                (differences - bound,), np.sum, permutation_type="samples", alternative=alternative
            )
            assert p == pytest.approx(expected.pvalue, abs=1e-12)

    def test_sampled_sign_flips_approach_exact_sign_flips(self) -> None:
        differences = RNG.normal(0.02, 0.05, 16)
        result = one_sided(outcome(differences, 0.03, test="sign-flip"))
        signs = np.array(list(itertools.product([1, -1], repeat=16)))
        exact = np.mean(signs @ (differences + 0.03) >= (differences + 0.03).sum() - 1e-12)
        assert result.p_no_worse == pytest.approx(exact, abs=0.001)

    def test_sign_flips_of_four_topics_worked_by_hand(self) -> None:
        # Subset means of 1, 2, 3, 6: 1, 1.5, 2, 2, 2.5, 3, 3, 3, 3.33, 3.5, 3.67, 4, 4, 4.5, 6.
        result = one_sided(outcome(np.array([1.0, 2, 3, 6]), 2.0, test="sign-flip", alpha=0.2))
        assert result.p_better == 1 / 16
        assert result.p_worse == 1
        assert result.p_no_better == 14 / 16  # 13 of the 15 subset means are at least 2
        # The p of "the mean is at most c" is 3 / 16 <= 0.2 for c below the third smallest subset mean, and
        # above 0.2 for larger c.
        assert result.interval == (2.0, 4.0)

    def test_smallest_possible_p_is_significant_at_this_alpha(self) -> None:
        """With four positive differences, p is 1/16, and the interval contains the means of all subsets."""
        positive = np.array([1.0, 2, 3, 6])
        for differences, direction, bounds in ((positive, "higher", (1, 6)), (-positive, "lower", (-6, -1))):
            result = outcome(differences, 2.0, test="sign-flip", alpha=1 / 16)
            assert result.significant_direction == direction
            assert one_sided(result).interval == bounds

    def test_all_subsets_of_few_topics_are_enumerated(self) -> None:
        assert [values.replicates for values in typical_values(np.ones((EXACT, 1)))] == [2**EXACT - 1]

    def test_empty_subsets_of_topics_count_as_extreme(self) -> None:
        [values] = typical_values(np.ones((16, 1)), flips=200_000)  # about 3 of 2^16 subsets are empty
        assert values.empty > 0
        assert values.replicates == 200_000
        assert values.p_above(0) == values.p_below(2) == (1 + values.empty) / 200_001
        assert values.p_above(1) == values.p_below(1) == 1

    def test_interval_leaves_out_empty_subsets(self) -> None:
        """9 means and an empty subset: p is at most 3/11 for bounds below the second mean."""
        values = TypicalValues(means=np.arange(9.0), empty=1, tolerance=1e-9)
        assert values.interval(3 / 11) == (1.0, 7.0)
        assert values.p_above(0.99) == values.p_below(7.01) == pytest.approx(3 / 11)
        assert values.p_above(1.0) == values.p_below(7.0) == pytest.approx(4 / 11)

    @given(
        differences=st.lists(st.floats(-1, 1), min_size=2, max_size=12),
        margin=st.floats(0.001, 1),
        alpha=st.sampled_from([0.01, 0.05, 0.2]),
        test=st.sampled_from(["t", "sign-flip"]),
    )
    def test_interval_and_p_values_agree(
        self, differences: list[float], margin: float, alpha: float, test: MarginTest
    ) -> None:
        result = one_sided(outcome(np.array(differences), margin, alpha=alpha, test=test))
        low, high = result.interval
        assert result.p_no_worse <= result.p_better
        assert result.p_no_better <= result.p_worse
        for p, distance in (
            (result.p_better, low),
            (result.p_no_worse, low + margin),
            (result.p_no_better, margin - high),
            (result.p_worse, -high),
        ):
            if abs(distance) > 1e-9:
                assert (p <= alpha) == (distance > 0)

    @pytest.mark.parametrize("test", ["t", "sign-flip"])
    @pytest.mark.parametrize("topics", [10, 25])
    def test_exchange_of_the_systems_exchanges_the_tests(self, test: MarginTest, topics: int) -> None:
        x, y = RNG.random((2, topics, 3))
        there = compare_with_margin(x, y, margin=0.1, test=test)
        back = compare_with_margin(y, x, margin=0.1, test=test)
        for first, second in zip(there, back, strict=True):
            a, b = one_sided(first), one_sided(second)
            assert (a.p_better, a.p_no_worse) == pytest.approx((b.p_worse, b.p_no_better))
            assert a.interval == pytest.approx((-b.interval[1], -b.interval[0]))

    @pytest.mark.parametrize("test", ["t", "sign-flip"])
    def test_other_pairs_change_no_bit(self, test: MarginTest) -> None:
        x, y = RNG.random((2, 20, 70))
        together = compare_with_margin(x, y, margin=0.1, test=test)
        for pair in (0, 63, 64, 69):
            [alone] = compare_with_margin(x[:, [pair]], y[:, [pair]], margin=0.1, test=test)
            assert alone == together[pair]

    @pytest.mark.parametrize("test", ["t", "sign-flip"])
    @pytest.mark.parametrize("difference", [-0.1, 0.0, 0.1])
    def test_false_verdicts_are_at_most_alpha(self, test: MarginTest, difference: float) -> None:
        # 2,000 samples of 12 topics. At a true difference of -margin, "no worse" and "equal within" are
        # false.
        samples = np.random.default_rng(3).normal(difference, 0.2, (12, 2000))
        result = compare_with_margin(samples, np.zeros_like(samples), margin=0.1, test=test)
        false = {-0.1: {"no worse", "equal within", "better"}, 0.0: {"better"}, 0.1: {"equal within"}}
        share = sum(item.verdict in false[difference] for item in result) / len(result)
        assert share <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 2000)


class TestVerdict:
    @pytest.mark.parametrize(
        ("p", "expected"),
        [
            # p of "better", "no worse", "no better" and "worse"
            ((0.30, 0.01, 0.01, 0.70), "equal within"),
            ((0.01, 0.001, 0.04, 0.99), "equal within"),
            ((0.99, 0.04, 0.001, 0.01), "equal within"),
            ((0.01, 0.001, 0.60, 0.99), "better"),
            ((0.20, 0.01, 0.30, 0.80), "no worse"),
            ((0.99, 0.60, 0.001, 0.01), "worse"),
            ((0.60, 0.20, 0.01, 0.40), "undecided"),
            ((0.05, 0.04, 0.06, 0.95), "better"),
        ],
    )
    def test_verdict_of_p_values(self, p: tuple[float, float, float, float], expected: str) -> None:
        better, no_worse, no_better, worse = p
        tests = OneSided(
            p_better=better, p_no_worse=no_worse, p_no_better=no_better, p_worse=worse, interval=(0, 0)
        )
        assert tests.verdict(0.05) == expected

    def test_verdicts_of_scores(self) -> None:
        noise = np.tile([-0.01, 0.01], 10)
        for shift, verdict, acceptable in (
            (0.0, "equal within", True),
            (0.02, "better", True),
            (0.018, "better", True),
            (-0.02, "worse", False),
        ):
            result = outcome(noise + shift, 0.02)
            assert (result.verdict, result.is_acceptable) == (verdict, acceptable), shift
        assert outcome(5 * noise + 0.01, 0.02).verdict == "no worse"
        assert outcome(9 * noise, 0.02).verdict == "undecided"

    def test_equal_within_the_margin_keeps_the_direction(self) -> None:
        noise = np.tile([-0.01, 0.01], 10)
        assert outcome(noise + 0.01, 0.02).verdict == "equal within"
        assert outcome(noise + 0.01, 0.02).significant_direction == "higher"
        assert outcome(noise - 0.01, 0.02).significant_direction == "lower"
        assert outcome(noise, 0.02).significant_direction is None

    def test_difference_equal_to_the_margin_is_not_within_the_margin(self) -> None:
        result = outcome(np.full(10, -0.01), 0.01)
        assert (result.test, result.verdict) == ("sign-flip", "worse")
        assert outcome(np.full(10, 0.3) - 0.31, 0.01).verdict == "worse"


class TestPosterior:
    def test_probabilities_are_the_mass_of_the_t_distribution(self) -> None:
        differences = RNG.normal(0.01, 0.05, 20)
        posterior = outcome(differences, 0.02).posterior
        assert posterior is not None
        mass = stats.t(19, differences.mean(), differences.std(ddof=1) / math.sqrt(20))
        assert posterior.below == pytest.approx(mass.cdf(-0.02))
        assert posterior.above == pytest.approx(mass.sf(0.02))
        assert posterior.within == pytest.approx(mass.cdf(0.02) - mass.cdf(-0.02))

    def test_posterior_equals_a_sample_from_the_normal_model(self) -> None:
        # Given the data, sigma^2 is (n - 1) s^2 / chi^2(n - 1). Given sigma, the mean is normal.
        differences, rng = RNG.normal(0.0, 0.05, 8), np.random.default_rng(1)
        variances = 7 * differences.var(ddof=1) / rng.chisquare(7, 200_000)
        means = rng.normal(differences.mean(), np.sqrt(variances / 8))
        posterior = outcome(differences, 0.03).posterior
        assert posterior is not None
        assert posterior.below == pytest.approx(np.mean(means < -0.03), abs=0.005)
        assert posterior.above == pytest.approx(np.mean(means > 0.03), abs=0.005)


class TestUndefined:
    def test_one_topic_is_undecided_with_a_reason(self) -> None:
        result = outcome(np.array([0.1]), 0.2)
        assert (result.verdict, result.undefined, result.tests) == (
            "undecided",
            "there is only one topic",
            None,
        )

    @pytest.mark.parametrize(("score", "reason"), [(math.nan, "undefined"), (1e200, "exceeds")])
    def test_undefined_scores_are_undecided_with_a_reason(self, score: float, reason: str) -> None:
        x = np.array([[0.1, 0.1], [score, 0.2], [0.3, 0.25]])
        first, second = compare_with_margin(x, np.zeros_like(x), margin=0.1)
        assert first.verdict == "undecided"
        assert reason in (first.undefined or "")
        assert second.undefined is None

    def test_equal_differences_use_the_sign_flip_test(self) -> None:
        result = outcome(np.zeros(8), 0.01)
        assert (result.test, result.verdict, result.posterior) == ("sign-flip", "equal within", None)
        [warning] = result.warnings
        assert warning.startswith("the difference is the same on every topic, so its variance is zero")
        assert one_sided(result).p_no_worse == 1 / 256
        assert outcome(np.zeros(4), 0.01).verdict == "undecided"
        assert outcome(np.tile([0.0, 1e-12], 4), 0.01).test == "sign-flip"
        assert outcome(np.tile([0.0, 2e-12], 4), 0.01).test == "t"

    def test_too_few_topics_for_a_sign_flip_test_have_infinite_bounds(self) -> None:
        result = one_sided(outcome(np.array([0.1, 0.2, 0.3, 0.2]), 0.01, test="sign-flip"))
        assert result.interval == (-math.inf, math.inf)

    @pytest.mark.parametrize("margin", [0, -0.1, math.inf, math.nan])
    def test_margin_must_be_positive(self, margin: float) -> None:
        with pytest.raises(ValueError, match="margin must be a positive number"):
            outcome(np.zeros(3), margin)

    def test_alpha_must_be_below_one_half(self) -> None:
        with pytest.raises(ValueError, match=r"between 0 and 0\.5, got 0\.5"):
            outcome(np.zeros(3), 0.1, alpha=0.5)

    def test_matrices_must_have_equal_shapes(self) -> None:
        with pytest.raises(ValueError, match="same shape"):
            compare_with_margin(np.zeros((3, 1)), np.zeros((3, 2)), margin=0.1)
