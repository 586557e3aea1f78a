"""Tests of intervals over repeats against scipy.stats.t (scipy 1.x)."""

import pytest
from scipy import stats

from cupel_audits.analysis.run_orders import summarise_repeats, two_sided_t


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 9, 10, 29, 30, 999, 1000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.9999])
def test_two_sided_t_equals_scipy(confidence: float, degrees: int) -> None:
    expected = stats.t.ppf((1 + confidence) / 2, degrees)
    assert two_sided_t(confidence, degrees) == pytest.approx(expected, rel=1e-11)


def test_interval_of_mean_equals_scipy() -> None:
    values = [0.8, 0.9, 0.7, 0.85]
    result = summarise_repeats([*values, None])
    low, high = stats.t.interval(0.95, 3, loc=result.mean, scale=stats.sem(values))
    assert (result.low, result.high) == pytest.approx((low, high), rel=1e-12)
    assert result.n == 4


def test_interval_of_mean_is_clipped_to_the_range_of_a_correlation() -> None:
    values = [0.98, 0.99, 1.0]
    low, high = stats.t.interval(0.95, 2, loc=0.99, scale=stats.sem(values))
    assert high > 1
    assert (summarise_repeats(values).low, summarise_repeats(values).high) == (pytest.approx(low), 1.0)
    opposite = summarise_repeats([-value for value in values])
    assert (opposite.low, opposite.high) == (-1.0, pytest.approx(-low))
