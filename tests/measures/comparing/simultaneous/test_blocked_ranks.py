"""Tests of Friedman's, Nemenyi's and Conover's tests against worked values, scipy and scikit-posthocs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cupel_measures.comparing.simultaneous.blocked_ranks import RANK_TESTS, conover, nemenyi, rank_test
from cupel_measures.model import Floats

SCORES = np.array(
    [
        [0.30, 0.35, 0.60],
        [0.10, 0.20, 0.45],
        [0.55, 0.50, 0.80],
        [0.20, 0.30, 0.30],
        [0.40, 0.45, 0.75],
        [0.05, 0.25, 0.40],
    ]
)
"""By topic and system. Four topics have ranks 3, 2, 1, one has 2, 3, 1 and one 3, 1.5, 1.5."""
WITH_TIES = np.array(
    [
        [8, 9, 2, 11, 10], [6, 7, 4, 13, 6], [2, 5, 8, 7, 6], [0, 1, 2, 3, 16], [2, 7, 10, 5, 8],
        [4, 3, 12, 5, 16],
        [8, 11, 2, 7, 12], [4, 7, 10, 9, 6], [10, 7, 12, 5, 10], [10, 3, 2, 7, 14], [0, 11, 6, 5, 12],
        [10, 11, 12, 5, 6],
    ]
)  # fmt: skip


class TestWorkedNumbers:
    """The sums of ranks of SCORES are 17, 12.5 and 6.5, and the sum of squared ranks is 83.5."""

    def test_friedman_equals_worked_value(self) -> None:
        found = nemenyi(SCORES)
        assert found.mean_ranks.tolist() == pytest.approx([17 / 6, 12.5 / 6, 6.5 / 6])
        # 2 (5^2 + 0.5^2 + 5.5^2) / (83.5 - 6 * 3 * 4^2 / 4)
        assert found.statistic == pytest.approx(2 * 55.5 / 11.5)
        assert (found.df, found.p) == (2, pytest.approx(np.exp(-55.5 / 11.5)))  # chi-squared with 2 df

    def test_nemenyi_equals_worked_values(self) -> None:
        found = nemenyi(SCORES)
        # Demšar 2006, table 5a: q / sqrt 2 is 2.343 for 3 systems; sqrt(3 * 4 / (6 * 6)).
        assert found.width == pytest.approx(2.343 / 3**0.5, abs=5e-4)
        assert found.difference.tolist() == pytest.approx([-4.5 / 6, -10.5 / 6, -1])
        assert found.differs.tolist() == [False, True, False]

    def test_conover_equals_worked_values(self) -> None:
        found = conover(SCORES)
        # Conover 1999, 5.8: 2 (6 * 83.5 - 17^2 - 12.5^2 - 6.5^2) / (5 * 2) = 2.7, for sums of ranks.
        p = 2 * stats.t.sf(np.array([4.5, 10.5, 6]) / 2.7**0.5, 10)
        assert found.mse == pytest.approx(2.7 / 12)
        # Holm multiplies by 1, 3 and 2; no p is smaller than that of Friedman's test.
        assert found.pair_p is not None
        assert found.pair_p.tolist() == pytest.approx([p[0], max(3 * p[1], found.p or 0), 2 * p[2]])
        assert found.pair_p[1] == found.p

    def test_conover_of_equal_ranks_on_every_topic(self) -> None:
        """Ranks without variance: tied systems do not differ, and others have the p of Friedman's test."""
        found = conover(np.tile([0.1, 0.1, 0.5], (6, 1)))
        assert (found.mse, found.difference.tolist()) == (0.0, [0.0, -1.5, -1.5])
        assert found.p == pytest.approx(np.exp(-12 / 2))  # 2 (3^2 + 3^2 + 6^2) / (81 - 6 * 3 * 4^2 / 4)
        assert found.pair_p is not None
        assert found.pair_p.tolist() == [1.0, found.p, found.p]

    def test_aligned_ranks_equal_worked_values(self) -> None:
        """Topics (1 2 6) and (5 3 10) have deviations -2 -1 3 and -1 -3 4, with ranks 5 3.5 2, 3.5 6 1."""
        found = nemenyi([[1, 2, 6], [5, 3, 10]], aligned=True)
        assert found.mean_ranks.tolist() == [4.25, 4.75, 1.5]
        # Within topics, the squares are 4.5 (mean 3.5) and 12.5 (mean 3.5); between, 0.75^2 + 1.25^2 + 2^2.
        assert found.statistic == pytest.approx(2 * 4 * 6.125 / 17)
        assert found.width == pytest.approx(
            stats.studentized_range.ppf(0.95, 3, np.inf) * (17 / 4 / 2) ** 0.5
        )


class TestAgainstPeers:
    @pytest.mark.parametrize("scores", [SCORES, WITH_TIES])
    def test_friedman_equals_scipy(self, scores: Floats) -> None:
        expected, found = stats.friedmanchisquare(*scores.T), conover(scores)
        assert (found.statistic, found.p) == (
            pytest.approx(expected.statistic, rel=1e-12),
            pytest.approx(expected.pvalue, rel=1e-12),
        )

    def test_nemenyi_equals_scikit_posthocs(self) -> None:
        """scikit-posthocs 0.17.1, posthoc_nemenyi_friedman."""
        expected = [
            0.7731282919634912, 0.3691688152318042, 0.6146309432106247, 0.052335907834018314,
            0.9675206759118825, 0.9990238324105165, 0.5302985918319807,
            0.9952451767166837, 0.8955961138940294, 0.696814061895547,
        ]  # fmt: skip
        assert nemenyi(WITH_TIES).pair_p == pytest.approx(expected, abs=1e-8)
        assert nemenyi(SCORES).pair_p == pytest.approx([0.395692, 0.006883, 0.193225], abs=1e-6)

    def test_conover_equals_scikit_posthocs(self) -> None:
        """scikit-posthocs 0.17.1, posthoc_conover_friedman(p_adjust="holm"), and p of Friedman's test."""
        expected = [
            1,
            0.5755469632677208,
            0.9977520798515971,
            0.06619192979605995,
            1,
            1,
            0.8838186161790906,
            1,
            1,
            1,
        ]
        found = conover(WITH_TIES)
        assert found.p == pytest.approx(0.09662944384220457)
        assert found.pair_p == pytest.approx(np.maximum(expected, found.p or 0), rel=1e-9)
        assert conover(SCORES).pair_p == pytest.approx([0.020882, 0.008018, 0.008903], abs=1e-6)


def test_conover_corrects_over_the_selected_pairs() -> None:
    """A pair that is tested alone is not corrected."""
    [p] = conover(SCORES, pairs=[(2, 1)]).pair_p  # type: ignore[misc]
    assert p == pytest.approx(max(2 * stats.t.sf(6 / 2.7**0.5, 10), np.exp(-55.5 / 11.5)))
    assert conover(SCORES, pairs=[(2, 1)]).difference.tolist() == pytest.approx([1.0])


@pytest.mark.parametrize("name", RANK_TESTS)
def test_equal_systems_do_not_differ(name: str) -> None:
    found = rank_test(name, np.tile([[0.5], [0.2], [0.9]], 4), alpha=0.05)
    assert (found.statistic, found.p) == (0, 1)
    assert not found.differs.any()
    assert found.mean_ranks.tolist() == [6.5 if name == "aligned-ranks" else 2.5] * 4


def test_conover_needs_the_rejection_of_friedman() -> None:
    """Two systems with constant ranks have no error, so Friedman's test limits p (chi-squared 3, 1 df)."""
    found = conover([[1, 2], [0, 1], [3, 4]])
    assert found.pair_p == pytest.approx([stats.chi2.sf(3, 1)])
    assert not found.differs.any()


@pytest.mark.parametrize("name", RANK_TESTS)
def test_unusable_scores_are_undefined(name: str) -> None:
    for scores, reason in (
        ([[0.1, np.nan], [0.2, 0.3]], "a score is undefined or infinite"),
        ([[0.1, 0.2]], "there is only one topic"),
        ([[0.1], [0.2]], "there are fewer than two systems"),
    ):
        found = rank_test(name, scores, alpha=0.05)
        assert (found.undefined, found.statistic, found.p) == (reason, None, None)
        assert not found.differs.any()


scores = st.integers(2, 5).flatmap(
    lambda systems: st.lists(
        st.lists(st.integers(0, 6), min_size=systems, max_size=systems), min_size=2, max_size=8
    )
)


@given(scores)
def test_only_the_order_within_topics_counts(values: list[list[int]]) -> None:
    changed = [[10.0**score + 7 * topic for score in row] for topic, row in enumerate(values)]
    for test in (nemenyi, conover):
        assert test(values).pair_p == pytest.approx(test(changed).pair_p)


@given(scores, st.randoms())
def test_order_of_systems_does_not_matter(values: list[list[int]], rng: object) -> None:
    matrix = np.array(values, dtype=float)
    order = rng.sample(range(matrix.shape[1]), matrix.shape[1])  # type: ignore[attr-defined]
    for name in RANK_TESTS:
        found, moved = (rank_test(name, x, alpha=0.05) for x in (matrix, matrix[:, order]))
        assert moved.mean_ranks == pytest.approx(found.mean_ranks[order])
        assert moved.statistic == pytest.approx(found.statistic)
        p = {
            frozenset((order[a], order[b])): p
            for a, b, p in zip(moved.first, moved.second, moved.pair_p, strict=True)
        }  # type: ignore[arg-type]
        expected = [p[frozenset((a, b))] for a, b in zip(found.first, found.second, strict=True)]
        assert found.pair_p == pytest.approx(expected)


@given(scores)
def test_width_and_p_of_nemenyi_agree(values: list[list[int]]) -> None:
    found = nemenyi(values, alpha=0.2)
    assert found.width is not None
    assert found.differs.tolist() == (np.abs(found.difference) > found.width).tolist()
