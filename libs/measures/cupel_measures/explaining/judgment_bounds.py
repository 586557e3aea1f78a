"""What unjudged documents of a run could change (spec 12, "Judgment bounds").

The universe of a measure are the run's documents, down to its cutoff or all of them, that are not judged for
an aspect it sees. Two scenarios are always told: `as_lowest`, the score as it stands, and `as_highest`: each
gets the highest label of every aspect it lacks one of (for measures of subtopics it is relevant to every
subtopic of its topic), and so joins pool, recall base and ideal ranking. These are no bounds: the value of a
measure with a recall base or an ideal can fall when an unjudged document turns out relevant. Where a better
label of a retrieved document never lowers the value (`Declaration.rises`) they are the bounds as well.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cupel_measures.explaining import unjudged_documents
from cupel_measures.explaining.explained_run import ExplainedRun, Series, as_data, cutoff_of, inners
from cupel_measures.families.understandability import probabilities
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, Floats
from cupel_measures.reading.joins import join
from cupel_measures.scoring.evaluator import evaluate
from cupel_measures.scoring.gains import table
from cupel_measures.scoring.rows import divided


@dataclass(frozen=True, eq=False)
class JudgmentBounds:
    """What the unjudged documents of a run could change.

    cutoff: the deepest rank looked at; None is all. unjudged: by aspect ("subtopics" for judgments by
    subtopic), the share of unjudged documents among the retrieved ones down to there (0 of none);
    over topics it is the mean. as_highest is None where no such judgments can be, and `refused` says why.
    least, greatest: bounds over all labels, None where none are known.
    """

    cutoff: int | None
    unjudged: dict[str, Series]
    as_lowest: Series
    as_highest: Series | None
    least: Series | None
    greatest: Series | None
    refused: str | None = None

    def as_data(self) -> dict[str, Any]:
        found = as_data({name: getattr(self, name) for name in SCENARIOS})
        shares = as_data(dict(self.unjudged))
        found["by_topic"]["unjudged"] = shares.pop("by_topic")
        return {"cutoff": self.cutoff, "unjudged": shares, **found, "refused": self.refused}


SCENARIOS = ("as_lowest", "as_highest", "least", "greatest")


def of_measures(subject: ExplainedRun, measures: Sequence[Measure]) -> list[JudgmentBounds]:
    highest = _as_highest(subject, measures)
    return [_judgments(subject, measure, highest[measure]) for measure in measures]


def _judgments(subject: ExplainedRun, measure: Measure, highest: Floats | str) -> JudgmentBounds:
    cutoff = cutoff_of(measure)
    as_lowest = Series.of(measure, subject.values(measure))
    unjudged = {
        name: Series(_mean(values), values)
        for name, values in unjudged_documents.unjudged(subject, _seen(subject, measure), cutoff).items()
    }
    if isinstance(highest, str):
        return JudgmentBounds(cutoff, unjudged, as_lowest, None, None, None, highest)
    as_highest = Series.of(measure, highest)
    bounds = (as_lowest, as_highest) if rises(measure, subject.qrels.aspects) else (None, None)
    return JudgmentBounds(cutoff, unjudged, as_lowest, as_highest, *bounds)


def _as_highest(subject: ExplainedRun, measures: Sequence[Measure]) -> dict[Measure, Floats | str]:
    """float64[T] per measure, or why there is none: its own universe is filled for each."""
    found: dict[Measure, Floats | str] = {}
    for cutoff in dict.fromkeys(map(cutoff_of, measures)):
        qrels = unjudged_documents.filled(subject, cutoff)
        joined = join(subject.ranking, qrels, profile=subject.profile, depth=subject.depth)
        for measure in measures:
            if cutoff_of(measure) == cutoff:
                try:
                    found[measure] = evaluate(qrels, joined, [measure]).values[measure]
                except MeasureError as problem:  # a declared label set may not have such labels
                    found[measure] = str(problem)
    return found


def _seen(subject: ExplainedRun, measure: Measure) -> Iterable[str]:
    return [unjudged_documents.SUBTOPICS] if measure.declaration.subtopics else subject.aspects_of(measure)


def rises(measure: Measure, aspects: Sequence[Aspect]) -> bool:
    """Whether a better label of a retrieved document never lowers the value, with these parameters.

    Judged-only measures see other ranks where a document is judged. Observed classes depend on all labels.
    Gains may be given that fall along a scale. What is beyond one aspect's cutoff, and not the other's, would
    join its recall base alone.
    """
    arguments, of = measure.arguments, inners(measure)
    if (
        not measure.declaration.rises
        or arguments.get("judged_only")
        or arguments.get("label_set") == "observed"
    ):
        return False
    if measure.declaration.combination == "classes" and any(one.arguments.get("gains") for one in of):
        return False
    alike = len({cutoff_of(one) for one in of}) <= 1
    return alike and _gains_rise(measure, aspects) and all(rises(one, aspects) for one in of)


def _gains_rise(measure: Measure, aspects: Sequence[Aspect]) -> bool:
    gains = measure.arguments.get("gains")
    if "understandability" in measure.arguments:
        by_aspect = dict(gains or ())
        tables = [probabilities(aspect, by_aspect.get(aspect.name)) for aspect in aspects]
    else:
        tables = [table(aspect, gains) for aspect in aspects]
    return all((np.diff(one) >= 0).all() for one in tables)


def _mean(values: Floats) -> float:
    return float(divided(np.array([math.fsum(values.tolist())]), len(values))[0])
