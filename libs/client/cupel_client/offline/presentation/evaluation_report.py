"""The result of `cupel evaluate`, whatever format it is printed in."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cupel_client.offline.run_scoring import Scored, ScoringTask
from cupel_measures.catalogue.parser import Measure
from cupel_measures.families.diversity import OVER_GREEDY, above_ideal
from cupel_measures.reading.collection_files import Collection
from cupel_measures.scoring.evaluator import has_exact_values

ALL = "all"
"""What stands for a topic where a value is over all of them."""


@dataclass(frozen=True, eq=False)
class EvaluationReport:
    """Runs by name, as scored or refused by `job`."""

    collection: Collection
    job: ScoringTask
    runs: Mapping[str, Scored]
    per_topic: bool
    official: bool = False
    """Whether trec_eval's `official` was asked for, which names the run."""

    @cached_property
    def scored(self) -> dict[str, Scored]:
        return {name: one for name, one in self.runs.items() if one.values is not None}

    @cached_property
    def refused(self) -> dict[str, Scored]:
        return {name: one for name, one in self.runs.items() if one.values is None}

    @property
    def measures(self) -> tuple[Measure, ...]:
        return self.job.parsed

    @property
    def topics(self) -> tuple[str, ...]:
        return self.job.qrels.topics

    def best_first(self) -> list[tuple[int, str, Scored]]:
        """(rank, name, run) by the first measure, exactly where that is known; equal scores share a rank."""
        first = str(self.measures[0])
        exact = all(first in one.exact for one in self.scored.values())
        scores = {name: one.exact[first] if exact else one.means[0] for name, one in self.scored.items()}
        order = sorted(self.scored, key=lambda name: (-scores[name], name))
        ranked = [scores[name] for name in order]
        return [(ranked.index(scores[name]) + 1, name, self.scored[name]) for name in order]

    def without_relevant(self, aspect: int = 0) -> int:
        """How many topics have no relevant document for an aspect."""
        qrels = self.job.qrels
        relevant = qrels.topic_of[qrels.labels[aspect] >= qrels.aspects[aspect].threshold]
        return len(qrels.topics) - len(np.unique(relevant))

    def remarks(self) -> Iterator[str]:
        """What readers of the scores should know."""
        lacking = [one.missing for one in self.scored.values() if one.missing]
        if lacking:
            runs = f"{len(lacking)} run{'s' * (len(lacking) != 1)}"
            most = f"up to {max(lacking)} of {len(self.topics)}"
            yield f"{runs} without topics of the qrels ({most}), which count as empty rankings."
        inferred = [aspect.name for aspect in self.collection.aspects if aspect.inferred]
        scaled = [str(measure) for measure in self.measures if measure.by_scale]
        if inferred and scaled:
            aspects = ", ".join(inferred)
            yield f"{', '.join(scaled)}: values depend on the scale, which is inferred for {aspects}."
        if self.job.exact and len(self.scored) > 1 and (short := self._rounded()):
            yield f"{', '.join(short)}: exact values would be too long here, so runs are compared by floats."
        for measure, number in self._above_ideal().items():
            values = f"{number} value{'s' * (number != 1)} above 1"
            yield f"{measure}: {values}, as the greedy ideal is not always the best; cap=True makes them 1."

    def _rounded(self) -> list[str]:
        """Measures that have exact values, which some run was too deep for."""
        wanted = [one for one in self.measures[: self.job.exact] if has_exact_values(one)]
        return [str(one) for one in wanted if any(str(one) not in run.exact for run in self.scored.values())]

    def _above_ideal(self) -> dict[Measure, int]:
        """How many values are above their greedy ideal's, by measure, where there are any."""
        found = Counter(
            {
                measure: sum(
                    int(above_ideal(one.values[place]).sum()) for one in self.scored.values() if one.values
                )
                for place, measure in enumerate(self.measures)
                if measure.declaration.bounds == OVER_GREEDY
            }
        )
        return dict(+found)
