"""Tests of variance components and reliability coefficients.

Reference: the synthetic data set 4 of Brennan, Generalizability Theory, 2001, tables 6.2 and 6.5, with the
values of the R package gt4ireval 2.0 (`gstudy`, and `dstudy` with alpha = 0.1, an interval of 80 per cent).
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.comparing.topic_sets.generalisability import (
    SignalRatio,
    VarianceComponents,
    variance_components,
)
from cupel_measures.model import Floats

SYNTHETIC = np.array(
    [
        [5, 6, 5, 5, 5, 3, 4, 5, 6, 7, 3, 3],
        [9, 3, 7, 7, 7, 5, 5, 5, 7, 7, 5, 2],
        [3, 4, 3, 3, 5, 3, 3, 5, 6, 5, 1, 6],
        [7, 5, 5, 3, 3, 1, 4, 3, 5, 3, 3, 5],
        [9, 2, 9, 7, 7, 7, 3, 7, 2, 7, 5, 3],
        [3, 4, 3, 5, 3, 3, 6, 3, 4, 5, 1, 2],
        [7, 3, 7, 7, 7, 5, 5, 7, 5, 5, 5, 4],
        [5, 8, 5, 7, 7, 5, 5, 4, 3, 2, 1, 1],
        [9, 9, 8, 8, 6, 6, 6, 5, 5, 8, 1, 1],
        [4, 4, 4, 3, 3, 5, 6, 5, 5, 7, 1, 1],
    ]
).T
"""Twelve topics by ten systems."""


def study(scores: Floats) -> VarianceComponents:
    components = variance_components(scores)
    assert components is not None
    return components


def test_variance_components_equal_those_of_the_literature() -> None:
    components = study(SYNTHETIC)
    assert (components.systems, components.topics) == (10, 12)
    result = (components.system, components.topic, components.residual)
    assert result == pytest.approx((0.625757575757576, 0.884006734006734, 2.78720538720539), rel=1e-12)
    squares = (components.system_square, components.topic_square, components.residual_square)
    assert squares == pytest.approx((10.2962962962963, 11.6272727272727, 2.78720538720539), rel=1e-12)


def test_coefficients_and_their_intervals_equal_those_of_the_literature() -> None:
    components = study(SYNTHETIC)
    relative = components.relative(confidence=0.8)
    assert relative.coefficient(12) == pytest.approx(
        (0.729300196206671, 0.541010905420649, 0.876363137240463), rel=1e-9
    )
    assert relative.topics_needed(0.95) == (85, 33, 194)
    absolute = components.absolute(confidence=0.8)
    assert absolute.coefficient(12) == pytest.approx(
        (0.671635722997696, 0.456901329313964, 0.845419296231267), rel=1e-9
    )
    assert absolute.topics_needed(0.95) == (112, 42, 272)


def test_coefficients_of_perfectly_reliable_scores_are_1() -> None:
    """Systems differ by the same amount on each topic. Topics differ only in the second example."""
    flat = study(np.tile([0.1, 0.3, 0.7], (4, 1)))
    assert flat.relative().coefficient(4) == flat.absolute().coefficient(4) == (1, 1, 1)
    assert flat.relative().topics_needed(0.95) == (1, 1, 1)
    parallel = study(np.add.outer([0.0, 0.1, 0.3], [0.1, 0.3, 0.7]))
    assert parallel.relative().coefficient(3) == (1, 1, 1)
    value, low, high = parallel.absolute().coefficient(3)
    assert 0 < low < value < high < 1


def test_coefficients_without_variance_between_systems_are_0() -> None:
    """Both systems have the mean 1/2, so no number of topics distinguishes them."""
    components = study(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    assert components.system == components.topic == 0
    assert components.residual == pytest.approx(4 * 2 / 4 / 3)
    assert components.relative().coefficient(50)[0] == components.absolute().coefficient(50)[0] == 0
    assert components.relative().topics_needed(0.95)[0] is None


def test_variance_of_two_systems_on_two_topics_is_defined() -> None:
    """The sum of squares of two systems with means 0 and 1 on two topics is 2 * (1/4 + 1/4) = 1."""
    components = study(np.array([[0.0, 1.0], [0.0, 1.0]]))
    squares = (components.system_square, components.topic_square, components.residual_square)
    assert squares == pytest.approx((1, 0, 0))


def test_components_are_undefined_for_a_single_system_or_topic() -> None:
    assert variance_components(np.ones((5, 1))) is None
    assert variance_components(np.ones((1, 5))) is None
    assert variance_components(np.full((3, 3), np.nan)) is None


@given(st.integers(0, 1000), st.floats(0.1, 100), st.floats(-5, 5))
@settings(max_examples=20, deadline=None)
def test_coefficients_do_not_depend_on_unit_order_or_origin(seed: int, unit: float, origin: float) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random((8, 5)) + rng.random(5)
    other = (unit * scores + origin)[rng.permutation(8)][:, rng.permutation(5)]
    for name in ("relative", "absolute"):
        first, second = (getattr(study(values), name)().coefficient(8) for values in (scores, other))
        assert first == pytest.approx(second, rel=1e-6, abs=1e-9)


@given(st.integers(0, 1000), st.floats(0.5, 0.99))
@settings(max_examples=20, deadline=None)
def test_coefficients_rise_with_topics_and_phi_is_smaller(seed: int, target: float) -> None:
    rng = np.random.default_rng(seed)
    components = study(rng.random((10, 6)) + rng.random(6) + rng.random((10, 1)))
    for ratio in (components.relative(), components.absolute()):
        assert ratio.low <= ratio.value <= ratio.high
        needed = ratio.topics_needed(target)[0]
        if needed is not None:
            assert ratio.coefficient(needed)[0] >= target - 1e-9
            assert needed == 1 or ratio.coefficient(needed - 1)[0] < target
    assert components.absolute().value <= components.relative().value


def test_number_of_topics_equals_the_hand_worked_number() -> None:
    """A coefficient of 0.95 needs r n >= 0.95 / 0.05 = 19, so r = 0.5 needs 38 topics."""
    ratio = SignalRatio(0.5, 0.0, math.inf)
    assert ratio.topics_needed(0.95) == (38, 1, None)
    assert ratio.coefficient(38) == (0.95, 0, 1)


@pytest.mark.parametrize("name", ["relative", "absolute"])
def test_intervals_cover_the_true_coefficient(name: str) -> None:
    """Of 600 intervals, at least 0.95 - 3 standard errors (0.0267) must cover it. Variances: 1, 1, 4."""
    rng = np.random.default_rng(3)
    true = 20 / (20 + 4) if name == "relative" else 20 / (20 + 1 + 4)
    covered = 0
    for _ in range(600):
        scores = rng.normal(size=15) + rng.normal(size=(20, 1)) + 2 * rng.normal(size=(20, 15))
        _, low, high = getattr(study(scores), name)().coefficient(20)
        covered += int(low <= true <= high)
    assert covered / 600 >= 0.95 - 0.0267
