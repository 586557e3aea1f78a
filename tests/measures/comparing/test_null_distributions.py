"""Null experiments: without differences a test rejects as often as it says; and nothing depends on processes.

Bounds on counts are binomial: a test that rejects at its rate stays within them but for one seed in 10,000,
and the seeds are fixed.
"""

import dataclasses
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from scipy import stats

from cupel_measures.comparing.all_pairs import AllPairs, anova, kruskal_wallis, randomised_hsd
from cupel_measures.comparing.compared_measures import ComparedMeasure
from cupel_measures.comparing.comparison import Choices, compare
from cupel_measures.comparing.corrections import benjamini_hochberg, holm
from cupel_measures.comparing.paired_tests import TESTS
from cupel_measures.comparing.resampling import (
    discriminative_power,
    intervals,
    randomisation,
    randomisations,
    rank_intervals,
)
from cupel_measures.model import Floats

ALPHA = 0.05


def alike(number: int, topics: int, systems: int, seed: int) -> Iterator[Floats]:
    """Scores of systems that do not differ, on topics that do."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        yield rng.normal(size=(topics, 1)) + rng.normal(size=(topics, systems))


def at_most(rejected: int, number: int, rate: float = ALPHA) -> bool:
    return bool(rejected <= stats.binom.isf(1e-4, number, rate))


def at_rate(rejected: int, number: int, rate: float = ALPHA) -> bool:
    return at_most(rejected, number, rate) and bool(rejected >= stats.binom.ppf(1e-4, number, rate))


class TestOnePair:
    @pytest.mark.parametrize("topics", [12, 25])
    def test_randomisation_rejects_at_its_rate(self, topics: int) -> None:
        """All signs are tried for 12 topics; 999 are drawn for 25, which makes 0.05 a p that can be."""
        x, y = np.random.default_rng(topics).exponential(size=(2, topics, 2000))
        p = [found.p for found in randomisations(x, y, flips=999)]
        assert at_rate(sum(p_value is not None and p_value <= ALPHA for p_value in p), 2000)

    @pytest.mark.parametrize(
        ("name", "number", "topics"), [("t", 2000, 20), ("wilcoxon", 700, 20), ("sign", 1000, 20)]
    )
    def test_the_others_reject_at_theirs(self, name: str, number: int, topics: int) -> None:
        """The discrete ones at the largest rate below alpha that their statistic can have."""
        p = [TESTS[name](x, y).p or 0.0 for x, y in (scores.T for scores in alike(number, topics, 2, seed=3))]
        attainable = {
            "t": ALPHA,
            "wilcoxon": _wilcoxon_rate(topics),
            "sign": 2 * stats.binom.cdf(5, topics, 0.5),  # 5 of 20 or fewer: 0.0414
        }
        assert attainable[name] <= ALPHA
        assert at_rate(sum(p_value <= ALPHA for p_value in p), number, attainable[name])

    def test_the_paired_bootstrap_rejects_about_at_its_rate(self) -> None:
        """It is exact in the limit only: 60 topics are near it."""
        number = 800
        found = [
            discriminative_power(scores, alpha=ALPHA, replicates=400, seed=seed)
            for seed, scores in enumerate(alike(number, 60, 2, seed=4))
        ]
        assert at_rate(sum(result.n_discriminated for result in found), number)


def _wilcoxon_rate(topics: int) -> float:
    """The chance of the signed ranks' tails that p <= alpha takes, counted over all sums of ranks."""
    ways = np.zeros(topics * (topics + 1) // 2 + 1)
    ways[0] = 1
    for rank in range(1, topics + 1):
        ways[rank:] += ways[:-rank].copy()
    tail = np.cumsum(ways) / 2**topics
    return float(2 * tail[2 * tail <= ALPHA].max())


class TestFamilies:
    """The chance of any false finding among all pairs."""

    @pytest.mark.parametrize(
        ("test", "number"),
        [
            (lambda scores, seed: randomised_hsd(scores, replicates=199, seed=seed), 800),
            (lambda scores, seed: anova(scores), 2000),
        ],
        ids=["randomised HSD", "two-way ANOVA"],
    )
    def test_of_blocked_tests_is_alpha(self, test: Callable[[Floats, int], AllPairs], number: int) -> None:
        found = [test(scores, seed) for seed, scores in enumerate(alike(number, 15, 5, seed=5))]
        assert at_rate(sum(bool(result.differs.any()) for result in found), number)

    @pytest.mark.parametrize(
        "test", [kruskal_wallis, lambda scores: anova(scores, design="one_way")], ids=["KW", "one-way ANOVA"]
    )
    def test_of_pooled_tests_is_alpha_where_topics_are_alike_and_less_where_not(
        self, test: Callable[[Floats], AllPairs]
    ) -> None:
        rng, number = np.random.default_rng(6), 1500
        same = [test(rng.normal(size=(30, 4))) for _ in range(number)]
        assert at_rate(sum(bool(result.differs.any()) for result in same), number)
        blocked = [test(scores) for scores in alike(number, 30, 4, seed=7)]
        rejected = sum(bool(result.differs.any()) for result in blocked)
        assert at_most(rejected, number)
        assert not at_rate(rejected, number)

    def test_of_holm_is_at_most_alpha(self) -> None:
        """For independent tests it is 1 - (1 - alpha / n)^n."""
        families = self._families(1500, 0)
        any_found = sum(bool((holm(p) <= ALPHA).any()) for p in families)
        assert at_rate(any_found, 1500, 1 - (1 - ALPHA / 8) ** 8)

    def test_of_holm_holds_beside_true_differences(self) -> None:
        families = self._families(1500, 5)
        assert at_most(sum(bool((holm(p)[5:] <= ALPHA).any()) for p in families), 1500)

    def test_false_discoveries_of_benjamini_hochberg_are_the_share_of_the_null(self) -> None:
        """For independent tests the expected share of false findings is alpha times that of true nulls."""
        shares = []
        for p in self._families(3000, 4):
            found = benjamini_hochberg(p) <= ALPHA
            shares.append(np.count_nonzero(found[4:]) / max(1, np.count_nonzero(found)))
        error = np.std(shares) / len(shares) ** 0.5
        assert abs(np.mean(shares) - ALPHA * 4 / 8) < 4 * error

    @staticmethod
    def _families(number: int, different: int) -> list[Floats]:
        """p of eight t-tests on 20 topics, by scipy; in the first ones there is something to find."""
        apart = np.random.default_rng(different + 8).normal(size=(number, 20, 8))
        apart[:, :, :different] += 0.7
        found: Floats = stats.ttest_1samp(apart, 0.0, axis=1).pvalue
        return list(found)


# --- processes, order, batch -------------------------------------------------------------------------------


SCORES = np.random.default_rng(12).random((30, 4))
DRAWN: dict[str, tuple[Callable[..., object], tuple[object, ...]]] = {
    "randomisation": (randomisation, (SCORES[:, 0], SCORES[:, 1])),
    "intervals": (intervals, (SCORES,)),
    "ranks": (rank_intervals, (SCORES,)),
    "power": (discriminative_power, (SCORES,)),
    "groups": (randomised_hsd, (SCORES,)),
    "report": (
        compare,
        ([*"abcd"], [*map(str, range(30))], {"M": SCORES}, [ComparedMeasure(text="M", scale="interval")]),
    ),
}


def bits(found: object) -> object:
    """A result as what is equal only to the last bit."""
    if dataclasses.is_dataclass(found):
        return tuple(bits(getattr(found, field.name)) for field in dataclasses.fields(found))
    if isinstance(found, np.ndarray):
        return found.tobytes()
    return tuple(map(bits, found)) if isinstance(found, tuple | list) else found


def test_what_is_drawn_does_not_depend_on_processes_nor_on_what_is_drawn_before() -> None:
    expected = {name: bits(work(*given)) for name, (work, given) in DRAWN.items()}
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        there = {name: pool.submit(work, *given) for name, (work, given) in reversed(DRAWN.items())}
        assert {name: bits(future.result()) for name, future in there.items()} == expected


def test_what_is_drawn_of_a_system_does_not_depend_on_which_others_are_in_the_batch() -> None:
    scores = np.random.default_rng(9).random((30, 700))  # more columns than are computed at once
    together = intervals(scores, replicates=300)
    signs = randomisations(scores, scores[:, ::-1], flips=300)
    for place in (0, 1, 511, 512, 699):
        assert intervals(scores[:, [place]], replicates=300) == (together[place],)
        assert randomisation(scores[:, place], scores[:, 699 - place], flips=300) == signs[place]
    order = np.random.default_rng(10).permutation(700)
    assert intervals(scores[:, order], replicates=300) == tuple(together[place] for place in order)
    ranks = rank_intervals(scores[:, :6], replicates=300)
    assert rank_intervals(scores[:, 5::-1], replicates=300) == ranks[::-1]
    power = discriminative_power(scores[:, :4], replicates=300)
    again = discriminative_power(scores[:, 3::-1], replicates=300)
    assert sorted(power.asl.tolist()) == sorted(again.asl.tolist())


def test_no_choice_but_the_seed_changes_what_is_drawn() -> None:
    scores = np.random.default_rng(11).random((20, 3))
    reports = [
        compare(
            [*"abc"],
            [str(topic) for topic in range(20)],
            {"M": scores},
            [ComparedMeasure(text="M", scale="interval")],
            choices,
        )
        for choices in (Choices(), Choices(correction="none"), Choices(alpha=0.2), Choices(all_pairs=True))
    ]
    for report in reports:
        for pair, expected in zip(
            report.measures[0].differences[:2], reports[0].measures[0].differences, strict=True
        ):
            assert (pair.test, pair.difference) == (expected.test, expected.difference)
