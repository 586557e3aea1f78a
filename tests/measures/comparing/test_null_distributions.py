"""Tests of error rates under the null hypothesis, and of independence from processes and batches.

Counts of rejections are compared with binomial bounds, which a correct test exceeds with probability 1/10,000
on each side. The seeds are fixed.
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
from cupel_measures.comparing.comparison import compare
from cupel_measures.comparing.corrections import benjamini_hochberg, holm
from cupel_measures.comparing.differences.comparison_choices import Choices
from cupel_measures.comparing.paired_tests import TESTS
from cupel_measures.comparing.resampling import (
    discriminative_power,
    intervals,
    randomisation,
    randomisations,
)
from cupel_measures.comparing.simultaneous.max_t import max_t
from cupel_measures.model import Floats

ALPHA = 0.05


def equal_systems(number: int, topics: int, systems: int, seed: int) -> Iterator[Floats]:
    """Yield random scores of equal systems on topics of different difficulty."""
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
        """Enumerate all signs for 12 topics; draw 999 for 25, so that p can be exactly 0.05."""
        x, y = np.random.default_rng(topics).exponential(size=(2, topics, 2000))
        p = [result.p for result in randomisations(x, y, flips=999)]
        assert at_rate(sum(value is not None and value <= ALPHA for value in p), 2000)

    @pytest.mark.parametrize(
        ("name", "number", "topics"), [("t", 2000, 20), ("wilcoxon", 700, 20), ("sign", 1000, 20)]
    )
    def test_other_tests_reject_at_their_rate(self, name: str, number: int, topics: int) -> None:
        """Discrete tests reject at the largest attainable rate below alpha."""
        p = [TESTS[name](x, y).p or 0.0 for x, y in (s.T for s in equal_systems(number, topics, 2, seed=3))]
        attainable = {
            "t": ALPHA,
            "wilcoxon": _wilcoxon_rate(topics),
            "sign": 2 * stats.binom.cdf(5, topics, 0.5),  # P(at most 5 of 20, or at least 15) = 0.0414
        }
        assert attainable[name] <= ALPHA
        assert at_rate(sum(value <= ALPHA for value in p), number, attainable[name])

    def test_paired_bootstrap_rejects_about_at_its_rate(self) -> None:
        """The test is exact only asymptotically; 60 topics are enough for the bounds."""
        number = 800
        results = [
            discriminative_power(scores, alpha=ALPHA, replicates=400, seed=seed)
            for seed, scores in enumerate(equal_systems(number, 60, 2, seed=4))
        ]
        assert at_rate(sum(result.n_discriminated for result in results), number)


def _wilcoxon_rate(topics: int) -> float:
    """Return P(p <= alpha) of the signed-rank test, by counting the assignments of signs per rank sum."""
    ways = np.zeros(topics * (topics + 1) // 2 + 1)
    ways[0] = 1
    for rank in range(1, topics + 1):
        ways[rank:] += ways[:-rank].copy()
    tail = np.cumsum(ways) / 2**topics
    return float(2 * tail[2 * tail <= ALPHA].max())


class TestFamilies:
    """The family-wise error rate: the probability of at least one false finding among all pairs."""

    @pytest.mark.parametrize(
        ("test", "number"),
        [
            (lambda scores, seed: randomised_hsd(scores, replicates=199, seed=seed), 800),
            (lambda scores, seed: anova(scores), 2000),
        ],
        ids=["randomised HSD", "two-way ANOVA"],
    )
    def test_rate_of_blocked_tests_is_alpha(
        self, test: Callable[[Floats, int], AllPairs], number: int
    ) -> None:
        results = [test(scores, seed) for seed, scores in enumerate(equal_systems(number, 15, 5, seed=5))]
        assert at_rate(sum(bool(result.differs.any()) for result in results), number)

    @pytest.mark.parametrize(
        "test", [kruskal_wallis, lambda scores: anova(scores, design="one_way")], ids=["KW", "one-way ANOVA"]
    )
    def test_rate_of_pooled_tests_is_alpha_on_equal_topics_and_lower_on_others(
        self, test: Callable[[Floats], AllPairs]
    ) -> None:
        rng, number = np.random.default_rng(6), 1500
        same = [test(rng.normal(size=(30, 4))) for _ in range(number)]
        assert at_rate(sum(bool(result.differs.any()) for result in same), number)
        blocked = [test(scores) for scores in equal_systems(number, 30, 4, seed=7)]
        rejected = sum(bool(result.differs.any()) for result in blocked)
        assert at_most(rejected, number)
        assert not at_rate(rejected, number)

    def test_rate_of_holm_is_at_most_alpha(self) -> None:
        """For independent tests the rate is 1 - (1 - alpha / n)^n."""
        families = self._families(1500, 0)
        any_found = sum(bool((holm(p) <= ALPHA).any()) for p in families)
        assert at_rate(any_found, 1500, 1 - (1 - ALPHA / 8) ** 8)

    def test_rate_of_holm_is_at_most_alpha_with_true_differences(self) -> None:
        families = self._families(1500, 5)
        assert at_most(sum(bool((holm(p)[5:] <= ALPHA).any()) for p in families), 1500)

    def test_false_discovery_rate_of_benjamini_hochberg(self) -> None:
        """For independent tests the rate is alpha times the share of true null hypotheses."""
        shares = []
        for p in self._families(3000, 4):
            rejected = benjamini_hochberg(p) <= ALPHA
            shares.append(np.count_nonzero(rejected[4:]) / max(1, np.count_nonzero(rejected)))
        error = np.std(shares) / len(shares) ** 0.5
        assert abs(np.mean(shares) - ALPHA * 4 / 8) < 4 * error

    @staticmethod
    def _families(number: int, different: int) -> list[Floats]:
        """Return p of eight t-tests by scipy on 20 topics; the first `different` have true differences."""
        differences = np.random.default_rng(different + 8).normal(size=(number, 20, 8))
        differences[:, :, :different] += 0.7
        p: Floats = stats.ttest_1samp(differences, 0.0, axis=1).pvalue
        return list(p)


# --- processes, order, batch -------------------------------------------------------------------------------


SCORES = np.random.default_rng(12).random((30, 4))
DRAWN: dict[str, tuple[Callable[..., object], tuple[object, ...]]] = {
    "randomisation": (randomisation, (SCORES[:, 0], SCORES[:, 1])),
    "intervals": (intervals, (SCORES,)),
    "max-t": (max_t, (SCORES,)),
    "power": (discriminative_power, (SCORES,)),
    "groups": (randomised_hsd, (SCORES,)),
    "report": (
        compare,
        ([*"abcd"], [*map(str, range(30))], {"M": SCORES}, [ComparedMeasure(text="M", scale="interval")]),
    ),
}


def bits(result: object) -> object:
    """Return a value that is equal only for bit-identical results."""
    if dataclasses.is_dataclass(result):
        return tuple(bits(getattr(result, field.name)) for field in dataclasses.fields(result))
    if isinstance(result, np.ndarray):
        return result.tobytes()
    return tuple(map(bits, result)) if isinstance(result, tuple | list) else result


def test_random_results_do_not_depend_on_processes_or_earlier_draws() -> None:
    expected = {name: bits(compute(*arguments)) for name, (compute, arguments) in DRAWN.items()}
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        futures = {
            name: pool.submit(compute, *arguments) for name, (compute, arguments) in reversed(DRAWN.items())
        }
        assert {name: bits(future.result()) for name, future in futures.items()} == expected


def test_random_results_do_not_depend_on_other_systems_in_the_batch() -> None:
    scores = np.random.default_rng(9).random((30, 700))  # more columns than are computed at once
    together = intervals(scores, replicates=300)
    signs = randomisations(scores, scores[:, ::-1], flips=300)
    for place in (0, 1, 511, 512, 699):
        assert intervals(scores[:, [place]], replicates=300) == (together[place],)
        assert randomisation(scores[:, place], scores[:, 699 - place], flips=300) == signs[place]
    order = np.random.default_rng(10).permutation(700)
    assert intervals(scores[:, order], replicates=300) == tuple(together[place] for place in order)
    power = discriminative_power(scores[:, :4], replicates=300)
    again = discriminative_power(scores[:, 3::-1], replicates=300)
    assert sorted(power.asl.tolist()) == sorted(again.asl.tolist())


def test_options_other_than_the_seed_do_not_change_random_results() -> None:
    scores = np.random.default_rng(11).random((20, 3))
    reports = [
        compare(
            [*"abc"],
            [str(topic) for topic in range(20)],
            {"M": scores},
            [ComparedMeasure(text="M", scale="interval")],
            choices,
        )
        for choices in (Choices(), Choices(correction="none"), Choices(alpha=0.2))
    ]
    for report in reports:
        for pair, expected in zip(
            report.measures[0].differences[:2], reports[0].measures[0].differences, strict=True
        ):
            assert (pair.test, pair.difference.value) == (expected.test, expected.difference.value)
