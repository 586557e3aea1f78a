"""Measures of novelty and diversity, over judgments by subtopic (spec 7.1; compatibility.md 2.2).

What they share: m is the number of subtopics of a topic with at least one relevant document; others don't
count. A document is relevant to a subtopic where its judgment is at least `rel`, 1 if not given; a negative
or missing judgment never is. Its novelty gain at rank r is

    NG(r) = sum over the subtopics it is relevant to of (1 - alpha)^C(r-1),

C(r-1) being how many documents above are relevant to the same subtopic.
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
"""What gains are worth at their ranks."""

OVER_GREEDY = (0.0, math.e / (math.e - 1.0))
"""Bounds of a value divided by the greedy ideal's: at every depth the greedy choice reaches at least
1 - 1/e of the best possible coverage (Nemhauser, Wolsey and Fisher 1978)."""

DEEPEST = 1_000_000
"""The largest cutoff of a normaliser that goes over all ranks."""


def above_ideal(values: Floats) -> Mask:
    """Which values are above those of the greedy ideal, and not by rounding alone."""
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
    """float64[rows]: sum over ranks r <= k of NG(r), discounted."""
    hits, gains = rows.novelty(rel, float(alpha))
    if cutoff is not None:
        seen = hits.rank <= cutoff
        hits, gains = hits.only(seen), gains[seen]
    return hits.sum(discounted(gains, hits.rank))


def _over_ideal(
    rows: SubtopicRows, discounted: Discounted, rel: int | None, alpha: float, cutoff: int | None, cap: bool
) -> Floats:
    """float64[rows]: the sum divided by that of the topic's greedy ideal ranking."""
    found = _novelty_sum(rows, discounted, rel, alpha, cutoff)
    ideal = _novelty_sum(rows.pool.ideal(rel, float(alpha), cutoff), discounted, rel, alpha, cutoff)
    values = divided(found, ideal[rows.topic])
    return np.minimum(values, 1.0) if cap else values


def _over_all_new(
    rows: SubtopicRows, discounted: Discounted, rel: int | None, alpha: float, cutoff: int | None
) -> Floats:
    """float64[rows]: the sum divided by that of documents which are each relevant to all m subtopics."""
    if cutoff is None or cutoff > DEEPEST:
        raise MeasureError(
            f"a normalised value needs a cutoff of at most {DEEPEST:,}, such as @20; "
            "normalise=False takes any, or none"
        )
    best = _all_new(discounted, float(alpha), cutoff) * rows.number(rel).astype(np.float64)
    # summation in another order can lift a perfect ranking an ulp above the normaliser
    return np.minimum(divided(_novelty_sum(rows, discounted, rel, alpha, cutoff), best), 1.0)


@lru_cache(maxsize=256)
def _all_new(discounted: Discounted, alpha: float, cutoff: int) -> float:
    """Sum over ranks r <= k of (1 - alpha)^(r - 1) discounted, one rank after another."""
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
    """Normalised discounted gain of novelty: what a document repeats counts less, by subtopic.

        alpha_nDCG@k = alpha_DCG@k / alpha_DCG@k of an ideal ranking
        alpha_DCG@k = sum over r <= k of NG(r) / log2(1 + r)
        NG(r) = sum over the document's subtopics of (1 - alpha)^C(r-1)

    C(r-1) documents above are relevant to the same subtopic. `alpha` is the chance that one document on a
    subtopic is enough; at 0 repetition is no loss. The best ranking is too costly to find, so the ideal is
    greedy: of the judged documents not yet taken, always the one of the largest gain (ties, to 12 decimals:
    the largest document id).

    Caveat: the greedy ideal is not always the best, so a ranking may score slightly above 1. Such values are
    left as they are; `cap=True` makes them 1.

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
    """Discounted gain of novelty, by default over that of a ranking no collection could better.

        alpha_DCG@k = (sum over r <= k of NG(r) / log2(1 + r))
                      / (m * sum over r <= k of (1 - alpha)^(r-1) / log2(1 + r))

    What divides is the value of documents that are each relevant to all m subtopics. This is ndeval's value,
    but at k = 1, where ndeval forgets to divide. It needs a cutoff. `normalise=False` leaves the sum
    undivided, and without upper bound. NG is that of alpha_nDCG.

    Caveat: few collections have such documents, so good rankings stay well below 1. Undivided, gains grow
    with the number of subtopics, and topics with many weigh more in the mean.

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
    """Intent-aware expected reciprocal rank: the mean over subtopics of ERR, for binary judgments.

        ERR of a subtopic = sum over r <= k of 1/r * R(r) * product over j < r of (1 - R(j))
        ERR_IA(normalise=False)@k = mean of ERR over the m subtopics = alpha/m * sum over r <= k of NG(r) / r
        ERR_IA@k = ERR_IA(normalise=False)@k / (alpha * sum over r <= k of (1 - alpha)^(r-1) / r)

    R is `alpha` for a document that is relevant to the subtopic, else 0: the chance that the reader is
    satisfied and stops. With the default of 1/2 that is (2^g - 1) / 2^gmax for labels 0 and 1. All m
    subtopics are equally likely. NG is that of alpha_nDCG.

    The default divides by what a ranking of documents relevant to every subtopic would get: ndeval's value,
    but at k = 1, where ndeval forgets to divide. That needs a cutoff. `normalise=False` gives the plain mean,
    at any depth; runs are ordered alike. Equation 2 is printed without the factor R(r), and would have no
    bound (register of readings, row 23).

    Example: a={1,2} b={1} c={2,3} d={} e={3}; run b a x c d e: ERR_IA(normalise=False) 0.368056 = 0.5 / 3 *
    (1 + 1.5/2 + 1.5/4 + 0.5/6), ERR_IA@3 0.4375 = (1 + 1.5/2) / (3 * (1 + 0.5/2 + 0.25/3)), ERR_IA@20
    0.530992.
    """
    if normalise:
        return _over_all_new(rows, by_rank, rel, alpha, cutoff)
    found = float(alpha) * _novelty_sum(rows, by_rank, rel, alpha, cutoff)
    return divided(found, rows.number(rel))


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
    """Normalised ERR_IA: divided by that of the topic's greedy ideal ranking.

        nERR_IA@k = (sum over r <= k of NG(r) / r) / (the same sum of the ideal ranking)

    NG and the ideal ranking are those of alpha_nDCG.

    Caveat: as the ideal is greedy, a value may lie slightly above 1; `cap=True` makes it 1.

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
    """Novelty- and rank-biased precision, of a reader who goes on to the next document with chance `beta`.

        NRBP = (1 - (1 - alpha) beta) / m * sum over all ranks r of beta^(r-1) NG(r)

    The whole run counts. NG is that of alpha_nDCG. With one subtopic and alpha = 0 it is RBP with p = beta.

    Equation 3 prints C(r) where the gain has C(r-1) (register of readings, row 24), which is 1 - alpha times
    this value and never exceeds that; `literal=True` computes it so.

    Example: a={1,2} b={1} c={2,3} d={} e={3}; run b a x c d e: NRBP 0.488281 = 0.75 / 3 * (1 + 1.5/2 + 1.5/8
    + 0.5/32), NRBP(literal=True) 0.244141 = 0.5 * 0.75 / 3 * (1 + 1.5/2 + 1.5/8 + 0.5/32), NRBP(beta=0.8)
    0.626368 = 0.6 / 3 * (1 + 1.5 * 0.8 + 1.5 * 0.8^3 + 0.5 * 0.8^5).
    """
    kept = 1.0 - float(alpha)
    found = (1.0 - kept * float(beta)) * _novelty_sum(rows, _by_power(beta), rel, alpha, None)
    values = np.minimum(divided(found, rows.number(rel)), 1.0)
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
    """Normalised NRBP: divided by that of the topic's greedy ideal ranking.

        nNRBP = (sum over all ranks r of beta^(r-1) NG(r)) / (the same sum of the ideal ranking)

    NG and the ideal ranking are those of alpha_nDCG. A topic without a relevant document scores 0, where
    ndeval has no number.

    Caveat: as the ideal is greedy, a value may lie slightly above 1; `cap=True` makes it 1.

    Example: a={1,2} b={1} c={2,3} d={} e={3}; run b a x c d e: nNRBP 0.664894 = (1 + 1.5/2 + 1.5/8 + 0.5/32)
    / (2 + 1.5/2 + 0.5/4 + 0.5/8).
    """
    return _over_ideal(rows, _by_power(beta), rel, alpha, None, cap)


@measure(source="Agrawal et al., WSDM 2009; ndeval MAP-IA", aliases=("MAP_IA", "MAP-IA"), subtopics=True)
def AP_IA(rows: SubtopicRows, *, rel: Rel | None = None) -> Floats:
    """Intent-aware average precision: the mean over the m subtopics of AP, each with its own R.

        AP of a subtopic = 1/R * sum over ranks r of documents relevant to it of (relevant to it in 1..r) / r

    All subtopics are equally likely.

    Caveat: a subtopic counts the same with one relevant document as with a hundred, and documents that repeat
    a subtopic are credited: it does not ask for novelty.

    Example: a={1,2} b={1} c={2,3} d={} e={3}; run b a x c d e: AP_IA 0.597222 = ((1/1 + 2/2) / 2 + (1/2 +
    2/4) / 2 + (1/4 + 2/6) / 2) / 3.
    """
    pairs = rows.pairs(rel)
    terms = (pairs.seen + 1) / pairs.hits.rank / pairs.size
    return np.minimum(divided(pairs.hits.sum(terms), rows.number(rel)), 1.0)


@measure(source="Agrawal et al., WSDM 2009; ndeval P-IA", aliases=("P-IA",), subtopics=True)
def P_IA(rows: SubtopicRows, *, cutoff: Cutoff, rel: Rel | None = None) -> Floats:
    """Intent-aware precision: the mean over the m subtopics of P@k.

        P_IA@k = (relevant pairs of document and subtopic in 1..k) / (k m)

    It divides so however short the run is.

    Caveat: documents that repeat a subtopic are credited: it does not ask for novelty.

    Example: a={1,2} b={1} c={2,3} d={} e={3}; run b a x c d e: P_IA@3 0.333333 = (1 + 2 + 0) / (3 * 3),
    P_IA@10 0.2 = (1 + 2 + 2 + 1) / (10 * 3).
    """
    found = rows.pairs(rel).hits.within(cutoff).number
    return divided(found / cutoff, rows.number(rel))


@measure(source="Zhai, Cohen and Lafferty, SIGIR 2003; ndeval strec", aliases=("strec",), subtopics=True)
def StRecall(rows: SubtopicRows, *, cutoff: Cutoff | None = None, rel: Rel | None = None) -> Floats:
    """Subtopic recall: the share of the m subtopics that some document among the first k is relevant to.

        StRecall@k = (subtopics of documents 1..k) / m

    Example: a={1,2} b={1} c={2,3} d={} e={3}; run b a x c d e: StRecall@3 0.666667 = 2/3, StRecall@10 1 =
    3/3.
    """
    pairs = rows.pairs(rel)
    return divided(pairs.hits.only(pairs.seen == 0).within(cutoff).number, rows.number(rel))
