"""What is explained: a run under qrels, by the rules of one profile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.syntax import ArgumentPairs
from cupel_measures.model import Floats, Joined, Qrels, Ranking
from cupel_measures.model.profiles import Profile
from cupel_measures.reading.joins import join
from cupel_measures.scoring.evaluator import aggregate, evaluate
from cupel_measures.scoring.view import AspectView


@dataclass(frozen=True, eq=False)
class ExplainedRun:
    """A run and what it is scored by. depth: where rankings are cut. seed: of shuffles."""

    qrels: Qrels
    ranking: Ranking
    profile: Profile
    depth: int | None
    seed: int
    memory: dict[Measure, Floats] = field(default_factory=dict, repr=False)

    @cached_property
    def whole(self) -> Joined:
        """The run under the qrels before any cut, whose tie groups are whole."""
        return join(self.ranking, self.qrels, profile=self.profile)

    @cached_property
    def joined(self) -> Joined:
        """The run as it is scored."""
        if self.depth is None:
            return self.whole
        return join(self.ranking, self.qrels, profile=self.profile, depth=self.depth)

    @cached_property
    def view(self) -> AspectView:
        return AspectView(qrels=self.qrels, joined=self.joined)

    def values(self, measure: Measure) -> Floats:
        """float64[T]: the values that are explained."""
        if measure not in self.memory:
            self.memory[measure] = evaluate(self.qrels, self.joined, [measure]).values[measure]
        return self.memory[measure]

    def aspects_of(self, measure: Measure) -> list[str]:
        """The aspects that a measure sees, in the collection's order; none for a measure of subtopics."""
        if measure.declaration.subtopics:
            return []
        arguments, order = measure.bound(self.qrels.aspects).arguments, self._order
        if not measure.declaration.combines:
            return [arguments["aspect"] or order[0]]
        seen = {*(arguments.get("aspects") or ()), *(arguments.get("understandability") or ())}
        if "aspect" in arguments:  # topicality, apart from understandability
            seen.add(arguments["aspect"] or order[0])
        return [name for name in order if name in seen]

    @property
    def _order(self) -> list[str]:
        return [aspect.name for aspect in self.qrels.aspects]


@dataclass(frozen=True, eq=False)
class Series:
    """Values of a measure. by_topic: float64[T]. total: the measure's aggregate of them."""

    total: float
    by_topic: Floats

    @classmethod
    def of(cls, measure: Measure, values: Floats) -> "Series":
        return cls(aggregate(measure, values), values)


def as_data(series: Mapping[str, Series | None]) -> dict[str, Any]:
    """Aggregates under their names, and lists of values under the same names in `by_topic`; None stays."""
    totals = {name: None if one is None else one.total for name, one in series.items()}
    lists = {name: None if one is None else one.by_topic.tolist() for name, one in series.items()}
    return {**totals, "by_topic": lists}


def inners(measure: Measure) -> Sequence[Measure]:
    """The measures in `of=`: none, one, or one per aspect."""
    of = measure.arguments.get("of")
    if of is None:
        return []
    return [one for _, one in of] if isinstance(of, ArgumentPairs) else [of]


def cutoff_of(measure: Measure) -> int | None:
    """The deepest rank that a measure looks at, as its text says; None is the whole ranking."""
    if found := inners(measure):
        cutoffs = [cutoff_of(one) for one in found]
        return None if None in cutoffs else max(one for one in cutoffs if one is not None)
    cutoff: int | None = measure.arguments.get("cutoff")
    return cutoff
