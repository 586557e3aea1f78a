"""How alike two rankings of systems are."""

import math

import numpy as np

from cupel_measures.model import Floats


def tau_b(x: Floats, y: Floats) -> float | None:
    """Kendall's tau-b between the scores that systems have in x and in y, float64[S] each (spec 4.3).

    (P - Q) / sqrt((P + Q + T)(P + Q + U)), with P concordant and Q discordant pairs, T pairs tied in x alone,
    U pairs tied in y alone; equal is exactly equal. From -1 to 1; None where either is constant.
    """
    pairs = np.triu_indices(len(x), 1)
    in_x, in_y = (np.sign(one[pairs[0]] - one[pairs[1]]).astype(np.int64) for one in (x, y))
    apart = int(np.count_nonzero(in_x)) * int(np.count_nonzero(in_y))
    return int(np.sum(in_x * in_y)) / math.sqrt(apart) if apart else None
