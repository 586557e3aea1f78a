"""Measures of novelty and diversity, for judgments by subtopic.

m is the number of subtopics of a topic with at least one relevant document; other subtopics do not count. A
document is relevant to a subtopic if its judgment is at least `rel` (default: 1). A document with a negative
or missing judgment is not relevant. The novelty gain of the document at rank r is

    NG(r) = sum over the subtopics it is relevant to of (1 - alpha)^C(r-1),

where C(r-1) is the number of documents above rank r that are relevant to the same subtopic.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from cupel_measures.grammar.parameters import Cutoff, Number, OneFlag, Rel, Share
from cupel_measures.grammar.registry import measure
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Floats
from cupel_measures.scoring import discounts
from cupel_measures.scoring.pool import Mask
from cupel_measures.scoring.rows import divided
from cupel_measures.scoring.subtopics import SubtopicRows

Continuation = Annotated[float, Number("a number from 0 to 1, 1 excluded", 0, 1, (1,))]
Discounted = Callable[[Floats, NDArray[np.integer]], Floats]
"""A function of gains and their ranks that returns discounted gains."""

OVER_GREEDY = (0.0, math.e / (math.e - 1.0))
"""Bounds of a score that is divided by the score of the greedy ideal ranking.

At every depth the greedy choice reaches at least 1 - 1/e of the best coverage (Nemhauser, Wolsey and Fisher
1978).
"""

DEEPEST = 1_000_000
"""Largest cutoff of a normaliser, which is a sum over all ranks to the cutoff."""


def above_ideal(values: Floats) -> Mask:
    """Return whether each normalised score exceeds 1 by more than a rounding error.

    The result is bool.
    """
    return values > 1.0 + 1e-9


def by_log(gains: Floats, ranks: NDArray[np.integer]) -> Floats:
    return gains / discounts.log2(ranks)


def by_rank(gains: Floats, ranks: NDArray[np.integer]) -> Floats:
    return gains / ranks


def _by_power(beta: float) -> Discounted:
    return lambda gains, ranks: gains * discounts.power(float(beta), ranks)


def _novelty_sum(
    rows: SubtopicRows, discounted: Discounted, rel: int | None, alpha: float, cutoff: int | None
) -> Floats:
    """Return float64[rows]: the sum over ranks r <= k of the discounted NG(r)."""
    hits, gains = rows.novelty(rel, float(alpha))
    if cutoff is not None:
        seen = hits.rank <= cutoff
        hits, gains = hits.only(seen), gains[seen]
    return hits.sum(discounted(gains, hits.rank))


def _over_ideal(
    rows: SubtopicRows, discounted: Discounted, rel: int | None, alpha: float, cutoff: int | None, cap: bool
) -> Floats:
    """Return the sum divided by the sum for the topic's greedy ideal ranking.

    The result is float64[rows].
    """
    achieved = _novelty_sum(rows, discounted, rel, alpha, cutoff)
    ideal = _novelty_sum(rows.pool.ideal(rel, float(alpha), cutoff), discounted, rel, alpha, cutoff)
    values = divided(achieved, ideal[rows.topic])
    return np.minimum(values, 1.0) if cap else values


def _over_all_new(
    rows: SubtopicRows, discounted: Discounted, rel: int | None, alpha: float, cutoff: int | None
) -> Floats:
    """Return the sum divided by the sum for documents relevant to all subtopics.

    The result is float64[rows]. The number of subtopics is m.
    """
    if cutoff is None or cutoff > DEEPEST:
        raise MeasureError(
            f"a normalised value needs a cutoff of at most {DEEPEST:,}, such as @20; "
            "with normalise=False, the cutoff may be greater or omitted"
        )
    best = _all_new(discounted, float(alpha), cutoff) * rows.number(rel).astype(np.float64)
    # the order of summation can make a perfect ranking one ulp larger than the normaliser
    return np.minimum(divided(_novelty_sum(rows, discounted, rel, alpha, cutoff), best), 1.0)


@lru_cache(maxsize=256)
def _all_new(discounted: Discounted, alpha: float, cutoff: int) -> float:
    """Return the sum over ranks r <= k of the discounted (1 - alpha)^(r - 1).

    The terms are added in order.
    """
    ranks = np.arange(1, cutoff + 1)
    return float(np.cumsum(discounted(discounts.power(1.0 - alpha, ranks), ranks))[-1])


@measure(
    source="Clarke et al., SIGIR 2008; ndeval alpha-nDCG",
    aliases=("α_nDCG", "alpha-nDCG"),
    bounds=OVER_GREEDY,
    subtopics=True,
)
def alpha_nDCG(
    rows: SubtopicRows,
    *,
    cutoff: Cutoff | None = None,
    rel: Rel | None = None,
    alpha: Share = 0.5,
    cap: OneFlag = False,
) -> Floats:
    """Normalised discounted cumulative gain of novelty: repeated subtopics gain less.

        alpha_nDCG@k = alpha_DCG@k / alpha_DCG@k of an ideal ranking
        alpha_DCG@k = sum over r <= k of NG(r) / log2(1 + r)
        NG(r) = sum over the document's subtopics of (1 - alpha)^C(r-1)

    C(r-1) is the number of documents above rank r that are relevant to the same subtopic. `alpha` is the
    probability that one document on a subtopic satisfies the user; with `alpha=0`, repetition costs nothing.
    The best ranking is too expensive to compute, so the ideal ranking is greedy: at each rank it takes the
    remaining judged document with the largest gain (if gains are equal after rounding to 12 decimals, the one
    with the largest id).

    Caveat: the greedy ranking is not always the best, so a ranking can score slightly above 1. Such values
    are reported unchanged; `cap=True` limits them to 1.

    Example: a={1,2} b={1} c={2,3} d={} e={3}; run b a x c d e: alpha_nDCG@20 0.812054 = (1 + 1.5/log2(3) +
    1.5/log2(5) + 0.5/log2(7)) / (2 + 1.5/log2(3) + 0.5/log2(4) + 0.5/log2(5)), alpha_nDCG@3 0.608934 = (1 +
    1.5/log2(3)) / (2 + 1.5/log2(3) + 0.5/log2(4)).
    """
    return _over_ideal(rows, by_log, rel, alpha, cutoff, cap)


@measure(
    source="Clarke et al., SIGIR 2008; ndeval alpha-DCG",
    aliases=("α_DCG", "alpha-DCG"),
    bounds=(0.0, math.inf),
    subtopics=True,
)
def alpha_DCG(
    rows: SubtopicRows,
    *,
    cutoff: Cutoff | None = None,
    rel: Rel | None = None,
    alpha: Share = 0.5,
    normalise: OneFlag = True,
) -> Floats:
    """Discounted cumulative gain of novelty, by default divided by its upper bound.

        alpha_DCG@k = (sum over r <= k of NG(r) / log2(1 + r))
                      / (m * sum over r <= k of (1 - alpha)^(r-1) / log2(1 + r))

    The divisor is the value of a ranking whose documents are all relevant to all m subtopics. The result
    equals alpha-DCG of ndeval except at k = 1, where ndeval does not divide. The division needs a cutoff.
    `normalise=False` leaves the sum undivided and unbounded. NG is defined in alpha_nDCG.

    Caveat: few collections have documents relevant to all subtopics, so good rankings stay well below 1.
    Without the division, gains grow with the number of subtopics, and topics with many subtopics weigh more
    in the mean.

    Example: a={1,2} b={1} c={2,3} d={} e={3}; run b a x c d e: alpha_DCG(normalise=False) 2.770513 = 1 +
    1.5/log2(3) + 1.5/log2(5) + 0.5/log2(7), alpha_DCG@3 0.450409 = (1 + 1.5/log2(3)) / (3 * (1 + 0.5/log2(3)
    + 0.25/2)), alpha_DCG@20 0.599853.
    """
    if normalise:
        return _over_all_new(rows, by_log, rel, alpha, cutoff)
    return _novelty_sum(rows, by_log, rel, alpha, cutoff)


@measure(
    source="Chapelle et al., CIKM 2009; Hui, PIKM 2014, eq. 2; ndeval ERR-IA",
    aliases=("ERR-IA",),
    subtopics=True,
)
def ERR_IA(
    rows: SubtopicRows,
    *,
    cutoff: Cutoff | None = None,
    rel: Rel | None = None,
    alpha: Share = 0.5,
    normalise: OneFlag = True,
) -> Floats:
    """Intent-aware expected reciprocal rank: the mean of ERR over subtopics.

    The judgments are binary.

        ERR of a subtopic = sum over r <= k of 1/r * R(r) * product over j < r of (1 - R(j))
        ERR_IA(normalise=False)@k = mean of ERR over the m subtopics = alpha/m * sum over r <= k of NG(r) / r
        ERR_IA@k = ERR_IA(normalise=False)@k / (alpha * sum over r <= k of (1 - alpha)^(r-1) / r)

    R(r) is the probability that the user is satisfied and stops: `alpha` for a document that is relevant to
    the subtopic, else 0. The default of 1/2 equals (2^g - 1) / 2^gmax for labels 0 and 1. All m subtopics are
    equally likely. NG is defined in alpha_nDCG. Equation 2 of Hui is printed without the factor R(r) and is
    then unbounded (READINGS.md, reading 23).

    By default the value is divided by the value of a ranking whose documents are all relevant to every
    subtopic, as in ndeval (except at k = 1, where ndeval does not divide). This requires a cutoff.
    `normalise=False` gives the plain mean, at any depth. Both versions order runs identically.

    Example: a={1,2} b={1} c={2,3} d={} e={3}; run b a x c d e: ERR_IA(normalise=False) 0.368056 = 0.5 / 3 *
    (1 + 1.5/2 + 1.5/4 + 0.5/6), ERR_IA@3 0.4375 = (1 + 1.5/2) / (3 * (1 + 0.5/2 + 0.25/3)), ERR_IA@20
    0.530992.
    """
    if normalise:
        return _over_all_new(rows, by_rank, rel, alpha, cutoff)
    total = float(alpha) * _novelty_sum(rows, by_rank, rel, alpha, cutoff)
    return divided(total, rows.number(rel))


@measure(
    source="Chapelle et al., CIKM 2009; ndeval nERR-IA",
    aliases=("nERR-IA",),
    bounds=OVER_GREEDY,
    subtopics=True,
)
def nERR_IA(
    rows: SubtopicRows,
    *,
    cutoff: Cutoff | None = None,
    rel: Rel | None = None,
    alpha: Share = 0.5,
    cap: OneFlag = False,
) -> Floats:
    """Normalised ERR_IA: ERR_IA divided by that of the topic's greedy ideal ranking.

        nERR_IA@k = (sum over r <= k of NG(r) / r) / (the same sum of the ideal ranking)

    NG and the ideal ranking are defined in alpha_nDCG.

    Caveat: the ideal ranking is greedy, so a value can be slightly above 1; `cap=True` limits it to 1.

    Example: a={1,2} b={1} c={2,3} d={} e={3}; run b a x c d e: nERR_IA@20 0.726027 = (1 + 1.5/2 + 1.5/4 +
    0.5/6) / (2 + 1.5/2 + 0.5/3 + 0.5/4).
    """
    return _over_ideal(rows, by_rank, rel, alpha, cutoff, cap)


@measure(
    source="Clarke, Kolla and Vechtomova, ICTIR 2009; Hui, PIKM 2014, eq. 3; ndeval NRBP",
    subtopics=True,
)
def NRBP(
    rows: SubtopicRows,
    *,
    rel: Rel | None = None,
    alpha: Share = 0.5,
    beta: Continuation = 0.5,
    literal: OneFlag = False,
) -> Floats:
    """Novelty- and rank-biased precision: the user continues with probability `beta`.

        NRBP = (1 - (1 - alpha) beta) / m * sum over all ranks r of beta^(r-1) NG(r)

    The whole run counts. NG is defined in alpha_nDCG. With one subtopic and alpha = 0, NRBP equals RBP with p
    = beta.

    Equation 3 of Hui prints C(r) in place of C(r-1), which gives 1 - alpha times this value. `literal=True`
    computes the equation as printed (READINGS.md, reading 24).

    Example: a={1,2} b={1} c={2,3} d={} e={3}; run b a x c d e: NRBP 0.488281 = 0.75 / 3 * (1 + 1.5/2 + 1.5/8
    + 0.5/32), NRBP(literal=True) 0.244141 = 0.5 * 0.75 / 3 * (1 + 1.5/2 + 1.5/8 + 0.5/32), NRBP(beta=0.8)
    0.626368 = 0.6 / 3 * (1 + 1.5 * 0.8 + 1.5 * 0.8^3 + 0.5 * 0.8^5).
    """
    kept = 1.0 - float(alpha)
    total = (1.0 - kept * float(beta)) * _novelty_sum(rows, _by_power(beta), rel, alpha, None)
    values = np.minimum(divided(total, rows.number(rel)), 1.0)
    return kept * values if literal else values


@measure(
    source="Clarke, Kolla and Vechtomova, ICTIR 2009; ndeval nNRBP",
    bounds=OVER_GREEDY,
    subtopics=True,
)
def nNRBP(
    rows: SubtopicRows,
    *,
    rel: Rel | None = None,
    alpha: Share = 0.5,
    beta: Continuation = 0.5,
    cap: OneFlag = False,
) -> Floats:
    """Normalised NRBP: NRBP divided by the NRBP of the topic's greedy ideal ranking.

        nNRBP = (sum over all ranks r of beta^(r-1) NG(r)) / (the same sum of the ideal ranking)

    NG and the ideal ranking are defined in alpha_nDCG. A topic without a relevant document scores 0; ndeval
    reports no number for such a topic.

    Caveat: the ideal ranking is greedy, so a value can be slightly above 1; `cap=True` limits it to 1.

    Example: a={1,2} b={1} c={2,3} d={} e={3}; run b a x c d e: nNRBP 0.664894 = (1 + 1.5/2 + 1.5/8 + 0.5/32)
    / (2 + 1.5/2 + 0.5/4 + 0.5/8).
    """
    return _over_ideal(rows, _by_power(beta), rel, alpha, None, cap)


@measure(source="Agrawal et al., WSDM 2009; ndeval MAP-IA", aliases=("MAP_IA", "MAP-IA"), subtopics=True)
def AP_IA(rows: SubtopicRows, *, rel: Rel | None = None) -> Floats:
    """Intent-aware average precision: the mean of AP over the m subtopics.

    Each subtopic has its own R.

        AP of a subtopic = 1/R * sum of (relevant in 1..r) / r over the ranks r of relevant documents

    Relevant documents are those that are relevant to the subtopic, and R is their number. All subtopics are
    equally likely.

    Caveat: a subtopic with one relevant document counts as much as one with a hundred. Documents that repeat
    a subtopic gain as much as new ones, so novelty is not rewarded.

    Example: a={1,2} b={1} c={2,3} d={} e={3}; run b a x c d e: AP_IA 0.597222 = ((1/1 + 2/2) / 2 + (1/2 +
    2/4) / 2 + (1/4 + 2/6) / 2) / 3.
    """
    pairs = rows.pairs(rel)
    terms = (pairs.seen + 1) / pairs.hits.rank / pairs.size
    return np.minimum(divided(pairs.hits.sum(terms), rows.number(rel)), 1.0)


@measure(source="Agrawal et al., WSDM 2009; ndeval P-IA", aliases=("P-IA",), subtopics=True)
def P_IA(rows: SubtopicRows, *, cutoff: Cutoff, rel: Rel | None = None) -> Floats:
    """Intent-aware precision: the mean of P@k over the m subtopics.

        P_IA@k = (relevant pairs of document and subtopic in 1..k) / (k m)

    The divisor uses k, even if the run is shorter.

    Caveat: documents that repeat a subtopic gain as much as new ones, so novelty is not rewarded.

    Example: a={1,2} b={1} c={2,3} d={} e={3}; run b a x c d e: P_IA@3 0.333333 = (1 + 2 + 0) / (3 * 3),
    P_IA@10 0.2 = (1 + 2 + 2 + 1) / (10 * 3).
    """
    pairs = rows.pairs(rel).hits.within(cutoff).number
    return divided(pairs / cutoff, rows.number(rel))


@measure(source="Zhai, Cohen and Lafferty, SIGIR 2003; ndeval strec", aliases=("strec",), subtopics=True)
def StRecall(rows: SubtopicRows, *, cutoff: Cutoff | None = None, rel: Rel | None = None) -> Floats:
    """Subtopic recall: the share of the m subtopics covered by the first k documents.

        StRecall@k = (subtopics of documents 1..k) / m

    Example: a={1,2} b={1} c={2,3} d={} e={3}; run b a x c d e: StRecall@3 0.666667 = 2/3, StRecall@10 1 =
    3/3.
    """
    pairs = rows.pairs(rel)
    return divided(pairs.hits.only(pairs.seen == 0).within(cutoff).number, rows.number(rel))
