"""Rank discounts, as tables computed by Python's `math`.

The last bit of numpy's log2, power and exp depends on the instruction set of the processor. The functions of
`math` do not have this problem.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Floats


@lru_cache(maxsize=4)
def _log2_table(size: int) -> Floats:
    return np.array([1.0, *(math.log2(1 + rank) for rank in range(1, size))])


def log2(rank: NDArray[np.integer]) -> Floats:
    """Return float64: log2(1 + rank) for each rank from 1."""
    return np.take(_log2_table(_size(rank)), rank)


@lru_cache(maxsize=16)
def _log_table(base: float, size: int) -> Floats:
    # log10 and log2 are exact at powers of their base; a quotient of logarithms is not
    exact_log = {2.0: math.log2, 10.0: math.log10}.get(base)
    ranks = range(1, size)
    logs = map(exact_log, ranks) if exact_log else (math.log(rank) / math.log(base) for rank in ranks)
    return np.array([1.0, *(max(1.0, logarithm) for logarithm in logs)])


def log(base: float, rank: NDArray[np.integer]) -> Floats:
    """Return the discount max(1, log_base(rank)) for each rank from 1: float64.

    So ranks 1 to base are not discounted.
    """
    return np.take(_log_table(base, _size(rank)), rank)


@lru_cache(maxsize=16)
def _power_table(base: float, size: int) -> Floats:
    return np.array([0.0, *(math.pow(base, rank - 1) for rank in range(1, size))])


def power(base: float, rank: NDArray[np.integer]) -> Floats:
    """Return float64: base ** (rank - 1) for each rank from 1."""
    return np.take(_power_table(base, _size(rank)), rank)


def powers(base: float, exponents: Floats) -> Floats:
    """Return base ** exponent for each exponent from 0: float64.

    The result has the shape of `exponents`.
    """
    values = [math.pow(base, exponent) for exponent in exponents.ravel().tolist()]
    return np.array(values, dtype=np.float64).reshape(exponents.shape)


GREATEST_EXPONENT = 300
"""Largest gain that can be an exponent; sums of such powers are far from overflow."""


def exponential(gains: Floats) -> Floats:
    """Return 2 ** gain - 1 for each gain: float64.

    Raise MeasureError if a gain is above GREATEST_EXPONENT.
    """
    if gains.max(initial=0) > GREATEST_EXPONENT:
        raise MeasureError(
            f"2^gain is too large for a gain of {gains.max():g}; the limit is {GREATEST_EXPONENT}"
        )
    return np.array([math.pow(2.0, gain) - 1.0 for gain in gains])


def _size(rank: NDArray[np.integer]) -> int:
    """Return a table size that covers `rank`, rounded up so that few sizes occur."""
    deepest = int(rank.max()) if len(rank) else 0
    return max(1024, 1 << deepest.bit_length())
