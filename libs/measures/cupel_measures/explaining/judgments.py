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

from cupel_measures.evaluating import evaluate
from cupel_measures.explaining import pooling
from cupel_measures.explaining.subject import Series, Subject, as_data, cutoff_of, inners
from cupel_measures.gains import table
from cupel_measures.measure import Measure
from cupel_measures.model import Floats
from cupel_measures.reading.joining import join
from cupel_measures.rows import divided
from cupel_measures.syntax import MeasureError


@dataclass(frozen=True, eq=False)
class Judgments:
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


def of_measures(subject: Subject, measures: Sequence[Measure]) -> list[Judgments]:
    highest = _as_highest(subject, measures)
    return [_judgments(subject, measure, highest[measure]) for measure in measures]


def _judgments(subject: Subject, measure: Measure, highest: Floats | str) -> Judgments:
    cutoff = cutoff_of(measure)
    as_lowest = Series.of(measure, subject.values(measure))
    unjudged = {
        name: Series(_mean(values), values)
        for name, values in pooling.unjudged(subject, _seen(subject, measure), cutoff).items()
    }
    if isinstance(highest, str):
        return Judgments(cutoff, unjudged, as_lowest, None, None, None, highest)
    as_highest = Series.of(measure, highest)
    bounds = (as_lowest, as_highest) if rises(measure, subject) else (None, None)
    return Judgments(cutoff, unjudged, as_lowest, as_highest, *bounds)


def _as_highest(subject: Subject, measures: Sequence[Measure]) -> dict[Measure, Floats | str]:
    """float64[T] per measure, or why there is none: its own universe is filled for each."""
    found: dict[Measure, Floats | str] = {}
    for cutoff in dict.fromkeys(map(cutoff_of, measures)):
        qrels = pooling.filled(subject, cutoff)
        joined = join(subject.ranking, qrels, profile=subject.profile, depth=subject.depth)
        for measure in measures:
            if cutoff_of(measure) == cutoff:
                try:
                    found[measure] = evaluate(qrels, joined, [measure]).values[measure]
                except MeasureError as problem:  # a declared label set may not have such labels
                    found[measure] = str(problem)
    return found


def _seen(subject: Subject, measure: Measure) -> Iterable[str]:
    return [pooling.SUBTOPICS] if measure.declaration.subtopics else subject.aspects_of(measure)


def rises(measure: Measure, subject: Subject) -> bool:
    """Whether a better label of a retrieved document never lowers the value, with these parameters."""
    arguments = measure.arguments
    if (
        not measure.declaration.rises
        or arguments.get("judged_only")
        or arguments.get("label_set") == "observed"
    ):
        return False
    return _gains_rise(measure, subject) and all(rises(one, subject) for one in inners(measure))


def _gains_rise(measure: Measure, subject: Subject) -> bool:
    """Whether `gains=`, if any are given, don't fall along the scale."""
    gains = measure.arguments.get("gains")
    if gains is None:
        return True
    return all((np.diff(table(aspect, gains)) >= 0).all() for aspect in subject.qrels.aspects)


def _mean(values: Floats) -> float:
    return float(divided(np.array([math.fsum(values.tolist())]), len(values))[0])
