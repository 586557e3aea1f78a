"""Gains of labels: the gains of an aspect, some of which a measure can replace."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from cupel_measures.grammar.parameters import GainTable, exact
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, Exact, Floats


def table(aspect: Aspect, gains: GainTable | None) -> Floats:
    """Return the gain of each label, float64[labels].

    `gains` replaces gains of the aspect.
    """
    return _with(aspect.gains, aspect, gains)


def rising(aspect: Aspect, gains: GainTable | None, *, by_index: bool = False) -> Floats:
    """Return `table`; raise MeasureError if a better label has a smaller gain.

    With `by_index`, the gain of a label is its index, unless `gains` has another gain for it.
    """
    defaults = np.arange(len(aspect.labels), dtype=np.float64) if by_index else aspect.gains
    values = _with(defaults, aspect, gains)
    decreases = np.flatnonzero(np.diff(values) < 0)
    if len(decreases):
        worse, better = (aspect.labels[decreases[0] + step] for step in (0, 1))
        raise MeasureError(
            f"label {better} has a smaller gain than label {worse}; gains must not decrease along the scale "
            f"of aspect {aspect.name!r}"
        )
    return values


def exactly(aspect: Aspect, gains: GainTable | None, *, by_index: bool = False) -> list[Exact]:
    """Return the numbers of `rising` exactly as written.

    0.1 is one tenth, 1/3 is one third.
    """
    defaults = rising(aspect, None, by_index=by_index).tolist()
    numbers: list[Exact] = [int(gain) if gain.is_integer() else exact(gain) for gain in defaults]
    for place, gain in _replaced(aspect, gains):
        numbers[place] = exact(gain)
    return numbers


def _with(defaults: Floats, aspect: Aspect, gains: GainTable | None) -> Floats:
    values = defaults.copy()
    for place, gain in _replaced(aspect, gains):
        values[place] = float(gain)
    return values


def _replaced(aspect: Aspect, gains: GainTable | None) -> Iterator[tuple[int, float | Fraction]]:
    """Yield index and new gain of the labels in `gains`.

    Labels that the aspect does not have are ignored.
    """
    labels = aspect.labels if aspect.integer else range(len(aspect.labels))
    for label, gain in gains or ():
        if label in labels:
            yield labels.index(label), gain
