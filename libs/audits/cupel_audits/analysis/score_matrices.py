"""Scores by one measure as they are compared: topics x runs, exact where the measure is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cupel_audits.declarations import Audit
from cupel_audits.subject import DECIMALS, AuditSubject, by_topic, means
from cupel_measures.comparing.compared_measures import asked_for
from cupel_measures.comparing.comparison import as_compared
from cupel_measures.comparing.outcomes import unusable
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Floats
from cupel_measures.scoring.evaluator import check, exact_values, keeps_exact
from cupel_measures.scoring.exact import whole

Numbers = Sequence[float] | Sequence[int]


@dataclass(frozen=True, eq=False)
class Compared:
    """The scores of all runs by a measure.

    values: float64[topics, runs], logarithms for a geometric mean. orders: a row per topic, for what goes by
    order alone: whole numbers in proportion to the exact scores where the measure has them (`exact`), else
    the floats, which are tied where they are equal to DECIMALS. means: over topics, for orders too. notes:
    what is to be said of the measure. undefined: why nothing can be computed with its values.
    """

    measure: str
    scale: ScaleType
    values: Floats
    orders: Sequence[Numbers]
    means: Numbers
    exact: bool
    notes: tuple[str, ...]
    undefined: str | None


def compared(subject: AuditSubject, measure: Measure) -> Compared:
    """The scores by `measure`, one of the subject's or another; MeasureError as in `evaluate`."""
    asked = asked_for(measure, subject.qrels)
    scores = by_topic(subject.evaluator.evaluate([measure]), [measure])
    values = as_compared(scores[str(measure)], asked)
    exact = _exactly(subject, measure)
    of_runs: Numbers = means(scores, [measure])[str(measure)].tolist()
    orders: Sequence[Numbers] = np.round(scores[str(measure)], DECIMALS).tolist()
    if exact is not None:
        orders, of_runs = exact, [sum(column) for column in zip(*exact, strict=True)]
    why = unusable(values)
    return Compared(asked.measure, asked.scale, values, orders, of_runs, exact is not None, asked.notes, why)


def _exactly(subject: AuditSubject, measure: Measure) -> list[list[int]] | None:
    """Numerators over one denominator, a row per topic; None where there are none, or long ones."""
    if not keeps_exact(measure, int(subject.joined.retrieved.max(initial=0))):
        return None
    values = exact_values(subject.qrels, subject.joined, [measure]).values[measure]
    numerators, _ = whole(values)
    topics = len(subject.qrels.topics)
    return [numerators[topic::topics] for topic in range(topics)]


class OverTopics(Audit):
    """A kind that compares all runs over several topics by measures that can be had."""

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if (number := len(subject.about.topics)) < 2:
            count = "is only one topic" if number == 1 else "are no topics"
            yield f"the audit compares runs over topics, but there {count}: give judgments of two or more"
        if not subject.about.measures:
            yield "the audit compares runs by measures, but there are none: give one or more"
        for measure in subject.measures:
            try:
                check(subject.qrels, [measure], texts=subject.content is not None)
            except MeasureError as problem:
                yield str(problem)


def warned(done: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The `notes` of trials, a sentence for each with the measures that it is said of."""
    measures: dict[str, list[str]] = {}
    for one in done:
        for note in one["notes"]:
            measures.setdefault(note, []).append(one["measure"])
    return tuple(f"{', '.join(names)}: {note}" for note, names in measures.items())
