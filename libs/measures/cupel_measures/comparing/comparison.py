"""The report of a comparison: which of several systems differ, by how much, and what stands beside it.

Everything is computed from scores, float64[topics, systems] by the text of a measure; nothing depends on the
order of systems or measures. Differences are of the second system less the first, the baseline.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np

from cupel_measures.comparing.all_pairs import AllPairs, randomised_hsds
from cupel_measures.comparing.compared_measures import Asked, Under
from cupel_measures.comparing.corrections import CORRECTIONS, groups
from cupel_measures.comparing.correlation import Correlation, TopicCorrelation, tau_b, tau_b_by_topic
from cupel_measures.comparing.outcomes import CLOSE, LARGEST, Outcome, asks_too_much, unusable
from cupel_measures.comparing.paired_tests import TESTS, EffectSize, effect_size, least_p
from cupel_measures.comparing.resampling import Interval, check_confidence, intervals, randomisations
from cupel_measures.comparing.topic_set_sizes import pooled_variance, smallest_difference
from cupel_measures.model import Floats

Pair = tuple[int, int]
SWINGS = 5
"""How many topics are told on which two systems differ most."""
UNEVEN = 0.1
"""Systems whose shares of unjudged documents differ by more are not judged alike: one document of ten."""
NO_CORRECTION = "none"


@dataclass(frozen=True)
class Choices:
    """How to compare. ValueError where a name is unknown or a number is no chance.

    test: one of TESTS. correction: one of CORRECTIONS or "none", over all pairs and measures. all_pairs:
    instead of the first system with each other one. alpha: largest corrected p of a significant difference.
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
                raise ValueError(f"there is no {kind} {name!r}: there are {', '.join(known)}")
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha is between 0 and 1, not {self.alpha}")
        check_confidence(self.confidence)

    def pairs(self, systems: int) -> tuple[Pair, ...]:
        """The pairs of systems that are compared."""
        every = combinations(range(systems), 2)
        return tuple(pair for pair in every if self.all_pairs or pair[0] == 0)


@dataclass(frozen=True)
class Swing:
    """A topic, and the difference on it."""

    topic: str
    difference: float


@dataclass(frozen=True)
class Difference:
    """Two systems under one measure.

    difference: mean of second - first. corrected_p: over all tests of the report. topics: on how many the
    second scores higher, the same and lower; None where a score is no number. swings: where they differ most.
    """

    first: int
    second: int
    difference: Interval
    test: Outcome
    corrected_p: float | None
    significant: bool
    effect: EffectSize
    topics: tuple[int, int, int] | None
    swings: tuple[Swing, ...]


@dataclass(frozen=True, eq=False)
class OfMeasure:
    """All systems under one measure.

    detectable: the smallest true difference that a paired t-test at alpha, uncorrected, finds on these topics
    four times of five (spec 12); None where there is none, or no spread. groups: for each system the
    significance groups it is in, by randomised Tukey HSD; () with two systems or where `ungrouped` says why.
    warnings: what asks too much of the scale of the measure, and what else is to be said of it.
    """

    asked: Asked
    means: tuple[Interval, ...]
    differences: tuple[Difference, ...]
    detectable: float | None
    groups: tuple[tuple[int, ...], ...]
    ungrouped: str | None
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class UnderAspect:
    """A measure under one aspect: the differences of all pairs, which are not tested."""

    under: Under
    differences: tuple[Interval, ...]


@dataclass(frozen=True)
class OrderAgreement:
    """How alike two measures order the systems: by their means, and topic by topic."""

    first: str
    second: str
    overall: Correlation
    by_topic: TopicCorrelation


@dataclass(frozen=True)
class Uneven:
    """Two systems of which one has many more unjudged documents: it may score lower for that alone."""

    unjudged: str
    first: int
    second: int


@dataclass(frozen=True, eq=False)
class ComparisonReport:
    """A comparison of systems, by their places in `systems`. unjudged: share for each system, by measure."""

    systems: tuple[str, ...]
    topics: tuple[str, ...]
    choices: Choices
    pairs: tuple[Pair, ...]
    measures: tuple[OfMeasure, ...]
    aspects: tuple[UnderAspect, ...]
    unjudged: Mapping[str, tuple[float, ...]]
    uneven: tuple[Uneven, ...]
    orders: tuple[OrderAgreement, ...]
    warnings: tuple[str, ...]

    @property
    def tests(self) -> int:
        """How many tests p was corrected for."""
        return len(self.pairs) * len(self.measures)


def compare(
    systems: Sequence[str],
    topics: Sequence[str],
    scores: Mapping[str, Floats],
    asked: Sequence[Asked],
    choices: Choices | None = None,
) -> ComparisonReport:
    """Compare systems, of different names, by the measures that are asked for.

    scores: float64[topics, systems] of every text in `asked`. ValueError where there are fewer than two
    systems, or scores of another shape.
    """
    choices = choices or Choices()
    _check(systems, topics, scores, asked)
    pairs = choices.pairs(len(systems))
    matrices = [as_compared(scores[one.measure], one) for one in asked]
    tests = [_tested(values, pairs, one, choices) for one, values in zip(asked, matrices, strict=True)]
    grouped = _grouped(systems, matrices, asked, choices)
    corrected = iter(_corrected([test.p for of_measure in tests for test in of_measure], choices))
    measures = tuple(
        OfMeasure(
            one,
            _means(values, choices),
            tuple(_differences(values, topics, pairs, of_measure, corrected, choices)),
            _detectable(_by_name(systems, values), choices.alpha),
            *groups_of,
            _warnings(one, of_measure),
        )
        for one, values, of_measure, groups_of in zip(asked, matrices, tests, grouped, strict=True)
    )
    unjudged = {one.unjudged: _shares(scores[one.unjudged]) for one in asked if one.unjudged is not None}
    return ComparisonReport(
        tuple(systems),
        tuple(topics),
        choices,
        pairs,
        measures,
        tuple(_under_aspects(scores, asked, pairs, choices)),
        unjudged,
        tuple(_uneven(unjudged, pairs)),
        tuple(_orders(asked, matrices)) if len(systems) > 2 else (),
        tuple(_hopeless(len(topics), len(pairs) * len(asked), choices)),
    )


def _check(
    systems: Sequence[str], topics: Sequence[str], scores: Mapping[str, Floats], asked: Sequence[Asked]
) -> None:
    if len(systems) < 2 or len(set(systems)) < len(systems):
        raise ValueError("a comparison needs two systems or more, of different names")
    shape = len(topics), len(systems)
    for text in (text for one in asked for text in one.texts):
        if scores[text].shape != shape:
            raise ValueError(f"{text}: expected scores of shape {shape}, got {scores[text].shape}")


def as_compared(values: Floats, asked: Asked) -> Floats:
    """Values or logarithms: by Python's math, as numpy's differ between machines; no number of 0."""
    if not asked.logarithms:
        return values
    flat = [math.log(one) if 0 < one < math.inf else math.nan for one in values.ravel().tolist()]
    return np.array(flat).reshape(values.shape)


def _by_name(systems: Sequence[str], values: Floats) -> Floats:
    """Columns in the order of names: what sums over systems, or deals scores out, sees them so."""
    return values[:, sorted(range(len(systems)), key=systems.__getitem__)]


# ------------------------------------------------------------------------------------------ each measure


def _tested(values: Floats, pairs: Sequence[Pair], asked: Asked, choices: Choices) -> list[Outcome]:
    """The test of every pair."""
    if choices.test == "randomisation":
        first, second = (values[:, list(places)] for places in zip(*pairs, strict=True))
        return randomisations(second, first, seed=choices.seed, scale=asked.scale)
    more = {"confidence": choices.confidence} if choices.test == "t" else {}
    test = partial(TESTS[choices.test], scale=asked.scale, **more)
    return [test(values[:, second], values[:, first]) for first, second in pairs]


def _corrected(p: Sequence[float | None], choices: Choices) -> list[float | None]:
    """p corrected over the whole family; a test without p counts, and finds nothing."""
    if choices.correction == NO_CORRECTION:
        return list(p)
    found = CORRECTIONS[choices.correction]([1.0 if one is None else one for one in p]).tolist()
    return [None if one is None else value for one, value in zip(p, found, strict=True)]


def _means(values: Floats, choices: Choices) -> tuple[Interval, ...]:
    """The mean of every system as it is scored, correctly rounded, with its interval."""
    found = intervals(values, confidence=choices.confidence, seed=choices.seed)
    return tuple(
        one if one.value is None else replace(one, value=math.fsum(column) / len(column))
        for one, column in zip(found, values.T.tolist(), strict=True)
    )


def _differences(
    values: Floats,
    topics: Sequence[str],
    pairs: Sequence[Pair],
    tests: Sequence[Outcome],
    corrected: Iterator[float | None],
    choices: Choices,
) -> Iterator[Difference]:
    apart = _apart(values, pairs)
    found = intervals(apart, confidence=choices.confidence, seed=choices.seed)
    for (first, second), column, interval, test in zip(pairs, apart.T, found, tests, strict=True):
        p = next(corrected)
        if interval.value is None:
            interval = replace(interval, undefined=test.undefined)  # what is wrong with the scores
        effect = effect_size(values[:, second], values[:, first], confidence=choices.confidence)
        yield Difference(
            first,
            second,
            interval,
            test,
            p,
            p is not None and p <= choices.alpha,
            effect,
            _higher_same_lower(column) if unusable(column) is None else None,
            _swings(topics, column) if unusable(column) is None else (),
        )


def _apart(values: Floats, pairs: Sequence[Pair]) -> Floats:
    """float64[topics, pairs]: second - first, no number where either is none that can be computed with."""
    first, second = (values[:, list(places)] for places in zip(*pairs, strict=True))
    usable = (np.abs(first) <= LARGEST) & (np.abs(second) <= LARGEST)
    apart: Floats = np.subtract(second, first, out=np.full(first.shape, np.nan), where=usable)
    return apart


def _higher_same_lower(apart: Floats) -> tuple[int, int, int]:
    higher, lower = int(np.count_nonzero(apart >= CLOSE)), int(np.count_nonzero(apart <= -CLOSE))
    return higher, len(apart) - higher - lower, lower


def _swings(topics: Sequence[str], apart: Floats) -> tuple[Swing, ...]:
    """Largest first, in the topics' order where they are equal but for rounding."""
    order = np.argsort(-np.round(np.abs(apart), 12), kind="stable")[:SWINGS].tolist()
    return tuple(Swing(topics[place], float(apart[place])) for place in order if abs(apart[place]) >= CLOSE)


def _detectable(values: Floats, alpha: float) -> float | None:
    """None also where differences have no spread: any would do, and it says nothing."""
    variance = pooled_variance(values)
    return (smallest_difference(variance, len(values), alpha=alpha) or None) if variance else None


def _grouped(
    systems: Sequence[str], matrices: Sequence[Floats], asked: Sequence[Asked], choices: Choices
) -> list[tuple[tuple[tuple[int, ...], ...], str | None]]:
    """(groups, or why there are none) for every measure."""
    if len(systems) < 3:
        return [((), None)] * len(asked)
    found = randomised_hsds(
        [_by_name(systems, values) for values in matrices],
        alpha=choices.alpha,
        seed=choices.seed,
        scales=[one.scale for one in asked],
    )
    names = sorted(systems)
    places = [names.index(name) for name in systems]
    return [
        (_groups(comparison, _by_name(systems, values), places), comparison.undefined)
        for comparison, values in zip(found, matrices, strict=True)
    ]


def _groups(found: AllPairs, values: Floats, places: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Of each system, by its place among the columns; the best mean is in the first group."""
    if found.undefined is not None:
        return ()
    means = [math.fsum(column) for column in values.T.tolist()]
    best_first = sorted(range(len(means)), key=lambda place: -means[place])
    rank = {place: number for number, place in enumerate(best_first)}
    first, second = found.first[found.differs].tolist(), found.second[found.differs].tolist()
    apart = sorted(tuple(sorted((rank[a], rank[b]))) for a, b in zip(first, second, strict=True))
    of_ranks = groups(len(means), ((a, b) for a, b in apart))
    return tuple(of_ranks[rank[place]] for place in places)


def _warnings(asked: Asked, tests: Sequence[Outcome]) -> tuple[str, ...]:
    """What means and the tests ask of the scale, what else tests warn of, and the notes of the measure."""
    of_tests = dict.fromkeys(warning for test in tests for warning in test.warnings)
    return (*asks_too_much(asked.scale, "a mean"), *of_tests, *asked.notes)


# -------------------------------------------------------------------------------------------- beside them


def _under_aspects(
    scores: Mapping[str, Floats], asked: Sequence[Asked], pairs: Sequence[Pair], choices: Choices
) -> Iterator[UnderAspect]:
    """Each measure under an aspect once, however many of those asked for lead to it."""
    different = {under: one for one in asked for under in one.under}
    for under, one in different.items():
        apart = _apart(as_compared(scores[under.measure], one), pairs)
        yield UnderAspect(under, intervals(apart, confidence=choices.confidence, seed=choices.seed))


def _shares(values: Floats) -> tuple[float, ...]:
    return tuple(math.fsum(column) / len(column) for column in values.T.tolist())


def _uneven(unjudged: Mapping[str, tuple[float, ...]], pairs: Sequence[Pair]) -> Iterator[Uneven]:
    for text, shares in unjudged.items():
        for first, second in pairs:
            if abs(shares[first] - shares[second]) > UNEVEN + CLOSE:
                yield Uneven(text, first, second)


def _orders(asked: Sequence[Asked], matrices: Sequence[Floats]) -> Iterator[OrderAgreement]:
    for (one, x), (other, y) in combinations(zip(asked, matrices, strict=True), 2):
        if (why := unusable(x, y)) is not None:
            overall = Correlation(None, x.shape[1], why)
            by_topic = TopicCorrelation(None, (None,) * len(x), why)
        else:
            overall, by_topic = tau_b(_shares(x), _shares(y)), tau_b_by_topic(x, y)
        yield OrderAgreement(one.measure, other.measure, overall, by_topic)


def _hopeless(topics: int, tests: int, choices: Choices) -> Iterator[str]:
    """A sentence where no data could be significant."""
    least = least_p(choices.test, topics)
    corrected = choices.correction == "holm"
    if least * (tests if corrected else 1) > choices.alpha:
        after = f" after Holm's correction over {tests} tests" if corrected and tests > 1 else ""
        yield (
            f"with {topics} topic{'s' * (topics != 1)} no p of the {choices.test} test is below {least:.4g}, "
            f"so nothing can be significant at {choices.alpha:g}{after}"
        )
