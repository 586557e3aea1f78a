"""Tests of non-inferiority and equivalence, with a margin.

They test whether a system is no worse than a baseline, or equal to it, within the margin.

d is the mean difference over topics, system - baseline, and m > 0 is the margin: the largest difference that
does not matter, in the unit of the measure. Four one-sided tests at level alpha are made:

    better     rejects d <= 0         no worse   rejects d <= -m
    worse      rejects d >= 0         no better  rejects d >= m

The verdict is the first that applies:

1. "equal within": "no worse" and "no better" both reject (two one-sided tests, TOST; Schuirmann 1987).
   The difference may differ significantly from 0, but it is smaller than the margin.
2. "better": "better" rejects.
3. "no worse": "no worse" rejects (non-inferiority).
4. "worse": "worse" rejects.
5. "undecided": none of the above.

The tests correspond to one interval of confidence 1 - 2 alpha: "better" rejects if the interval lies above 0,
"no worse" if the interval lies above -m, and so on. Each verdict except "undecided" requires a rejection at
level alpha, so it is wrong with a probability of at most alpha. This holds for one system and one measure;
there is no correction for multiple tests. A test that does not reject never supports a verdict.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cupel_measures.comparing.closeness.typical_values import TypicalValues, typical_values
from cupel_measures.comparing.outcomes import CLOSE, matrix, mean, undefined_reason
from cupel_measures.comparing.resampling import FLIPS
from cupel_measures.model import Floats

MarginVerdict = Literal["equal within", "better", "no worse", "worse", "undecided"]
MarginTest = Literal["t", "sign-flip"]
ACCEPTABLE: frozenset[MarginVerdict] = frozenset({"equal within", "better", "no worse"})
"""Verdicts that rule out that the system is worse than the baseline by the margin or more."""

AT_ONCE = 64
"""Number of pairs whose subset means are kept in memory at the same time."""
CONSTANT = "the difference is the same on every topic, so its variance is zero"


@dataclass(frozen=True, kw_only=True)
class OneSided:
    """P-values of the four one-sided tests, and the interval of d.

    The confidence of the interval is 1 - 2 alpha.

    A bound is infinite if there are too few topics for any test to reject.
    """

    p_better: float
    p_no_worse: float
    p_no_better: float
    p_worse: float
    interval: tuple[float, float]

    def verdict(self, alpha: float) -> MarginVerdict:
        """Return the verdict at level alpha.

        The docstring of the module defines the verdicts.
        """
        no_worse = self.p_no_worse <= alpha
        if no_worse and self.p_no_better <= alpha:
            return "equal within"
        if self.p_better <= alpha:
            return "better"
        if no_worse:
            return "no worse"
        return "worse" if self.p_worse <= alpha else "undecided"


@dataclass(frozen=True)
class Posterior:
    """Posterior probabilities that d is below -m, within [-m, m], and above m.

    They add up to 1.
    """

    below: float
    within: float
    above: float


@dataclass(frozen=True, kw_only=True)
class MarginOutcome:
    """The outcome of the tests with a margin, for one system and its baseline.

    estimate: mean of system - baseline over n topics. test: the test that was used; the sign-flip test
    replaces t if the differences have no variance. tests: the p-values of the four tests; None if they are
    undefined. In that case `undefined` gives the reason, and the verdict is "undecided". posterior: None if
    the differences have no variance.
    """

    n: int
    margin: float
    alpha: float
    test: MarginTest
    estimate: float | None = None
    tests: OneSided | None = None
    posterior: Posterior | None = None
    warnings: tuple[str, ...] = ()
    undefined: str | None = None

    @property
    def verdict(self) -> MarginVerdict:
        return "undecided" if self.tests is None else self.tests.verdict(self.alpha)

    @property
    def is_acceptable(self) -> bool:
        """Return whether a loss of the margin or more is ruled out."""
        return self.verdict in ACCEPTABLE

    @property
    def significant_direction(self) -> Literal["higher", "lower"] | None:
        """Return the direction in which d differs significantly from 0, or None.

        The test is one-sided at alpha.
        """
        if self.tests is not None and self.tests.p_better <= self.alpha:
            return "higher"
        return "lower" if self.tests is not None and self.tests.p_worse <= self.alpha else None


def check_margin(margin: float) -> None:
    """Raise ValueError unless the margin is a positive number."""
    if not 0 < margin < math.inf:
        raise ValueError(f"margin must be a positive number in the unit of the measure, got {margin:g}")


def compare_with_margin(
    systems: Floats,
    baselines: Floats,
    *,
    margin: float,
    alpha: float = 0.05,
    test: MarginTest = "t",
    flips: int = FLIPS,
    seed: int = 0,
) -> tuple[MarginOutcome, ...]:
    """Test each system against its baseline, with a margin.

    Each column of `systems` is tested against the same column of `baselines`.

    systems, baselines: scores, float64[topics, pairs]. margin: in the unit of the measure. test: "t" or
    "sign-flip" (see `typical_values`). If the differences are equal on every topic, the sign-flip test
    replaces "t", with a warning. Verdicts assume that greater scores are better. For measures such as
    `Unjudged`, "better" only means higher, and "worse" lower. The outcome of a pair does not depend on the
    other pairs. Raises ValueError for a margin that is not positive, an alpha outside (0, 0.5), and matrices
    of different shapes.
    """
    check_margin(margin)
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha of one-sided tests must be between 0 and 0.5, got {alpha:g}")
    x, y = matrix(systems), matrix(baselines)
    if x.shape != y.shape:
        raise ValueError(f"expected two matrices of the same shape, got {x.shape} and {y.shape}")
    reasons = [undefined_reason(*pair) or _too_few(len(x)) for pair in zip(x.T, y.T, strict=True)]
    usable = [pair for pair, reason in enumerate(reasons) if reason is None]
    differences = x[:, usable] - y[:, usable]
    methods: list[MarginTest] = ["sign-flip" if _is_constant(column) else test for column in differences.T]
    tests = _one_sided_tests(differences, methods, margin, alpha, flips, seed)
    unknown = MarginOutcome(
        n=len(x),
        margin=margin,
        alpha=alpha,
        test=test,
    )
    outcomes = [replace(unknown, undefined=reason) for reason in reasons]
    for pair, column, method, one_sided in zip(usable, differences.T, methods, tests, strict=True):
        warnings = () if method == test else (f"{CONSTANT}; the sign-flip test is used instead of t",)
        outcomes[pair] = replace(
            unknown,
            test=method,
            estimate=float(mean(column[:, None])[0]),
            tests=one_sided,
            posterior=posterior_of_difference(column, margin),
            warnings=warnings,
        )
    return tuple(outcomes)


def _too_few(topics: int) -> str | None:
    return "there is only one topic" if topics < 2 else None


def _one_sided_tests(
    differences: Floats, tests: Sequence[MarginTest], margin: float, alpha: float, flips: int, seed: int
) -> list[OneSided]:
    """Run the one-sided tests of every column of `differences`.

    `tests` names the method.
    """
    flipped = [pair for pair, test in enumerate(tests) if test == "sign-flip"]
    by_flips: dict[int, OneSided] = {}
    for begin in range(0, len(flipped), AT_ONCE):
        columns = flipped[begin : begin + AT_ONCE]
        values = typical_values(differences[:, columns], flips=flips, seed=seed)
        by_flips |= {
            pair: _sign_flip_tests(typical, margin, alpha)
            for pair, typical in zip(columns, values, strict=True)
        }
    return [
        by_flips[pair] if pair in by_flips else _t_tests(column, margin, alpha)
        for pair, column in enumerate(differences.T)
    ]


def posterior_of_difference(differences: Floats, margin: float) -> Posterior | None:
    """Return the posterior of the mean difference, or None.

    It is None for one topic and for differences without variance.

    The model has normal differences with unknown mean and variance, and the reference prior 1 / sigma. The
    posterior of the mean is then Student's t with n - 1 degrees of freedom, location mean and scale sd /
    sqrt(n) (Bernardo and Smith 1994, section 5.4; the region of practical equivalence of Kruschke 2013). Its
    tail probabilities are the same numbers as the p-values of the one-sided t-tests, but have another
    meaning.
    """
    from scipy.special import stdtr  # imported late, because the import takes a quarter of a second

    if len(differences) < 2 or _is_constant(differences):
        return None
    center, error = _mean_and_error(differences)
    below = float(stdtr(len(differences) - 1, (-margin - center) / error))
    above = float(stdtr(len(differences) - 1, (center - margin) / error))
    return Posterior(below, max(0.0, 1 - below - above), above)


def _t_tests(differences: Floats, margin: float, alpha: float) -> OneSided:
    """Return the one-sided t-tests of differences that are not all equal."""
    from scipy.special import stdtr, stdtrit

    freedom = len(differences) - 1
    center, error = _mean_and_error(differences)
    width = float(stdtrit(freedom, 1 - alpha)) * error
    better, no_worse, no_better, worse = (
        float(stdtr(freedom, distance / error))
        for distance in (-center, -margin - center, center - margin, center)
    )
    return OneSided(
        p_better=better,
        p_no_worse=no_worse,
        p_no_better=no_better,
        p_worse=worse,
        interval=(center - width, center + width),
    )


def _sign_flip_tests(values: TypicalValues, margin: float, alpha: float) -> OneSided:
    return OneSided(
        p_better=values.p_above(0),
        p_no_worse=values.p_above(-margin),
        p_no_better=values.p_below(margin),
        p_worse=values.p_below(0),
        interval=values.interval(alpha),
    )


def _mean_and_error(differences: Floats) -> tuple[float, float]:
    """Return the mean and its standard error, with the same bits on any machine."""
    center = float(mean(differences[:, None])[0])
    squares = float(np.cumsum((differences - center) ** 2)[-1])
    return center, math.sqrt(squares / (len(differences) - 1) / len(differences))


def _is_constant(differences: Floats) -> bool:
    return bool(np.ptp(differences) <= CLOSE * max(1.0, float(np.abs(differences).max())))
