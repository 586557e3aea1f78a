"""Correlations of the orders of systems (spec 4.3)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.comparing import tau_b

M1 = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.5, 0.2, 0.1], [0.3, 0.3, 0.3, 0.3]])
M2 = np.array([[0.1, 0.3, 0.2, 0.4], [0.6, 0.3, 0.3, 0.3], [0.1, 0.2, 0.3, 0.4]])


class TestSection43:
    """The examples of spec 4.3."""

    def test_ties_are_left_out_of_the_side_that_has_them(self) -> None:
        found = tau_b(np.array([1.0, 2, 3, 4, 5]), np.array([1.0, 3, 2, 4, 4]))
        assert found == pytest.approx(0.737865, abs=6e-7)

    def test_a_constant_side_has_none(self) -> None:
        found = [tau_b(x, y) for x, y in zip(M1, M2, strict=True)]
        assert found[:2] == pytest.approx([0.666667, 0.516398], abs=6e-7)
        assert found[2] is None
        assert tau_b(np.zeros(0), np.zeros(0)) is None

    def test_overall_it_is_between_means(self) -> None:
        means = [np.array([sum(column) / 3 for column in m.T.tolist()]) for m in (M1, M2)]
        assert tau_b(*means) == pytest.approx(-0.516398, abs=6e-7)


scores = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12)


@given(scores)
@settings(max_examples=100, deadline=None)
def test_it_is_symmetric_within_1_and_unchanged_by_a_rising_transform(pairs: list[tuple[int, int]]) -> None:
    """Spec 11.11."""
    x, y = np.array(pairs, dtype=float).T
    tau = tau_b(x, y)
    assert tau == tau_b(y, x) == tau_b(x**3 - 7, y) == tau_b(x, np.exp(y))
    assert tau is None or -1 <= tau <= 1
    assert tau_b(x, x * 2) == (None if len(set(x)) == 1 else pytest.approx(1.0, abs=1e-15))
