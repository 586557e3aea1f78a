"""The run that is explained, with its qrels and profile, and values by topic."""

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


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedRun:
    """A run with its qrels and options.

    depth: rank at which rankings are cut. seed: random seed for orders of tied documents. memory: computed
    values by measure.
    """

    qrels: Qrels
    ranking: Ranking
    profile: Profile
    depth: int | None
    seed: int
    memory: dict[Measure, Floats] = field(default_factory=dict, repr=False)

    @cached_property
    def uncut(self) -> Joined:
        """The run joined with the qrels, without a cut.

        A cut would split tie groups.
        """
        return join(self.ranking, self.qrels, profile=self.profile)

    @cached_property
    def joined(self) -> Joined:
        """The run joined with the qrels and cut at `depth`, as for scoring."""
        if self.depth is None:
            return self.uncut
        return join(self.ranking, self.qrels, profile=self.profile, depth=self.depth)

    @cached_property
    def view(self) -> AspectView:
        return AspectView(qrels=self.qrels, joined=self.joined)

    def values(self, measure: Measure) -> Floats:
        """Return the explained values of a measure, float64[T]."""
        if measure not in self.memory:
            self.memory[measure] = evaluate(self.qrels, self.joined, [measure]).values[measure]
        return self.memory[measure]

    def aspects_of(self, measure: Measure) -> list[str]:
        """Return the aspects that a measure uses, in the collection's order.

        There are none if it uses subtopics.
        """
        if measure.declaration.subtopics:
            return []
        arguments, order = measure.bound(self.qrels.aspects).arguments, self._order
        if not measure.declaration.combines:
            return [arguments["aspect"] or order[0]]
        seen = {*(arguments.get("aspects") or ()), *(arguments.get("understandability") or ())}
        if "aspect" in arguments:  # the topical aspect, in addition to those of understandability
            seen.add(arguments["aspect"] or order[0])
        return [name for name in order if name in seen]

    @property
    def _order(self) -> list[str]:
        return [aspect.name for aspect in self.qrels.aspects]


@dataclass(frozen=True, eq=False)
class Series:
    """Values of a measure. by_topic: float64[T]. total: their aggregate over topics."""

    total: float
    by_topic: Floats

    @classmethod
    def of(cls, measure: Measure, values: Floats) -> "Series":
        return cls(aggregate(measure, values), values)


def as_data(series: Mapping[str, Series | None]) -> dict[str, Any]:
    """Return aggregates by name, and lists of values by topic.

    The lists are in `by_topic` under the same names.
    """
    totals = {name: None if values is None else values.total for name, values in series.items()}
    lists = {name: None if values is None else values.by_topic.tolist() for name, values in series.items()}
    return {**totals, "by_topic": lists}


def inner_measures(measure: Measure) -> Sequence[Measure]:
    """Return the measures in `of=`: none, one, or one per aspect."""
    of = measure.arguments.get("of")
    if of is None:
        return []
    return [inner for _, inner in of] if isinstance(of, ArgumentPairs) else [of]


def cutoff_of(measure: Measure) -> int | None:
    """Return the deepest rank that a measure uses according to its text, or None.

    None stands for the whole ranking.
    """
    if components := inner_measures(measure):
        cutoffs = [cutoff_of(component) for component in components]
        return None if None in cutoffs else max(cutoff for cutoff in cutoffs if cutoff is not None)
    cutoff: int | None = measure.arguments.get("cutoff")
    return cutoff
