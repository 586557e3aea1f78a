"""The confidence interval that inverts the randomisation test.

The method is that of Hartigan, JASA 1969.
"""

import math

import numpy as np

from cupel_measures.comparing.outcomes import CLOSE
from cupel_measures.comparing.resampling import EXACT, sign_assignments
from cupel_measures.comparing.simultaneous.max_t import allowed_exceedances
from cupel_measures.model import Floats


def randomisation_interval(
    differences: Floats, *, level: float, flips: int, seed: int
) -> tuple[float, float]:
    """Return the interval of mean differences that randomisation does not reject.

    The test is the randomisation test.

    differences: float64[topics]. level: significance level of the test. For a hypothetical mean above the
    observed mean, an assignment of signs is at least as extreme as the observed signs if the mean over the
    flipped topics, or over the other topics, is at least the hypothetical mean. The upper bound is therefore
    one of these subset means, and so is the lower bound by symmetry. Both bounds are infinite if the test
    cannot reject any mean difference.
    """
    topics, total = len(differences), float(np.cumsum(differences)[-1])
    tops, bottoms = [], []
    for signs in sign_assignments(topics, flips, seed):
        flipped = np.count_nonzero(signs < 0, axis=1)
        flipped_sum = (total - signs @ differences) / 2
        is_split = (flipped > 0) & (flipped < topics)
        inside = np.divide(flipped_sum, flipped, out=np.zeros(len(signs)), where=is_split)
        outside = np.divide(total - flipped_sum, topics - flipped, out=np.zeros(len(signs)), where=is_split)
        tops.append(np.where(is_split, np.maximum(inside, outside), math.inf))
        bottoms.append(np.where(is_split, np.minimum(inside, outside), -math.inf))
    n = sum(map(len, tops))
    allowed = int(level * n) if topics <= EXACT else allowed_exceedances(level, flips)
    scale = CLOSE * max(1.0, float(np.abs(differences).max()))
    if allowed < 0 or allowed >= n:
        return -math.inf, math.inf
    top = float(np.sort(np.concatenate(tops))[-1 - allowed]) + scale
    bottom = float(np.sort(np.concatenate(bottoms))[allowed]) - scale
    return bottom, top
