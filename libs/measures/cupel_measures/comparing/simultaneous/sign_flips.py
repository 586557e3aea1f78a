"""Sign flips of centred scores: the replicates of the max-T tests.

All pairs of systems share them.

A replicate gives each topic a random sign and applies it to the centred differences d of every pair. The
statistic of a pair is t = r sqrt((n - 1) / (1 - r**2)) with r = sum(s d) / sqrt(n sum(d**2)), for signs s and
n topics. r lies between -1 and 1, and t grows with r, so all comparisons use r. The numerator is the
difference of two signed sums, one per system, so a replicate costs one number per system and one subtraction
per pair.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.comparing.outcomes import CLOSE, mean
from cupel_measures.comparing.resampling import random_signs
from cupel_measures.model import Floats, Ints

try:
    from cupel_measures.native import _flips as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]

extension: Any = compiled
"""The C extension, or None if it is not built."""

Mask = NDArray[np.bool_]
BLOCK = 256
"""Number of replicates per block, so that the arrays of a block stay in the processor cache."""


@dataclass(frozen=True, eq=False)
class SignFlips:
    """The replicates of one matrix of scores.

    The matrix is float64[topics, systems], without undefined scores.

    All systems and measures with the same topics, number of replicates and seed share the signs. Results do
    not depend on the order of the systems.
    """

    values: Floats
    replicates: int
    seed: int

    @cached_property
    def means(self) -> Floats:
        """float64[systems]: the mean of every system."""
        return mean(self.values)

    @cached_property
    def _squares(self) -> Floats:
        """Sums of squared centred differences, float64[systems, systems].

        Rounding errors become 0.
        """
        topics, systems = self.values.shape
        total = np.zeros((systems, systems))
        for scores in self.values - self.means:
            total += (scores[:, None] - scores) ** 2
        total[total <= topics * (CLOSE * self._scale) ** 2] = 0.0
        return total

    @cached_property
    def _scale(self) -> Floats:
        """The largest absolute score of either system, or 1 if that is larger.

        float64[systems, systems].
        """
        largest = np.maximum(np.abs(self.values).max(axis=0), 1.0)
        return np.asarray(np.maximum(largest[:, None], largest))

    @cached_property
    def errors(self) -> Floats:
        """float64[systems, systems]: the standard error of the difference of means."""
        topics = len(self.values)
        errors: Floats = np.sqrt(self._squares / (topics * (topics - 1)))
        return errors

    @cached_property
    def observed(self) -> Floats:
        """r of the observed differences, float64[systems, systems].

        A difference is the row system minus the column system. r is 0 if the means are equal.
        Otherwise, it is 1 or -1 if the differences have no variance.
        """
        differences = self.means[:, None] - self.means
        differences = np.where(np.abs(differences) < CLOSE * self._scale, 0.0, differences)
        lengths = np.sqrt(self._squares + len(self.values) * differences**2)
        products = math.sqrt(len(self.values)) * differences
        r = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        return np.clip(r, -1.0, 1.0)

    @cached_property
    def weights(self) -> Floats:
        """1 / sqrt(n sum(d**2)) of every pair, float64[systems, systems].

        It is 0 if all d are 0.
        """
        lengths = np.sqrt(len(self.values) * self._squares)
        return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)

    @cached_property
    def sums(self) -> Floats:
        """float64[systems, replicates]: the signed sums of the centred scores.

        The scores are rounded to a common quantum, so that every sum is exact and has the same bits in a
        matrix product of any size on any machine. The quantum is the spacing of floats at n times the largest
        centred score.
        """
        centred = self.values - self.means
        largest = len(centred) * float(np.abs(centred).max(initial=0.0))
        quantum = math.ulp(largest) if largest else 1.0
        rounded = np.round(centred.T / quantum) * quantum
        return rounded @ _signs(len(centred), self.replicates, self.seed)

    def to_t(self, r: Floats) -> Floats:
        """Return the t statistics that correspond to values of r.

        They are infinite for r = 1 and r = -1.
        """
        share = r * r
        squares = np.divide(
            (len(self.values) - 1) * share, 1 - share, out=np.full_like(share, np.inf), where=share < 1
        )
        t: Floats = np.copysign(np.sqrt(squares), r)
        return t

    def largest(self, weights: Floats, replicates: Ints | slice = slice(None)) -> Iterator[Floats]:
        """Yield the largest r of another system minus this system, at least 0.

        A block is float64[systems, block].

        weights: as `SignFlips.weights`, but 0 for pairs to ignore; symmetric. The maximum over the systems is
        the largest absolute r of all pairs that are not ignored.
        """
        sums = self.sums[:, replicates]
        for begin in range(0, sums.shape[1], BLOCK):
            yield _largest(np.ascontiguousarray(sums[:, begin : begin + BLOCK]), weights)


@lru_cache(maxsize=1)
def _signs(topics: int, replicates: int, seed: int) -> Floats:
    """Return the signs, float64[topics, replicates].

    All measures of a report share them.
    """
    return np.concatenate(list(random_signs(topics, replicates, seed))).T


def _largest(sums: Floats, weights: Floats) -> Floats:
    """Return `SignFlips.largest` of one block.

    Every pair is computed once, for both of its systems.
    """
    if extension is None:
        return _largest_without_extension(sums, weights)
    largest = extension.largest(sums, np.ascontiguousarray(weights), len(sums))
    return np.frombuffer(largest).reshape(sums.shape)


def _largest_without_extension(sums: Floats, weights: Floats) -> Floats:
    """Return the same numbers as `_largest` with numpy alone, several times slower."""
    above, below, scratch = (np.zeros_like(sums) for _ in range(3))
    for system in range(len(sums) - 1):
        others = slice(system + 1, None)
        r = np.subtract(sums[others], sums[system], out=scratch[others])
        r *= weights[system, others, None]
        np.maximum.reduce(r, axis=0, out=above[system], initial=0.0)
        np.minimum(below[others], r, out=below[others])
    return np.maximum(above, -below, out=above)
