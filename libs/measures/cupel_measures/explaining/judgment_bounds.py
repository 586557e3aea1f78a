"""The effect of unjudged documents on a score.

A document counts as unjudged if it is not judged for an aspect that the measure uses. Only documents of the
run down to the measure's cutoff are considered. Two scenarios are always reported:

- `as_lowest`: the score without changes.
- `as_highest`: the score if each unjudged document has the highest label of every aspect for which it is not
  judged. For measures of subtopics, it is relevant to every subtopic of its topic. Such a document also joins
  the pool, the recall base and the ideal ranking.

The scenarios are not bounds in general: if an unjudged document becomes relevant, the value of a measure with
a recall base or an ideal ranking can fall. They are bounds if a better label of a retrieved document never
lowers the value (`Declaration.rises`).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cupel_measures.explaining import unjudged_documents
from cupel_measures.explaining.explained_run import ExplainedRun, Series, as_data, cutoff_of, inner_measures
from cupel_measures.families.understandability import probabilities
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, Floats
from cupel_measures.reading.joins import join
from cupel_measures.scoring.evaluator import evaluate
from cupel_measures.scoring.gains import table
from cupel_measures.scoring.rows import divided


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgmentBounds:
    """The effect of the unjudged documents of a run on a score.

    cutoff: deepest rank that counts; None for all. unjudged: by aspect ("subtopics" for judgments by
    subtopic), the share of unjudged documents among the documents retrieved down to the cutoff, and its mean
    over topics; the share is 0 for an empty ranking. as_lowest, as_highest: the scores of the two scenarios
    (see the module). as_highest is None if the measure does not allow the highest labels, for example because
    a declared set of label tuples excludes them; `refused` is then the error message. least, greatest: bounds
    over all labels; None if they are unknown.
    """

    cutoff: int | None
    unjudged: dict[str, Series]
    as_lowest: Series
    as_highest: Series | None
    least: Series | None
    greatest: Series | None
    refused: str | None = None

    def as_data(self) -> dict[str, Any]:
        scenarios = as_data({name: getattr(self, name) for name in SCENARIOS})
        shares = as_data(dict(self.unjudged))
        scenarios["by_topic"]["unjudged"] = shares.pop("by_topic")
        return {"cutoff": self.cutoff, "unjudged": shares, **scenarios, "refused": self.refused}


SCENARIOS = ("as_lowest", "as_highest", "least", "greatest")


def explain_judgments(subject: ExplainedRun, measures: Sequence[Measure]) -> list[JudgmentBounds]:
    highest = _as_highest(subject, measures)
    return [_judgments(subject, measure, highest[measure]) for measure in measures]


def _judgments(subject: ExplainedRun, measure: Measure, highest: Floats | str) -> JudgmentBounds:
    cutoff = cutoff_of(measure)
    as_lowest = Series.of(measure, subject.values(measure))
    unjudged = {
        name: Series(_mean(values), values)
        for name, values in unjudged_documents.unjudged(
            subject, _judged_aspects(subject, measure), cutoff
        ).items()
    }
    if isinstance(highest, str):
        return JudgmentBounds(
            cutoff=cutoff,
            unjudged=unjudged,
            as_lowest=as_lowest,
            as_highest=None,
            least=None,
            greatest=None,
            refused=highest,
        )
    as_highest = Series.of(measure, highest)
    is_bounded = rises(measure, subject.qrels.aspects)
    return JudgmentBounds(
        cutoff=cutoff,
        unjudged=unjudged,
        as_lowest=as_lowest,
        as_highest=as_highest,
        least=as_lowest if is_bounded else None,
        greatest=as_highest if is_bounded else None,
    )


def _as_highest(subject: ExplainedRun, measures: Sequence[Measure]) -> dict[Measure, Floats | str]:
    """Return the values of each measure with highest labels, float64[T].

    If they are undefined, the reason is returned instead.
    """
    values: dict[Measure, Floats | str] = {}
    for cutoff in dict.fromkeys(map(cutoff_of, measures)):
        qrels = unjudged_documents.with_highest_labels(subject, cutoff)
        joined = join(subject.ranking, qrels, profile=subject.profile, depth=subject.depth)
        for measure in measures:
            if cutoff_of(measure) == cutoff:
                try:
                    values[measure] = evaluate(qrels, joined, [measure]).values[measure]
                except MeasureError as error:  # a declared set of label tuples can lack the highest labels
                    values[measure] = str(error)
    return values


def _judged_aspects(subject: ExplainedRun, measure: Measure) -> Iterable[str]:
    return [unjudged_documents.SUBTOPICS] if measure.declaration.subtopics else subject.aspects_of(measure)


def rises(measure: Measure, aspects: Sequence[Aspect]) -> bool:
    """Return whether a better label of a retrieved document never lowers the value.

    The result is for the parameters of this measure.

    The value of a measure that is declared as rising can still fall in four cases:

    - judged-only measures, because a judgment changes ranks;
    - TOMA with `label_set=observed`, because its classes depend on the labels of all documents;
    - measures with the parameter `gains`, if these gains fall along the scale or the measure is within TOMA;
    - different cutoffs by aspect, because a document can join the recall base of one aspect only.
    """
    arguments, of = measure.arguments, inner_measures(measure)
    if (
        not measure.declaration.rises
        or arguments.get("judged_only")
        or arguments.get("label_set") == "observed"
    ):
        return False
    if measure.declaration.combination == "classes" and any(inner.arguments.get("gains") for inner in of):
        return False
    alike = len({cutoff_of(inner) for inner in of}) <= 1
    return alike and _gains_rise(measure, aspects) and all(rises(inner, aspects) for inner in of)


def _gains_rise(measure: Measure, aspects: Sequence[Aspect]) -> bool:
    gains = measure.arguments.get("gains")
    if "understandability" in measure.arguments:
        by_aspect = dict(gains or ())
        tables = [probabilities(aspect, by_aspect.get(aspect.name)) for aspect in aspects]
    else:
        tables = [table(aspect, gains) for aspect in aspects]
    return all((np.diff(values) >= 0).all() for values in tables)


def _mean(values: Floats) -> float:
    return float(divided(np.array([math.fsum(values.tolist())]), len(values))[0])
