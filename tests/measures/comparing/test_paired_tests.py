"""Tests of paired tests against scipy 1.17.1 and worked examples; no result is ever NaN."""

import itertools
import math
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cupel_measures.comparing.paired_tests import TESTS, effect_size, least_p, sign_test, t_test, wilcoxon
from cupel_measures.comparing.resampling import (
    discriminative_power,
    intervals,
    randomisation,
    randomisations,
)
from cupel_measures.comparing.t_intervals import t_intervals

X, Y = (0.90, 0.40, 0.70, 0.80, 0.55), (0.30, 0.10, 0.60, 0.35, 0.20)
C = (0.32, 0.12, 0.55, 0.40, 0.18)


def draws(topics: int, seed: int, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    rng = np.random.default_rng(seed)
    return rng.random(topics) + shift, rng.random(topics)


class TestAgainstScipy:
    @pytest.mark.parametrize("seed", range(5))
    def test_t_test_equals_scipy(self, seed: int) -> None:
        x, y = draws(30, seed, 0.1)
        expected = stats.ttest_rel(x, y)
        result = t_test(x, y)
        assert (result.statistic, result.p) == pytest.approx((expected.statistic, expected.pvalue), abs=1e-12)
        assert result.interval == pytest.approx(tuple(expected.confidence_interval()), abs=1e-12)

    def test_wilcoxon_ranks_zeros_and_then_omits_them(self) -> None:
        x = np.array([5, 3, 4, 4, 7, 9, 2, 3, 8, 5.0])
        y = np.array([1, 3, 6, 2, 2, 3, 2, 6, 1, 5.0])
        result = wilcoxon(x, y)
        assert result.p == pytest.approx(stats.wilcoxon(x, y, zero_method="pratt").pvalue, abs=1e-12)
        assert result.p != pytest.approx(stats.wilcoxon(x, y, zero_method="wilcox").pvalue, abs=1e-3)

    def test_t_test_is_defined_for_scores_with_equal_sums(self) -> None:
        """The differences 0, 1 and 2 have mean 1 and standard deviation 1, so t is the root of 3."""
        found = t_test([1, 1.5, 2], [1, 0.5, 0])
        assert found.undefined is None
        assert found.statistic == pytest.approx(math.sqrt(3))

    def test_sign_test_equals_scipy(self) -> None:
        result = sign_test([1, 2, 3, 4, 5, 5], [0, 1, 2, 3, 6, 5])
        assert result.statistic == 4  # of 5, because the topic without a difference is omitted
        assert result.p == pytest.approx(stats.binomtest(4, 5).pvalue)
        assert result.p == pytest.approx(2 * (5 + 1) / 2**5)

    def test_randomisation_enumerates_few_topics(self) -> None:
        x, y = draws(11, 3, 0.2)
        expected = stats.permutation_test(
            (x, y), lambda a, b, axis: np.mean(a - b, axis=axis), permutation_type="samples", vectorized=True
        )
        assert randomisation(x, y).p == pytest.approx(expected.pvalue, abs=1e-12)

    def test_randomisation_draws_for_many_topics(self) -> None:
        x, y = draws(40, 4, 0.1)
        expected = stats.permutation_test(
            (x, y),
            lambda a, b, axis: np.mean(a - b, axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=20_000,
            rng=np.random.default_rng(1),
        )
        result = randomisation(x, y, flips=20_000)
        assert result.p == pytest.approx(expected.pvalue, abs=0.015)
        assert result == randomisation(x, y, flips=20_000)
        assert result.p != randomisation(x, y, flips=20_000, seed=1).p

    def test_wilcoxon_ties_differences_that_are_equal_up_to_rounding(self) -> None:
        """Use multiples of 0.1, such as P@10. In floats, 0.3 - 0.2 and 0.9 - 0.8 are not equal to 0.1."""
        x = np.array([3, 9, 2, 7, 5, 8, 4, 6, 9, 3, 7])
        y = np.array([2, 8, 1, 4, 6, 5, 4, 3, 7, 1, 8])
        assert wilcoxon(x / 10, y / 10).p == stats.wilcoxon(x, y, zero_method="pratt").pvalue

    @pytest.mark.parametrize("topics", [2, 4, 7])
    def test_wilcoxon_with_zeros_and_ties_equals_all_signs_of_scipy(self, topics: int) -> None:
        rng = np.random.default_rng(topics)
        for width in (1, 3, 100):
            x = rng.integers(-width, width, size=topics, endpoint=True).astype(float)
            x[0] = 1.0
            expected = stats.wilcoxon(x, zero_method="pratt", method=stats.PermutationMethod())
            found = wilcoxon(x, np.zeros(topics))
            assert (found.statistic, found.p) == (expected.statistic, expected.pvalue)

    def test_wilcoxon_without_ties_equals_the_exact_distribution(self) -> None:
        for topics in range(3, 20):
            x = np.random.default_rng(topics).normal(size=topics) + 0.3
            expected = stats.wilcoxon(x, method="exact")
            found = wilcoxon(x, np.zeros(topics))
            assert (found.statistic, found.p) == (expected.statistic, expected.pvalue)

    def test_wilcoxon_with_ties_does_not_enumerate_all_signs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """scipy's enumeration takes more than a second for 13 topics."""
        monkeypatch.setattr(stats, "permutation_test", None)
        x = [1, 1, 2, 2, 3, 3, -1, 4, 4, 5, 5, 0, 6]
        # Negative is one of the three differences with rank 3 = (2 + 3 + 4) / 3, after the zero with rank 1.
        result = wilcoxon(x, [0] * 13)
        assert result.statistic == 3
        # Subsets of the ranks 3 3 3 5.5 ... with a sum of at most 3: the empty one, and three of one rank.
        assert result.p == 2 * 4 / 2**12

    def test_difference_due_to_rounding_counts_as_zero(self) -> None:
        apart = [0.1, 0.2, -0.3] * 2  # 5.6e-17 in floats, and 0 if the terms are added in another order
        assert randomisation(apart, [0.0] * 6).p == 1.0
        assert randomisation(apart * 3, [0.0] * 18, flips=1000).p == 1.0

    def test_pairs_share_signs_and_are_independent(self) -> None:
        rng = np.random.default_rng(8)
        for topics in (9, 30):
            x, y = rng.random((2, topics, 5))
            together = randomisations(x, y, flips=900)
            alone = [randomisation(x[:, place], y[:, place], flips=900) for place in range(5)]
            assert together == alone
        spoilt = x.copy()
        spoilt[3, 2] = math.inf
        result = randomisations(spoilt, y, flips=900)
        assert result[2].undefined == "a score is undefined or infinite"
        assert result[:2] + result[3:] == alone[:2] + alone[3:]

    def test_interval_of_the_mean_equals_scipy(self) -> None:
        values = np.random.default_rng(5).gamma(1.0, size=40)
        expected = stats.bootstrap((values,), np.mean, n_resamples=40_000, rng=np.random.default_rng(2))
        [result] = intervals(values[:, None], replicates=40_000)
        low, high = expected.confidence_interval
        assert result.value == pytest.approx(values.mean())
        assert (result.low, result.high) == pytest.approx((low, high), abs=0.01)


class TestBootstrap:
    def test_asl_is_near_the_share_of_all_resamples(self) -> None:
        """The expected values come from all 5^5 resamples. Those of 10,000 random resamples must be near."""
        pairs = {(0, 1): 0.0096, (0, 2): 0.0064, (1, 2): 0.8304}
        scores = np.array([X, Y, C]).T
        result = discriminative_power(scores, seed=1)
        assert result.t[0] == pytest.approx(4.863089, abs=1e-6)
        for place, (pair, expected) in enumerate(pairs.items()):
            assert _exact_asl(scores[:, pair[0]], scores[:, pair[1]]) == pytest.approx(expected, abs=1e-6)
            assert result.asl[place] == pytest.approx(expected, abs=0.012 if expected > 0.5 else 0.003)

    def test_degenerate_pairs_have_defined_results(self) -> None:
        scores = np.array([X, X, np.array(X) + 0.1]).T
        result = discriminative_power(scores, replicates=500)
        assert result.asl.tolist() == [1.0, 0.0, 0.0]
        assert result.t.tolist() == [0.0, -math.inf, -math.inf]
        assert result.n_discriminated == 2

    def test_replicates_do_not_depend_on_other_results(self) -> None:
        rng = np.random.default_rng(3)
        scores = rng.random((20, 6))
        full, part = (
            discriminative_power(scores, replicates=700),
            discriminative_power(scores[:, :2], replicates=700),
        )
        assert full.asl[0] == part.asl[0]
        assert intervals(scores, replicates=700)[1] == intervals(scores[:, 1:2], replicates=700)[0]

    def test_many_systems_need_little_memory(self) -> None:
        scores = np.random.default_rng(5).random((10, 400))  # 79,800 pairs
        tracemalloc.start()
        try:
            result = discriminative_power(scores, replicates=250)
            assert tracemalloc.get_traced_memory()[1] < 100e6
        finally:
            tracemalloc.stop()
        last = [-2, -1]
        alone = discriminative_power(scores[:, last], replicates=250)
        assert (result.first[-1], result.second[-1]) == (398, 399)
        assert (result.t[-1], result.asl[-1]) == (alone.t[0], alone.asl[0])


def _exact_asl(x: np.ndarray, y: np.ndarray) -> float:  # type: ignore[type-arg]
    apart = x - y
    n, t = len(apart), abs(apart.mean()) / (apart.std() / len(apart) ** 0.5)
    centred = apart - apart.mean()
    extreme = 0
    for draw in itertools.product(range(n), repeat=n):
        sample = centred[list(draw)]
        spread = sample.std() if sample.std() > 1e-12 else 0.0
        mean = sample.mean() if abs(sample.mean()) > 1e-12 else 0.0
        value = 0.0 if not mean else math.inf if not spread else abs(mean / (spread / n**0.5))
        extreme += value >= t * (1 - 1e-12)
    return extreme / n**n


class TestEffect:
    def test_effect_size_equals_hand_worked_value(self) -> None:
        # differences 1, 2, 3: mean 2, standard deviation 1
        assert effect_size([1, 2, 3], [0, 0, 0]).value == pytest.approx(2.0)

    def test_interval_has_its_nominal_coverage(self) -> None:
        rng = np.random.default_rng(6)
        covered = 0
        for _ in range(400):
            result = effect_size(rng.normal(0.5, 1.0, 20), np.zeros(20)).interval
            assert result is not None
            covered += result[0] <= 0.5 <= result[1]
        assert 0.92 <= covered / 400 <= 0.98


numbers = st.sampled_from([0.0, 0.1, 0.5, 0.1 + 0.2, 0.3, 1.0, 1e-300, 1e300])


@given(st.lists(st.tuples(numbers, numbers), max_size=6))
@settings(deadline=None)
def test_results_are_never_nan_and_numpy_never_warns(pairs: list[tuple[float, float]]) -> None:
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for test in TESTS.values():
            result = test(x, y)
            assert (result.p is None) == (result.undefined is not None)
            assert result.p is None or 0 <= result.p <= 1
            assert result.estimate is None or math.isfinite(result.estimate)
        effect = effect_size(x, y)
        assert (effect.value is None) == (effect.undefined is not None)


def test_degenerate_input_gives_undefined_with_a_reason() -> None:
    assert t_test(X, X).undefined == "the difference is the same on every topic, so its variance is zero"
    assert wilcoxon(X, X).undefined == "the systems score the same on every topic"
    assert sign_test(X, X).undefined == "the systems score the same on every topic"
    assert randomisation(X, X).p == 1.0
    assert t_test([1], [0]).undefined == "there is only one topic"
    assert t_test([], []).undefined == "there are no scores"
    assert randomisation([math.nan], [1]).undefined == "a score is undefined or infinite"
    assert discriminative_power(np.ones((5, 1))).undefined == "there are fewer than two systems"
    assert intervals(np.ones((1, 2)))[0].undefined == "there is only one topic"
    assert intervals(np.ones((1, 2)))[0].value == 1.0
    assert intervals(np.ones((4, 1)))[0].high == 1.0
    bad, good = intervals(np.array([[math.nan, 1], [1, 2], [2, 3]]), replicates=100)
    assert (bad.value, bad.undefined) == (None, "a score is undefined or infinite")
    assert good == intervals([[1], [2], [3]], replicates=100)[0]
    with pytest.raises(ValueError, match="over the same topics"):
        t_test([1, 2], [1])


def test_least_p_is_attained_and_is_a_lower_bound() -> None:
    for topics in (1, 4, 15, 20):
        x, y = draws(topics, 1, 5.0)  # every difference is positive
        for name, test in TESTS.items():
            p = test(x, y).p
            assert p is None or p >= least_p(name, topics) * (1 - 1e-12)
            assert name == "t" or p == pytest.approx(least_p(name, topics), rel=1e-9)


def test_mean_of_a_weaker_scale_has_a_warning() -> None:
    assert t_test(X, Y, scale="ordinal").warnings == (
        "the t-test needs an interval scale, but the measure has an ordinal scale "
        "(disputed: Sakai 2020; Moffat 2022)",
    )
    assert wilcoxon(X, Y, scale="neither").warnings
    assert not sign_test(X, Y, scale="neither").warnings
    assert not t_test(X, Y).warnings


def test_interval_of_a_huge_effect_contains_the_effect() -> None:
    """For a huge effect d, almost only the estimated standard deviation is uncertain.

    The observed effect is about d / (chi / sqrt(df)). So the interval is the observed effect times quantiles
    of chi / sqrt(df).
    """
    for mean in (1e4, 1e6, 5e8):
        first = mean + np.array([-1.0, 0.0, 1.0])
        result = effect_size(first, np.zeros(3))
        assert result.value == pytest.approx(mean, rel=1e-6)
        ends = [mean * math.sqrt(stats.chi2.ppf(tail, 2) / 2) for tail in (0.025, 0.975)]
        assert result.interval == pytest.approx(ends, rel=1e-4)


def test_one_topic_discriminates_nothing() -> None:
    result = discriminative_power([[0.1, 0.2, 0.3]])
    assert (result.percent, result.undefined) == (None, "there is only one topic")


@pytest.mark.filterwarnings("error")
def test_differences_equal_up_to_their_last_digits_have_a_warning() -> None:
    x = np.array([1e6, 1e6, 1e6 + 1e-9, 1e6])
    result = t_test(x, np.zeros(4))
    assert result.undefined is None
    assert result.statistic is not None
    assert result.statistic > 1e12
    assert any("except for rounding errors" in warning for warning in result.warnings)
    assert not t_test(x + np.arange(4), np.zeros(4)).warnings


@pytest.mark.parametrize("confidence", [0.0, 1.0, 2.0, np.nan, 0.99995, 1 - 1e-17])
def test_confidence_is_limited_by_the_number_of_replicates(confidence: float) -> None:
    x, y = draws(10, 0)
    for ask in (
        lambda: t_test(x, y, confidence=confidence),
        lambda: effect_size(x, y, confidence=confidence),
        lambda: intervals(x[:, None], confidence=confidence),
        lambda: t_intervals(x[:, None], confidence=confidence),
    ):
        with pytest.raises(
            ValueError, match=r"confidence must be (between 0 and 1, got|at most 0\.9999 with)"
        ):
            ask()
    with pytest.raises(ValueError, match=r"confidence must be at most 0\.99 with 100 replicates"):
        intervals(x[:, None], confidence=0.995, replicates=100)


def test_deviations_within_the_tolerance_are_constant_scores() -> None:
    """The tolerance is 1e-12 for means up to 1, and relative to larger means."""
    for values, is_constant in (
        ([1e-12, -1e-12], True),
        ([1.5e-12, -1.5e-12], False),
        ([3 + 2e-12, 3 - 2e-12], True),
        ([3 + 4e-12, 3 - 4e-12], False),
    ):
        [interval] = t_intervals(np.array(values)[:, None])
        assert (interval.low == interval.high) == is_constant, values
