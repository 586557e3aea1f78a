"""Matrices of scores by one measure, topics x runs.

The scores are exact where the measure has exact values.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cupel_audits.declarations import Audit
from cupel_audits.subject import DECIMALS, AuditSubject, means, scores_by_topic
from cupel_measures.comparing.compared_measures import compared_measure
from cupel_measures.comparing.comparison import compared_values
from cupel_measures.comparing.outcomes import undefined_reason
from cupel_measures.comparing.rank_correlation import levels
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Floats
from cupel_measures.scoring.evaluator import check, exact_values, keeps_exact
from cupel_measures.scoring.exact import over_common_denominator

Numbers = Sequence[float] | Sequence[int]


@dataclass(frozen=True, eq=False, kw_only=True)
class RunScores:
    """The scores of all runs by a measure.

    values: float64[topics, runs], the scores, or their logarithms if the measure is a geometric mean. orders:
    a row for each topic, for statistics that depend on the order of scores only. exact: whether the rows of
    `orders` contain integers proportional to the exact scores; otherwise, they contain scores rounded to
    DECIMALS. means: for each run, a number proportional to its mean score over topics, by which runs are
    sorted. notes: warnings about the measure. undefined: the reason why nothing can be computed from the
    values, or None.
    """

    measure: str
    scale: ScaleType
    values: Floats
    orders: Sequence[Numbers]
    means: Numbers
    exact: bool
    notes: tuple[str, ...]
    undefined: str | None


def score_runs(subject: AuditSubject, measure: Measure) -> RunScores:
    """Score all runs by a measure.

    Raises MeasureError if the measure cannot be computed.
    """
    description = compared_measure(measure, subject.qrels)
    scores = scores_by_topic(subject.evaluator.evaluate([measure]), [measure])
    values = compared_values(scores[str(measure)], description)
    exact = _exact_numerators(subject, measure)
    run_means: Numbers = means(scores, [measure])[str(measure)].tolist()
    orders: Sequence[Numbers] = np.round(scores[str(measure)], DECIMALS).tolist()
    if exact is not None:
        orders, run_means = exact, [sum(column) for column in zip(*exact, strict=True)]
    return RunScores(
        measure=description.text,
        scale=description.scale,
        values=values,
        orders=orders,
        means=run_means,
        exact=exact is not None,
        notes=description.notes,
        undefined=undefined_reason(values),
    )


def _exact_numerators(subject: AuditSubject, measure: Measure) -> list[list[int]] | None:
    """Return the exact scores as numerators over a common denominator.

    The result has a row per topic.

    Return None if the measure has no exact values, or if they have too many digits.
    """
    if not keeps_exact(measure, int(subject.joined.retrieved.max(initial=0))):
        return None
    values = exact_values(subject.qrels, subject.joined, [measure]).values[measure]
    numerators, _ = over_common_denominator(values)
    topics = len(subject.qrels.topics)
    return [numerators[topic::topics] for topic in range(topics)]


class OverTopics(Audit):
    """Base class of kinds that compare all runs by measures over two or more topics."""

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if (number := len(subject.about.topics)) < 2:
            count = "only one topic" if number == 1 else "no topics"
            yield f"the audit compares runs over topics, but the judgments have {count}: judge two or more"
        if not subject.about.measures:
            yield "the audit compares runs by measures, but no measure is given: give one or more"
        for measure in subject.measures:
            try:
                check(subject.qrels, [measure], texts=subject.content is not None)
            except MeasureError as problem:
                yield str(problem)


def collect_warnings(trials: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return each different note of the trials.

    Each note is preceded by the measures that it applies to.
    """
    measures: dict[str, list[str]] = {}
    for trial in trials:
        for note in trial["notes"]:
            measures.setdefault(note, []).append(trial["measure"])
    return tuple(f"{', '.join(names)}: {note}" for note, names in measures.items())


def mid_ranks(scores: RunScores) -> list[float]:
    """Return the rank of each run, 1 for the best; tied runs share their mean rank."""
    level = levels(scores.means)
    above = (level[:, None] < level[None, :]).sum(axis=1)
    ties = (level[:, None] == level[None, :]).sum(axis=1)
    ranks: list[float] = (above + (ties + 1) / 2).tolist()
    return ranks
