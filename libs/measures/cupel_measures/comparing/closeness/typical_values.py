"""Typical values of a mean: the one-sided sign-flip test of every hypothesis at once (Hartigan, JASA 1969).

The one-sided sign-flip test of "the mean is at most c" counts the assignments of signs whose sum of
s (d - c) is at least the observed sum of d - c. That holds exactly where the mean of d over the topics with
sign -1 is at most c. So the means of d over random subsets of topics give p for every c, and their order
statistics are the bounds of the interval that the test inverts. Like any sign-flip test, it assumes that the
differences are symmetric about their mean.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cupel_measures.comparing.outcomes import CLOSE
from cupel_measures.comparing.resampling import EXACT, FLIPS, random_signs
from cupel_measures.model import Floats


@dataclass(frozen=True, eq=False)
class TypicalValues:
    """Subset means in ascending order, and the number of empty subsets, which count for every hypothesis.

    tolerance: distance within which a subset mean counts as equal to a hypothesis.
    """

    means: Floats
    empty: int
    tolerance: float

    @property
    def replicates(self) -> int:
        """Number of assignments of signs, without the observed one."""
        return len(self.means) + self.empty

    def p_above(self, bound: float) -> float:
        """Return p of "the mean is at most `bound`"; a small p says that it is above."""
        count = int(np.searchsorted(self.means, bound + self.tolerance, "right"))
        return (1 + self.empty + count) / (1 + self.replicates)

    def p_below(self, bound: float) -> float:
        """Return p of "the mean is at least `bound`"; a small p says that it is below."""
        count = len(self.means) - int(np.searchsorted(self.means, bound - self.tolerance, "left"))
        return (1 + self.empty + count) / (1 + self.replicates)

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the interval outside of which the one-sided tests reject at level alpha.

        Its confidence is 1 - 2 alpha. It is infinite if there are too few topics for a rejection.
        """
        allowed = math.floor(alpha * (1 + self.replicates) + CLOSE) - 1 - self.empty
        if allowed < 0:
            return -math.inf, math.inf
        return float(self.means[allowed]), float(self.means[len(self.means) - 1 - allowed])


def typical_values(differences: Floats, *, flips: int = FLIPS, seed: int = 0) -> list[TypicalValues]:
    """Return the typical values of every column: its means over random subsets of topics.

    differences: float64[topics, pairs], finite. All subsets are enumerated up to EXACT topics; else `flips`
    subsets are drawn, the same for all pairs.
    """
    largest = np.abs(differences).max(axis=0)
    quanta = _quanta(len(differences), largest)
    rounded = np.round(differences / quanta)  # whole numbers, so matrix products are exact on any machine
    sizes, sums = zip(
        *((chosen.sum(axis=1), chosen @ rounded) for chosen in _subsets(len(differences), flips, seed)),
        strict=True,
    )
    size = np.concatenate(sizes)
    chosen_any = size > 0
    means = np.concatenate(sums)[chosen_any] / size[chosen_any, None] * quanta
    empty = len(size) - int(np.count_nonzero(chosen_any))
    return [
        TypicalValues(np.sort(column), empty, CLOSE * scale)
        for column, scale in zip(means.T, largest.tolist(), strict=True)
    ]


def _subsets(topics: int, flips: int, seed: int) -> Iterator[Floats]:
    """Yield float64[block, topics]: 1 for a chosen topic, else 0."""
    if topics > EXACT:
        yield from ((1 - signs) / 2 for signs in random_signs(topics, flips, seed))
    else:
        yield (np.arange(1, 2**topics)[:, None] >> np.arange(topics) & 1).astype(np.float64)


def _quanta(topics: int, largest: Floats) -> Floats:
    """Return the spacing of floats at the largest possible sum of every column; 1 for a column of zeros."""
    return np.array([math.ulp(topics * value) if value else 1.0 for value in largest.tolist()])
