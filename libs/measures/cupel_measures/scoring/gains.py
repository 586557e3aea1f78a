"""What the labels of an aspect are worth to a measure: the aspect's gains, or others in their place."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from cupel_measures.grammar.parameters import GainTable, exact
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, Exact, Floats


def table(aspect: Aspect, gains: GainTable | None) -> Floats:
    """float64[labels]: the aspect's gain per label, with those of `gains` in their place."""
    return _with(aspect.gains, aspect, gains)


def rising(aspect: Aspect, gains: GainTable | None, *, by_index: bool = False) -> Floats:
    """`table` for measures that need a scale: MeasureError where a better label is worth less.

    With `by_index`, labels that `gains` leaves out are worth their index, not their gain.
    """
    own = np.arange(len(aspect.labels), dtype=np.float64) if by_index else aspect.gains
    found = _with(own, aspect, gains)
    falls = np.flatnonzero(np.diff(found) < 0)
    if len(falls):
        worse, better = (aspect.labels[falls[0] + step] for step in (0, 1))
        raise MeasureError(
            f"label {better} would be worth less than {worse}; gains must not fall along the scale "
            f"of aspect {aspect.name!r}"
        )
    return found


def exactly(aspect: Aspect, gains: GainTable | None, *, by_index: bool = False) -> list[Exact]:
    """The numbers of `rising` as they were typed: 0.1 is one tenth, 1/3 is one third."""
    found = rising(aspect, None, by_index=by_index).tolist()
    numbers: list[Exact] = [int(gain) if gain.is_integer() else exact(gain) for gain in found]
    for place, gain in _replaced(aspect, gains):
        numbers[place] = exact(gain)
    return numbers


def _with(own: Floats, aspect: Aspect, gains: GainTable | None) -> Floats:
    found = own.copy()
    for place, gain in _replaced(aspect, gains):
        found[place] = float(gain)
    return found


def _replaced(aspect: Aspect, gains: GainTable | None) -> Iterator[tuple[int, float | Fraction]]:
    """Index and new gain of the labels in `gains`; one that the scale lacks credits nothing."""
    labels = aspect.labels if aspect.integer else range(len(aspect.labels))
    for label, gain in gains or ():
        if label in labels:
            yield labels.index(label), gain
