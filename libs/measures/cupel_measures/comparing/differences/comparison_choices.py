"""The options of a comparison of systems."""

from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from cupel_measures.comparing.corrections import CORRECTIONS
from cupel_measures.comparing.paired_tests import TESTS
from cupel_measures.comparing.resampling import FLIPS, REPLICATES, check_confidence
from cupel_measures.comparing.simultaneous.blocked_ranks import ALIGNED_RANKS, CONOVER, NEMENYI, RANK_TESTS

Pair = tuple[int, int]
NO_CORRECTION = "none"
MAX_T, HSD = "max-t", "hsd"
SIMULTANEOUS = (MAX_T, HSD, *RANK_TESTS)
"""Tests of all pairs by one measure at once, which correct p themselves."""
TESTS_OF_MEANS = ("randomisation", "t", MAX_T, HSD)
"""Tests of mean differences; the others compare signs or ranks."""
_NAMES = {
    MAX_T: "the max-T test",
    HSD: "randomised Tukey HSD",
    NEMENYI: "Nemenyi's test",
    CONOVER: "Conover's test",
    ALIGNED_RANKS: "Nemenyi's test of aligned ranks",
    "t": "the t-test",
    "wilcoxon": "Wilcoxon's test",
}
_COMPARED = {"wilcoxon": "signed ranks", "sign": "signs", ALIGNED_RANKS: "mean aligned ranks"}
INTERVALS = ("t", "bca")
"""Kinds of intervals; the first is the default."""
IntervalKind = Literal["t", "bca"]


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Options of a comparison.

    Raises ValueError for an unknown name or a number out of range.

    test: a paired test in TESTS, or one of SIMULTANEOUS. None selects max-t if all pairs are compared, else
    the randomisation test. correction: a name in CORRECTIONS, or "none". It corrects paired tests over all
    pairs and measures; for them, None selects Holm's method. For a simultaneous test, which itself corrects p
    over the pairs of each measure, it must be None. all_pairs: compare all pairs; if False, compare the first
    system with every other system. alpha: largest corrected p that is significant. confidence: confidence
    level of the intervals; None selects 1 - alpha, so that intervals and verdicts agree. interval: "t" for
    Student's t, "bca" for the BCa bootstrap. permutations: number of replicates of every resampling test;
    None selects 100,000 for the randomisation test and 10,000 for the simultaneous tests.
    """

    test: str | None = None
    correction: str | None = None
    alpha: float = 0.05
    confidence: float | None = None
    seed: int = 0
    all_pairs: bool = False
    interval: IntervalKind = "t"
    permutations: int | None = None

    def __post_init__(self) -> None:
        known = [*TESTS, *SIMULTANEOUS]
        if self.test is not None and self.test not in known:
            raise ValueError(f"unknown test {self.test!r}; choose one of {', '.join(known)}")
        corrections = [*CORRECTIONS, NO_CORRECTION]
        if self.correction is not None and self.correction not in corrections:
            raise ValueError(
                f"unknown correction {self.correction!r}; choose one of {', '.join(corrections)}"
            )
        if self.correction is not None and self.is_simultaneous:
            raise ValueError(
                f"the {self.test_name} test corrects p itself; omit the correction, even 'none', or choose "
                "a paired test"
            )
        if self.interval not in INTERVALS:
            raise ValueError(f"unknown interval {self.interval!r}; choose one of {', '.join(INTERVALS)}")
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha must be between 0 and 1, got {self.alpha}")
        if self.permutations is not None and self.permutations < 1:
            raise ValueError(f"permutations must be at least 1, got {self.permutations}")
        if self.confidence is not None:
            check_confidence(self.confidence)

    @property
    def test_name(self) -> str:
        """Name of the test, including the default."""
        return self.test or (MAX_T if self.all_pairs else next(iter(TESTS)))

    @property
    def is_simultaneous(self) -> bool:
        """Return whether the test itself corrects p over the pairs of each measure."""
        return self.test_name in SIMULTANEOUS

    @property
    def is_rank_test(self) -> bool:
        """Return whether the test compares mean ranks, with topics as blocks."""
        return self.test_name in RANK_TESTS

    @property
    def tests_means(self) -> bool:
        """Return whether the test is one of mean differences."""
        return self.test_name in TESTS_OF_MEANS

    @property
    def test_in_words(self) -> str:
        """Name of the test in a sentence, such as "the max-T test"."""
        return _NAMES.get(self.test_name, f"the {self.test_name} test")

    @property
    def compared_values(self) -> str:
        """Values that the test compares, such as "mean ranks"."""
        return "means" if self.tests_means else _COMPARED.get(self.test_name, "mean ranks")

    @property
    def correction_name(self) -> str:
        """Name of the correction, or of the simultaneous test.

        A simultaneous test needs no other correction.
        """
        return self.test_name if self.is_simultaneous else self.correction or next(iter(CORRECTIONS))

    @property
    def level(self) -> float:
        """Confidence level of the intervals."""
        return 1 - self.alpha if self.confidence is None else self.confidence

    @property
    def replicates(self) -> int:
        """Number of replicates of the test."""
        default = FLIPS if self.test_name == "randomisation" else REPLICATES
        return self.permutations or default

    @property
    def group_replicates(self) -> int:
        """Number of replicates of the test that determines the groups and the best set."""
        return self.permutations or REPLICATES

    def pairs(self, systems: int) -> tuple[Pair, ...]:
        """Return the pairs of systems that are compared."""
        pairs = combinations(range(systems), 2)
        return tuple(pair for pair in pairs if self.all_pairs or pair[0] == 0)
