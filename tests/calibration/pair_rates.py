"""Rejection rates of tests of one pair, and coverage of intervals of one mean difference.

The trials are columns of one matrix, float64[topics, trials], because most methods are vectorised.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from calibration.promises import ALPHA, COVERAGE, ERROR, Rate, Row
from calibration.score_models import Rng, coarse, make_rng, one_lognormal, sparse, two_exponential, unequal
from cupel_measures.comparing.closeness.margins import (
    ACCEPTABLE,
    MarginTest,
    MarginVerdict,
    compare_with_margin,
)
from cupel_measures.comparing.paired_tests import TESTS, effect_size
from cupel_measures.comparing.resampling import Interval, discriminative_power, intervals, randomisations
from cupel_measures.comparing.t_intervals import t_intervals
from cupel_measures.model import Floats

BATCH = 250
"""Number of trials that share random signs or bootstrap samples."""
FLIPS, BOOTSTRAP_REPLICATES = 999, 999
TOPICS = (10, 25, 50)
REJECTED, COVERED = "rejection rate", "coverage"
OUTSIDE_T = "the differences are strongly skewed"
OUTSIDE_BOOTSTRAP = "fewer than 25 topics"
OUTSIDE_BCA = "fewer than 25 topics, or the systems differ on few topics"

Differences = Callable[[Rng, int, int], Floats]
"""Return float64[topics, trials] for a generator and the numbers of topics and trials."""


def _columns(noise: Callable[[Rng, int, int], Floats], place: int = 0) -> Differences:
    """Return differences of the system at `place` and the last of three systems of a noise model."""

    def differences(rng: Rng, topics: int, trials: int) -> Floats:
        scores = noise(rng, topics * trials, 3)
        return (scores[:, place] - scores[:, 2]).reshape(topics, trials)

    return differences


def _normal(rng: Rng, topics: int, trials: int) -> Floats:
    return rng.normal(size=(topics, trials))


SYMMETRIC: Mapping[str, Differences] = {
    "normal": _normal,
    "unequal": _columns(unequal),
    "coarse": _columns(coarse),
    "sparse": _columns(sparse),
}
SKEWED: Mapping[str, Differences] = {
    "two skewed": _columns(two_exponential),
    "one lognormal": _columns(one_lognormal),
}
ANY = {**SYMMETRIC, **SKEWED}


def _batches(
    case: tuple[object, ...], differences: Differences, topics: int, trials: int, seed: int
) -> Iterator[Floats]:
    """Yield float64[topics, BATCH] until there are enough trials."""
    rng = make_rng(seed, *case)
    for begin in range(0, trials, BATCH):
        yield differences(rng, topics, min(BATCH, trials - begin))


# ------------------------------------------------------------------------------------------------ tests


def _randomisation(x: Floats, seed: int) -> int:
    outcomes = randomisations(x, np.zeros_like(x), flips=FLIPS, seed=seed)
    return sum(outcome.p is not None and outcome.p <= ALPHA for outcome in outcomes)


def _paired_test(name: str) -> Callable[[Floats, int], int]:
    def rejections(x: Floats, seed: int) -> int:
        p = [TESTS[name](column, np.zeros(len(x))).p for column in x.T]
        return sum(value is not None and value <= ALPHA for value in p)

    return rejections


def _bootstrap(x: Floats, seed: int) -> int:
    """Count rejections of the paired bootstrap test, which takes two systems at a time."""
    pairs = [np.stack([column, np.zeros(len(x))], axis=1) for column in x.T]
    results = [
        discriminative_power(pair, alpha=ALPHA, replicates=BOOTSTRAP_REPLICATES, seed=seed + place)
        for place, pair in enumerate(pairs)
    ]
    return sum(result.n_discriminated for result in results)


def _margin(
    test: MarginTest, verdicts: frozenset[MarginVerdict], shift: float
) -> Callable[[Floats, int], int]:
    """Return a function that counts wrong verdicts.

    The true difference is `shift` times the margin, so each verdict in `verdicts` is wrong.
    """

    def wrong(x: Floats, seed: int) -> int:
        margin = 0.5
        outcomes = compare_with_margin(
            x + shift * margin,
            np.zeros_like(x),
            margin=margin,
            alpha=ALPHA,
            test=test,
            flips=FLIPS,
            seed=seed,
        )
        return sum(outcome.verdict in verdicts for outcome in outcomes)

    return wrong


EQUAL_WITHIN: frozenset[MarginVerdict] = frozenset({"equal within"})
PAIR_TESTS: Mapping[str, tuple[Callable[[Floats, int], int], Sequence[str]]] = {
    "randomisation": (_randomisation, tuple(ANY)),
    "t": (_paired_test("t"), tuple(ANY)),
    "wilcoxon": (_paired_test("wilcoxon"), tuple(SYMMETRIC)),
    "sign": (_paired_test("sign"), tuple(SYMMETRIC)),
    "paired bootstrap": (_bootstrap, ("normal", "two skewed")),
    "no worse by t, d = -m": (_margin("t", ACCEPTABLE, -1), ("normal", "two skewed")),
    "no worse by sign flips, d = -m": (_margin("sign-flip", ACCEPTABLE, -1), ("normal", "two skewed")),
    "equal within by t, d = m": (_margin("t", EQUAL_WITHIN, 1), ("normal", "two skewed")),
    "equal within by sign flips, d = m": (_margin("sign-flip", EQUAL_WITHIN, 1), ("normal", "two skewed")),
}
"""Tests by name: the function that counts false rejections, and the models of differences."""


def rejection_cases() -> list[tuple[str, str, int]]:
    """Return the rows of the table of tests: test, model of differences, and number of topics."""
    return [
        (test, model, topics)
        for test, (_, models) in PAIR_TESTS.items()
        for model in models
        for topics in TOPICS
    ]


def rejection_row(case: tuple[str, str, int], trials: int, seed: int) -> Row:
    test, model, topics = case
    count = PAIR_TESTS[test][0]
    batches = _batches((model, topics), ANY[model], topics, trials, seed)
    events = sum(count(batch, seed + BATCH * number) for number, batch in enumerate(batches))
    outside = OUTSIDE_T if model in SKEWED else ""
    if test == "paired bootstrap" and topics < 25:
        outside = OUTSIDE_BOOTSTRAP
    rate = Rate(events=events, trials=trials, promise=ERROR)
    return Row(cells=(test, model, str(topics)), rates={REJECTED: rate}, outside=outside)


# ------------------------------------------------------------------------------------------------ intervals


def _effect_sizes(x: Floats, seed: int) -> Sequence[Interval]:
    """Return the intervals of Cohen's d."""
    sizes = [effect_size(column, np.zeros(len(x))) for column in x.T]
    return [Interval(size.value, *(size.interval or (None, None))) for size in sizes]


def _t(x: Floats, seed: int) -> Sequence[Interval]:
    return t_intervals(x)


def _bca(x: Floats, seed: int) -> Sequence[Interval]:
    return intervals(x, replicates=BOOTSTRAP_REPLICATES, seed=seed)


INTERVALS: Mapping[str, tuple[Callable[[Floats, int], Sequence[Interval]], Sequence[str]]] = {
    "t": (_t, tuple(ANY)),
    "BCa": (_bca, tuple(ANY)),
    "effect size": (_effect_sizes, ("normal",)),
}
"""Methods of intervals of the mean difference, which is 0, by name, with the models of differences."""


def interval_cases() -> list[tuple[str, str, int]]:
    return [
        (method, model, topics)
        for method, (_, models) in INTERVALS.items()
        for model in models
        for topics in TOPICS
    ]


def interval_row(case: tuple[str, str, int], trials: int, seed: int) -> Row:
    method, model, topics = case
    batches = _batches((model, topics), ANY[model], topics, trials, seed)
    results = [INTERVALS[method][0](batch, seed + number) for number, batch in enumerate(batches)]
    covered = sum(
        interval.low is not None and interval.high is not None and interval.low <= 0 <= interval.high
        for batch in results
        for interval in batch
    )
    outside = OUTSIDE_T if model in SKEWED else ""
    if method == "BCa" and (topics < 25 or model == "sparse"):
        outside = OUTSIDE_BCA
    rate = Rate(events=covered, trials=trials, promise=COVERAGE)
    return Row(cells=(method, model, str(topics)), rates={COVERED: rate}, outside=outside)
