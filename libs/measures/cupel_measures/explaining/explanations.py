"""Explanations of scores: ties, unjudged documents, scale type, and other parts.

Other parts are aspects and other profiles.

An explanation covers one run under one set of qrels, measure by measure. Only the requested parts are
computed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cupel_measures.explaining import components, judgment_bounds, profile_changes, scale_notes, ties
from cupel_measures.explaining.explained_parts import ABOUT
from cupel_measures.explaining.explained_run import ExplainedRun
from cupel_measures.grammar.measure import Measure
from cupel_measures.model import Qrels, Ranking
from cupel_measures.model.profiles import DEFAULT, Profile


class Part(Protocol):
    """One part of an explanation."""

    def as_data(self) -> dict[str, Any]:
        """Return JSON-compatible values.

        Lists by topic have the order of the topics in the qrels.
        """


_EXPLAINERS: Mapping[str, Callable[[ExplainedRun, Sequence[Measure]], Sequence[Part | None]]] = {
    "ties": ties.explain_ties,
    "judgments": judgment_bounds.explain_judgments,
    "scale": scale_notes.explain_scales,
    "parts": components.explain_components,
    "profiles": profile_changes.explain_profiles,
}


@dataclass(frozen=True)
class Explanation:
    """The explanation of a measure's value on a run.

    It contains the requested parts, by their names in ABOUT.

    A part that does not apply is None. `parts` applies only to measures that combine aspects. A measure that
    reads texts has only the part `scale`.
    """

    parts: Mapping[str, Part | None]

    def as_data(self) -> dict[str, Any]:
        """Return each part as JSON-compatible values.

        A part that does not apply is None (null).

        Lists under `by_topic` have one entry per topic of the qrels, in their order.
        """
        return {name: None if part is None else part.as_data() for name, part in self.parts.items()}


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
    """Explain the values of measures on a run.

    ranking: all documents of the run, without a cut. profile, depth: the profile and the depth with which the
    run was scored. Rankings are ordered before they are cut, so the order of tied documents can decide which
    of them are above the cut. about: names of the requested parts, from ABOUT. seed: random seed for orders
    of tied documents. Orders are sampled if the values over all orders cannot be computed. The explanation of
    a measure does not depend on other measures. Raises MeasureError if a measure is not defined for the
    collection, and ValueError for an unknown name in `about`.
    """
    if unknown := [name for name in about if name not in ABOUT]:
        raise ValueError(f"unknown part {unknown[0]!r} of an explanation; choose from {', '.join(ABOUT)}")
    subject = ExplainedRun(qrels=qrels, ranking=ranking, profile=profile, depth=depth, seed=seed)
    by_part = {name: _explain_part(name, subject, measures) for name in ABOUT if name in about}
    return {
        measure: Explanation({name: parts.get(measure) for name, parts in by_part.items()})
        for measure in measures
    }


def _explain_part(
    name: str, subject: ExplainedRun, measures: Sequence[Measure]
) -> dict[Measure, Part | None]:
    """Return the part `name` of the explanation of each measure to which it applies."""
    explained = [measure for measure in measures if name == "scale" or not measure.declaration.texts]
    return dict(zip(explained, _EXPLAINERS[name](subject, explained), strict=True))
