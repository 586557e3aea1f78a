"""The whole report of `discriminative_power` on four runs, with an independent bootstrap in exact numbers.

`COUNTS` is P@4 of runs a to d on five topics, times 4. AP@4 equals P@4, because each topic has four
relevant documents, and each run ranks its relevant documents first.
"""

from fractions import Fraction
from itertools import combinations

import numpy as np
from scipy.optimize import brentq
from scipy.stats import nct, t

from support.data.audit_subjects import SEED, audited, subject_of
from support.data.expected_reports import ExpectedTable, assert_report
from support.data.small_collections import qrels_of, ranked

COUNTS = {"a": (4, 3, 4, 2, 4), "b": (3, 3, 4, 1, 4), "c": (1, 2, 1, 1, 0), "d": (0, 1, 2, 0, 1)}
TOPICS = ("1", "2", "3", "4", "5")
ALPHA, REPLICATES = 0.1, 400
LEVELS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
RELEVANT, OTHER = ("r1", "r2", "r3", "r4"), ("n1", "n2", "n3", "n4")
QRELS = qrels_of({topic: dict.fromkeys(RELEVANT, 1) | dict.fromkeys(OTHER, 0) for topic in TOPICS})
RUNS = {
    run: {
        topic: ranked(*RELEVANT[:count], *OTHER[: 4 - count])
        for topic, count in zip(TOPICS, counts, strict=True)
    }
    for run, counts in COUNTS.items()
}
PAIRS = list(combinations(COUNTS, 2))


def draw_samples() -> list[list[int]]:
    """Draw bootstrap samples of topics in blocks of 250.

    The generator of a block is seeded with the seed of the audit and the number of the block.
    """
    samples: list[list[int]] = []
    for block, size in enumerate((250, 150)):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((SEED, block))))
        samples += rng.integers(5, size=(size, 5)).tolist()
    return samples


def squared_t(values: list[Fraction]) -> float | Fraction:
    """Return t^2 = n mean^2 / variance. If the variance is 0, return 0 if the mean is 0, else infinity."""
    mean = sum(values) / Fraction(5)
    variance = sum((value - mean) ** 2 for value in values) / 5
    return (5 * mean**2 / variance) if variance else float("inf") if mean else Fraction(0)


def achieved_level(first: str, second: str, samples: list[list[int]]) -> float:
    """Return the share of samples of centred differences whose |t| is at least the observed |t|."""
    z = [Fraction(x - y, 4) for x, y in zip(COUNTS[first], COUNTS[second], strict=True)]
    centred = [value - sum(z) / Fraction(5) for value in z]
    return sum(squared_t([centred[i] for i in draw]) >= squared_t(z) for draw in samples) / REPLICATES


def required_difference(samples: list[list[int]]) -> float:
    """Return the largest |mean| over the pairs, each in its sample with the 40th largest t^2.

    The number 40 is alpha times the number of samples, 0.1 * 400.
    """
    required = []
    for first, second in PAIRS:
        z = [Fraction(x - y, 4) for x, y in zip(COUNTS[first], COUNTS[second], strict=True)]
        drawn = [[z[i] - sum(z) / Fraction(5) for i in draw] for draw in samples]
        squares = [squared_t(values) for values in drawn]
        bound = sorted(squares, reverse=True)[39]
        means = [abs(sum(values)) / 5 for values in drawn]
        required += [mean for mean, square in zip(means, squares, strict=True) if square == bound]
    return float(max(required))


def detectable_difference(topics: int = 5, target: float = 0.8) -> float:
    """Return the true difference that a two-sided paired t-test detects with the target power."""
    scores = np.array(list(COUNTS.values())) / 4
    variance = np.mean([np.var(x - y, ddof=1) for x, y in combinations(scores, 2)])
    bound = t.ppf(1 - ALPHA / 2, topics - 1)

    def power(shift: float) -> float:
        return float(nct.sf(bound, topics - 1, shift) + nct.cdf(-bound, topics - 1, shift))

    shift = brentq(lambda shift: power(shift) - target, 0.1, 10, xtol=1e-12)
    return float(np.sqrt(variance / topics) * shift)


def expected_tables(levels: dict[tuple[str, str], float], required: float) -> dict[str, ExpectedTable]:
    """Return the tables of the report, from the achieved level of each pair and the required difference."""
    curve = sorted(PAIRS, key=lambda pair: -levels[pair])
    return {
        "measures": (
            "measure percent significant pairs smallest greatest detectable required",
            [
                (measure, 400 / 6, 4, 6, 0.5, 0.1, detectable_difference(), required)
                for measure in ("P@4", "AP@4")
            ],
        ),
        "levels": (
            "measure alpha percent",
            [
                (measure, level, 100 * sum(asl < level for asl in levels.values()) / 6)
                for measure in ("P@4", "AP@4")
                for level in LEVELS
            ],
        ),
        "agreement": (
            "first second both only_first only_second opposite difference low high",
            [("P@4", "AP@4", 4, 0, 0, 0, 0, 0, 0)],
        ),
        "designs": (
            "measure topics detectable",
            [
                (measure, size, detectable_difference(size))
                for measure in ("P@4", "AP@4")
                for size in (10, 20)
            ],
        ),
        "asl": (
            "measure rank first second asl",
            [
                (measure, rank, *pair, levels[pair])
                for measure in ("P@4", "AP@4")
                for rank, pair in enumerate(curve, 1)
            ],
        ),
    }


def test_report_equals_an_independent_bootstrap() -> None:
    samples = draw_samples()
    levels = {pair: achieved_level(*pair, samples) for pair in PAIRS}
    difference = {(x, y): abs(sum(COUNTS[x]) - sum(COUNTS[y])) / 20 for x, y in PAIRS}
    significant = [pair for pair in PAIRS if levels[pair] < ALPHA]
    # The counts sum to 17, 15, 5 and 4. The runs a and b differ from c and d, but not from each other.
    assert significant == [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")]
    assert min(difference[pair] for pair in significant) == 0.5  # runs b and c: (15 - 5) / 20
    assert difference["a", "b"] == 0.1
    required = required_difference(samples)
    few, many = (100 * sum(asl < alpha for asl in levels.values()) / 6 for alpha in (0.001, 0.2))
    report = audited(
        "discriminative_power",
        subject_of(QRELS, RUNS, "P@4 AP@4"),
        {"alpha": ALPHA, "replicates": REPLICATES, "sizes": [10, 20]},
    )
    assert_report(
        report,
        verdict=[
            f"{measure}: 4 of 6 pairs of runs (66.67%) differ significantly by the paired bootstrap test at "
            "alpha 0.1, uncorrected; the smallest significant difference is 0.5; the largest difference that "
            "is not significant is 0.1."
            for measure in ("P@4", "AP@4")
        ],
        numbers={
            **{f"power({measure})": 400 / 6 for measure in ("P@4", "AP@4")},
            **{f"smallest({measure})": 0.5 for measure in ("P@4", "AP@4")},
            **{f"required({measure})": required for measure in ("P@4", "AP@4")},
            "pairs": 6,
        },
        tables=expected_tables(levels, required),
        titles=[
            "66.7% of the pairs differ significantly by P@4 and AP@4 (paired bootstrap test, alpha 0.1, "
            "uncorrected)",
            f"By P@4, {few:.1f}% of the pairs differ significantly at alpha 0.001, and {many:.1f}% at 0.2 "
            "(paired bootstrap test, uncorrected)",
            f"20 topics detect a true difference of {detectable_difference(20):.3g} by P@4 (paired t-test, "
            "alpha 0.1, power 0.8)",
            "66.7% of the pairs have an ASL below 0.1 by P@4 and AP@4 (paired bootstrap test, alpha 0.1, "
            "uncorrected)",
        ],
    )
