"""Tests of simultaneous tests of all pairs against worked examples, scipy and statsmodels."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cupel_measures.comparing.all_pairs import anova, kruskal_wallis, randomised_hsd, randomised_hsds
from cupel_measures.comparing.corrections import CORRECTIONS, benjamini_hochberg, groups, holm, letters

PEER_VALUES: dict[str, Any] = json.loads(Path(__file__).with_name("peer_values.json").read_text())
"""Values of statsmodels; see make_peer_values.py."""

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


def pairs(result: object) -> set[tuple[int, int]]:
    return {
        (a + 1, b + 1)
        for a, b, apart in zip(result.first, result.second, result.differs, strict=True)  # type: ignore[attr-defined]
        if apart
    }


class TestWorkedNumbers:
    def test_kruskal_wallis_equals_worked_values(self) -> None:
        result = kruskal_wallis(SCORES)
        assert result.statistic == pytest.approx(5.513514, abs=1e-6)
        assert result.p == pytest.approx(0.063497, abs=1e-4)
        assert result.difference.tolist() == pytest.approx([-2, -7, -5])
        assert result.width == pytest.approx(7.197631, abs=1e-4)
        assert pairs(result) == set()

    def test_two_way_anova_equals_worked_values(self) -> None:
        result = anova(SCORES)
        assert result.statistic == pytest.approx(26.005587, abs=1e-4)
        assert result.p == pytest.approx(0.000109, abs=1e-4)
        assert (result.mse, result.df) == (pytest.approx(0.004972, abs=1e-6), 10)
        assert result.width == pytest.approx(0.111602, abs=1e-4)
        assert result.difference.tolist() == pytest.approx([-0.075, -0.283333, -0.208333], abs=1e-6)
        assert pairs(result) == {(1, 3), (2, 3)}
        assert result.percent == pytest.approx(100 * 2 / 3)

    def test_one_way_anova_equals_worked_values(self) -> None:
        result = anova(SCORES, design="one_way")
        assert result.statistic == pytest.approx(4.354537, abs=1e-4)
        assert result.p == pytest.approx(0.032272, abs=1e-4)
        assert (result.mse, result.df) == (pytest.approx(0.029694, abs=1e-6), 15)
        assert result.width == pytest.approx(0.258421, abs=1e-4)
        assert pairs(result) == {(1, 3)}

    @pytest.mark.parametrize("design", ["one_way", "two_way"])
    def test_unit_of_scores_does_not_change_the_anova(self, design: Literal["one_way", "two_way"]) -> None:
        tiny, expected = anova(SCORES * 1e-8, design=design), anova(SCORES, design=design)
        assert tiny.statistic == pytest.approx(expected.statistic)
        assert pairs(tiny) == pairs(expected)

    def test_studentized_range_quantiles_equal_tabulated_values(self) -> None:
        for (systems, df), expected in {
            (3, np.inf): 3.314493, (75, np.inf): 5.906254, (129, np.inf): 6.238615, (129, 6272): 6.242557,
            (75, 3626): 5.912116, (3, 10): 3.876777, (3, 15): 3.673378,
        }.items():  # fmt: skip
            assert stats.studentized_range.ppf(0.95, systems, df) == pytest.approx(expected, abs=1e-4)


class TestAgainstScipy:
    def test_kruskal_wallis_with_ties_equals_scipy(self) -> None:
        scores = np.random.default_rng(1).integers(0, 5, (20, 4)) / 4
        expected = stats.kruskal(*scores.T)
        result = kruskal_wallis(scores)
        assert (result.statistic, result.p) == pytest.approx((expected.statistic, expected.pvalue), abs=1e-12)

    def test_one_way_anova_equals_scipy(self) -> None:
        scores = np.random.default_rng(2).random((15, 5))
        expected = stats.f_oneway(*scores.T)
        result = anova(scores, design="one_way")
        assert (result.statistic, result.p) == pytest.approx((expected.statistic, expected.pvalue), abs=1e-12)
        tukey = stats.tukey_hsd(*scores.T).pvalue[np.triu_indices(5, 1)]
        assert result.differs.tolist() == (tukey < 0.05).tolist()

    def test_two_way_anova_equals_statsmodels(self) -> None:
        expected = PEER_VALUES["two_way_analysis_of_variance"]
        result = anova(np.array(expected["scores"]))
        assert result.statistic == pytest.approx(expected["statistic"], rel=1e-9)
        assert result.p == pytest.approx(expected["p"], rel=1e-9)
        assert result.df == expected["df"]


class TestRandomisedHsd:
    def test_two_systems_equal_the_randomisation_test(self) -> None:
        """With two systems, a permutation per topic is an assignment of signs; enumerate all 2^T."""
        scores = np.random.default_rng(5).random((10, 2)) + np.array([0.15, 0])
        apart = scores[:, 0] - scores[:, 1]
        flips = np.array(list(itertools.product([1, -1], repeat=10))) @ apart
        exact = np.mean(np.abs(flips) >= abs(apart.sum()) * (1 - 1e-12))
        result = randomised_hsd(scores, replicates=20_000)
        assert result.pair_p is not None
        assert result.pair_p[0] == pytest.approx(exact, abs=0.01)

    def test_replicates_are_shared_by_measures_and_independent_of_measures(self) -> None:
        rng = np.random.default_rng(6)
        first, second = rng.random((2, 12, 5))
        together = randomised_hsds([first, second], replicates=900)
        alone = randomised_hsd(second, replicates=900)
        assert together[1].pair_p is not None
        assert alone.pair_p is not None
        assert together[1].pair_p.tobytes() == alone.pair_p.tobytes()

    def test_large_matrices_draw_their_replicates_in_blocks(self) -> None:
        """Expect blocks of 2^20 numbers: 4 replicates of 1024 topics and 256 systems, and then 2 more."""
        scores = np.random.default_rng(7).integers(0, 5, (1024, 256)) / 4
        ranges: list[float] = []
        for block, replicates in enumerate((4, 2)):
            rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((3, block))))
            orders = rng.permuted(np.broadcast_to(np.arange(256), (1024, replicates, 256)), axis=2)
            for replicate in range(replicates):
                permuted = np.take_along_axis(scores, orders[:, replicate], axis=1)
                ranges.append(float(np.ptp(permuted.mean(axis=0))))
        found = randomised_hsd(scores, replicates=6, seed=3)
        assert found.width == pytest.approx(max(ranges))
        assert found.pair_p is not None
        reached = np.abs(found.difference)[:, None] <= np.array(ranges) * (1 + 1e-12)
        assert found.pair_p.tolist() == pytest.approx(((reached.sum(axis=1) + 1) / 7).tolist())

    def test_three_systems_equal_the_enumeration_of_permutations(self) -> None:
        scores = np.array([[0.1, 0.5, 0.9], [0.2, 0.4, 0.8], [0.3, 0.2, 0.7]])
        orders = list(itertools.permutations(range(3)))
        ranges = [
            np.ptp(sum(row[list(order)] for row, order in zip(scores, deal, strict=True))) / 3
            for deal in itertools.product(orders, repeat=3)
        ]
        result = randomised_hsd(scores, replicates=30_000)
        assert result.pair_p is not None
        for p, apart in zip(result.pair_p, np.abs(result.difference), strict=True):
            assert p == pytest.approx(np.mean(np.array(ranges) >= apart * (1 - 1e-12)), abs=0.01)


class TestFamilies:
    @pytest.mark.parametrize("family", PEER_VALUES["corrections"], ids=lambda family: f"{len(family['p'])} p")
    def test_corrections_equal_statsmodels(self, family: dict[str, list[float]]) -> None:
        assert holm(family["p"]).tolist() == pytest.approx(family["holm"], abs=1e-12)
        assert benjamini_hochberg(family["p"]).tolist() == pytest.approx(
            family["benjamini_hochberg"], abs=1e-12
        )

    def test_groups_equal_hand_worked_groups(self) -> None:
        assert groups(3, []) == ((0,), (0,), (0,))
        assert groups(3, [(0, 2)]) == ((0,), (0, 1), (1,))
        assert groups(3, [(0, 1), (0, 2), (1, 2)]) == ((0,), (1,), (2,))
        # Piepho 2004: the best and the worst differ; each middle system shares a group with one of them
        assert groups(4, [(0, 2), (0, 3), (1, 3)]) == ((0,), (0, 1), (1, 2), (2,))
        assert groups(1, []) == ((0,),)
        assert groups(0, []) == ()

    @given(st.integers(1, 7).flatmap(lambda n: st.tuples(
        st.just(n), st.sets(st.sampled_from(list(itertools.combinations(range(n), 2)) or [(0, 0)]))
    )))  # fmt: skip
    def test_systems_share_a_group_if_and_only_if_they_do_not_differ(
        self, case: tuple[int, set[tuple[int, int]]]
    ) -> None:
        systems, different = case
        different = {pair for pair in different if pair[0] != pair[1]}
        result = groups(systems, sorted(different))
        for pair in itertools.combinations(range(systems), 2):
            assert bool(set(result[pair[0]]) & set(result[pair[1]])) == (pair not in different)
        assert all(result)

    def test_letters_name_the_groups(self) -> None:
        assert [letters(n) for n in (0, 1, 25, 26, 27, 701, 702)] == ["a", "b", "z", "aa", "ab", "zz", "aaa"]


class TestDegenerate:
    @pytest.mark.parametrize("test", [kruskal_wallis, anova, randomised_hsd])
    def test_no_pair_and_one_topic_are_undefined(self, test: object) -> None:
        assert callable(test)
        assert test(np.ones((5, 1))).undefined == "there are fewer than two systems"
        assert test(np.ones((1, 3))).undefined == "there is only one topic"
        assert test(np.zeros((0, 3))).undefined == "there are no scores"
        assert test(np.array([[1, np.nan], [1, 2]])).undefined == "a score is undefined or infinite"
        assert not test(np.ones((1, 3))).differs.any()

    @pytest.mark.filterwarnings("error")
    def test_constant_scores_have_no_significant_pairs(self) -> None:
        for test in (kruskal_wallis, anova, randomised_hsd):
            result = test(np.full((6, 4), 0.1))
            assert result.p == 1.0
            assert not result.differs.any()

    @pytest.mark.filterwarnings("error")
    def test_all_differences_without_error_variance_are_significant(self) -> None:
        scores = np.arange(6)[:, None] / 10 + [0.0, 0.1, 0.1]
        result = anova(scores)
        assert (result.p, result.mse) == (0.0, 0.0)
        assert result.differs.tolist() == [True, True, False]

    def test_only_kruskal_wallis_needs_no_interval_scale(self) -> None:
        assert anova(SCORES, scale="ordinal").warnings
        assert randomised_hsd(SCORES, scale="neither", replicates=10).warnings
        assert not kruskal_wallis(SCORES).warnings

    @given(st.integers(0, 1000))
    def test_kruskal_wallis_depends_only_on_the_order(self, seed: int) -> None:
        scores = np.random.default_rng(seed).integers(0, 6, (6, 3)) / 5
        assert kruskal_wallis(scores).statistic == kruskal_wallis(np.exp(3 * scores)).statistic


@pytest.mark.parametrize("correct", CORRECTIONS.values())
@pytest.mark.parametrize("p", [[0.1, np.nan], [0.1, 1.5], [0.1, -1e-9]])
def test_invalid_p_values_are_refused(correct: Callable[[list[float]], object], p: list[float]) -> None:
    with pytest.raises(ValueError, match=r"p must be between 0 and 1, got .* \(at index 1\)"):
        correct(p)


@pytest.mark.parametrize("pair", [(0, 3), (-1, 0), (1, 1)])
def test_pairs_of_unknown_systems_are_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="expected pairs of two different systems from 0 to 2"):
        groups(3, [pair])
