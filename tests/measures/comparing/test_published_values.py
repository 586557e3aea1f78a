"""Sakai, Information Access Evaluation Methodology (Corona, 2015), table 5.1: three systems on twenty topics.

The tests of elinor (statistical_tests) quote the scores and the results of chapter 5 from the book. They
quote no results of randomised Tukey HSD, so its p is compared with the parametric test.
"""

import numpy as np
import pytest
from scipy.stats import studentized_range

from cupel_measures.comparing.all_pairs import anova, randomised_hsd
from cupel_measures.comparing.paired_tests import effect_size, t_test
from cupel_measures.comparing.resampling import randomisation
from cupel_measures.comparing.topic_set_sizes import topics_needed

A = [7, 3, 2, 6, 4, 4, 0, 7, 1, 3, 5, 4, 0, 6, 5, 3, 1, 5, 2, 1]
B = [5, 1, 0, 2, 4, 3, 0, 5, 3, 3, 4, 4, 1, 4, 2, 1, 1, 6, 3, 2]
C = [0, 0, 2, 1, 3, 3, 1, 2, 4, 4, 4, 3, 3, 2, 2, 2, 1, 5, 4, 3]
SCORES = np.array([A, B, C]).T / 10


def test_paired_t_and_effect_size() -> None:
    result = t_test(SCORES[:, 0], SCORES[:, 1])
    assert result.estimate == pytest.approx(0.0750, abs=1e-4)
    assert (result.statistic, result.p) == pytest.approx((2.116, 0.048), abs=1e-3)
    assert result.interval is not None
    assert (result.interval[1] - result.interval[0]) / 2 == pytest.approx(0.0742, abs=1e-4)
    assert effect_size(SCORES[:, 0], SCORES[:, 1]).value == pytest.approx(0.473, abs=1e-3)


def test_two_way_anova_gives_the_effect_sizes_of_all_pairs() -> None:
    result = anova(SCORES)
    assert result.mse is not None
    assert (result.difference / result.mse**0.5).tolist() == pytest.approx([0.5070, 0.6760, 0.1690], abs=1e-4)


def test_randomised_hsd_is_near_the_parametric_test() -> None:
    result, parametric = randomised_hsd(SCORES), anova(SCORES)
    assert parametric.mse is not None
    assert result.pair_p is not None
    q = np.abs(parametric.difference) / (parametric.mse / len(SCORES)) ** 0.5
    expected = studentized_range.sf(q, 3, parametric.df)
    assert result.pair_p.tolist() == pytest.approx(expected.tolist(), abs=0.06)
    two = randomisation(SCORES[:, 0], SCORES[:, 1])
    assert two.p == pytest.approx(0.048, abs=0.02)  # that of t


def test_number_of_topics_equals_medcalc() -> None:
    """According to the manual of MedCalc, a difference of 8 with standard deviation 12 needs 20 pairs."""
    assert topics_needed(8, 144) == 20
