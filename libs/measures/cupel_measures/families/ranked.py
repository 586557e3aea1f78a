"""Measures by rank, for one aspect.

R is the number of relevant documents in the judgments of the topic. A document is relevant if its label
reaches `rel`, or the threshold of its aspect if `rel` is not given.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any

import numpy as np

from cupel_measures.grammar import scale_types
from cupel_measures.grammar.parameters import (
    Cutoff,
    Either,
    GainTable,
    Negatives,
    Number,
    Numbers,
    Persistence,
    Rel,
    Share,
    Word,
    exact,
)
from cupel_measures.grammar.registry import EMPTY, NOTHING_RELEVANT, SWAP, ScaleType, measure
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import ABSENT, Aspect, Floats
from cupel_measures.scoring import discounts
from cupel_measures.scoring import gains as label_gains
from cupel_measures.scoring.exact import Shares, by_row, quotients, rank_biased
from cupel_measures.scoring.rows import Hits, Rows, divided

Multiple = Annotated[float, Number("a number above 0, up to 1,000", 0, 1000, (0,))]
DcgName = Annotated[str, Word("log2 or exp-log2", ("log2", "exp-log2"))]
MaxGain = Annotated[
    float | str,
    Either("a number above 0, up to 1,000, or scale", (Number("", 0, 1000, (0,)), Word("", ("scale",)))),
]

RecallLevels = Annotated[
    tuple[float, ...],
    Numbers("increasing levels of recall from 0 to 1, such as [0.2,0.5,0.8]", Number("", 0, 1)),
]
ELEVEN = tuple(level / 10 for level in range(11))

FLOOR = 1e-5
"""Smallest AP or Bpref in a geometric mean; MIN_GEO_MEAN in trec_eval."""
INFAP_EPSILON = 1e-5
"""Smoothing constant of the inferred precision; INFAP_EPSILON in trec_eval."""


def exact_average_precision(
    rows: Rows, *, cutoff: int | None = None, rel: int | None = None
) -> list[Fraction]:
    hits = rows.relevant(rel, cutoff)
    base = rows.recall_base(rel).tolist()
    per_row = by_row(hits, hits.count.tolist(), hits.rank.tolist())
    return [
        _precision_sum(counts, ranks) / max(number, 1)
        for (counts, ranks), number in zip(per_row, base, strict=True)
    ]


def _precision_sum(counts: Sequence[int], ranks: Sequence[int]) -> Fraction:
    unit = math.lcm(*ranks)
    return Fraction(sum(count * (unit // rank) for count, rank in zip(counts, ranks, strict=True)), unit)


@measure(
    source="Buckley and Voorhees 2000; trec_eval map, map_cut",
    aliases=("MAP",),
    exact=exact_average_precision,
    digits=lambda ranks, _: ranks * math.log10(math.e),  # bound of the least common multiple of all ranks
)
def AP(rows: Rows, *, cutoff: Cutoff | None = None, rel: Rel | None = None) -> Floats:
    """Average precision: the mean precision at the ranks of all relevant documents.

        AP@k = 1/R * sum of (relevant in 1..i) / i over the ranks i <= k of relevant documents

    R counts all relevant judged documents, even with a cutoff. A relevant document that is not retrieved adds
    0. `rel` sets another threshold: with labels 0 to 2, `AP` is the lenient version and `AP(rel=2)` the harsh
    one.

    Caveat: with few relevant documents in a topic, values change in large steps. With one relevant document,
    AP equals RR.

    Example: a=3 b=0 c=1 d=-2 e=2; run c x a e d: AP 0.805556 = (1/1 + 2/3 + 3/4) / 3, AP@2 0.333333 = 1/1 /
    3, AP(rel=2) 0.416667 = (1/3 + 2/4) / 2.
    """
    hits = rows.relevant(rel, cutoff)
    return divided(hits.sum(hits.precision), rows.recall_base(rel))


@measure(
    source="Robertson, CIKM 2006; trec_eval gm_map",
    aggregate="geometric mean",
    exempt=dict.fromkeys((NOTHING_RELEVANT, EMPTY), "AP is floored at 0.00001"),
)
def GMAP(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """Geometric mean of AP over topics. It rewards systems without failed topics.

        GMAP = exp(1/T * sum over T topics of ln(max(AP, 0.00001)))

    A topic missing from the run, or without relevant documents, counts as 0.00001.

    Caveat: the floor of 0.00001, a convention of trec_eval, decides the cost of a failed topic. A few failed
    topics outweigh all others.

    Example: a=1 | b=1 | c=1; run a | x b | c: GMAP 0.793701 = (1 * 1/2 * 1)^(1/3); run a | x | c: GMAP
    0.021544 = (1 * 0.00001 * 1)^(1/3).
    """
    return np.maximum(AP(rows, rel=rel), FLOOR)


def exact_precision(rows: Rows, *, cutoff: int, rel: int | None = None) -> list[Fraction]:
    return quotients(rows.relevant(rel, cutoff).number, cutoff)


@measure(
    source="trec_eval P",
    aliases=("Precision",),
    at="cutoff",
    scale="interval",
    exact=exact_precision,
    rises=True,
)
def P(rows: Rows, *, cutoff: Cutoff, rel: Rel | None = None) -> Floats:
    """Precision: the share of relevant documents among the first k.

        P@k = (relevant in 1..k) / k

    The divisor is k, even if the run is shorter.

    Caveat: a topic with fewer than k relevant documents cannot reach 1. Use `RelP` if that matters.

    Example: a=3 b=0 c=1 d=-2 e=2; run c x a e d: P@2 0.5 = 1/2, P@10 0.3 = 3/10.
    """
    return rows.relevant(rel, cutoff).number / cutoff


@measure(source="trec_eval relative_P", scale="interval", rises=True)
def RelP(rows: Rows, *, cutoff: Cutoff, rel: Rel | None = None) -> Floats:
    """Relative precision: precision at k, divided by its maximum possible value.

        RelP@k = (relevant in 1..k) / min(k, R)

    It equals P@k if R is at least k, and R@k otherwise.

    Example: a=3 b=0 c=1 d=-2 e=2; run c x a e d: RelP@2 0.5 = 1/2, RelP@10 1 = 3/3.
    """
    return divided(rows.relevant(rel, cutoff).number, np.minimum(rows.recall_base(rel), cutoff))


def exact_recall(rows: Rows, *, cutoff: int, rel: int | None = None) -> list[Fraction]:
    return quotients(rows.relevant(rel, cutoff).number, rows.recall_base(rel))


@measure(source="trec_eval recall", aliases=("Recall",), scale="interval", exact=exact_recall, rises=True)
def R(rows: Rows, *, cutoff: Cutoff, rel: Rel | None = None) -> Floats:
    """Recall: the share of all relevant documents that are among the first k.

        R@k = (relevant in 1..k) / R

    Caveat: R counts judged documents only. With incomplete judgments, recall is relative to the relevant
    documents in the pool.

    Example: a=3 b=0 c=1 d=-2 e=2; run c x a e d: R@2 0.333333 = 1/3, R@10 1 = 3/3.
    """
    return divided(rows.relevant(rel, cutoff).number, rows.recall_base(rel))


@measure(source="trec_eval recip_rank", aliases=("MRR",), rises=True)
def RR(rows: Rows, *, cutoff: Cutoff | None = None, rel: Rel | None = None) -> Floats:
    """Reciprocal rank: 1 divided by the rank of the first relevant document.

        RR@k = 1 / (rank of the first relevant document), 0 if it is beyond k or there is none

    Caveat: documents below the first relevant one have no effect. The step from rank 1 to rank 2 is as large
    as the step from rank 2 to never. RR is not an interval scale, so its mean is disputed.

    Example: a=3 b=0 c=1 d=-2 e=2; run b x a c: RR 0.333333 = 1/3, RR@2 0 = 0.
    """
    hits = rows.relevant(rel, cutoff)
    return hits.maximum(1.0 / hits.rank)


@measure(source="trec_eval success", rises=True)
def Success(rows: Rows, *, cutoff: Cutoff, rel: Rel | None = None) -> Floats:
    """Success: 1 if any of the first k documents is relevant, else 0.

        Success@k = 1 if there is a relevant document in 1..k, else 0

    The mean is the share of topics with a relevant document among the first k.

    Example: a=1 | b=1 c=1; run x a | c x b: Success@1 0.5 = (0 + 1) / 2, Success@2 1 = (1 + 1) / 2.
    """
    return (rows.relevant(rel, cutoff).number > 0).astype(np.float64)


@measure(
    source="ir_measures Accuracy",
    exempt={SWAP: "a relevant document that moves above the cutoff ranks below all other documents there"},
)
def Accuracy(rows: Rows, *, cutoff: Cutoff | None = None, rel: Rel | None = None) -> Floats:
    """Accuracy: the chance that a relevant document ranks above a non-relevant one.

        Accuracy@k = 1 - (sum over relevant documents of the others above them) / (relevant * others)

    Both documents are drawn at random from the first k of the run. The others are the non-relevant documents,
    including unjudged documents. The value is 1 if all documents are relevant, and 0 if none is.

    Caveat: relevant documents that are not retrieved have no effect.

    Example: a=1 b=1 z=0; run a x b z: Accuracy 0.75 = 1 - 1 / (2 * 2), Accuracy@3 0.5 = 1 - 1 / (2 * 1).
    """
    hits = rows.relevant(rel, cutoff)
    depth = rows.retrieved if cutoff is None else np.minimum(rows.retrieved, cutoff)
    pairs = hits.number * (depth - hits.number)
    wrong = hits.sum((hits.rank - hits.count).astype(np.float64))
    return np.where(hits.number > 0, 1.0 - divided(wrong, pairs), 0.0)


@measure(source="Jarvelin and Kekalainen 2002; trec_eval ndcg, ndcg_cut", aliases=("NDCG",))
def nDCG(
    rows: Rows,
    *,
    cutoff: Cutoff | None = None,
    dcg: DcgName = "log2",
    gains: GainTable | None = None,
) -> Floats:
    """Normalised discounted cumulative gain: DCG divided by that of the ideal ranking.

        DCG@k = sum over i <= k of gain(i) / log2(1 + i)
        nDCG@k = DCG@k / DCG@k of all judged documents by decreasing gain

    The ideal ranking contains all judged documents, however short the run is, and is cut at k if k is given.
    If its DCG is 0, the score is 0. `dcg=exp-log2` uses 2^gain - 1 as the gain. `gains` replaces the gains of
    some labels.

    Caveat: without a cutoff the ideal ranking extends to the last judged document. So nDCG of a run of 20
    documents can differ from its nDCG@20.

    Example: a=3 b=0 c=1 d=-2 e=2; run c x a e d: nDCG 0.705891 = (1 + 3/log2(4) + 2/log2(5)) / (3 + 2/log2(3)
    + 1/log2(4)), nDCG@2 0.234639 = 1 / (3 + 2/log2(3)), nDCG(dcg=exp-log2)@1 0.142857 = (2^1 - 1) / (2^3 -
    1).
    """
    table = gain_table(rows, gains, exponential=dcg == "exp-log2")
    hits, gain = rows.gains(table, cutoff)
    ideal = rows.pool.ideal_dcg(table, cutoff)[rows.topic]
    return divided(hits.sum(gain / discounts.log2(hits.rank)), ideal)


def gain_table(rows: Rows, gains: GainTable | None, *, exponential: bool = False) -> Floats:
    """Return the gain of each label: float64[labels].

    `gains` replaces gains of the aspect.

    Labels in `gains` that the aspect does not have are ignored.
    """
    table = label_gains.table(rows.pool.aspect, gains)
    return discounts.exponential(table) if exponential else table


@measure(source="trec_eval Rprec, Rprec_mult", aliases=("RPrec",), scale="neither")
def Rprec(rows: Rows, *, multiple: Multiple = 1, rel: Rel | None = None) -> Floats:
    """R-precision: precision at rank R, the number of relevant documents of the topic.

        Rprec = (relevant in 1..R) / R

    `multiple=x` uses int(x R + 0.9) ranks instead of R. The divisor is this number of ranks, even if the run
    is shorter.

    Example: a=3 b=0 c=1 d=-2 e=2; run c x a e d: Rprec 0.666667 = 2/3, Rprec(multiple=0.5) 0.5 = 1/2.
    """
    base = rows.recall_base(rel)
    depth = np.floor(float(multiple) * base + 0.9).astype(np.int64)
    return divided(rows.relevant(rel).within(depth).number, depth)


@measure(source="Buckley and Voorhees, SIGIR 2004; trec_eval bpref", aliases=("BPref",), judged_only=False)
def Bpref(rows: Rows, *, rel: Rel | None = None, negatives: Negatives = "pooled") -> Floats:
    """Binary preference: how few judged non-relevant documents precede relevant ones.

        Bpref = 1/R * sum over retrieved relevant documents of 1 - min(n, R) / min(N, R)

    n is the number of judged non-relevant documents above the relevant one, and N the number of all judged
    non-relevant documents. A relevant document with n = 0 adds 1. Documents without a judgment are skipped.
    Negative grades are skipped too, under every profile; with `negatives=judged` they count as judged
    non-relevant.

    Caveat: unjudged documents cost nothing at any rank. A run with few judged documents can score high if
    they are in a good order.

    Example: a=1 b=0 c=1 d=0 e=1 f=0; run b a u d c f e: Bpref 0.333333 = ((1 - 1/3) + (1 - 2/3) + (1 - 3/3))
    / 3; run a b c: Bpref 0.555556 = (1 + (1 - 1/3)) / 3.

    Example: a=1 n=-1; run n a: Bpref 1 = 1/1, Bpref(negatives=judged) 0 = 1 - 1/1.
    """
    base, pooled = rows.recall_base(rel), rows.pool.count(rows.pool.nonrelevant(rel, negatives))[rows.topic]
    hits = rows.relevant(rel)
    above = rows.hits.above(rows.pool.relevant(rel), rows.pool.nonrelevant(rel, negatives))
    limit = base[hits.row]
    lost = divided(np.minimum(above, limit), np.minimum(pooled[hits.row], limit))
    return divided(hits.sum(1.0 - lost), base)


@measure(
    source="Buckley and Voorhees, SIGIR 2004; trec_eval gm_bpref",
    aggregate="geometric mean",
    judged_only=False,
    exempt=dict.fromkeys((NOTHING_RELEVANT, EMPTY), "Bpref is floored at 0.00001"),
)
def GMBpref(rows: Rows, *, rel: Rel | None = None, negatives: Negatives = "pooled") -> Floats:
    """Geometric mean of Bpref over topics. It rewards systems without failed topics.

        GMBpref = exp(1/T * sum over T topics of ln(max(Bpref, 0.00001)))

    A topic missing from the run, or without relevant documents, counts as 0.00001. `negatives` is explained
    at Bpref.

    Caveat: the floor of 0.00001, a convention of trec_eval, decides the cost of a failed topic. A few failed
    topics outweigh all others.

    Example: a=1 b=0 | c=1 d=0 e=1; run a b | c d e: GMBpref 0.707107 = sqrt(1 * (1 + (1 - 1/1)) / 2); run a |
    d: GMBpref 0.003162 = sqrt(1 * 0.00001).
    """
    return np.maximum(Bpref(rows, rel=rel, negatives=negatives), FLOOR)


@measure(
    source="Yilmaz and Aslam, CIKM 2006; trec_eval infAP",
    judged_only=False,
    exempt={SWAP: "the estimate for a pooled, unjudged document depends on the documents above it"},
)
def infAP(rows: Rows, *, rel: Rel | None = None, negatives: Negatives = "pooled") -> Floats:
    """Inferred AP: an estimate of AP from a judged sample of the pool.

        infAP = 1/R * sum over retrieved relevant documents of the expected precision at their ranks
        at rank i: 1/i + (i - 1)/i * m/(i - 1) * (r + e) / (r + n + 2e), at rank 1: 1

    Of the i - 1 documents above, m are in the pool, r are relevant, and n are judged non-relevant; e =
    0.00001. A pooled document without a judgment counts in m only. So does a negative grade, under every
    profile; with `negatives=judged` it counts as judged non-relevant.

    Caveat: because of e, the value differs slightly from AP even if all documents are judged. The estimate
    assumes that the judged documents are a random sample of the pool; it is biased otherwise.

    Example: a=1 b=1 z=0 n=-1; run a z b: infAP 0.833333 = (1 + 1/3 + 2/3 * 2/2 * 1/2) / 2; run a n b: infAP
    0.999997 = (1 + 1/3 + 2/3 * 2/2 * 1.00001/1.00002) / 2, infAP(negatives=judged) 0.833333 = (1 + 1/3 + 2/3
    * 2/2 * 1/2) / 2.
    """
    hits, relevant = rows.relevant(rel), rows.pool.relevant(rel)
    pooled = rows.hits.above(relevant, rows.pool.labels != ABSENT)
    r, n = hits.count - 1, rows.hits.above(relevant, rows.pool.nonrelevant(rel, negatives))
    above = hits.rank - np.int64(1)
    ratio = (r + INFAP_EPSILON) / (r + n + 2 * INFAP_EPSILON)
    share = divided(pooled, above)
    precision = 1.0 / hits.rank + above / hits.rank * share * ratio
    return divided(hits.sum(precision), rows.recall_base(rel))


@measure(source="trec_eval iprec_at_recall", at="recall")
def IPrec(rows: Rows, *, recall: Share, rel: Rel | None = None) -> Floats:
    """Interpolated precision: the greatest precision at or above the given recall.

        IPrec@c = max over ranks i with (relevant in 1..i) >= c R of (relevant in 1..i) / i

    c is the parameter `recall`. c R is rounded half away from zero; under profile trec_eval-9 it is int(c R +
    0.9). If the run does not reach the recall level, the score is 0.

    Example: a=3 b=0 c=1 d=-2 e=2; run c x a e: IPrec@0.1 1 = 1/1, IPrec@0.5 0.75 = max(2/3, 3/4); run c x a:
    IPrec@0.9 0 = 0.
    """
    needed = float(recall) * rows.recall_base(rel)
    documents = np.floor(needed + (0.9 if rows.profile.truncated_recall else 0.5))
    hits = rows.relevant(rel)
    key = ("precision", rows.pool.threshold(rel))
    precision: Floats = rows.once(key, lambda: hits.precision)
    return hits.maximum(precision, above=np.maximum(documents - 1, 0).astype(np.int64))


@measure(source="trec_eval 11pt_avg")
def AP11(rows: Rows, *, levels: RecallLevels | None = None, rel: Rel | None = None) -> Floats:
    """Eleven-point average: mean interpolated precision at recall 0, 0.1, ..., 1.

        AP11 = 1/11 * sum over c = 0, 0.1, ..., 1 of IPrec@c

    `levels` replaces the eleven recall levels, as in [0.2,0.5,0.8]. Rounding is the same as in IPrec.

    Example: a=3 b=0 c=1 d=-2 e=2; run c x a e: AP11 0.863636 = (5 * 1/1 + 6 * 3/4) / 11,
    AP11(levels=[0.2,0.5,0.8]) 0.833333 = (1 + 3/4 + 3/4) / 3.
    """
    points = ELEVEN if levels is None else levels
    values = np.stack([IPrec(rows, recall=level, rel=rel) for level in points])
    total: Floats = np.cumsum(values, axis=0)[-1]
    return total / float(len(points))


def digits_of_powers(ranks: int, given: Mapping[str, Any]) -> float:
    """Return the number of decimal digits of the denominator of p^ranks."""
    return ranks * math.log10(exact(given["p"]).denominator)


def exact_rank_biased_precision(
    rows: Rows, *, p: float | Fraction = 0.8, cutoff: int | None = None, rel: int | None = None
) -> Shares:
    hits = rows.relevant(rel, cutoff)
    return rank_biased(hits, [1] * len(hits.rank), exact(p))


def _by_persistence(_: Aspect, given: Mapping[str, Any]) -> ScaleType:
    """Return the scale type: interval if p = 1/2, ordinal below 1/2, else neither."""
    return scale_types.rank_biased(given["p"], [0, 1])


@measure(
    source="Moffat and Zobel, TOIS 2008",
    scale=_by_persistence,
    exact=exact_rank_biased_precision,
    digits=digits_of_powers,
    rises=True,
)
def RBP(rows: Rows, *, p: Persistence = 0.8, cutoff: Cutoff | None = None, rel: Rel | None = None) -> Floats:
    """Rank-biased precision: the user continues to the next rank with probability p.

        RBP@k = (1 - p) * sum of p^(i - 1) over the ranks i <= k of relevant documents

    Relevance is binary; `gRBP` uses gains. The RBP that TREC-COVID published is graded, so it is
    `gRBP(p=0.5)`, not `RBP(p=0.5)`. The ideal ranking is infinite, so a topic with few relevant documents
    stays far below 1. `RBPResidual` with the same p is the largest amount that unjudged documents could add.

    Example: a=3 b=0 c=1 d=-2 e=2; run c x a e d: RBP 0.4304 = (1 - 0.8) * (1 + 0.8^2 + 0.8^3), RBP(p=0.5)@3
    0.625 = 0.5 * (1 + 0.5^2).
    """
    hits = rows.relevant(rel, cutoff)
    return (1.0 - float(p)) * hits.sum(discounts.power(float(p), hits.rank))


@measure(
    source="Chapelle et al., CIKM 2009; gdeval",
    by_scale=lambda given: given["max_gain"] == "scale",
    rises=True,
)
def ERR(rows: Rows, *, cutoff: Cutoff | None = None, max_gain: MaxGain = 4) -> Floats:
    """Expected reciprocal rank, for a user who stops at the first satisfying document.

        ERR@k = sum over i <= k of 1/i * x_i * product over j < i of (1 - x_j)
        x = (2^gain - 1) / 2^max_gain

    The default `max_gain=4` is the constant of gdeval and ir_measures. `max_gain=scale` uses the gain of the
    best label, as Ferrante et al. do. A gain above `max_gain` is an error.

    Caveat: with `max_gain=4` and labels from 0 to 2, the best document satisfies only 3 of 16 users. Compare
    values only if they share the scale and `max_gain`.

    Example: a=2 b=2 c=1 d=1 e=1 z=0; run a z c d: ERR(max_gain=scale) 0.782552 = 3/4 + 1/3 * 1/4 * 1/4 + 1/4
    * 1/4 * (1/4 * 3/4), ERR@1 0.1875 = 3/16.
    """
    table = rows.pool.aspect.gains
    most = float(table.max()) if max_gain == "scale" else float(max_gain)
    if table.max() > most:
        raise MeasureError(
            f"max_gain={most:g} is below {table.max():g}, the highest gain of aspect "
            f"{rows.pool.aspect.name!r}; use max_gain=scale to take the highest gain"
        )
    hits, stops = rows.gains(discounts.exponential(table) / 2.0**most, cutoff)
    return hits.sum(stops * unstopped(hits, stops) / hits.rank)


def unstopped(hits: Hits, stops: Floats) -> Floats:
    """Return the product of 1 - `stops` over the earlier hits of the same row.

    The result is float64[n].
    """
    remaining = np.ones(len(stops))
    for places in itertools.islice(hits.places(), 1, None):
        remaining[places] = remaining[places - 1] * (1.0 - stops[places - 1])
    return remaining
