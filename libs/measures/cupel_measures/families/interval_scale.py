"""Measures on interval scales, and graded measures that are compared with them.

Most are from Ferrante, Ferro and Losiouk, Information Retrieval Journal 2019. A run is cut at N, and padded
to N with the lowest degree, which has gain 0. An unjudged document has the lowest degree, too. Degrees are
the indices of the labels, 0 to c; gains are those of the aspect.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any

import numpy as np

from cupel_measures.families.ranked import digits_of_powers
from cupel_measures.grammar import scale_types
from cupel_measures.grammar.parameters import MOST, Cutoff, GainTable, Number, OneFlag, Rel, exact
from cupel_measures.grammar.registry import ScaleType, measure
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, Exact, Floats
from cupel_measures.scoring import discounts
from cupel_measures.scoring import gains as label_gains
from cupel_measures.scoring.exact import (
    Shares,
    floats,
    over_common_denominator,
    positional,
    quotients,
    rank_biased,
    sums,
)
from cupel_measures.scoring.pool import Pool
from cupel_measures.scoring.rows import Hits, Rows, divided

SOURCE = "Ferrante, Ferro and Losiouk, Information Retrieval Journal 2019"
UNBOUNDED = (0.0, math.inf)

Continuation = Annotated[float | Fraction, Number("a number between 0 and 1, both excluded", 0, 1, (0, 1))]
LogBase = Annotated[float | Fraction, Number("a base of logarithms above 1", 1, MOST, (1,))]


def _by_total_gain(aspect: Aspect, given: Any) -> ScaleType:
    """Interval if exactly two gains occur, including 0 for unjudged documents.

    Otherwise neither.
    """
    return scale_types.total_gain(label_gains.exactly(aspect, None))


def exact_graded_precision(rows: Rows, *, cutoff: int) -> list[Fraction]:
    *_, best = numbers = label_gains.exactly(rows.pool.aspect, None)
    return [_share(total, cutoff * best) for total in sums(*_credits(rows, numbers, cutoff))]


@measure(source=SOURCE, scale=_by_total_gain, exact=exact_graded_precision, by_scale=True, rises=True)
def gP(rows: Rows, *, cutoff: Cutoff) -> Floats:
    """Graded precision: gains of the first N documents over the greatest possible sum.

        gP@N = 1/N * sum over i <= N of g(r_i) / g(a_c)

    g(a_c) is the gain of the best label of the scale, whether or not a document has it. With two labels of
    gains 0 and 1, gP@N equals P@N. The divisor uses N, even if the run is shorter. Gains are those of the
    aspect.

    Caveat: with more than two degrees, two documents of degree 1 gain as much as one of degree 2. SBTO
    instead compares the counts of the highest degree first, so the two measures can disagree.

    Example: a=2 b=2 c=1 d=1 e=1 z=0; run a z c d y: gP@5 0.4 = (2 + 1 + 1) / 2 / 5.
    """
    table = label_gains.rising(rows.pool.aspect, None)
    return divided(_total_gain(rows, table, cutoff), cutoff * float(table[-1]))


def exact_graded_recall(rows: Rows, *, normalised: bool = False, cutoff: int) -> list[Fraction]:
    *_, best = numbers = label_gains.exactly(rows.pool.aspect, None)
    retrieved = sums(*_credits(rows, numbers, cutoff))
    below = 1 if normalised else best
    bases = _exact_gain_bases(rows.pool, numbers)
    topics = rows.topic.tolist()
    return [_share(gain, bases[topic] * below) for gain, topic in zip(retrieved, topics, strict=True)]


@measure(
    source=SOURCE,
    bounds=UNBOUNDED,
    scale=_by_total_gain,
    exact=exact_graded_recall,
    by_scale=lambda given: not given["normalised"],
    rises=True,
)
def gR(rows: Rows, *, normalised: OneFlag = False, cutoff: Cutoff) -> Floats:
    """Graded recall: gains of the first N documents over the gains of all judged ones.

        gR@N = 1/RB * sum over i <= N of g(r_i) / g(a_c)

    RB is the sum of the gains of all judged documents, whether or not they are among the first N. If RB is 0,
    the score is 0. The greatest possible value is 1/g(a_c).

    This is the formula as printed. It divides the gains of the run by g(a_c), but not the gains in RB. So it
    cannot reach 1 if g(a_c) is above 1 (READINGS.md, reading 9). `normalised=True` omits the division by
    g(a_c), so values range from 0 to 1. Both versions order systems identically, per topic and over all
    topics. Per topic they order runs as gP does.

    Example: a=2 b=2 c=1 d=1 e=1 z=0; run a z c d y: gR@5 0.285714 = (2 + 1 + 1) / 2 / 7,
    gR(normalised=True)@5 0.571429 = (2 + 1 + 1) / 7.
    """
    table = label_gains.rising(rows.pool.aspect, None)
    retrieved, base = _total_gain(rows, table, cutoff), _gain_base(rows.pool, table)[rows.topic]
    if normalised:  # rounding could make a sum one ulp larger than the base
        return np.minimum(divided(retrieved, base), 1.0)
    return divided(retrieved, base * table[-1])


def exact_f(rows: Rows, *, cutoff: int, rel: int | None = None) -> list[Fraction]:
    return quotients(2 * rows.relevant(rel, cutoff).number, cutoff + rows.recall_base(rel))


@measure(source=SOURCE, scale="interval", exact=exact_f, rises=True)
def F(rows: Rows, *, cutoff: Cutoff, rel: Rel | None = None) -> Floats:
    """F at a cutoff: the harmonic mean of P@N and R@N.

        F@N = 2 P R / (P + R) = 2 M / (N + R)

    M is the number of relevant documents among the first N, and R the number of relevant judged documents.
    The value is 0 if M is 0. The formula uses N even if the run is shorter, while `SetF` uses the length of
    the run.

    Caveat: within a topic F grows by 2 / (N + R) with each relevant document, which makes an interval scale.
    Each topic has its own unit, so the order of systems over all topics can differ from the order by P@N.

    Example: a=2 b=2 c=1 d=1 e=1 z=0; run a z c d y: F@5 0.6 = 2 * 3 / (5 + 5), F@7 0.5 = 2 * 3 / (7 + 5).
    """
    return divided(2 * rows.relevant(rel, cutoff).number, cutoff + rows.recall_base(rel))


def exact_graded_rank_biased_precision(
    rows: Rows, *, p: float | Fraction = Fraction(1, 3), gains: Any = None, cutoff: int | None = None
) -> Shares:
    *_, best = numbers = label_gains.exactly(rows.pool.aspect, gains)
    return rank_biased(*_credits(rows, numbers, cutoff), exact(p), best or 1)


def _by_persistence_and_gains(aspect: Aspect, given: Any) -> ScaleType:
    """Interval if p = G / (G + 1) and all steps between gains are equal.

    Ordinal for other p up to G / (G + 1), neither for a larger p. G is the smallest step between gains,
    divided by the greatest gain; with equal steps G / (G + 1) = 1 / (c + 1).
    """
    return scale_types.rank_biased(given["p"], label_gains.exactly(aspect, given["gains"]))


@measure(
    source=f"{SOURCE}; Moffat and Zobel, TOIS 2008",
    scale=_by_persistence_and_gains,
    exact=exact_graded_rank_biased_precision,
    digits=digits_of_powers,
    by_scale=True,
    rises=True,
)
def gRBP(
    rows: Rows,
    *,
    p: Continuation = Fraction(1, 3),
    gains: GainTable | None = None,
    cutoff: Cutoff | None = None,
) -> Floats:
    """Graded rank-biased precision: RBP with gains.

        gRBP = (1 - p) / g(a_c) * sum over i of p^(i - 1) g(r_i)

    p is the probability that the user continues to the next document. `p=1/3` is stored as exactly one third,
    which makes an interval scale for gains 0, 1, 2. `gains` replaces the gains of some labels; gains must not
    decrease along the scale. With two labels of gains 0 and 1, gRBP equals RBP. With p = 1 / (c + 1) and
    gains 0..c it equals RBTO / (c + 1)^N.

    Caveat: floats cannot separate runs that differ only at ranks where p^(i - 1) is below their precision
    (for p = 1/3, beyond about rank 35). So floats show ties, and sometimes orders, that do not exist: for p =
    0.2 the paper prints correlations of 0.9985 and 0.9996 with RBTO, although both are exactly 1. Exact
    values do not have this problem.

    Example: a=2 b=2 c=1 d=1 e=1 z=0; run a z c d y: gRBP 0.716049 = 2/3 * (2 + 1/9 + 1/27) / 2, gRBP(p=0.8)
    0.3152 = 0.2 * (2 + 0.8^2 + 0.8^3) / 2, gRBP(p=0.5,gains={2:3}) 0.5625 = 0.5 * (3 + 0.5^2 + 0.5^3) / 3.
    """
    table = label_gains.rising(rows.pool.aspect, gains)
    hits, gain = rows.gains(table, cutoff)
    total = (1.0 - float(p)) * hits.sum(discounts.power(float(p), hits.rank) * gain)
    # rounding could make a long run of the best documents one ulp larger than 1
    return np.minimum(divided(total, float(table[-1])), 1.0)


@measure(
    source=f"Jarvelin and Kekalainen 2002; trec_eval dcg; with a base: {SOURCE}", bounds=UNBOUNDED, rises=True
)
def DCG(
    rows: Rows,
    *,
    base: LogBase | None = None,
    gains: GainTable | None = None,
    cutoff: Cutoff | None = None,
) -> Floats:
    """Discounted cumulative gain, not normalised.

        DCG@k = sum over i <= k of g(r_i) / log2(1 + i)
        DCG(base=b)@k = sum over i <= k of g(r_i) / max(1, log_b(i))

    Without `base` this is DCG as in trec_eval, the numerator of nDCG. With `base=b` it is the original
    version of Jarvelin and Kekalainen, which does not discount ranks 1 to b (Ferrante et al. use b = 10 and
    gains 0, 5, 10). `gains` replaces the gains of some labels.

    Caveat: the value has no upper bound, so topics with more relevant documents weigh more in the mean. Many
    documents of a low degree can outweigh one of a high degree above them.

    Example: a=2 b=2 c=1 d=1 e=1 z=0; run a z c d y: DCG 2.930677 = 2 + 1/log2(4) + 1/log2(5), DCG(base=2)
    3.130930 = 2 + 1/log2(3) + 1/log2(4), DCG(base=10,gains={1:5,2:10}) 20 = 10 + 5 + 5.
    """
    hits, gain = rows.gains(label_gains.table(rows.pool.aspect, gains), cutoff)
    discount = discounts.log2(hits.rank) if base is None else discounts.log(float(base), hits.rank)
    return hits.sum(gain / discount)


def exact_set_based(rows: Rows, *, cutoff: int) -> list[int]:
    best = len(rows.pool.aspect.labels) - 1
    _check_reach(f"C({cutoff}+{best},{best})", _binomial_exceeds(cutoff, best, EXACT_DIGITS), EXACT_DIGITS)
    hits, _ = rows.gains(np.arange(best + 1.0), cutoff)
    down = best - rows.pool.labels[hits.document].astype(np.int64)
    which, counts = np.unique(hits.row * (best + 1) + down, return_counts=True)
    values, left = [0] * rows.number, [cutoff] * rows.number
    for key, count in zip(
        which.tolist(), counts.tolist(), strict=True
    ):  # sorted by row, then by degree, best first
        row, degree = key // (best + 1), best - key % (best + 1)
        values[row] += _choose(degree + left[row], degree) - _choose(degree + left[row] - count, degree)
        left[row] -= count
    return values


@measure(source=SOURCE, bounds=UNBOUNDED, scale="interval", exact=exact_set_based, by_scale=True, rises=True)
def SBTO(rows: Rows, *, cutoff: Cutoff) -> Floats:
    """Set-based total order: the number of worse sets of N documents.

        SBTO@N = sum over j <= N of C(d_j + N - j, N - j + 1) for the degrees d_1 >= ... >= d_N of the run

    Of two sets of N documents, the better one has more documents of the highest degree whose counts differ.
    SBTO is the position in this order, from 0 to C(N+c, N) - 1. The text of the paper sorts the degrees in
    ascending order instead. The result would not be the position in the order that the paper defines: {a1,
    a1} and {a2, a0} would both score 2 (READINGS.md, reading 8). With two labels, SBTO is the number of
    relevant documents.

    Caveat: the value is an integer that a float may not hold exactly. Compare and average exact values; the
    float is the exact value, correctly rounded. If the greatest possible value has more than 300 digits, only
    exact values are available, up to 4,000 digits.

    Example: a=2 b=2 c=1 d=1 e=1 z=0; run a z c d y: SBTO@5 8 = C(2+4,5) + C(1+3,4) + C(1+2,3), SBTO@7 10 =
    C(2+6,7) + C(1+5,6) + C(1+4,5).
    """
    best = len(rows.pool.aspect.labels) - 1
    _check_reach(f"C({cutoff}+{best},{best})", _binomial_exceeds(cutoff, best, FLOAT_DIGITS), FLOAT_DIGITS)
    return floats(exact_set_based(rows, cutoff=cutoff))


def exact_rank_based(rows: Rows, *, gains: Any = None, cutoff: int) -> Sequence[Exact]:
    numbers = label_gains.exactly(rows.pool.aspect, gains, by_index=True)
    base = len(numbers)
    _check_reach(f"{base}^{cutoff}", _power_exceeds(base, cutoff, numbers[-1], EXACT_DIGITS), EXACT_DIGITS)
    hits, credit = _credits(rows, numbers, cutoff)
    weights, unit = over_common_denominator(credit)
    values = positional(hits, weights, base, cutoff)
    return values if unit == 1 else [Fraction(value, unit) for value in values]


def _by_position(aspect: Aspect, given: Any) -> ScaleType:
    """Interval; with `gains`, the type of gRBP with p = 1 / (c + 1) and these gains."""
    numbers = label_gains.exactly(aspect, given["gains"], by_index=True)
    if given["gains"] is None:
        return "interval" if len(numbers) > 1 else "neither"
    return scale_types.rank_biased(Fraction(1, len(numbers)), numbers)


@measure(
    source=SOURCE, bounds=UNBOUNDED, scale=_by_position, exact=exact_rank_based, by_scale=True, rises=True
)
def RBTO(rows: Rows, *, gains: GainTable | None = None, cutoff: Cutoff) -> Floats:
    """Rank-based total order: the number of worse rankings of N documents.

        RBTO@N = sum over i <= N of r_i (c + 1)^(N - i)

    Rankings are ordered by the first rank in which they differ. RBTO is the position in this order, from 0 to
    (c + 1)^N - 1: the degrees are the digits of a number with base c + 1.

    Degrees are the indices of the labels, regardless of the gains of the aspect. `gains` sets other weights W
    for some labels; the value is then the sum of W(r_i) (c + 1)^(N - i). Weights must not decrease along the
    scale. If the weights are not a multiple of 0..c, RBTO orders runs like gRBP with p = 1 / (c + 1) and
    these gains, and has the scale type of that gRBP. With the weights [0, 1, 3] the scale is neither ordinal
    nor interval, although section 5.2.2 of the paper calls it interval (READINGS.md, reading 10).

    Caveat: the first relevant document decides nearly everything. The value is an integer (a rational number
    if a weight is not an integer) that is far larger than a float can hold exactly. Compare and average exact
    values; the float is the exact value, correctly rounded. If (c + 1)^N has more than 300 digits, as for N =
    1,000 and three labels, only exact values are available, up to 4,000 digits.

    Example: a=2 b=2 c=1 d=1 e=1 z=0; run a z c d y: RBTO@5 174 = 2 * 3^4 + 1 * 3^2 + 1 * 3^1,
    RBTO(gains={2:3})@5 255 = 3 * 3^4 + 1 * 3^2 + 1 * 3^1.
    """
    weights = label_gains.rising(rows.pool.aspect, gains, by_index=True)
    exceeds = _power_exceeds(len(weights), cutoff, exact(float(weights[-1])), FLOAT_DIGITS)
    _check_reach(f"{len(weights)}^{cutoff}", exceeds, FLOAT_DIGITS)
    return floats(exact_rank_based(rows, gains=gains, cutoff=cutoff))


FLOAT_DIGITS, EXACT_DIGITS = 300, 4000
"""Maximum numbers of digits of values as floats and as exact values. The limit for floats keeps sums over
many topics finite.
"""


def _check_reach(values: str, exceeds: bool, digits: int) -> None:
    if exceeds:
        hint = ", or exact_values of the library" if digits == FLOAT_DIGITS else ""
        kind = "floats" if digits == FLOAT_DIGITS else "exact values"
        raise MeasureError(
            f"values reach about {values}, but {kind} are limited to 10^{digits}; use a smaller cutoff{hint}"
        )


def _power_exceeds(base: int, cutoff: int, weight: Exact, digits: int) -> bool:
    """Return whether weight * base^cutoff has more than `digits` digits.

    The function is fast for any cutoff.
    """
    if base < 2 or not weight:
        return False
    return cutoff > 8 * digits or weight * base**cutoff > 10**digits


def _binomial_exceeds(cutoff: int, best: int, digits: int) -> bool:
    """Return whether C(cutoff + best, best) has more than `digits` digits.

    The function is fast for any cutoff.
    """
    fewer = min(cutoff, best)
    return fewer > 4 * digits or math.comb(cutoff + best, fewer) > 10**digits


_choose = lru_cache(maxsize=1 << 16)(math.comb)


def _credits(rows: Rows, numbers: Sequence[Exact], cutoff: int | None) -> tuple[Hits, list[Exact]]:
    """Return the hits with a positive gain up to `cutoff`, and their exact gains."""
    hits, _ = rows.gains(np.array([float(number) for number in numbers]), cutoff)
    labels = np.maximum(rows.pool.labels[hits.document], 0)  # a negative grade is the lowest label
    return hits, [numbers[label] for label in labels.tolist()]


def _share(part: Exact, total: Exact) -> Fraction:
    return Fraction(part) / total if total else Fraction(0)


def _total_gain(rows: Rows, table: Floats, cutoff: int) -> Floats:
    """Return the sum of gains, float64[rows].

    The order of the run does not change its bits.
    """
    hits, gain = rows.gains(table, cutoff)
    order = np.lexsort((gain, hits.row))
    return np.asarray(
        np.bincount(hits.row[order], weights=gain[order], minlength=rows.number), dtype=np.float64
    )


def _gain_base(pool: Pool, table: Floats) -> Floats:
    """Return the sum of the gains of all judged documents, float64[T].

    The gains are added in ascending order.
    """
    base: Floats = pool.once(("gain base", table.tobytes()), lambda: _summed_gains(pool, table))
    return base


def _summed_gains(pool: Pool, table: Floats) -> Floats:
    gains = pool.gains(table)
    order = np.lexsort((gains, pool.topic_of))
    weights = gains[order]
    return np.asarray(
        np.bincount(pool.topic_of[order], weights=weights, minlength=pool.topics), dtype=np.float64
    )


def _exact_gain_bases(pool: Pool, numbers: Sequence[Exact]) -> list[Exact]:
    positive = np.flatnonzero(pool.gains(np.array([float(number) for number in numbers])) > 0)
    labels = np.maximum(pool.labels[positive], 0)
    bases: list[Exact] = [0] * pool.topics
    for topic, label in zip(pool.topic_of[positive].tolist(), labels.tolist(), strict=True):
        bases[topic] += numbers[label]
    return bases
