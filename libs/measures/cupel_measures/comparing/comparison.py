"""The comparison of several systems: differences, effect sizes, and groups.

It also reports related measures. The differences are tested for significance.

The input is a matrix of scores, float64[topics, systems], for the text of each measure. The results do not
depend on the order of systems or measures. A difference is the score of the second system minus the score of
the first.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from cupel_measures.comparing.all_pairs import AllPairs, randomised_hsd
from cupel_measures.comparing.compared_measures import AspectVariant, ComparedMeasure
from cupel_measures.comparing.corrections import groups
from cupel_measures.comparing.differences.comparison_choices import HSD, MAX_T, Choices, Pair
from cupel_measures.comparing.differences.difference_tests import (
    LATER_STEP,
    TestedDifference,
    excludes_zero,
    pair_differences,
    tested_differences,
    with_variance,
)
from cupel_measures.comparing.differences.topic_differences import (
    TopicDifference,
    higher_same_lower,
    largest_differences,
)
from cupel_measures.comparing.differences.unjudged_gaps import UnjudgedGap, unjudged_gaps
from cupel_measures.comparing.outcomes import Outcome, scale_warnings, undefined_reason
from cupel_measures.comparing.paired_tests import NO_VARIANCE, EffectSize, effect_size_at, least_p
from cupel_measures.comparing.rank_correlation import (
    Correlation,
    TopicCorrelation,
    overlap,
    tau_b,
    tau_b_by_topic,
)
from cupel_measures.comparing.resampling import Interval, intervals
from cupel_measures.comparing.simultaneous.blocked_ranks import rank_test
from cupel_measures.comparing.simultaneous.max_t import MaxT, least_p_of_flips, max_t
from cupel_measures.comparing.t_intervals import t_intervals
from cupel_measures.comparing.topic_sets.detectable_differences import (
    clip_difference,
    clip_mean,
    detectable_difference,
    warn_of_undetectable,
)
from cupel_measures.model import Floats

FEW_TOPICS_BCA, FEW_TOPICS_SKEWED, FEW_TOPICS_SIMULTANEOUS = 25, 25, 10
"""Numbers of topics below which a comparison warns about BCa intervals, skewed scores in the max-T test, and
simultaneous tests."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference between two systems under one measure.

    difference: mean of second - first, with its interval. corrected_p: p corrected for multiple tests
    (`ComparisonReport.tests`). topics: numbers of topics where the second system scores higher, the same and
    lower; None if a score is undefined.
    """

    first: int
    second: int
    difference: Interval
    test: Outcome
    corrected_p: float | None
    significant: bool
    effect: EffectSize
    topics: tuple[int, int, int] | None
    largest_differences: tuple[TopicDifference, ...]


@dataclass(frozen=True, kw_only=True)
class FriedmanTest:
    """Friedman's test of all systems, by aligned ranks if the comparison uses them.

    mean_ranks: of every system; 1 is best. critical_difference: Nemenyi's, None for Conover's test.
    """

    statistic: float
    df: float
    p: float
    mean_ranks: tuple[float, ...]
    critical_difference: float | None


@dataclass(frozen=True, eq=False, kw_only=True)
class MeasureComparison:
    """The comparison of all systems by one measure.

    detectable: the smallest true difference that a paired t-test at level alpha, without correction, detects
    with power 0.8 on these topics; None if it is undefined. groups: the numbers of the groups of each system.
    Two systems share a group unless they differ significantly by the max-T test of all pairs, or by
    another simultaneous test if the comparison uses one. best_set: the systems that are not significantly
    worse than the best by the max-T test. Both groups and best_set are empty for two systems, and if
    `groups_undefined` gives a reason. warnings: operations that the scale type does not allow, and notes.
    friedman: the test of all systems by ranks, if the comparison uses a rank test.
    """

    measure: ComparedMeasure
    means: tuple[Interval, ...]
    differences: tuple[Difference, ...]
    detectable: float | None
    groups: tuple[tuple[int, ...], ...]
    best_set: tuple[int, ...]
    groups_undefined: str | None
    warnings: tuple[str, ...]
    friedman: FriedmanTest | None = None


@dataclass(frozen=True)
class AspectDifferences:
    """The differences of all pairs by a measure under one aspect, without a test."""

    variant: AspectVariant
    differences: tuple[Interval, ...]


@dataclass(frozen=True, kw_only=True)
class OrderAgreement:
    """The correlation of the rankings of the systems by two measures.

    overall: Kendall's tau-b of the rankings by means. by_topic: tau-b on each topic. overlap: the rank-biased
    overlap of the rankings by means (p = 0.9).
    """

    first: str
    second: str
    overall: Correlation
    by_topic: TopicCorrelation
    overlap: Correlation


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparisonReport:
    """A comparison of systems; other fields refer to them by index in `systems`.

    unjudged: for the text of each `Unjudged` measure, the mean share of unjudged documents of each system.
    warnings: about too few topics. interval_warnings: about intervals that contradict the test.
    """

    systems: tuple[str, ...]
    topics: tuple[str, ...]
    choices: Choices
    pairs: tuple[Pair, ...]
    measures: tuple[MeasureComparison, ...]
    aspects: tuple[AspectDifferences, ...]
    unjudged: Mapping[str, tuple[float, ...]]
    unjudged_gaps: tuple[UnjudgedGap, ...]
    orders: tuple[OrderAgreement, ...]
    warnings: tuple[str, ...]
    interval_warnings: tuple[str, ...]

    @property
    def tests(self) -> int:
        """Number of tests over which p is corrected."""
        return len(self.pairs) * (1 if self.choices.is_simultaneous else len(self.measures))


def compare(
    systems: Sequence[str],
    topics: Sequence[str],
    scores: Mapping[str, Floats],
    measures: Sequence[ComparedMeasure],
    choices: Choices | None = None,
    progress: Callable[[str], object] = str,
) -> ComparisonReport:
    """Compare systems by one or more measures.

    scores: float64[topics, systems] for every text in `ComparedMeasure.required`. progress: called with the
    text of each measure when its comparison begins. Raises ValueError for fewer than two systems, repeated
    names, and scores that do not have the shape (topics, systems).
    """
    choices = choices or Choices()
    _check(systems, topics, scores, measures)
    pairs = choices.pairs(len(systems))
    matrices = [compared_values(scores[measure.text], measure) for measure in measures]
    unjudged = {
        measure.unjudged: _column_means(scores[measure.unjudged])
        for measure in measures
        if measure.unjudged is not None
    }
    compared = tuple(_compare_measures(systems, topics, matrices, measures, pairs, choices, progress))
    return ComparisonReport(
        systems=tuple(systems),
        topics=tuple(topics),
        choices=choices,
        pairs=pairs,
        measures=compared,
        aspects=tuple(_aspect_differences(scores, measures, pairs, choices)),
        unjudged=unjudged,
        unjudged_gaps=tuple(unjudged_gaps(unjudged, _means_by_unjudged(compared), pairs)),
        orders=tuple(_order_agreements(measures, matrices)) if len(systems) > 2 else (),
        warnings=tuple(_report_warnings(len(topics), compared, choices)),
        interval_warnings=tuple(_interval_warnings(compared, choices)),
    )


def _check(
    systems: Sequence[str],
    topics: Sequence[str],
    scores: Mapping[str, Floats],
    measures: Sequence[ComparedMeasure],
) -> None:
    if len(systems) < 2 or len(set(systems)) < len(systems):
        raise ValueError("a comparison needs at least two systems with different names")
    shape = len(topics), len(systems)
    for text in (text for measure in measures for text in measure.required):
        if scores[text].shape != shape:
            raise ValueError(f"{text}: expected scores of shape {shape}, got {scores[text].shape}")


def compared_values(values: Floats, measure: ComparedMeasure) -> Floats:
    """Return the scores, or their logarithms (NaN for 0) if the measure uses them.

    Logarithms come from Python's math module, because numpy's differ between machines.
    """
    if not measure.uses_logarithms:
        return values
    flat = [math.log(value) if 0 < value < math.inf else math.nan for value in values.ravel().tolist()]
    return np.array(flat).reshape(values.shape)


def _sort_by_name(systems: Sequence[str], values: Floats) -> Floats:
    """Return the columns in the order of names, so that the given order has no effect."""
    return values[:, sorted(range(len(systems)), key=systems.__getitem__)]


# ------------------------------------------------------------------------------------------ each measure


def _compare_measures(
    systems: Sequence[str],
    topics: Sequence[str],
    matrices: Sequence[Floats],
    measures: Sequence[ComparedMeasure],
    pairs: Sequence[Pair],
    choices: Choices,
    progress: Callable[[str], object],
) -> Iterator[MeasureComparison]:
    tested = tested_differences(matrices, [measure.scale for measure in measures], pairs, choices)
    for measure, values in zip(measures, matrices, strict=True):
        progress(measure.text)
        tests = next(tested)
        grouped = _group_systems(systems, values, measure, choices)
        detectable = detectable_difference(_sort_by_name(systems, values), choices.alpha)
        differences = _differences(values, topics, pairs, tests, choices)
        yield MeasureComparison(
            measure=measure,
            means=tuple(clip_mean(mean, measure.bounds) for mean in _means(values, choices)),
            differences=tuple(
                replace(pair, difference=clip_difference(pair.difference, measure.bounds))
                for pair in differences
            ),
            detectable=detectable,
            groups=grouped.groups,
            best_set=grouped.best_set,
            groups_undefined=grouped.undefined,
            warnings=(
                *_warnings(measure, [test.outcome for test in tests]),
                *warn_of_undetectable(measure.bounds, detectable, choices.alpha),
            ),
            friedman=_friedman(systems, values, choices) if choices.is_rank_test else None,
        )


def _means(values: Floats, choices: Choices) -> tuple[Interval, ...]:
    """Return the correctly rounded mean of every system, with its interval."""
    return tuple(
        interval if interval.value is None else replace(interval, value=math.fsum(column) / len(column))
        for interval, column in zip(_single_intervals(values, choices), values.T.tolist(), strict=True)
    )


def _single_intervals(values: Floats, choices: Choices) -> tuple[Interval, ...]:
    """Return an interval of every column's mean, not corrected for multiple intervals."""
    if choices.interval == "bca":
        return intervals(values, confidence=choices.level, seed=choices.seed)
    return t_intervals(values, confidence=choices.level)


def _differences(
    values: Floats,
    topics: Sequence[str],
    pairs: Sequence[Pair],
    tests: Sequence[TestedDifference],
    choices: Choices,
) -> Iterator[Difference]:
    differences = pair_differences(values, pairs)
    shown = with_variance(differences, [test.interval for test in tests])
    for (first, second), column, test, interval in zip(pairs, differences.T, tests, shown, strict=True):
        p, is_defined = test.corrected_p, undefined_reason(column) is None
        yield Difference(
            first=first,
            second=second,
            difference=interval,
            test=test.outcome,
            corrected_p=p,
            significant=p is not None and p <= choices.alpha,
            effect=_effect(values[:, second], values[:, first], test, choices),
            topics=higher_same_lower(column) if is_defined else None,
            largest_differences=largest_differences(topics, column) if is_defined else (),
        )


def _effect(first: Floats, second: Floats, test: TestedDifference, choices: Choices) -> EffectSize:
    """Return the effect size.

    It has no interval if the interval of the difference is undefined.
    """
    if test.interval.undefined != LATER_STEP:
        return effect_size_at(first, second, test.level)
    return replace(effect_size_at(first, second, choices.level), interval=None, undefined=LATER_STEP)


@dataclass(frozen=True)
class _Grouped:
    """The groups of each system, and the best set.

    undefined: the reason why both are empty.
    """

    groups: tuple[tuple[int, ...], ...] = ()
    best_set: tuple[int, ...] = ()
    undefined: str | None = None


def _group_systems(
    systems: Sequence[str], values: Floats, measure: ComparedMeasure, choices: Choices
) -> _Grouped:
    if len(systems) < 3:
        return _Grouped()
    names = sorted(systems)
    columns = [names.index(name) for name in systems]
    by_name = _sort_by_name(systems, values)
    options = {"alpha": choices.alpha, "replicates": choices.group_replicates, "seed": choices.seed}
    best = max_t(by_name, scale=measure.scale, with_p=False, **options)  # type: ignore[arg-type]
    if best.undefined is not None:
        return _Grouped(undefined=best.undefined)
    test: AllPairs | MaxT = best
    if choices.test_name == HSD:
        test = randomised_hsd(by_name, scale=measure.scale, **options)  # type: ignore[arg-type]
    elif choices.is_rank_test:
        test = rank_test(choices.test_name, by_name, alpha=choices.alpha)
    in_best_set = [place for place, column in enumerate(columns) if best.in_best_set[column]]
    return _Grouped(_groups(test, by_name, columns), tuple(in_best_set))


def _friedman(systems: Sequence[str], values: Floats, choices: Choices) -> FriedmanTest | None:
    """Return Friedman's test of all systems; None if it is undefined."""
    names = sorted(systems)
    test = rank_test(choices.test_name, _sort_by_name(systems, values), alpha=choices.alpha)
    if test.statistic is None or test.df is None or test.p is None:
        return None
    return FriedmanTest(
        statistic=test.statistic,
        df=test.df,
        p=test.p,
        mean_ranks=tuple(float(test.mean_ranks[names.index(name)]) for name in systems),
        critical_difference=test.width,
    )


def _groups(test: AllPairs | MaxT, values: Floats, columns: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the groups of each system. columns: each system's column in `values`."""
    means = [math.fsum(column) for column in values.T.tolist()]
    best_first = sorted(range(len(means)), key=lambda column: -means[column])
    rank = {column: number for number, column in enumerate(best_first)}
    first, second = test.first[test.differs].tolist(), test.second[test.differs].tolist()
    different = sorted(tuple(sorted((rank[a], rank[b]))) for a, b in zip(first, second, strict=True))
    by_rank = groups(len(means), ((a, b) for a, b in different))
    return tuple(by_rank[rank[column]] for column in columns)


def _warnings(measure: ComparedMeasure, tests: Sequence[Outcome]) -> tuple[str, ...]:
    """Return the warnings about means and tests, and the notes of the measure."""
    test_warnings = dict.fromkeys(warning for test in tests for warning in test.warnings)
    return (*scale_warnings(measure.scale, "a mean"), *test_warnings, *measure.notes)


# ------------------------------------------------------------------------------------------ all measures


def _aspect_differences(
    scores: Mapping[str, Floats],
    measures: Sequence[ComparedMeasure],
    pairs: Sequence[Pair],
    choices: Choices,
) -> Iterator[AspectDifferences]:
    """Yield the differences by each variant once, even if several measures share it."""
    measure_of = {variant: measure for measure in measures for variant in measure.variants}
    for variant, measure in measure_of.items():
        differences = pair_differences(compared_values(scores[variant.measure], measure), pairs)
        bounds = with_variance(differences, _single_intervals(differences, choices))
        yield AspectDifferences(variant, tuple(clip_difference(item, measure.bounds) for item in bounds))


def _column_means(values: Floats) -> tuple[float, ...]:
    return tuple(math.fsum(column) / len(column) for column in values.T.tolist())


def _means_by_unjudged(compared: Sequence[MeasureComparison]) -> dict[str, dict[str, list[float | None]]]:
    """Return the means of every measure, by its `Unjudged` measure."""
    means: dict[str, dict[str, list[float | None]]] = {}
    for item in compared:
        if item.measure.unjudged is not None:
            by_text = means.setdefault(item.measure.unjudged, {})
            by_text[item.measure.text] = [interval.value for interval in item.means]
    return means


def _order_agreements(
    measures: Sequence[ComparedMeasure], matrices: Sequence[Floats]
) -> Iterator[OrderAgreement]:
    for (first, x), (second, y) in combinations(zip(measures, matrices, strict=True), 2):
        if (reason := undefined_reason(x, y)) is not None:
            overall = top_weighted = Correlation(None, x.shape[1], reason)
            by_topic = TopicCorrelation(None, (None,) * len(x), reason)
        else:
            means = _column_means(x), _column_means(y)
            overall, by_topic, top_weighted = tau_b(*means), tau_b_by_topic(x, y), overlap(*means)
        yield OrderAgreement(
            first=first.text, second=second.text, overall=overall, by_topic=by_topic, overlap=top_weighted
        )


def _report_warnings(
    topics: int, comparisons: Sequence[MeasureComparison], choices: Choices
) -> Iterator[str]:
    """Yield warnings about too few topics."""
    tests = sum(len(comparison.differences) for comparison in comparisons)
    least = 0.0 if choices.is_rank_test else least_p(choices.test_name, topics, choices.replicates)
    if choices.test_name == MAX_T:
        least = max(least, least_p_of_flips(topics))
    is_holm = choices.correction_name == "holm"
    if least * (tests if is_holm else 1) > choices.alpha:
        correction = f" after Holm's correction over {tests} tests" if is_holm and tests > 1 else ""
        yield (
            f"with {topics} topic{'s' * (topics != 1)} p of {choices.test_in_words} is at least "
            f"{least:.4g}, so no difference can be significant at {choices.alpha:g}{correction}"
        )
    if choices.is_simultaneous and topics < FEW_TOPICS_SIMULTANEOUS:
        yield (
            f"with fewer than {FEW_TOPICS_SIMULTANEOUS} topics {choices.test_in_words} is only approximate"
        )
    if choices.test_name == MAX_T and topics < FEW_TOPICS_SKEWED:
        yield (
            f"with fewer than {FEW_TOPICS_SKEWED} topics a false finding of the max-T test is more likely "
            f"than {choices.alpha:g} if some runs have strongly skewed scores"
        )
    differences = [pair for comparison in comparisons for pair in comparison.differences]
    if choices.interval == "bca":
        yield from _bootstrap_warnings(topics, differences)


def _interval_warnings(comparisons: Sequence[MeasureComparison], choices: Choices) -> Iterator[str]:
    """Yield a warning about intervals that contradict the test."""
    differences = [pair for comparison in comparisons for pair in comparison.differences]
    contradictions = sum(
        excludes_zero(pair.difference) != pair.significant
        for pair in differences
        if pair.difference.undefined not in (LATER_STEP, NO_VARIANCE)
    )
    if contradictions and choices.level == 1 - choices.alpha:
        cause = f"{choices.test_in_words} compares {choices.compared_values}, not means"
        if choices.interval == "bca":
            cause = "BCa intervals do not invert the test and are not corrected"
        yield f"{contradictions} of {len(differences)} intervals contradict the test, because {cause}"


def _bootstrap_warnings(topics: int, differences: Sequence[Difference]) -> Iterator[str]:
    """Yield the cautions about BCa intervals."""
    few = sum(pair.topics is not None and 2 * (topics - pair.topics[1]) < topics for pair in differences)
    if topics < FEW_TOPICS_BCA or few:
        cause = f"there are fewer than {FEW_TOPICS_BCA} topics"
        if topics >= FEW_TOPICS_BCA:
            cause = f"{few} pair{'s differ' if few > 1 else ' differs'} on fewer than half of the topics"
        yield f"BCa intervals may be too narrow, because {cause}; t intervals are safer"
