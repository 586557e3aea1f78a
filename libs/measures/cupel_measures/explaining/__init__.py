"""What a score does not tell by itself: ties, unjudged documents, scale, parts, profiles (spec 12 and 4.2).

Everything is said of one run under one set of qrels, measure by measure, and each part costs nothing
unless it is asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cupel_measures.explaining import components, judgment_bounds, profile_changes, scale_notes, ties
from cupel_measures.explaining.explained_run import ExplainedRun
from cupel_measures.grammar.measure import Measure
from cupel_measures.model import Qrels, Ranking
from cupel_measures.model.profiles import DEFAULT, Profile

__all__ = ["ABOUT", "Explanation", "explain"]


class Part(Protocol):
    """One part of an explanation."""

    def as_data(self) -> dict[str, Any]:
        """Plain values that JSON can hold; lists by topic are in the order of the qrels' topics."""


ABOUT: Mapping[str, str] = {
    "ties": "the least, the expected and the greatest value over all orders of documents with equal scores",
    "judgments": "the share of unjudged documents, and the value if they all had the highest label",
    "scale": "the type of scale, what may be done with its values, and whether the aggregate asks for more",
    "parts": "what each aspect, or each class of labels, brings to a measure that combines aspects",
    "profiles": "what each other profile would change",
}
"""The parts of an explanation, in a sentence each."""

_MADE_BY: Mapping[str, Callable[[ExplainedRun, Sequence[Measure]], Sequence[Part | None]]] = {
    "ties": ties.of_measures,
    "judgments": judgment_bounds.of_measures,
    "scale": scale_notes.of_measures,
    "parts": components.of_measures,
    "profiles": profile_changes.of_measures,
}


@dataclass(frozen=True)
class Explanation:
    """What is told about a measure's value on a run: the parts that were asked for, by their names in ABOUT.

    A part is None where there is nothing to tell: the parts of a measure that does not combine aspects, and
    of one that reads texts all but its scale.
    """

    told: Mapping[str, Part | None]

    def as_data(self) -> dict[str, Any]:
        """Every part as plain values that JSON can hold, None (null) where there is nothing to tell.

        Lists under `by_topic` have an entry per topic of the qrels, in their order.
        """
        return {name: None if part is None else part.as_data() for name, part in self.told.items()}


def explain(
    qrels: Qrels,
    ranking: Ranking,
    measures: Sequence[Measure],
    *,
    profile: Profile = DEFAULT,
    depth: int | None = None,
    about: Sequence[str] = tuple(ABOUT),
    seed: int = 0,
) -> dict[Measure, Explanation]:
    """Explain the values of `measures` on the run `ranking`, which must have every document of it.

    profile, depth: those of the score that is explained; rankings are cut at `depth` once they are
    ordered, and another order of ties may bring other documents above the cut. about: the wanted parts,
    names in ABOUT. seed: of the shuffles, where a value over orders of ties can't be found otherwise; a
    measure's explanation depends on no other measure. Raises MeasureError where the collection can't
    have a measure, ValueError where `about` has an unknown name.
    """
    if unknown := [name for name in about if name not in ABOUT]:
        raise ValueError(f"nothing is told about {unknown[0]!r}; it may be {', '.join(ABOUT)}")
    subject = ExplainedRun(qrels, ranking, profile, depth, seed)
    found = {name: _part(name, subject, measures) for name in ABOUT if name in about}
    return {
        measure: Explanation({name: of.get(measure) for name, of in found.items()}) for measure in measures
    }


def _part(name: str, subject: ExplainedRun, measures: Sequence[Measure]) -> dict[Measure, Part | None]:
    """One part of each measure that it can be told of."""
    told = [one for one in measures if name == "scale" or not one.declaration.texts]
    return dict(zip(told, _MADE_BY[name](subject, told), strict=True))
