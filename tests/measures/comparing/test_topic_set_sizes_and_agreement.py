"""Tests of topic set sizes and of agreement, against statsmodels, scikit-learn and krippendorff."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cupel_measures.comparing.agreement import agreement, label_agreement
from cupel_measures.comparing.all_pairs import anova
from cupel_measures.comparing.topic_set_sizes import (
    pooled_variance,
    power,
    smallest_difference,
    topics_needed,
)
from cupel_measures.model import Aspect
from support.data.small_collections import qrels_of

PEER_VALUES: dict[str, Any] = json.loads(Path(__file__).with_name("peer_values.json").read_text())
"""Values of other packages; see make_peer_values.py."""


class TestSizes:
    def test_known_sizes_of_the_paired_t_test(self) -> None:
        """Sizes by effect d for alpha 0.05 and power 0.8; statsmodels gives the same sizes."""
        assert topics_needed(0.5, 1.0) == 34
        assert topics_needed(0.2, 1.0) == 199
        assert topics_needed(0.8, 1.0) == 15

    def test_power_equals_statsmodels(self) -> None:
        for value in PEER_VALUES["powers"]:
            result = power(value["effect"], 1.0, value["topics"])
            assert result == pytest.approx(value["power"], abs=1e-6), value

    def test_smallest_difference_is_where_power_is_reached(self) -> None:
        result = smallest_difference(0.04, 50)
        assert result is not None
        assert power(result, 0.04, 50) == pytest.approx(0.8, abs=1e-6)
        assert topics_needed(result * (1 + 1e-9), 0.04) == 50

    def test_smallest_difference_of_many_topics_is_exact(self) -> None:
        """With a million topics, t has a normal distribution: (1.959964 + 0.841621) / 1000 for variance 1."""
        expected = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) / 1000
        assert smallest_difference(1.0, 10**6) == pytest.approx(expected, rel=2e-6)
        assert power(smallest_difference(1.0, 10**6) or 0, 1.0, 10**6) == pytest.approx(0.8, abs=1e-9)

    def test_two_topics_without_variance_reach_full_power(self) -> None:
        assert topics_needed(0.1, 0.0, target_power=1.0) == 2

    def test_pooled_variance_is_twice_the_error_of_the_anova(self) -> None:
        scores = np.random.default_rng(2).random((9, 5))
        apart = [scores[:, i] - scores[:, j] for i in range(5) for j in range(i)]
        expected = np.mean([differences.var(ddof=1) for differences in apart])
        assert pooled_variance(scores) == pytest.approx(expected, rel=1e-12)
        assert pooled_variance(scores) == pytest.approx(2 * (anova(scores).mse or 0), rel=1e-12)

    def test_degenerate_power_requests_are_undefined(self) -> None:
        assert pooled_variance(np.ones((1, 3))) is None
        assert pooled_variance(np.ones((3, 1))) is None
        assert smallest_difference(0.1, 1) is None
        assert smallest_difference(0.0, 10) == 0.0
        assert topics_needed(0.0, 1.0) is None
        assert topics_needed(1e-9, 1.0) is None
        assert topics_needed(0.1, 0.0) == 2
        assert power(1e9, 1.0, 10) == 1.0
        for rounding_error in (1e-30, 9e-25):
            assert power(0.0, rounding_error, 10) == 0.0
            assert power(1e-20, rounding_error, 10) == 1.0
            assert smallest_difference(rounding_error, 10) == 0.0
        assert power(0.0, 1.1e-24, 10) == pytest.approx(0.05)
        assert smallest_difference(1.1e-24, 10) == pytest.approx(1e-12 * (smallest_difference(1.1, 10) or 0))
        with pytest.raises(ValueError, match="variance"):
            power(0.1, -1.0, 5)
        with pytest.raises(ValueError, match="expected a difference, got nan"):
            topics_needed(float("nan"), 1.0)


class TestAgreement:
    def test_kappa_and_alpha_equal_scikit_learn_and_krippendorff(self) -> None:
        for value in PEER_VALUES["agreements"]:
            result = label_agreement(value["first"], value["second"], 4)
            assert result.kappa == pytest.approx(value["kappa"], abs=1e-12), value
            assert result.alpha == pytest.approx(value["alpha"], abs=1e-9), value

    def test_agreement_on_one_label_is_undefined(self) -> None:
        assert label_agreement([2, 2, 2], [2, 2, 2], 4).undefined == "all pairs have the same label"

    def test_kappa_and_alpha_equal_hand_worked_values(self) -> None:
        # 3 of 4 labels are the same. By chance, 4 * (1/2 * 3/4 + 1/2 * 1/4) = 2 are expected to be the same.
        result = label_agreement([0, 0, 1, 1], [0, 0, 0, 1], 2)
        assert result.same == 0.75
        assert result.kappa == pytest.approx(1 - (1 / 4) / (1 / 2))

    def test_agreement_is_over_pairs_judged_in_both_qrels(self) -> None:
        scale = Aspect(name="relevance", labels=range(3))
        first = qrels_of({scale: {"1": {"a": 2, "b": 0, "c": 1}, "2": {"a": 1}}})
        second = qrels_of({scale: {"1": {"a": 2, "b": -1, "d": 1}, "2": {"a": 0}}})
        [result] = agreement(first, second)
        assert (result.aspect, result.pairs) == ("relevance", 3)  # (1, a), (1, b) and (2, a)
        assert result.same == pytest.approx(2 / 3)
        assert label_agreement([], [], 3).undefined == "no topic-document pair is judged in both"
        with pytest.raises(ValueError, match="different labels"):
            agreement(first, qrels_of({Aspect(name="relevance", labels=range(4)): {"1": {"a": 2}}}))


@pytest.mark.parametrize(("alpha", "expected"), [(0.8, 0.0), (0.9, 0.0), (1e-300, None)])
def test_extreme_alpha_has_no_smallest_difference(alpha: float, expected: float | None) -> None:
    """A large alpha alone gives the required power. For a tiny alpha, the critical value is infinite."""
    assert smallest_difference(0.04, 20, alpha=alpha) == expected


def test_invalid_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="the first list has 1 labels, the second 3"):
        label_agreement([1], [0, 1, 1], 2)
    for label in (-1, 2):
        with pytest.raises(ValueError, match="expected label indices from 0 to 1"):
            label_agreement([label, 0], [1, 0], 2)
