"""The dependence of a score on the order of documents with equal scores.

Topics are independent, so the least, expected and greatest values are computed topic by topic.

Moving a better document up never lowers a value (a law of the registry). So if the keys of tied documents
agree on their order, the orders by decreasing and by increasing keys give the extreme values. For any other
topic, all orders are scored if there are few. If there are many, the method depends on the measure. A mean of
scores by aspect is bounded by the mean of the extremes of these scores. Other measures are estimated from
random orders. Results name the method.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cupel_measures.explaining import closed_forms
from cupel_measures.explaining.document_keys import document_keys
from cupel_measures.explaining.explained_run import ExplainedRun, Series, as_data, cutoff_of
from cupel_measures.explaining.tie_orders import SHUFFLES, Keys, TieOrders
from cupel_measures.grammar.measure import Measure
from cupel_measures.model import Floats
from cupel_measures.scoring.evaluator import evaluate
from cupel_measures.scoring.pool import Mask
from cupel_measures.scoring.view import AspectView

RangeMethod = Literal["exact", "bounds", "sampled"]
MeanMethod = Literal["exact", "closed form", "sampled"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Ties:
    """The values over all orders of documents with equal scores.

    value: the score of the run. range_by: how least and greatest were computed: "exact"; "bounds" if they are
    outer bounds on some topics, which perhaps no order reaches; "sampled" if they are the extremes of random
    orders on some topics, which other orders can exceed. expected_by: "exact" if no value depends on the
    order or all orders were scored; "closed form"; or "sampled". standard_error: standard error of the mean
    over random orders; None unless expected_by is "sampled". shuffles: number of random orders of each
    sampled topic; None if no topic is sampled. topics: number of topics whose value depends on the order.
    """

    value: Series
    least: Series
    expected: Series
    greatest: Series
    range_by: RangeMethod
    expected_by: MeanMethod
    standard_error: Series | None
    topics: int

    @property
    def shuffles(self) -> int | None:
        return SHUFFLES if "sampled" in (self.range_by, self.expected_by) else None

    def as_data(self) -> dict[str, Any]:
        names = ("value", "least", "expected", "greatest", "standard_error")
        return {
            "range_by": self.range_by,
            "expected_by": self.expected_by,
            "shuffles": self.shuffles,
            "topics": self.topics,
            **as_data({name: getattr(self, name) for name in names}),
        }


def explain_ties(subject: ExplainedRun, measures: Sequence[Measure]) -> list[Ties]:
    orders = TieOrders(subject.uncut, subject.depth)
    known = {measure: _KnownValues.of(subject, orders, measure) for measure in measures}
    trials = _try_orders(subject, orders, {measure: values.unknown for measure, values in known.items()})
    return [_ties(subject, known[measure], trials[measure]) for measure in measures]


@dataclass(frozen=True, eq=False, kw_only=True)
class _KnownValues:
    """The values of a measure that are known without scoring several orders.

    exact: bool[T], topics whose least and greatest values are known. bounded: whether least and greatest are
    outer bounds on all other topics; if not, they are the score of the run on those topics. closed:
    float64[T], expected values by a closed form; None if the measure has no closed form. unknown: topics
    whose orders have to be scored.
    """

    measure: Measure
    least: Floats
    greatest: Floats
    exact: Mask
    bounded: bool
    closed: Floats | None
    unknown: Sequence[int]

    @classmethod
    def of(cls, subject: ExplainedRun, orders: TieOrders, measure: Measure) -> "_KnownValues":
        value = subject.values(measure)
        if not orders.topics.any():
            return cls(
                measure=measure,
                least=value,
                greatest=value,
                exact=~orders.topics,
                bounded=False,
                closed=value,
                unknown=(),
            )
        bound = measure.bound(subject.qrels.aspects)
        formed = closed_forms.has_closed_form(bound)
        cut = orders.split & (not (formed and closed_forms.cuts_by_run_rank(bound)))
        seen = cutoff_of(bound) if closed_forms.cuts_by_run_rank(bound) else None
        keys, exact = document_keys(subject.view, bound), ~orders.tied_above(seen)
        if keys is None:
            bounded, (least, greatest) = False, (value, value)
        else:
            exact |= orders.comparable(keys, seen) & ~cut
            bounded = not cut.any() and _has_bounds(bound)
            least, greatest = _extremes(subject, orders, bound, keys, value)
        known = exact | bounded
        least, greatest = np.where(known, least, value), np.where(known, greatest, value)
        closed = None
        if formed and not cut.any():
            closed = closed_forms.expected(subject.view, subject.uncut, subject.depth, bound)
            closed = np.where(known, np.clip(closed, least, greatest), closed)
        unknown = [
            topic
            for topic in np.flatnonzero(orders.topics).tolist()
            if (not exact[topic] and (not bounded or topic in orders.few))
            or (closed is None and greatest[topic] > least[topic])
        ]
        return cls(
            measure=measure,
            least=least,
            greatest=greatest,
            exact=exact,
            bounded=bounded,
            closed=closed,
            unknown=unknown,
        )


def _has_bounds(measure: Measure) -> bool:
    """Return whether the measure is bounded by the extremes of the scores by aspect.

    This holds for means of such scores. It does not hold for H with an aspect in `graded`, because the
    component of this aspect is not such a score.
    """
    means = measure.declaration.combination in ("mean", "harmonic mean")
    return means and not measure.arguments.get("graded")


def _extremes(
    subject: ExplainedRun, orders: TieOrders, measure: Measure, keys: Keys, value: Floats
) -> tuple[Floats, Floats]:
    """Return the values of the worst and the best order by `keys`, or outer bounds.

    Both are float64[T].
    """
    worst, best = (_extreme(subject, orders, measure, keys, best=best) for best in (False, True))
    return np.minimum(worst, value), np.maximum(best, value)  # min and max only correct rounding errors


def _extreme(subject: ExplainedRun, orders: TieOrders, measure: Measure, keys: Keys, *, best: bool) -> Floats:
    if _has_bounds(measure):
        view = _PartByPart(qrels=subject.qrels, joined=subject.joined, orders=orders, best=best)
        return view.score(measure)
    return AspectView(qrels=subject.qrels, joined=orders.extreme(keys, best=best)).score(measure)


@dataclass(frozen=True, eq=False, kw_only=True)
class _PartByPart(AspectView):
    """A view that scores each aspect of a mean in its own extreme order.

    This is the worst (or best) order for the aspect.

    If the same order is the extreme for all aspects, the mean is the value of this order. Otherwise it is an
    outer bound.
    """

    orders: TieOrders
    best: bool

    def score(self, measure: Measure, aspect: str | None = None) -> Floats:
        if measure.declaration.combines:
            return super().score(measure)
        keys = document_keys(self, measure, aspect)
        assert keys is not None, "a mean without keys has no extremes"
        joined = self.orders.extreme(keys, best=self.best)
        return AspectView(qrels=self.qrels, joined=joined).score(measure, aspect)


@dataclass(frozen=True, eq=False)
class _TriedOrders:
    """The values of a topic in several orders.

    every: whether these are all orders of the topic.
    """

    values: Floats
    every: bool

    def mean(self, change: Callable[[float], float] = float) -> float:
        return math.fsum(map(change, self.values.tolist())) / len(self.values)

    def error(self, change: Callable[[float], float] = float) -> float:
        """Return the standard error of `mean`."""
        if self.every:
            return 0.0
        mean, number = self.mean(change), len(self.values)
        squares = math.fsum((change(value) - mean) ** 2 for value in self.values.tolist())
        return math.sqrt(squares / (number * (number - 1)))


Trials = Mapping[int, _TriedOrders]
"""The tried orders of each topic."""


def _try_orders(
    subject: ExplainedRun, orders: TieOrders, unknown: Mapping[Measure, Sequence[int]]
) -> dict[Measure, Trials]:
    """Score orders of the topics in `unknown`. Return the values by measure and topic."""
    topics = sorted({topic for of_measure in unknown.values() for topic in of_measure})
    measures = [measure for measure, of_measure in unknown.items() if of_measure]
    collected: dict[Measure, dict[int, list[Floats]]] = {m: {t: [] for t in of} for m, of in unknown.items()}
    for joined, number in orders.sample_orders(topics, subject.seed) if topics else ():
        scores = evaluate(subject.qrels, joined, measures).values
        for measure in measures:
            values = scores[measure].reshape(-1, len(subject.qrels.topics))
            for topic in set(unknown[measure]) & number.keys():
                collected[measure][topic].append(values[: number[topic], topic])
    return {
        measure: {
            topic: _TriedOrders(np.concatenate(values), topic in orders.few) for topic, values in of.items()
        }
        for measure, of in collected.items()
    }


def _ties(subject: ExplainedRun, known: _KnownValues, trials: Trials) -> Ties:
    measure, value = known.measure, subject.values(known.measure)
    least, greatest = known.least.copy(), known.greatest.copy()
    for topic, trial in trials.items():
        if not known.exact[topic] and (trial.every or not known.bounded):
            seen = [*trial.values.tolist(), value[topic]]
            if known.closed is not None:
                seen.append(known.closed[topic])
            least[topic], greatest[topic] = min(seen), max(seen)
    depends = greatest > least
    expected, error = _expected(known, value, trials, depends)
    every = all(trial.every for trial in trials.values())
    tried = {topic for topic, trial in trials.items() if trial.every}
    open_ = set(np.flatnonzero(~known.exact).tolist()) - tried
    return Ties(
        value=Series.of(measure, value),
        least=Series.of(measure, least),
        expected=expected,
        greatest=Series.of(measure, greatest),
        range_by="exact" if not open_ else "bounds" if known.bounded else "sampled",
        expected_by=_method(known.closed is not None, every, bool(depends.any())),
        standard_error=None if every or known.closed is not None else error,
        topics=int(depends.sum()),
    )


def _method(closed: bool, every: bool, depends: bool) -> MeanMethod:
    if closed:
        return "closed form" if depends else "exact"
    return "exact" if every else "sampled"


def _expected(known: _KnownValues, value: Floats, trials: Trials, depends: Mask) -> tuple[Series, Series]:
    """Return the expected values and their standard errors.

    The standard error of an exact value is 0.
    """
    measure, error = known.measure, np.zeros(len(value))
    if known.closed is not None:
        expected = np.where(depends, known.closed, value)
        return Series.of(measure, expected), Series(0.0, error)
    expected = value.copy()
    for topic, trial in trials.items():
        expected[topic] = np.clip(trial.mean(), trial.values.min(), trial.values.max())
        error[topic] = trial.error()
    if measure.declaration.aggregate == "geometric mean":
        total, of_total = _geometric(value, trials)
        return Series(total, expected), Series(of_total, error)
    number = len(value) if measure.declaration.aggregate == "mean" else 1
    of_total = math.sqrt(math.fsum((error * error).tolist())) / number
    return Series.of(measure, expected), Series(of_total, error)


def _geometric(value: Floats, trials: Trials) -> tuple[float, float]:
    """Return the expected geometric mean and its standard error.

    Topics are independent, so the expected geometric mean is the product of the expected T-th roots of the
    values.
    """

    def root(score: float) -> float:
        return math.pow(score, 1 / len(value))

    roots = [trials[t].mean(root) if t in trials else root(v) for t, v in enumerate(value.tolist())]
    total = math.exp(math.fsum(map(math.log, roots)))
    shares = [(trial.error(root) / roots[topic]) ** 2 for topic, trial in trials.items()]
    return total, total * math.sqrt(math.fsum(shares))
