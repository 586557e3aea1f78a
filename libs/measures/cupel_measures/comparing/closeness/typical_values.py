"""One-sided sign-flip tests of a mean, and the interval that inverts them.

The method is that of Hartigan, JASA 1969.

d are the differences by topic, and s random signs. The test of the hypothesis "the mean is at most c" counts
the assignments of signs for which the sum of s (d - c) is at least the observed sum of d - c. This is the
case exactly if the mean of d over the topics with sign -1 is at most c. Therefore the means of d over random
subsets of topics, called typical values, give the p-value for every c. Their order statistics are the bounds
of the confidence interval that inverts the test. Like any sign-flip test, this one assumes that the
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
    """Means of random subsets of topics.

    The p-value of every hypothesis follows from them.

    means: means of the nonempty subsets, ascending. empty: number of empty subsets; they count as extreme
    under every hypothesis. tolerance: distance within which a subset mean counts as equal to the hypothetical
    mean.
    """

    means: Floats
    empty: int
    tolerance: float

    @property
    def replicates(self) -> int:
        """Number of subsets, including empty ones.

        The observed assignment of signs is not counted.
        """
        return len(self.means) + self.empty

    def p_above(self, bound: float) -> float:
        """Return the p-value of the hypothesis that the mean is at most `bound`."""
        count = int(np.searchsorted(self.means, bound + self.tolerance, "right"))
        return (1 + self.empty + count) / (1 + self.replicates)

    def p_below(self, bound: float) -> float:
        """Return the p-value of the hypothesis that the mean is at least `bound`."""
        count = len(self.means) - int(np.searchsorted(self.means, bound - self.tolerance, "left"))
        return (1 + self.empty + count) / (1 + self.replicates)

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the confidence interval that inverts the one-sided tests at level alpha.

        Its confidence is 1 - 2 alpha. It is infinite if there are too few topics for any rejection.
        """
        allowed = math.floor(alpha * (1 + self.replicates) + CLOSE) - 1 - self.empty
        if allowed < 0:
            return -math.inf, math.inf
        return float(self.means[allowed]), float(self.means[len(self.means) - 1 - allowed])


def typical_values(differences: Floats, *, flips: int = FLIPS, seed: int = 0) -> list[TypicalValues]:
    """Return the means of every column over random subsets of topics.

    differences: float64[topics, pairs], finite. With at most EXACT topics all subsets are enumerated; with
    more topics `flips` random subsets are drawn. All pairs share the subsets.
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
    """Yield blocks of subsets, float64[block, topics].

    The value is 1 for a topic in the subset, else 0.
    """
    if topics > EXACT:
        yield from ((1 - signs) / 2 for signs in random_signs(topics, flips, seed))
    else:
        yield (np.arange(1, 2**topics)[:, None] >> np.arange(topics) & 1).astype(np.float64)


def _quanta(topics: int, largest: Floats) -> Floats:
    """Return the spacing of floats at the largest possible sum of every column.

    It is 1 for a column of zeros.
    """
    return np.array([math.ulp(topics * value) if value else 1.0 for value in largest.tolist()])
