"""Scoring: measures over joined rows, per topic, and their aggregates over topics."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.registry import Aggregate
from cupel_measures.grammar.syntax import MeasureError, short
from cupel_measures.model import Content, Exact, Floats, Joined, Qrels
from cupel_measures.scoring import exact
from cupel_measures.scoring.pool import Mask
from cupel_measures.scoring.view import AspectView

Values = TypeVar("Values")

SCORING_VERSION = 1
"""Goes up only when the value of some measure may change; recorded with every score."""

PART = 1 << 17
"""Hits that are scored at once: what measures derive from them then stays in a processor's cache."""

CHAIN = 5
"""Nested samples that are made one of the other; a longer chain would keep what all of them have derived."""

MOST_DIGITS = 2000
"""Exact aggregates with longer denominators take too long to be made, and to be read, with every score."""


@dataclass(frozen=True, eq=False)
class Scores:
    """values: float64[rows] per measure, a row per topic of the qrels, one run after another."""

    topics: int
    values: Mapping[Measure, Floats]

    def of_run(self, index: int) -> "Scores":
        """The scores of one of several stacked runs."""
        begin = index * self.topics
        return Scores(self.topics, {m: v[begin : begin + self.topics] for m, v in self.values.items()})

    def aggregates(self) -> dict[Measure, float]:
        """Each measure over all topics of one run. ValueError where several are stacked: see `of_run`."""
        if any(len(values) != self.topics for values in self.values.values()):
            raise ValueError("these are the scores of several runs: take those of one by of_run")
        return {measure: aggregate(measure, values) for measure, values in self.values.items()}


def evaluate(
    qrels: Qrels, joined: Joined, measures: Sequence[Measure], *, content: Content | None = None
) -> Scores:
    """Score every row of `joined`, which may hold several runs (`Joined.stack`), by its profile.

    content: the texts of the same rows, for measures that need them. Raises MeasureError where the collection
    can't have a measure (an aspect it lacks, say), ValueError where `content` has other rows than `joined`.
    """
    return Evaluator(qrels, joined, content=content).evaluate(measures)


class Evaluator:
    """Scores the same rows again and again: by other measures, or under a part of their judgments."""

    def __init__(self, qrels: Qrels, joined: Joined, *, content: Content | None = None) -> None:
        """Of what `evaluate` takes, which does this once."""
        if content is not None and len(content.offsets) != len(joined.offsets):
            raise ValueError(
                f"{len(content.offsets) - 1} rows of texts, {len(joined.retrieved)} rows of documents"
            )
        self.qrels = qrels
        self._views = list(_parts(qrels, joined, content))

    def keeping(self, kept: Mask, aspect: str | None = None) -> "Evaluator":
        """The same rows under the judgments of the documents `kept` alone (`Qrels.keeping`).

        Of nested samples each is best made of the one before: it then looks only at what that one had.
        """
        fewer = copy(self)
        fewer.qrels = self.qrels.keeping(kept, aspect)
        fewer._views = [view.under(fewer.qrels) for view in self._views]
        return fewer

    def nested_samples(self, samples: Iterable[Mask], aspect: str | None = None) -> Iterator["Evaluator"]:
        """`keeping` each of nested samples, the largest first; memory stays that of CHAIN of them."""
        fewer = self
        for number, kept in enumerate(samples):
            fewer = (fewer if number % CHAIN else self).keeping(kept, aspect)
            yield fewer

    def evaluate(self, measures: Sequence[Measure]) -> Scores:
        """Every row by each measure; raises MeasureError as the function of the same name."""
        found = {
            one: np.concatenate([_of_measure(view.score, self.qrels, one) for view in self._views])
            for one in measures
        }
        return Scores(len(self.qrels.topics), found)


def _parts(qrels: Qrels, joined: Joined, content: Content | None) -> Iterator[AspectView]:
    """The rows cut between runs, into parts of about PART hits."""
    topics, last = len(qrels.topics), len(joined.retrieved)
    runs = last // max(topics, 1)
    rows = max(1, runs * PART // max(int(joined.offsets[-1]), 1)) * topics
    for begin in range(0, max(last, 1), max(rows, 1)):
        end = min(begin + rows, last)
        yield AspectView(qrels, joined.part(begin, end), content and content.part(begin, end))


@dataclass(frozen=True, eq=False)
class ExactScores:
    """values: a whole number or a rational per row and measure; rows as in `Scores`.

    `exact.sort_key` and `exact.to_text` make of an aggregate what a database can order and keep.
    """

    topics: int
    values: Mapping[Measure, Sequence[Exact]]

    def of_run(self, index: int) -> "ExactScores":
        """The scores of one of several stacked runs."""
        begin = index * self.topics
        return ExactScores(self.topics, {m: v[begin : begin + self.topics] for m, v in self.values.items()})

    def aggregates(self) -> dict[Measure, Fraction]:
        """Each measure over all topics of one run. ValueError where several are stacked: see `of_run`."""
        if any(len(values) != self.topics for values in self.values.values()):
            raise ValueError("these are the scores of several runs: take those of one by of_run")
        return {measure: exact_aggregate(measure, values) for measure, values in self.values.items()}


def exact_values(qrels: Qrels, joined: Joined, measures: Sequence[Measure]) -> ExactScores:
    """As `evaluate`, but exact: for scale checks, and for measures that tell systems apart below a float.

    Raises MeasureError as `evaluate` does, and for a measure that has no exact values (`has_exact_values`).
    """
    view = AspectView(qrels, joined)
    return ExactScores(len(qrels.topics), {one: _of_measure(view.exact, qrels, one) for one in measures})


def has_exact_values(measure: Measure) -> bool:
    """Whether `exact_values` takes the measure; a combining one needs an inner measure that has them."""
    inner = measure.arguments.get("of")
    return measure.declaration.exact is not None and (inner is None or has_exact_values(inner))


def keeps_exact(measure: Measure, depth: int) -> bool:
    """Whether `exact_means` has the measure on rankings of at most `depth` documents.

    It does where there are exact values, unless they may have more than MOST_DIGITS digits: RBP with p=0.8
    has 699 at a depth of 1,000, with p=0.999 it would have 3,000.
    """
    if not has_exact_values(measure):
        return False
    arguments, digits = measure.arguments, measure.declaration.digits
    if "of" in arguments:
        return keeps_exact(arguments["of"], depth)
    return digits is None or digits(min(depth, arguments["cutoff"] or depth), arguments) <= MOST_DIGITS


def exact_means(
    qrels: Qrels, joined: Joined, measures: Sequence[Measure], *, depth: int
) -> dict[Measure, Fraction]:
    """The exact aggregate of one run by each of `measures` that `keeps_exact` allows at this depth.

    What the floats of `evaluate` are rounded from: by these, systems are ordered. Raises as `exact_values`.
    """
    kept = [measure for measure in measures if keeps_exact(measure, depth)]
    return exact_values(qrels, joined, kept).aggregates()


def exact_aggregate(measure: Measure, values: Sequence[Exact]) -> Fraction:
    """A measure over all topics: the mean or the sum of exact values."""
    return {"mean": exact.mean, "sum": exact.total}[measure.declaration.aggregate](values)


def check(qrels: Qrels, measures: Sequence[Measure], *, texts: bool = False) -> None:
    """Raise MeasureError where `qrels`, which may lack all judgments, can't have one of `measures`.

    texts: whether there are texts for measures that need them.
    """
    topics = len(qrels.topics)
    evaluate(qrels, Joined.empty(topics), measures, content=Content.empty(topics) if texts else None)


def impossible(qrels: Qrels, measures: Sequence[Measure]) -> list[str]:
    """Why `qrels` can't have one or other of `measures`: a sentence for each that they can't."""
    sentences = []
    for one in measures:
        try:
            check(qrels, [one])
        except MeasureError as problem:
            sentences.append(str(problem))
    return sentences


def _of_measure(score: Callable[[Measure], Values], qrels: Qrels, measure: Measure) -> Values:
    bound = measure.bound(qrels.aspects)
    try:
        if qrels.only_by_subtopic and not measure.declaration.subtopics:
            raise MeasureError(
                "it needs judgments of an aspect, and this collection has them by subtopic only; "
                "measures of those are alpha_nDCG@20 and its like"
            )
        return score(bound)
    except MeasureError as problem:
        raise MeasureError(f"{short(str(measure))}: {problem}") from None


def aggregate(measure: Measure, values: Floats) -> float:
    """A measure over all topics: mean, sum or geometric mean, correctly rounded (spec 1.2.6).

    values: float64[T], a value per topic of the qrels; a topic missing from the run has one too.
    """
    return aggregates(measure, np.asarray(values, dtype=np.float64)[np.newaxis])[0]


def aggregates(measure: Measure, values: Floats) -> list[float]:
    """`aggregate` of each run; values: float64[runs, T]."""
    ways = {"mean": _mean, "sum": math.fsum, "geometric mean": _geometric_mean}
    kind: Aggregate = measure.declaration.aggregate
    return [ways[kind](of_run) for of_run in values.tolist()]


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _geometric_mean(values: list[float]) -> float:
    return math.exp(_mean([math.log(value) for value in values])) if values else 0.0
