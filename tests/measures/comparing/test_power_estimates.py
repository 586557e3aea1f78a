"""Tests of required differences, and of intervals of differences of discriminative power."""

import numpy as np
import pytest
from scipy.stats import t

from cupel_measures.comparing.resampling import discriminative_power
from cupel_measures.comparing.topic_sets.power_estimates import (
    power_difference,
    required_difference,
    significant_pairs_by_sample,
)
from cupel_measures.model import Floats


def noisy(seed: int, topics: int = 30, systems: int = 8, spread: float = 0.1, noise: float = 0.2) -> Floats:
    rng = np.random.default_rng(seed)
    return np.linspace(0, spread, systems) + noise * rng.standard_normal((topics, systems))


def test_pairs_above_the_required_difference_differ_significantly() -> None:
    scores = noisy(1, systems=12, spread=0.5)
    required = required_difference(scores, alpha=0.05, replicates=2000, seed=3)
    assert required is not None
    test = discriminative_power(scores, alpha=0.05, replicates=2000, seed=3)
    difference = np.abs(scores.mean(0)[test.first] - scores.mean(0)[test.second])
    significant = test.asl < 0.05
    assert significant.any()
    assert not significant.all()
    assert significant[difference > required].all()
    assert required > difference[significant].min()


@pytest.mark.parametrize(("alpha", "place"), [(0.05, 5), (0.02, 2), (0.01, 1), (0.001, 1)])
def test_required_difference_equals_its_definition(alpha: float, place: int) -> None:
    """Of 100 samples, take that with the K-th largest |t|, where K is 100 alpha, but at least 1."""
    scores = noisy(4, topics=12, systems=3)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((2, 0))))
    drawn = rng.integers(12, size=(100, 12))
    sizes = []
    for i, j in ((0, 1), (0, 2), (1, 2)):
        d = scores[:, i] - scores[:, j]
        samples = (d - d.mean())[drawn]
        order = np.argsort(-np.abs(samples.mean(axis=1) / samples.std(axis=1)))
        sizes.append(abs(samples.mean(axis=1)[order[place - 1]]))
    required = required_difference(scores, alpha=alpha, replicates=100, seed=2)
    assert required == pytest.approx(max(sizes))


def test_required_difference_of_two_topics() -> None:
    """The centred differences are 0.5 and -0.5; t is infinite in a sample that has only one of them."""
    assert required_difference([[0, 0], [0, 1]], replicates=100) == 0.5


def test_required_difference_scales_with_the_scores_and_falls_with_alpha() -> None:
    scores = noisy(2)
    required = required_difference(scores, alpha=0.05, replicates=1000)
    assert required is not None
    assert required_difference(scores * 4, alpha=0.05, replicates=1000) == pytest.approx(4 * required)
    assert required_difference(scores, alpha=0.01, replicates=1000) > required  # type: ignore[operator]
    assert required_difference(scores[:, ::-1], alpha=0.05, replicates=1000) == pytest.approx(required)


def test_required_difference_is_undefined_without_a_pair() -> None:
    assert required_difference(np.zeros((5, 1))) is None
    assert required_difference(np.zeros((1, 5))) is None
    assert required_difference(np.full((5, 2), np.nan)) is None
    assert required_difference(np.zeros((5, 2)), replicates=100) == 0


def test_numbers_of_significant_pairs_equal_t_tests_of_each_sample() -> None:
    scores = noisy(5, topics=12, systems=4, spread=0.4)
    numbers = significant_pairs_by_sample(scores, alpha=0.1, samples=20, seed=9)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((9, 0))))
    drawn = rng.integers(12, size=(20, 12))
    expected = [
        sum(
            2 * t.sf(abs(z.mean() / (z.std(ddof=1) / 12**0.5)), 11) < 0.1
            for i in range(4)
            for j in range(i)
            for z in [(scores[:, i] - scores[:, j])[draw]]
        )
        for draw in drawn
    ]
    assert len(set(expected)) > 2
    assert numbers.tolist() == expected


@pytest.mark.parametrize(
    ("significant", "low", "high"), [((60, 40), 1, 39), ((90, 0), 71, 100), ((0, 90), -100, -71)]
)
def test_interval_of_a_difference_equals_the_hand_worked_interval(
    significant: tuple[int, int], low: float, high: float
) -> None:
    """The numbers of 100 pairs differ by k points in the samples, k = 0 to 40.

    Their mean is 20, so the 2.5% and 97.5% quantiles of the deviations are -19 and 19. No interval exceeds
    100 points.
    """
    interval = power_difference(significant, (list(range(41)), [0] * 41), 100)
    expected = (significant[0] - significant[1], low, high)
    assert (interval.value, interval.low, interval.high) == pytest.approx(expected)


def test_equal_numbers_of_pairs_on_each_sample_give_no_interval_width() -> None:
    interval = power_difference((6, 4), (list(range(41)), list(range(41))), 10)
    assert (interval.value, interval.low, interval.high) == (20, 20, 20)


def test_interval_is_subtracted_from_the_difference() -> None:
    """With deviations of -1, -1, -1 and 3 points, the long upper tail becomes the lower tail."""
    interval = power_difference((5, 5), ([0, 0, 0, 4], [0, 0, 0, 0]), 100, confidence=0.999)
    assert interval.low == pytest.approx(-3, abs=0.05)
    assert interval.high == pytest.approx(1, abs=0.05)


def test_interval_covers_the_expected_difference() -> None:
    """Of 200 intervals, at least 0.95 - 3 standard errors (0.0154) = 0.904 must cover it."""
    bound = t.ppf(0.975, 24)
    first, second = np.triu_indices(8, 1)

    def significant(scores: Floats) -> int:
        z = scores[:, first] - scores[:, second]
        return int((np.abs(z.mean(0)) > bound * z.std(0, ddof=1) / 5).sum())

    def score_by_two_measures(seed: int) -> tuple[Floats, Floats]:
        scores = noisy(seed, topics=25, spread=0.3)
        return scores, scores + 0.15 * np.random.default_rng(seed + 50_000).standard_normal(scores.shape)

    drawn = [score_by_two_measures(seed) for seed in range(2000, 5000)]
    expected = np.mean([significant(x) - significant(y) for x, y in drawn]) * 100 / 28
    covered = 0
    for seed in range(200):
        x, y = score_by_two_measures(seed)
        by_sample = (
            significant_pairs_by_sample(x, alpha=0.05, samples=300).tolist(),
            significant_pairs_by_sample(y, alpha=0.05, samples=300).tolist(),
        )
        interval = power_difference((significant(x), significant(y)), by_sample, 28)
        covered += int(interval.low <= expected <= interval.high)
    assert covered / 200 >= 0.904
