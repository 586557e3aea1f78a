"""The evaluator: scores of joined runs per topic, and aggregates over topics."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress
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
"""Version of the scoring code, stored with each score. It increases only if a measure's values may change."""

PART = 1 << 17
"""Number of hits that are scored together, so that derived data fits into a processor cache."""

CHAIN = 5
"""Largest number of nested samples that are each derived from the previous one; all stay in memory."""

MAX_DIGITS = 2000
"""Maximum number of digits of the denominator of an exact aggregate. More digits would be too slow."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of one or several runs.

    values: float64[rows] per measure, one row per topic of the qrels, run after run.
    """

    topics: int
    values: Mapping[Measure, Floats]

    def of_run(self, index: int) -> "Scores":
        """Return the scores of one of several stacked runs."""
        begin = index * self.topics
        return Scores(self.topics, {m: v[begin : begin + self.topics] for m, v in self.values.items()})

    def aggregates(self, over: Mask | None = None) -> dict[Measure, float]:
        """Return the aggregate of each measure over topics.

        Raises ValueError for several runs (see `of_run`).

        over: bool[topics], the topics to aggregate over. The default is all judged topics, as in trec_eval
        -c. `Joined.has_documents` selects the topics of the run, as in trec_eval without -c.
        """
        if any(len(values) != self.topics for values in self.values.values()):
            raise ValueError("these are the scores of several runs; select one with of_run")
        chosen = slice(None) if over is None else over
        return {measure: aggregate(measure, values[chosen]) for measure, values in self.values.items()}


def evaluate(
    qrels: Qrels, joined: Joined, measures: Sequence[Measure], *, content: Content | None = None
) -> Scores:
    """Score every row of `joined` under its profile.

    `joined` can contain several runs (`Joined.stack`).

    content: the texts of the same rows, for measures that need them. Raises MeasureError if the collection
    does not support a measure, for example because it lacks an aspect, and ValueError if `content` has other
    rows than `joined`, or if `joined` was joined with other qrels.
    """
    return Evaluator(qrels, joined, content=content).evaluate(measures)


class Evaluator:
    """Evaluator that scores the same rows repeatedly.

    The measures can differ between evaluations, and `restricted_to` returns an evaluator with fewer
    judgments.
    """

    def __init__(self, qrels: Qrels, joined: Joined, *, content: Content | None = None) -> None:
        """Take the arguments of the function `evaluate`."""
        if joined.pool is not None and joined.pool != qrels.pool_digest:
            raise ValueError("the run was joined with other qrels; join it with the qrels that score it")
        if content is not None and len(content.offsets) != len(joined.offsets):
            raise ValueError(
                f"content has {len(content.offsets) - 1} rows, joined has {len(joined.retrieved)}; "
                "both must have the same rows"
            )
        self.qrels = qrels
        self._views = list(_parts(qrels, joined, content))

    def restricted_to(self, kept: Mask, aspect: str | None = None, *, pooled: bool = False) -> "Evaluator":
        """Return an evaluator of the same rows with only the judgments of some documents.

        kept: the documents that keep their judgments.

        The arguments are those of `Qrels.restricted_to`. For nested samples, deriving each evaluator from the
        previous one is faster, because fewer documents are searched.
        """
        fewer = copy(self)
        fewer.qrels = self.qrels.restricted_to(kept, aspect, pooled=pooled)
        fewer._views = [view.under(fewer.qrels) for view in self._views]
        return fewer

    def nested_samples(
        self, samples: Iterable[Mask], aspect: str | None = None, *, pooled: bool = False
    ) -> Iterator["Evaluator"]:
        """Yield an evaluator for each of several nested samples of the judgments.

        samples: the kept documents of each sample, largest sample first. aspect, pooled: as in
        `restricted_to`. At most CHAIN evaluators are in memory.
        """
        fewer = self
        for number, kept in enumerate(samples):
            fewer = (fewer if number % CHAIN else self).restricted_to(kept, aspect, pooled=pooled)
            yield fewer

    def evaluate(self, measures: Sequence[Measure]) -> Scores:
        """Score every row by each measure.

        Raises MeasureError like the function `evaluate`.
        """
        values = {
            measure: np.concatenate([_apply(view.score, self.qrels, measure) for view in self._views])
            for measure in measures
        }
        return Scores(len(self.qrels.topics), values)


def _parts(qrels: Qrels, joined: Joined, content: Content | None) -> Iterator[AspectView]:
    """Yield the rows in parts of about PART hits. Each part contains complete runs."""
    topics, last = len(qrels.topics), len(joined.retrieved)
    runs = last // max(topics, 1)
    rows = max(1, runs * PART // max(int(joined.offsets[-1]), 1)) * topics
    for begin in range(0, max(last, 1), max(rows, 1)):
        end = min(begin + rows, last)
        yield AspectView(
            qrels=qrels, joined=joined.part(begin, end), content=content and content.part(begin, end)
        )


@dataclass(frozen=True, eq=False)
class ExactScores:
    """Exact scores of one or several runs.

    values: by measure, an integer or a rational per row. Rows are those of `Scores`.

    `exact.sort_key` and `exact.to_text` convert aggregates to text that a database can sort and store.
    """

    topics: int
    values: Mapping[Measure, Sequence[Exact]]

    def of_run(self, index: int) -> "ExactScores":
        """Return the scores of one of several stacked runs."""
        begin = index * self.topics
        return ExactScores(self.topics, {m: v[begin : begin + self.topics] for m, v in self.values.items()})

    def aggregates(self, over: Mask | None = None) -> dict[Measure, Fraction]:
        """Return the exact aggregate of each measure over topics.

        The arguments are those of `Scores.aggregates`.
        """
        if any(len(values) != self.topics for values in self.values.values()):
            raise ValueError("these are the scores of several runs; select one with of_run")
        chosen = [True] * self.topics if over is None else over
        return {
            measure: exact_aggregate(measure, list(compress(values, chosen)))
            for measure, values in self.values.items()
        }


def exact_values(qrels: Qrels, joined: Joined, measures: Sequence[Measure]) -> ExactScores:
    """Score every row of `joined` in exact numbers.

    Exact scores serve to check scale types. They are also needed for measures whose scores can differ by less
    than the precision of floats. Raise MeasureError as `evaluate` does, and for a measure without exact
    values (`has_exact_values`).
    """
    view = AspectView(qrels=qrels, joined=joined)
    values = {measure: _apply(view.exact, qrels, measure) for measure in measures}
    return ExactScores(len(qrels.topics), values)


def has_exact_values(measure: Measure) -> bool:
    """Return whether the measure has exact values.

    A combining measure requires them of its inner measure.
    """
    inner = measure.arguments.get("of")
    return measure.declaration.exact is not None and (inner is None or has_exact_values(inner))


def keeps_exact(measure: Measure, depth: int) -> bool:
    """Return whether `exact_means` includes the measure at `depth`.

    depth: the largest number of documents in a ranking.

    It does if the measure has exact values whose denominators have at most MAX_DIGITS decimal digits. At a
    depth of 1,000, the denominators of RBP have 699 digits with p=0.8, and 3,000 with p=0.999.
    """
    if not has_exact_values(measure):
        return False
    arguments, digits = measure.arguments, measure.declaration.digits
    if "of" in arguments:
        return keeps_exact(arguments["of"], depth)
    return digits is None or digits(min(depth, arguments["cutoff"] or depth), arguments) <= MAX_DIGITS


def exact_means(
    qrels: Qrels, joined: Joined, measures: Sequence[Measure], *, depth: int, over: Mask | None = None
) -> dict[Measure, Fraction]:
    """Return the exact aggregate of one run for each measure that allows it.

    A measure allows it if `keeps_exact` is true for the measure at `depth`.

    over: the topics to aggregate over (see `Scores.aggregates`). Systems are ordered by these values, because
    the floats of `evaluate` are rounded. Raises MeasureError as `exact_values` does.
    """
    kept = [measure for measure in measures if keeps_exact(measure, depth)]
    return exact_values(qrels, joined, kept).aggregates(over)


def exact_aggregate(measure: Measure, values: Sequence[Exact]) -> Fraction:
    """Return the mean or the sum of exact values over topics."""
    return {"mean": exact.mean, "sum": exact.total}[measure.declaration.aggregate](values)


def check(qrels: Qrels, measures: Sequence[Measure], *, texts: bool = False) -> None:
    """Raise MeasureError if `qrels` does not support one of `measures`.

    The qrels need no judgments.

    texts: whether the collection has texts, for measures that need them.
    """
    topics = len(qrels.topics)
    evaluate(qrels, Joined.empty(topics), measures, content=Content.empty(topics) if texts else None)


def list_unsupported(qrels: Qrels, measures: Sequence[Measure]) -> list[str]:
    """Return a sentence for each measure that `qrels` does not support.

    The sentence has the reason.
    """
    sentences = []
    for measure in measures:
        try:
            check(qrels, [measure])
        except MeasureError as problem:
            sentences.append(str(problem))
    return sentences


def _apply(score: Callable[[Measure], Values], qrels: Qrels, measure: Measure) -> Values:
    bound = measure.bound(qrels.aspects)
    try:
        if qrels.only_by_subtopic and measure.needs_labels:
            raise MeasureError(
                "it needs judgments of an aspect, and this collection has only judgments by subtopic; "
                "use a measure for judgments by subtopic, such as alpha_nDCG@20"
            )
        return score(bound)
    except MeasureError as problem:
        raise MeasureError(f"{short(str(measure))}: {problem}") from None


def aggregate(measure: Measure, values: Floats) -> float:
    """Return the aggregate of a measure over topics, correctly rounded.

    The aggregate is the mean, the sum or the geometric mean.

    values: float64[T], one value per topic to aggregate over: usually all judged topics, including those
    missing from the run.
    """
    return aggregates(measure, np.asarray(values, dtype=np.float64)[np.newaxis])[0]


def aggregates(measure: Measure, values: Floats) -> list[float]:
    """Return `aggregate` of each run; values: float64[runs, T]."""
    functions = {"mean": _mean, "sum": math.fsum, "geometric mean": _geometric_mean}
    kind: Aggregate = measure.declaration.aggregate
    return [functions[kind](run_values) for run_values in values.tolist()]


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _geometric_mean(values: list[float]) -> float:
    return math.exp(_mean([math.log(value) for value in values])) if values else 0.0
