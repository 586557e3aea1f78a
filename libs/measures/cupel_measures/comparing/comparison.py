"""The comparison of several systems: significant differences, effect sizes, groups and related measures.

Everything is computed from scores, float64[topics, systems], by the text of a measure. The results do not
depend on the order of systems or measures. A difference is the second system minus the first.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np

from cupel_measures.comparing.all_pairs import AllPairs, randomised_hsds
from cupel_measures.comparing.compared_measures import AspectVariant, ComparedMeasure
from cupel_measures.comparing.corrections import CORRECTIONS, groups
from cupel_measures.comparing.outcomes import CLOSE, LARGEST, Outcome, scale_warnings, undefined_reason
from cupel_measures.comparing.paired_tests import TESTS, EffectSize, effect_size, least_p
from cupel_measures.comparing.rank_correlation import Correlation, TopicCorrelation, tau_b, tau_b_by_topic
from cupel_measures.comparing.resampling import Interval, check_confidence, intervals, randomisations
from cupel_measures.comparing.topic_set_sizes import pooled_variance, smallest_difference
from cupel_measures.model import Floats

Pair = tuple[int, int]
MOST_TOPICS = 5
"""Number of topics that are listed for each pair, those with the largest differences."""
UNJUDGED_GAP = 0.1
"""Difference between the shares of unjudged documents above which a pair of systems gets a warning."""
NO_CORRECTION = "none"


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Options of a comparison; ValueError for an unknown name and a number out of range.

    test: one of TESTS. correction: one of CORRECTIONS or "none", over all pairs and measures. all_pairs:
    compare all pairs instead of the first system with each other one. alpha: largest corrected p that is
    significant.
    """

    test: str = "randomisation"
    correction: str = "holm"
    alpha: float = 0.05
    confidence: float = 0.95
    seed: int = 0
    all_pairs: bool = False

    def __post_init__(self) -> None:
        for kind, name, known in (
            ("test", self.test, [*TESTS]),
            ("correction", self.correction, [*CORRECTIONS, NO_CORRECTION]),
        ):
            if name not in known:
                raise ValueError(f"unknown {kind} {name!r}; choose one of {', '.join(known)}")
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha must be between 0 and 1, got {self.alpha}")
        check_confidence(self.confidence)

    def pairs(self, systems: int) -> tuple[Pair, ...]:
        """Return the pairs of systems that are compared."""
        pairs = combinations(range(systems), 2)
        return tuple(pair for pair in pairs if self.all_pairs or pair[0] == 0)


@dataclass(frozen=True)
class TopicDifference:
    """The difference between two systems on one topic."""

    topic: str
    difference: float


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference between two systems under one measure.

    difference: mean of second - first. corrected_p: p corrected over all tests of the report. topics: numbers
    of topics where the second system scores higher, the same and lower; None if a score is undefined.
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


@dataclass(frozen=True, eq=False, kw_only=True)
class MeasureComparison:
    """The comparison of all systems by one measure.

    detectable: the smallest true difference that a paired t-test at alpha, uncorrected, detects with power
    0.8 on these topics; None if it is undefined. groups: for each system its groups by randomised Tukey HSD,
    where systems share a group unless they differ significantly; empty for two systems, and if
    `groups_undefined` gives a reason. warnings: operations that the scale type does not allow, and notes.
    """

    measure: ComparedMeasure
    means: tuple[Interval, ...]
    differences: tuple[Difference, ...]
    detectable: float | None
    groups: tuple[tuple[int, ...], ...]
    groups_undefined: str | None
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class AspectDifferences:
    """The differences of all pairs by a measure under one aspect, without a test."""

    variant: AspectVariant
    differences: tuple[Interval, ...]


@dataclass(frozen=True)
class OrderAgreement:
    """The correlation of the rankings by two measures: by means, and topic by topic."""

    first: str
    second: str
    overall: Correlation
    by_topic: TopicCorrelation


@dataclass(frozen=True)
class UnjudgedGap:
    """Two systems whose shares of unjudged documents differ by more than UNJUDGED_GAP.

    The system with more unjudged documents may score lower for that reason alone.
    """

    unjudged: str
    first: int
    second: int


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparisonReport:
    """A comparison of systems, which are given by their index in `systems`.

    unjudged: the share of unjudged documents of each system, by the text of the measure that counts them.
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

    @property
    def tests(self) -> int:
        """Number of tests that p is corrected for."""
        return len(self.pairs) * len(self.measures)


def compare(
    systems: Sequence[str],
    topics: Sequence[str],
    scores: Mapping[str, Floats],
    measures: Sequence[ComparedMeasure],
    choices: Choices | None = None,
) -> ComparisonReport:
    """Compare systems by measures.

    scores: float64[topics, systems] of every text in `required` of the measures. Raises ValueError for fewer
    than two systems, repeated names, and scores of another shape.
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
    return ComparisonReport(
        systems=tuple(systems),
        topics=tuple(topics),
        choices=choices,
        pairs=pairs,
        measures=tuple(_compare_measures(systems, topics, matrices, measures, pairs, choices)),
        aspects=tuple(_aspect_differences(scores, measures, pairs, choices)),
        unjudged=unjudged,
        unjudged_gaps=tuple(_unjudged_gaps(unjudged, pairs)),
        orders=tuple(_order_agreements(measures, matrices)) if len(systems) > 2 else (),
        warnings=tuple(_power_warnings(len(topics), len(pairs) * len(measures), choices)),
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
    """Return the values that are compared: scores, or their logarithms (NaN for a score of 0).

    Logarithms come from Python's math module, because numpy's differ between machines.
    """
    if not measure.uses_logarithms:
        return values
    flat = [math.log(value) if 0 < value < math.inf else math.nan for value in values.ravel().tolist()]
    return np.array(flat).reshape(values.shape)


def _sort_by_name(systems: Sequence[str], values: Floats) -> Floats:
    """Return the columns in the order of names, so that sums and permutations ignore the given order."""
    return values[:, sorted(range(len(systems)), key=systems.__getitem__)]


# ------------------------------------------------------------------------------------------ each measure


def _compare_measures(
    systems: Sequence[str],
    topics: Sequence[str],
    matrices: Sequence[Floats],
    measures: Sequence[ComparedMeasure],
    pairs: Sequence[Pair],
    choices: Choices,
) -> Iterator[MeasureComparison]:
    outcomes = [
        _test_pairs(values, pairs, measure, choices)
        for measure, values in zip(measures, matrices, strict=True)
    ]
    grouped = _group_systems(systems, matrices, measures, choices)
    corrected = iter(_corrected([test.p for tests in outcomes for test in tests], choices))
    for measure, values, tests, (system_groups, reason) in zip(
        measures, matrices, outcomes, grouped, strict=True
    ):
        yield MeasureComparison(
            measure=measure,
            means=_means(values, choices),
            differences=tuple(_differences(values, topics, pairs, tests, corrected, choices)),
            detectable=_detectable(_sort_by_name(systems, values), choices.alpha),
            groups=system_groups,
            groups_undefined=reason,
            warnings=_warnings(measure, tests),
        )


def _test_pairs(
    values: Floats, pairs: Sequence[Pair], measure: ComparedMeasure, choices: Choices
) -> list[Outcome]:
    if choices.test == "randomisation":
        first, second = (values[:, list(systems)] for systems in zip(*pairs, strict=True))
        return randomisations(second, first, seed=choices.seed, scale=measure.scale)
    options = {"confidence": choices.confidence} if choices.test == "t" else {}
    test = partial(TESTS[choices.test], scale=measure.scale, **options)
    return [test(values[:, second], values[:, first]) for first, second in pairs]


def _corrected(p: Sequence[float | None], choices: Choices) -> list[float | None]:
    """Return p corrected over all tests; a test without p counts as a test with p = 1."""
    if choices.correction == NO_CORRECTION:
        return list(p)
    corrected = CORRECTIONS[choices.correction]([1.0 if value is None else value for value in p]).tolist()
    return [None if value is None else result for value, result in zip(p, corrected, strict=True)]


def _means(values: Floats, choices: Choices) -> tuple[Interval, ...]:
    """Return the mean of every system with its interval; the mean is correctly rounded, as in scores."""
    bootstrap = intervals(values, confidence=choices.confidence, seed=choices.seed)
    return tuple(
        interval if interval.value is None else replace(interval, value=math.fsum(column) / len(column))
        for interval, column in zip(bootstrap, values.T.tolist(), strict=True)
    )


def _differences(
    values: Floats,
    topics: Sequence[str],
    pairs: Sequence[Pair],
    tests: Sequence[Outcome],
    corrected: Iterator[float | None],
    choices: Choices,
) -> Iterator[Difference]:
    differences = _pair_differences(values, pairs)
    bootstrap = intervals(differences, confidence=choices.confidence, seed=choices.seed)
    for (first, second), column, interval, test in zip(pairs, differences.T, bootstrap, tests, strict=True):
        p = next(corrected)
        if interval.value is None:  # the test names the problem of the scores themselves
            interval = replace(interval, undefined=test.undefined)
        is_defined = undefined_reason(column) is None
        yield Difference(
            first=first,
            second=second,
            difference=interval,
            test=test,
            corrected_p=p,
            significant=p is not None and p <= choices.alpha,
            effect=effect_size(values[:, second], values[:, first], confidence=choices.confidence),
            topics=_higher_same_lower(column) if is_defined else None,
            largest_differences=_largest_differences(topics, column) if is_defined else (),
        )


def _pair_differences(values: Floats, pairs: Sequence[Pair]) -> Floats:
    """Return second - first as float64[topics, pairs]; NaN where a score is undefined or too large."""
    first, second = (values[:, list(systems)] for systems in zip(*pairs, strict=True))
    usable = (np.abs(first) <= LARGEST) & (np.abs(second) <= LARGEST)
    differences: Floats = np.subtract(second, first, out=np.full(first.shape, np.nan), where=usable)
    return differences


def _higher_same_lower(differences: Floats) -> tuple[int, int, int]:
    higher = int(np.count_nonzero(differences >= CLOSE))
    lower = int(np.count_nonzero(differences <= -CLOSE))
    return higher, len(differences) - higher - lower, lower


def _largest_differences(topics: Sequence[str], differences: Floats) -> tuple[TopicDifference, ...]:
    """Return the nonzero differences, largest first; equal ones keep the order of the topics."""
    order = np.argsort(-np.round(np.abs(differences), 12), kind="stable")[:MOST_TOPICS].tolist()
    return tuple(
        TopicDifference(topics[index], float(differences[index]))
        for index in order
        if abs(differences[index]) >= CLOSE
    )


def _detectable(values: Floats, alpha: float) -> float | None:
    """Return the smallest detectable difference; None if the differences have no variance."""
    variance = pooled_variance(values)
    return (smallest_difference(variance, len(values), alpha=alpha) or None) if variance else None


def _group_systems(
    systems: Sequence[str],
    matrices: Sequence[Floats],
    measures: Sequence[ComparedMeasure],
    choices: Choices,
) -> list[tuple[tuple[tuple[int, ...], ...], str | None]]:
    """Return (groups of each system, or why there are none) for every measure."""
    if len(systems) < 3:
        return [((), None)] * len(measures)
    tests = randomised_hsds(
        [_sort_by_name(systems, values) for values in matrices],
        alpha=choices.alpha,
        seed=choices.seed,
        scales=[measure.scale for measure in measures],
    )
    names = sorted(systems)
    columns = [names.index(name) for name in systems]
    return [
        (_groups(test, _sort_by_name(systems, values), columns), test.undefined)
        for test, values in zip(tests, matrices, strict=True)
    ]


def _groups(test: AllPairs, values: Floats, columns: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the groups of each system, given by its column; the best mean is in the first group."""
    if test.undefined is not None:
        return ()
    means = [math.fsum(column) for column in values.T.tolist()]
    best_first = sorted(range(len(means)), key=lambda column: -means[column])
    rank = {column: number for number, column in enumerate(best_first)}
    first, second = test.first[test.differs].tolist(), test.second[test.differs].tolist()
    different = sorted(tuple(sorted((rank[a], rank[b]))) for a, b in zip(first, second, strict=True))
    by_rank = groups(len(means), ((a, b) for a, b in different))
    return tuple(by_rank[rank[column]] for column in columns)


def _warnings(measure: ComparedMeasure, tests: Sequence[Outcome]) -> tuple[str, ...]:
    """Return the warnings of means and tests, and the notes of the measure."""
    test_warnings = dict.fromkeys(warning for test in tests for warning in test.warnings)
    return (*scale_warnings(measure.scale, "a mean"), *test_warnings, *measure.notes)


# ------------------------------------------------------------------------------------------ all measures


def _aspect_differences(
    scores: Mapping[str, Floats],
    measures: Sequence[ComparedMeasure],
    pairs: Sequence[Pair],
    choices: Choices,
) -> Iterator[AspectDifferences]:
    """Yield the differences by each variant once, also if several measures share it."""
    measure_of = {variant: measure for measure in measures for variant in measure.variants}
    for variant, measure in measure_of.items():
        differences = _pair_differences(compared_values(scores[variant.measure], measure), pairs)
        yield AspectDifferences(
            variant, intervals(differences, confidence=choices.confidence, seed=choices.seed)
        )


def _column_means(values: Floats) -> tuple[float, ...]:
    return tuple(math.fsum(column) / len(column) for column in values.T.tolist())


def _unjudged_gaps(unjudged: Mapping[str, tuple[float, ...]], pairs: Sequence[Pair]) -> Iterator[UnjudgedGap]:
    for text, shares in unjudged.items():
        for first, second in pairs:
            if abs(shares[first] - shares[second]) > UNJUDGED_GAP + CLOSE:
                yield UnjudgedGap(text, first, second)


def _order_agreements(
    measures: Sequence[ComparedMeasure], matrices: Sequence[Floats]
) -> Iterator[OrderAgreement]:
    for (first, x), (second, y) in combinations(zip(measures, matrices, strict=True), 2):
        if (reason := undefined_reason(x, y)) is not None:
            overall = Correlation(None, x.shape[1], reason)
            by_topic = TopicCorrelation(None, (None,) * len(x), reason)
        else:
            overall, by_topic = tau_b(_column_means(x), _column_means(y)), tau_b_by_topic(x, y)
        yield OrderAgreement(first.text, second.text, overall, by_topic)


def _power_warnings(topics: int, tests: int, choices: Choices) -> Iterator[str]:
    """Yield a warning if there are too few topics for any significant difference."""
    least = least_p(choices.test, topics)
    is_holm = choices.correction == "holm"
    if least * (tests if is_holm else 1) > choices.alpha:
        correction = f" after Holm's correction over {tests} tests" if is_holm and tests > 1 else ""
        yield (
            f"with {topics} topic{'s' * (topics != 1)} p of the {choices.test} test is at least {least:.4g}, "
            f"so no difference can be significant at {choices.alpha:g}{correction}"
        )
