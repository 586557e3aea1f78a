"""What a score does not tell by itself: ties, unjudged documents, scale, parts, profiles (spec 12 and 4.2).

Everything is said of one run under one set of qrels, measure by measure, and each part costs nothing
unless it is asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cupel_measures.explaining import judgments, parts, profiles, scale, ties
from cupel_measures.explaining.subject import Subject
from cupel_measures.measure import Measure
from cupel_measures.model import Qrels, Ranking
from cupel_measures.profiles import DEFAULT, Profile

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

_MADE_BY: Mapping[str, Callable[[Subject, Sequence[Measure]], Sequence[Part | None]]] = {
    "ties": ties.of_measures,
    "judgments": judgments.of_measures,
    "scale": scale.of_measures,
    "parts": parts.of_measures,
    "profiles": profiles.of_measures,
}


@dataclass(frozen=True)
class Explanation:
    """What is told about a measure's value on a run: the parts that were asked for, by their names in ABOUT.

    A part is None where there is nothing to tell: the parts of a measure that does not combine aspects.
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
    subject = Subject(qrels, ranking, profile, depth, seed)
    found = {name: _MADE_BY[name](subject, measures) for name in ABOUT if name in about}
    return {
        measure: Explanation({name: of[place] for name, of in found.items()})
        for place, measure in enumerate(measures)
    }
