"""Error rates of Friedman's test and of the rank tests of all pairs, with topics as blocks."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from calibration.promises import ALPHA, ERROR, Rate, Row
from calibration.simultaneous_rates import FALSE_FINDING, Design
from cupel_measures.comparing.simultaneous.blocked_ranks import (
    ALIGNED_RANKS,
    CONOVER,
    NEMENYI,
    BlockedRanks,
    rank_test,
)
from cupel_measures.model import Floats

FRIEDMAN, ALIGNED_FRIEDMAN = "friedman", "friedman, aligned ranks"
FRIEDMAN_OF = {NEMENYI: FRIEDMAN, ALIGNED_RANKS: ALIGNED_FRIEDMAN}
"""The test of all systems that each test of pairs starts with."""
TESTS = (FRIEDMAN, ALIGNED_FRIEDMAN, NEMENYI, ALIGNED_RANKS, CONOVER)
EQUAL = "equal"
SPREADS_DIFFER = "the spreads differ"
RANKS_VARY = "the ranks of some systems vary less than those of others"


def rank_designs(trials: int) -> list[Design]:
    """Return the designs of the table: 2/5 of `trials` for 10 systems, and 1/5 for 30, which are slower."""
    return [
        Design(noise=noise, means=means, systems=systems, topics=topics, trials=share)
        for systems, share in ((10, 2 * trials // 5), (30, trials // 5))
        for noise in ("normal", "exponential", "coarse", "unequal")
        for means in (EQUAL, "partial", "partial, both sides")
        for topics in (10, 25, 50)
    ]


def rank_cases(designs: list[Design]) -> list[tuple[str, Design]]:
    """Return the test and the design of every row. Friedman's null hypothesis is that all means are equal."""
    return [
        (test, design)
        for test in TESTS
        for design in designs
        if design.means == EQUAL or test not in FRIEDMAN_OF.values()
    ]


def rank_rows(designs: list[Design], seed: int) -> list[Row]:
    """Return all rows of the table; the tests share the scores of a design."""
    counts = {design: false_findings(design, seed) for design in designs}
    return [rank_row(test, design, counts[design][test]) for test, design in rank_cases(designs)]


def rank_row(test: str, design: Design, events: int) -> Row:
    rate = Rate(events=events, trials=design.trials, promise=ERROR)
    return Row(cells=(test, *design.cells), rates={FALSE_FINDING: rate}, outside=violated(test, design))


def false_findings(design: Design, seed: int) -> Counter[str]:
    """Count the trials in which each test has a false finding."""
    counts: Counter[str] = Counter()
    for scores in design.scores(seed):
        counts.update(rank_events(scores, design.true_means))
    return counts


def rank_events(scores: Floats, means: Floats) -> Iterator[str]:
    """Yield the tests that have a false finding. means: the true means of the systems."""
    for name in (NEMENYI, ALIGNED_RANKS, CONOVER):
        test = rank_test(name, scores, alpha=ALPHA)
        if is_false(test, means):
            yield name
        if name in FRIEDMAN_OF and test.p is not None and test.p <= ALPHA and not np.ptp(means):
            yield FRIEDMAN_OF[name]


def is_false(test: BlockedRanks, means: Floats) -> bool:
    """Return whether equal systems differ significantly, or systems in the wrong direction."""
    true = means[test.first] - means[test.second]
    return bool((test.differs & (np.sign(test.difference) * true <= 0)).any())


def violated(test: str, design: Design) -> str:
    """Return the assumption of the test that the design violates, or an empty text."""
    if design.noise == "unequal":
        return SPREADS_DIFFER
    if test == CONOVER and design.means != EQUAL:
        return RANKS_VARY
    return ""
