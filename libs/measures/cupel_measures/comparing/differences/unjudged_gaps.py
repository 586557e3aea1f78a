"""Pairs of systems with unequal shares of unjudged documents."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cupel_measures.comparing.differences.comparison_choices import Pair
from cupel_measures.comparing.outcomes import CLOSE

UNJUDGED_GAP = 0.1
"""Difference between the shares of unjudged documents above which a pair of systems gets a warning."""
Means = Mapping[str, Sequence[float | None]]
"""The mean score of every system, by the text of the measure."""


@dataclass(frozen=True)
class UnjudgedGap:
    """Two systems whose shares of unjudged documents differ by more than UNJUDGED_GAP.

    The first has more unjudged documents. It may score lower for that reason. measures: texts of the measures
    by which it scores lower.
    """

    unjudged: str
    first: int
    second: int
    measures: tuple[str, ...]


def unjudged_gaps(
    shares: Mapping[str, Sequence[float]], means: Mapping[str, Means], pairs: Sequence[Pair]
) -> Iterator[UnjudgedGap]:
    """Yield the pairs whose shares of unjudged documents differ by over UNJUDGED_GAP.

    A pair is yielded only if the system with more unjudged documents scores lower by at least one measure.

    shares: the share of every system, by the text of each `Unjudged` measure. means: the mean scores, by the
    text of the `Unjudged` measure, then by the text of each measure that it belongs to.
    """
    for text, values in shares.items():
        for pair in pairs:
            more, less = sorted(pair, key=lambda system: -values[system])
            if values[more] - values[less] > UNJUDGED_GAP + CLOSE:
                lower = tuple(name for name, scores in means[text].items() if _is_lower(scores, more, less))
                if lower:
                    yield UnjudgedGap(text, more, less, lower)


def _is_lower(scores: Sequence[float | None], system: int, other: int) -> bool:
    first, second = scores[system], scores[other]
    return first is not None and second is not None and first < second - CLOSE
