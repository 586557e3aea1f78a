"""Tests of the max-T tests against a direct computation, and of the laws that their results obey."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cupel_measures.comparing.resampling import random_signs
from cupel_measures.comparing.simultaneous import max_t as max_t_module
from cupel_measures.comparing.simultaneous import sign_flips
from cupel_measures.comparing.simultaneous.max_t import MaxT, max_t
from cupel_measures.comparing.simultaneous.sign_flips import SignFlips
from cupel_measures.model import Floats

B = 199


def made(shifts: list[float], topics: int = 20, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    spread = np.linspace(0.05, 0.2, len(shifts))
    scores: Floats = rng.random((topics, 1)) + rng.normal(size=(topics, len(shifts))) * spread + shifts
    return scores


def t_of(differences: Floats) -> float:
    """Return the t statistic by its definition."""
    return float(differences.mean() / (differences.std(ddof=1) / math.sqrt(len(differences))))


def naive_p(scores: Floats, pairs: list[tuple[int, int]], replicates: int, seed: int) -> list[float]:
    """Return the step-down adjusted p of every pair by Westfall and Young's definition, in plain loops."""
    differences = {pair: scores[:, pair[0]] - scores[:, pair[1]] for pair in pairs}
    observed = {pair: abs(t_of(d)) for pair, d in differences.items()}
    order = sorted(pairs, key=lambda pair: -observed[pair])
    reached = dict.fromkeys(pairs, 0)
    for signs in np.concatenate(list(random_signs(len(scores), replicates, seed))):
        drawn = {pair: abs(t_of(signs * (d - d.mean()))) for pair, d in differences.items()}
        for place, pair in enumerate(order):
            reached[pair] += max(drawn[later] for later in order[place:]) >= observed[pair] - 1e-9
    p, largest = {}, 0.0
    for pair in order:
        largest = max(largest, (1 + reached[pair]) / (1 + replicates))
        p[pair] = largest
    return [p[pair] for pair in pairs]


class TestDefinition:
    @pytest.mark.parametrize("seed", range(3))
    def test_p_equals_a_direct_computation(self, seed: int) -> None:
        scores = made([0.0, 0.02, 0.1, 0.3], seed=seed)
        result = max_t(scores, replicates=B, seed=seed)
        pairs = list(itertools.combinations(range(4), 2))
        assert result.pair_p is not None
        assert result.pair_p.tolist() == naive_p(scores, pairs, B, seed)

    def test_p_of_selected_pairs_is_corrected_for_those_pairs_only(self) -> None:
        scores, pairs = made([0.0, 0.05, 0.1, 0.1]), [(0, 1), (0, 2), (0, 3)]
        result = max_t(scores, pairs=pairs, replicates=B)
        assert result.pair_p is not None
        assert result.pair_p.tolist() == naive_p(scores, pairs, B, 0)

    def test_t_and_error_equal_the_t_test(self) -> None:
        scores = made([0.0, 0.02, 0.1])
        result = max_t(scores, replicates=50)
        for place, (a, b) in enumerate(((0, 1), (0, 2), (1, 2))):
            expected = stats.ttest_rel(scores[:, a], scores[:, b])
            assert result.t[place] == pytest.approx(expected.statistic)
            assert result.error[place] == pytest.approx(stats.sem(scores[:, a] - scores[:, b]))
            assert result.difference[place] == pytest.approx(scores[:, a].mean() - scores[:, b].mean())

    def test_intervals_are_differences_plus_and_minus_critical_errors(self) -> None:
        result = max_t(made([0.4, 0.0, 0.1]), replicates=B)
        assert result.differs.all()
        assert (result.difference > 0).tolist() == [True, True, False]
        low, high = result.intervals
        assert low == pytest.approx(result.difference - result.critical * result.error)
        assert high == pytest.approx(result.difference + result.critical * result.error)

    def test_critical_value_of_one_pair_is_near_the_t_quantile(self) -> None:
        result = max_t(np.random.default_rng(3).normal(size=(40, 2)), replicates=20_000)
        assert result.critical == pytest.approx(stats.t.ppf(0.975, 39), abs=0.05)

    def test_statistic_of_a_replicate_is_t_of_the_flipped_differences(self) -> None:
        scores = made([0.0, 0.1, 0.2], topics=8)
        flips = SignFlips(scores, 5, 1)
        signs = np.concatenate(list(random_signs(8, 5, 1)))
        [largest] = flips.largest(flips.weights)
        centred = scores - scores.mean(axis=0)
        for b in range(5):
            t = np.array([[0.0 if i == j else t_of(signs[b] * (centred[:, j] - centred[:, i]))
                           for j in range(3)] for i in range(3)])  # fmt: skip
            assert flips.to_t(largest[:, b]) == pytest.approx(t.max(axis=1).clip(0))


class TestBestSet:
    def test_single_one_sided_test_by_hand(self) -> None:
        # Two systems: the worse one is excluded exactly if the one-sided p of the flips is at most alpha.
        for seed in range(30):
            scores = made([0.0, 0.05], topics=12, seed=seed)
            d = scores[:, 1] - scores[:, 0]
            signs = np.concatenate(list(random_signs(12, B, 0)))
            drawn = [t_of(s * (d - d.mean())) for s in signs]
            p = (1 + sum(t >= abs(t_of(d)) - 1e-9 for t in drawn)) / (1 + B)
            if d.mean() < 0:
                p = (1 + sum(-t >= abs(t_of(d)) - 1e-9 for t in drawn)) / (1 + B)
            result = max_t(scores, replicates=B)
            worse = 0 if d.mean() > 0 else 1
            assert result.in_best_set[1 - worse]
            assert result.in_best_set[worse] == (p > 0.05 and not result.differs[0])

    def test_clear_winner_is_alone(self) -> None:
        assert max_t(made([0, 0.1, 1.0, 0.2]), replicates=B).in_best_set.tolist() == [
            False,
            False,
            True,
            False,
        ]

    def test_true_best_is_rarely_excluded(self) -> None:
        rng, excluded = np.random.default_rng(5), 0
        for _ in range(300):
            scores = rng.normal(size=(20, 6)) * [1, 1, 1, 1, 1, 4]
            excluded += not max_t(scores, replicates=B, with_p=False).in_best_set[5]
        assert excluded <= 300 * 0.05 + 2 * math.sqrt(300 * 0.05 * 0.95)


class TestErrorRate:
    """The family-wise error rate at 0.05; the allowance is two standard errors."""

    @pytest.mark.parametrize("case", ["equal", "unequal", "partial", "skewed"])
    def test_family_wise_error_is_at_most_alpha(self, case: str) -> None:
        rng, wrong, trials = np.random.default_rng(8), 0, 400
        for _ in range(trials):
            noise = rng.exponential(size=(25, 8)) - 1 if case == "skewed" else rng.normal(size=(25, 8))
            noise[:, :2] *= 5 if case in ("unequal", "partial") else 1
            shifts = [0.0] * 4 + [5.0, 10.0, 15.0, 20.0] if case == "partial" else [0.0] * 8
            result = max_t(noise + shifts, replicates=B, with_p=False)
            is_null = np.array(shifts)[result.first] == np.array(shifts)[result.second]
            wrong += bool((result.differs & is_null).any())
        assert wrong / trials <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / trials)

    def test_many_pairs_can_differ_significantly(self) -> None:
        scores = made(list(np.linspace(0, 3, 30)), topics=50)  # 435 pairs
        result = max_t(scores, replicates=999)
        assert result.pair_p is not None
        assert result.pair_p.min() == 1 / 1000
        assert result.percent is not None
        assert result.percent > 90


matrices = st.integers(0, 10_000).flatmap(
    lambda seed: st.builds(
        lambda topics, systems, size, decimals: np.round(
            made((np.random.default_rng(seed).random(systems) * size).tolist(), topics, seed), decimals
        ),
        st.integers(2, 12),
        st.integers(2, 7),
        st.sampled_from([0.0, 0.1, 0.3, 1.0]),
        st.sampled_from([0, 1, 3, 12]),
    )
)


class TestLaws:
    @settings(max_examples=150, deadline=None)
    @given(matrices, st.sampled_from([0.01, 0.05, 0.3]))
    def test_interval_excludes_zero_exactly_if_the_first_step_rejects(
        self, scores: Floats, alpha: float
    ) -> None:
        result = max_t(scores, replicates=B, alpha=alpha)
        assert result.pair_p is not None
        assert ((result.pair_p <= alpha) == result.differs).all()
        low, high = result.intervals
        assert (((low > 0) | (high < 0)) == (np.abs(result.t) > result.critical)).all()
        assert (result.only_later_step == result.differs & (low <= 0) & (high >= 0)).all()
        assert ((low <= result.difference) & (result.difference <= high)).all()

    @settings(max_examples=50, deadline=None)
    @given(matrices, st.randoms(use_true_random=False))
    def test_results_do_not_depend_on_the_order_of_systems(self, scores: Floats, random: object) -> None:
        systems = scores.shape[1]
        order = np.random.default_rng(systems).permutation(systems)
        first, second = max_t(scores, replicates=B), max_t(scores[:, order], replicates=B)
        place = np.argsort(order)
        expected = _by_pair(first, np.arange(systems))
        assert {pair: expected[pair] for pair in _by_pair(second, order)} == _by_pair(second, order)
        assert (first.in_best_set == second.in_best_set[place]).all()

    @pytest.mark.parametrize(("block", "at_once"), [(1, 1), (7, 50), (199, 1 << 20)])
    def test_results_do_not_depend_on_batches(
        self, monkeypatch: pytest.MonkeyPatch, block: int, at_once: int
    ) -> None:
        scores = made([0.0, 0.03, 0.1, 0.1, 0.4])
        expected = max_t(scores, replicates=B)
        monkeypatch.setattr(sign_flips, "BLOCK", block)
        monkeypatch.setattr(max_t_module, "AT_ONCE", at_once)
        result = max_t(scores, replicates=B)
        assert result.critical == expected.critical
        for name in ("pair_p", "differs", "in_best_set"):
            assert getattr(result, name).tobytes() == getattr(expected, name).tobytes()

    @pytest.mark.parametrize(("systems", "replicates"), [(2, 1), (3, 7), (5, 8), (9, 300)])
    def test_extension_gives_the_numbers_of_numpy(
        self, monkeypatch: pytest.MonkeyPatch, systems: int, replicates: int
    ) -> None:
        flips = SignFlips(made([0.0] * systems), replicates, 0)
        fast = np.concatenate(list(flips.largest(flips.weights)), axis=1)
        monkeypatch.setattr(sign_flips, "extension", None)
        assert (np.concatenate(list(flips.largest(flips.weights)), axis=1) == fast).all()

    def test_extension_refuses_other_shapes(self) -> None:
        if sign_flips.extension is not None:
            for sums, weights, systems in ((16, 8, 1), (16, 8, 0), (17, 32, 2)):
                with pytest.raises(ValueError, match="expected sums of `systems` rows"):
                    sign_flips.extension.largest(bytes(sums), bytes(weights + (systems == 1)), systems)

    @settings(max_examples=50, deadline=None)
    @given(matrices)
    def test_positive_affine_transforms_change_nothing(self, scores: Floats) -> None:
        result, other = max_t(scores, replicates=B), max_t(4.0 * scores, replicates=B)
        assert (result.differs == other.differs).all()
        assert (result.in_best_set == other.in_best_set).all()

    def test_scaling_by_a_power_of_two_changes_no_bit(self) -> None:
        scores = made([0.0, 0.03, 0.1])
        result, other = max_t(scores, replicates=B), max_t(scores * 2.0**-30, replicates=B)
        assert other.critical == result.critical
        assert other.t.tobytes() == result.t.tobytes()
        assert other.error.tolist() == (result.error * 2.0**-30).tolist()

    def test_seed_and_replicates_change_p(self) -> None:
        scores = made([0.0, 0.02, 0.05])
        p = {
            tuple(np.asarray(max_t(scores, replicates=replicates, seed=seed).pair_p).tolist())
            for replicates, seed in ((199, 0), (199, 1), (399, 0))
        }
        assert len(p) == 3


def _by_pair(result: MaxT, names: Floats) -> dict[tuple[int, int], tuple[object, ...]]:
    assert result.pair_p is not None
    columns = zip(result.first, result.second, result.pair_p, result.differs, strict=True)
    return {
        (min(names[a], names[b]), max(names[a], names[b])): (p, result.critical, bool(differs))
        for a, b, p, differs in columns
    }


class TestFewTopics:
    """With n topics, no p of sign flips is below 2**(1 - n)."""

    @pytest.mark.parametrize("topics", [3, 4, 5])
    def test_nothing_is_significant_below_6_topics(self, topics: int) -> None:
        result = max_t(made([0.0, 1.0, 2.0, 30.0], topics=topics), replicates=999)
        assert result.pair_p is not None
        assert result.pair_p.min() == 2.0 ** (1 - topics)
        assert not result.differs.any()
        assert result.in_best_set.all()
        assert np.isinf(np.concatenate(result.intervals)).all()

    def test_clear_differences_are_significant_from_6_topics(self) -> None:
        scores = made([0.0, 10.0], topics=6)
        result, strict = max_t(scores, replicates=999), max_t(scores, replicates=999, alpha=0.03)
        assert result.differs.all()
        assert np.isfinite(np.concatenate(result.intervals)).all()
        assert not strict.differs.any()
        assert strict.pair_p is not None
        assert strict.pair_p.tolist() == [0.03125]


class TestDegenerate:
    @pytest.mark.filterwarnings("error")
    def test_undefined_results_have_a_reason(self) -> None:
        assert max_t(np.ones((5, 1))).undefined == "there are fewer than two systems"
        assert max_t(np.ones((1, 3))).undefined == "there is only one topic"
        assert max_t(np.zeros((0, 3))).undefined == "there are no scores"
        nan = max_t(np.array([[1, np.nan], [1, 2]]))
        assert nan.undefined == "a score is undefined or infinite"
        assert not nan.differs.any()
        assert nan.in_best_set.all()

    @pytest.mark.filterwarnings("error")
    def test_identical_systems_do_not_differ(self) -> None:
        scores = np.repeat(np.random.default_rng(1).random((10, 1)), 3, axis=1)
        result = max_t(scores, replicates=B)
        assert result.pair_p is not None
        assert result.pair_p.tolist() == [1.0] * 3
        assert result.t.tolist() == [0.0] * 3
        assert result.in_best_set.all()
        assert [bound.tolist() for bound in result.intervals] == [[0.0] * 3] * 2

    @pytest.mark.filterwarnings("error")
    def test_constant_difference_is_infinitely_significant(self) -> None:
        scores = np.random.default_rng(1).random((20, 1)) + np.array([0.0, 0.1])
        result = max_t(scores, replicates=B)
        assert result.pair_p is not None
        assert (result.t[0], result.pair_p[0]) == (-math.inf, 1 / (1 + B))
        assert result.in_best_set.tolist() == [False, True]
        assert [bound[0] for bound in result.intervals] == pytest.approx([-0.1, -0.1])

    def test_too_few_replicates_for_alpha_give_no_significant_pair(self) -> None:
        scores = np.random.default_rng(1).random((20, 1)) + np.array([0.0, 0.1, 1.0])
        result = max_t(scores, replicates=10)
        assert not result.differs.any()
        low, high = result.intervals
        assert (low == -math.inf).all()
        assert (high == math.inf).all()

    def test_pairs_of_unknown_systems_are_refused(self) -> None:
        for pair in ((0, 3), (-1, 0), (1, 1)):
            with pytest.raises(ValueError, match="expected pairs of two different systems from 0 to 2"):
                max_t(np.ones((4, 3)), pairs=[pair])

    def test_weak_scale_has_a_warning(self) -> None:
        assert max_t(made([0, 1]), scale="ordinal", replicates=9).warnings == (
            "the max-T test needs an interval scale, but the measure has an ordinal scale "
            "(disputed: Sakai 2020; Moffat 2022)",
        )

    def test_difference_above_the_tolerance_is_not_a_rounding_error(self) -> None:
        """The tolerance for scores up to 1 is 1e-12."""
        for difference, t in ((0.5e-12, 0.0), (1.5e-12, -math.inf)):
            assert max_t([[0.0, difference]] * 3, replicates=B).t.tolist() == [t]
