"""Tests of the differences of pairs of systems, with agreeing intervals.

The pairs are tested by several measures. The intervals agree with the tests.

An interval has the same level as its test. If p is corrected by Holm's method, the intervals are simultaneous
by Bonferroni's inequality. Simultaneous tests use the max-T quantile or Tukey's quantile for the intervals
too. If only a later step of a step-down correction finds a pair significant, its interval would contradict
the verdict and is undefined: an interval that is cut at 0 would not have its confidence.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cupel_measures.comparing.all_pairs import AllPairs, randomised_hsd
from cupel_measures.comparing.corrections import CORRECTIONS
from cupel_measures.comparing.differences.comparison_choices import HSD, NO_CORRECTION, Choices, Pair
from cupel_measures.comparing.differences.inverted_randomisation import randomisation_interval
from cupel_measures.comparing.outcomes import CLOSE, LARGEST, Outcome, scale_warnings, undefined_reason
from cupel_measures.comparing.paired_tests import NO_VARIANCE, TESTS, is_constant
from cupel_measures.comparing.resampling import Interval, intervals, randomisations
from cupel_measures.comparing.simultaneous.blocked_ranks import ALIGNED_RANKS, rank_test
from cupel_measures.comparing.simultaneous.max_t import MaxT, agreeing_bounds, limited_p, max_t
from cupel_measures.comparing.t_intervals import t_intervals
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.model import Floats

AGREEING = ("t", "randomisation")
"""Paired tests of the mean: only their intervals can agree with the verdicts."""
NO_BOUND = "with so few topics or replicates, no difference can be excluded"
LATER_STEP = "only a later step of the test finds the difference significant: its sign, but not its size"


@dataclass(frozen=True, kw_only=True)
class TestedDifference:
    """The test of one pair by one measure.

    corrected_p: p corrected for multiple tests. interval: interval of the mean of second - first. level:
    confidence level for the interval of the effect size.
    """

    outcome: Outcome
    corrected_p: float | None
    interval: Interval
    level: float


def tested_differences(
    matrices: Sequence[Floats], scales: Sequence[ScaleType], pairs: Sequence[Pair], choices: Choices
) -> Iterator[list[TestedDifference]]:
    """Yield the tests of all pairs for each measure.

    matrices: one float64[topics, systems] per measure.
    """
    if choices.is_simultaneous:
        for values, scale in zip(matrices, scales, strict=True):
            yield _simultaneous(values, scale, pairs, choices)
        return
    outcomes = [
        _paired(values, scale, pairs, choices) for values, scale in zip(matrices, scales, strict=True)
    ]
    corrected, levels = _correct([test.p for tests in outcomes for test in tests], choices)
    for place, (values, tests) in enumerate(zip(matrices, outcomes, strict=True)):
        part = slice(place * len(pairs), (place + 1) * len(pairs))
        differs = [p is not None and p <= 1 - choices.level for p in corrected[part]]
        bounds = _paired_intervals(pair_differences(values, pairs), tests, levels[part], differs, choices)
        columns = zip(tests, corrected[part], bounds, strict=True)
        yield [
            TestedDifference(outcome=test, corrected_p=p, interval=interval, level=level)
            for test, p, (interval, level) in columns
        ]


def pair_differences(values: Floats, pairs: Sequence[Pair]) -> Floats:
    """Return second - first as float64[topics, pairs].

    A difference is NaN where a score is undefined or too large.
    """
    first, second = (values[:, list(systems)] for systems in zip(*pairs, strict=True))
    usable = (np.abs(first) <= LARGEST) & (np.abs(second) <= LARGEST)
    differences: Floats = np.subtract(second, first, out=np.full(first.shape, np.nan), where=usable)
    return differences


# ------------------------------------------------------------------------------------------ paired tests


def _paired(values: Floats, scale: ScaleType, pairs: Sequence[Pair], choices: Choices) -> list[Outcome]:
    if choices.test_name == "randomisation":
        first, second = (values[:, list(systems)] for systems in zip(*pairs, strict=True))
        return randomisations(second, first, flips=choices.replicates, seed=choices.seed, scale=scale)
    options = {"confidence": choices.level} if choices.test_name == "t" else {}
    test = partial(TESTS[choices.test_name], scale=scale, **options)
    return [test(values[:, second], values[:, first]) for first, second in pairs]


def _correct(p: Sequence[float | None], choices: Choices) -> tuple[list[float | None], Floats]:
    """Return the corrected p of each test, and the alpha of its interval.

    At this alpha the interval agrees with the verdict.

    A test without p counts as a test with p = 1.
    """
    alpha, raw = 1 - choices.level, np.array([1.0 if value is None else value for value in p])
    if choices.correction_name == NO_CORRECTION or len(p) == 1:
        return list(p), np.full(len(p), alpha)
    corrected = CORRECTIONS[choices.correction_name](raw)
    is_holm = choices.correction_name == "holm"
    levels = np.full(len(p), alpha / len(p)) if is_holm else _selected_levels(raw, corrected, alpha)
    return [
        None if value is None else result for value, result in zip(p, corrected.tolist(), strict=True)
    ], levels


def _selected_levels(p: Floats, corrected: Floats, alpha: float) -> Floats:
    """Return alphas at which the intervals control the false coverage rate.

    The method is that of Benjamini and Yekutieli (2005).
    """
    rejected = max(1, int(np.count_nonzero(corrected <= alpha)))
    return np.full(len(p), rejected * alpha / len(p))


def _paired_intervals(
    differences: Floats, tests: Sequence[Outcome], levels: Floats, differs: Sequence[bool], choices: Choices
) -> list[tuple[Interval, float]]:
    """Return the interval of every pair, and a confidence level.

    The level is that for the interval of the effect size.
    """
    if choices.interval == "bca":
        mean_intervals = intervals(differences, confidence=choices.level, seed=choices.seed)
    else:
        mean_intervals = t_intervals(differences, confidence=1 - levels)
    results = []
    columns = zip(mean_intervals, tests, differences.T, levels.tolist(), differs, strict=True)
    for interval, test, column, level, is_significant in columns:
        result, confidence = interval, 1 - level
        if interval.value is None:
            result = replace(interval, undefined=test.undefined)
        elif choices.test_name in AGREEING and choices.interval == "t" and test.p is not None:
            is_later = is_significant and test.p > level * (1 + CLOSE)
            result = _agreeing(interval, column, level, is_significant, is_later, choices)
        if result is not interval and result.value is not None:
            error = float(np.std(column, ddof=1)) / len(column) ** 0.5
            confidence = _effect_level(result, error, len(column))
        results.append((result, confidence))
    return results


def _agreeing(
    interval: Interval,
    column: Floats,
    level: float,
    is_significant: bool,
    is_later: bool,
    choices: Choices,
) -> Interval:
    """Return an interval that agrees with the verdict.

    It is the t interval, or another one if the t interval contradicts the verdict.

    For the randomisation test, the replacement is the interval that inverts the test. It contradicts the
    verdict at most by rounding errors. is_later: whether only a later step of Holm's correction finds the
    difference significant; its interval is then undefined.
    """
    if interval.value is None or interval.low is None or excludes_zero(interval) == is_significant:
        return interval
    if is_later:
        return Interval(interval.value, None, None, LATER_STEP)
    low, high = interval.low, interval.high
    if choices.test_name == "randomisation":
        low, high = randomisation_interval(column, level=level, flips=choices.replicates, seed=choices.seed)
    value, bottom, top = np.array([[interval.value], [low], [high]])
    ends = agreeing_bounds(value, bottom, top, np.array([is_significant]))
    return _bounded(interval.value, *(float(end[0]) for end in ends))


def excludes_zero(interval: Interval) -> bool:
    """Return whether both bounds are on the same side of 0."""
    return interval.low is not None and interval.high is not None and (interval.low > 0 or interval.high < 0)


def with_variance(differences: Floats, bounds: Sequence[Interval]) -> list[Interval]:
    """Return the intervals, undefined where the differences have no variance.

    differences: float64[topics, pairs].
    """
    return [
        Interval(interval.value, None, None, NO_VARIANCE)
        if interval.low is not None and is_constant(column)
        else interval
        for column, interval in zip(differences.T, bounds, strict=True)
    ]


def _bounded(value: float | None, low: float, high: float) -> Interval:
    if math.isfinite(low) and math.isfinite(high):
        return Interval(value, low, high)
    return Interval(value, None, None, NO_BOUND)


# ------------------------------------------------------------------------------------------ simultaneous


def _simultaneous(
    values: Floats, scale: ScaleType, pairs: Sequence[Pair], choices: Choices
) -> list[TestedDifference]:
    """Test all pairs of systems with usable scores at once.

    The results of other pairs are undefined.
    """
    reasons = [undefined_reason(column) for column in values.T]
    usable = [system for system, reason in enumerate(reasons) if reason is None]
    column_of = {system: column for column, system in enumerate(usable)}
    family = [pair for pair in pairs if reasons[pair[0]] is None and reasons[pair[1]] is None]
    columns = [(column_of[second], column_of[first]) for first, second in family]
    test = _tested(values[:, usable], scale, columns, choices) if columns else []
    results = dict(zip(family, test, strict=True))
    warnings = _scale_warnings(scale, choices)
    return [
        results.get(pair) or _undefined(len(values), reasons[pair[0]] or reasons[pair[1]], warnings)
        for pair in pairs
    ]


def _scale_warnings(scale: ScaleType, choices: Choices) -> tuple[str, ...]:
    """Return a warning if the scale type does not allow the means that the test uses.

    Ranks within topics are valid on any scale.
    """
    if choices.is_rank_test and choices.test_name != ALIGNED_RANKS:
        return ()
    methods = {HSD: "Tukey's HSD", ALIGNED_RANKS: "the alignment of ranks"}
    return scale_warnings(scale, methods.get(choices.test_name, "the max-T test"))


def _undefined(topics: int, reason: str | None, warnings: tuple[str, ...]) -> TestedDifference:
    return TestedDifference(
        outcome=Outcome(n=topics, warnings=warnings, undefined=reason),
        corrected_p=None,
        interval=Interval(None, None, None, reason),
        level=0.0,
    )


def _tested(
    values: Floats, scale: ScaleType, columns: Sequence[Pair], choices: Choices
) -> list[TestedDifference]:
    """Test pairs of columns; the differences are first - second."""
    if choices.is_rank_test:
        return _rank_tested(values, scale, columns, choices)
    options: dict[str, Any] = {
        "alpha": 1 - choices.level,
        "replicates": choices.replicates,
        "seed": choices.seed,
        "scale": scale,
    }
    if choices.test_name == HSD:
        result: AllPairs | MaxT = randomised_hsd(values, **options)
    else:
        result = _max_t(values, columns, choices, options)
    if result.undefined is not None or result.pair_p is None:
        means = [
            float(value) for value in pair_differences(values, [(b, a) for a, b in columns]).mean(axis=0)
        ]
        return [
            replace(
                _undefined(len(values), result.undefined, result.warnings),
                interval=Interval(mean, None, None, result.undefined),
            )
            for mean in means
        ]
    return _collected(result, values, columns)


def _max_t(values: Floats, columns: Sequence[Pair], choices: Choices, options: dict[str, Any]) -> MaxT:
    """Return the max-T test at the level of the intervals.

    p agrees with the verdicts at choices.alpha.
    """
    result = max_t(values, pairs=columns, **options)
    if result.pair_p is None:
        return result
    return replace(result, pair_p=limited_p(result.pair_p, len(values), choices.alpha))


def _rank_tested(
    values: Floats, scale: ScaleType, columns: Sequence[Pair], choices: Choices
) -> list[TestedDifference]:
    """Return the rank tests of pairs of columns, with intervals.

    The intervals are t intervals of the mean (Bonferroni).

    The statistic is the difference of mean ranks, positive if the first column is better.
    """
    found = rank_test(choices.test_name, values, alpha=choices.alpha, pairs=columns)
    level, warnings = 1 - (1 - choices.level) / len(columns), _scale_warnings(scale, choices)
    bounds = t_intervals(pair_differences(values, [(b, a) for a, b in columns]), confidence=level)
    if found.undefined is not None or found.pair_p is None:
        undefined = _undefined(len(values), found.undefined, warnings)
        return [replace(undefined, interval=interval) for interval in bounds]
    place_of = {
        frozenset(pair): place
        for place, pair in enumerate(zip(found.first.tolist(), found.second.tolist(), strict=True))
    }
    results = []
    for (a, b), interval in zip(columns, bounds, strict=True):
        p = float(found.pair_p[place_of[frozenset((a, b))]])
        outcome = Outcome(
            n=len(values),
            estimate=interval.value,
            statistic=float(found.mean_ranks[b] - found.mean_ranks[a]),
            p=p,
            warnings=warnings,
        )
        results.append(TestedDifference(outcome=outcome, corrected_p=p, interval=interval, level=level))
    return results


def _collected(result: AllPairs | MaxT, values: Floats, columns: Sequence[Pair]) -> list[TestedDifference]:
    assert result.pair_p is not None
    place_of = {
        pair: place
        for place, pair in enumerate(zip(result.first.tolist(), result.second.tolist(), strict=True))
    }
    low, high = _bounds(result)
    only_later = result.only_later_step if isinstance(result, MaxT) else np.zeros(len(low), dtype=bool)
    statistic = result.t if isinstance(result, MaxT) else result.difference
    results = []
    for a, b in columns:
        sign, place = (1, place_of[a, b]) if (a, b) in place_of else (-1, place_of[b, a])
        value, t, p = (float(x[place]) for x in (sign * result.difference, sign * statistic, result.pair_p))
        ends = sorted((sign * float(low[place]), sign * float(high[place])))
        outcome = Outcome(
            n=len(values),
            estimate=value,
            statistic=t if math.isfinite(t) else None,
            p=p,
            warnings=result.warnings,
        )
        if isinstance(result, MaxT):
            error = float(result.error[place])
        else:
            error = float(np.std(values[:, a] - values[:, b], ddof=1)) / len(values) ** 0.5
        interval = _bounded(value, *ends)
        if only_later[place]:
            interval = Interval(value, None, None, LATER_STEP)
        results.append(
            TestedDifference(
                outcome=outcome,
                corrected_p=p,
                interval=interval,
                level=_effect_level(interval, error, len(values)),
            )
        )
    return results


def _effect_level(interval: Interval, error: float, topics: int) -> float:
    """Return a confidence level for the interval of the effect size.

    With this level, the interval agrees with `interval`.

    At this level, the interval of the effect size excludes 0 exactly if `interval` does. It is the level of
    the t interval whose bound closest to 0 is that of `interval`.
    """
    from scipy.special import stdtr

    if interval.value is None or interval.low is None or interval.high is None or not error > 0:
        return 1.0
    value, t = interval.value, abs(interval.value) / error
    near = value - interval.low if value > 0 else interval.high - value
    # Rounding must not make a bound at 0 contradict the verdict.
    critical = min(near / error, t * 0.999999) if excludes_zero(interval) else max(near / error, t * 1.000001)
    return float(1 - 2 * stdtr(topics - 1, -critical))


def _bounds(result: AllPairs | MaxT) -> tuple[Floats, Floats]:
    """Return the simultaneous bounds of first - second."""
    if isinstance(result, MaxT):
        return result.intervals
    width = result.width or 0.0
    low, high = result.difference - width, result.difference + width
    return agreeing_bounds(result.difference, low, high, result.differs)
