"""Scores of a run and its baseline, also under assumed labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cupel_measures.comparing.compared_measures import ComparedMeasure, compared_measure
from cupel_measures.comparing.comparison import compared_values
from cupel_measures.evaluation.gates.gate_verdicts import ComparedTopics
from cupel_measures.evaluation.gates.unjudged_tops import (
    TopDocuments,
    UnjudgedTop,
    top_documents,
    unjudged_tops,
)
from cupel_measures.evaluation.run_scoring import ScoringTask
from cupel_measures.explaining.assumed_labels import assume_labels
from cupel_measures.grammar.measure import Measure
from cupel_measures.model import Floats, Qrels, Ranking
from cupel_measures.model.profiles import Profile, find
from cupel_measures.scoring.evaluator import evaluate

Sides = tuple[Floats, Floats]
"""Values of the run and of the baseline."""


@dataclass(frozen=True, eq=False)
class GatedScores:
    """A run and its baseline, scored by the measures of a task.

    rankings: of the run and of the baseline.
    """

    task: ScoringTask
    rankings: tuple[Ranking, Ranking]

    @property
    def qrels(self) -> Qrels:
        return self.task.qrels

    @property
    def profile(self) -> Profile:
        return find(self.task.profile)

    @cached_property
    def topics(self) -> ComparedTopics:
        """Return the topics that are compared."""
        run, baseline = (np.isin(self.qrels.topics, ranking.topics) for ranking in self.rankings)
        return ComparedTopics(
            baseline, int(np.count_nonzero(run & ~baseline)), int(np.count_nonzero(baseline & ~run))
        )

    @cached_property
    def values(self) -> dict[Measure, Sides]:
        """Return the values of each measure on the compared topics."""
        return self._values(self.qrels, self.task.parsed)

    @cached_property
    def compared(self) -> dict[Measure, ComparedMeasure]:
        """Return how each measure is compared."""
        return {measure: compared_measure(measure, self.qrels) for measure in self.task.parsed}

    def compared_sides(self, measure: Measure, sides: Sides) -> Sides:
        """Return the values, or their logarithms for a geometric mean."""
        run, baseline = (compared_values(values, self.compared[measure]) for values in sides)
        return run, baseline

    def unjudged(self, measure: Measure) -> tuple[UnjudgedTop, UnjudgedTop]:
        """Return the unjudged documents that only one side has in its first ten.

        The first result is about the run, and the second about the baseline.
        """
        tops = self._tops
        return unjudged_tops(self.qrels, tops, self._aspect(measure), self.profile, self.topics.mask)

    def values_under(self, measure: Measure, lowest: UnjudgedTop, highest: UnjudgedTop) -> Sides:
        """Return the values of a measure under assumed labels of unjudged documents.

        Raise MeasureError if the measure does not allow these labels.
        """
        qrels = assume_labels(self.qrels, lowest.documents, self.profile, highest=False)
        qrels = assume_labels(qrels, highest.documents, self.profile, highest=True)
        return self._values(qrels, [measure])[measure]

    @cached_property
    def _tops(self) -> tuple[TopDocuments, TopDocuments]:
        run, baseline = (
            top_documents(ranking, self.qrels, self.profile, self.task.depth) for ranking in self.rankings
        )
        return run, baseline

    def _aspect(self, measure: Measure) -> str | None:
        """Return the aspect whose judgments count, or None for judgments by subtopic.

        It is the first one if the measure combines several aspects.
        """
        if measure.declaration.subtopics or self.qrels.only_by_subtopic:
            return None
        arguments = measure.bound(self.qrels.aspects).arguments
        combined = arguments.get("aspects") or [self.qrels.aspects[0].name]
        return str(arguments.get("aspect") or combined[0])

    def _values(self, qrels: Qrels, measures: Sequence[Measure]) -> dict[Measure, Sides]:
        task = replace(self.task, qrels=qrels)
        sides = []
        for ranking in self.rankings:
            joined, content = task.joined(ranking)
            sides.append(evaluate(qrels, joined, measures, content=content).values)
        run, baseline = sides
        mask = self.topics.mask
        return {measure: (run[measure][mask], baseline[measure][mask]) for measure in measures}
