"""Measures of one aspect that look at ranks (spec 2; compatibility.md 2.1).

R is the number of relevant documents in the judgments of the topic. A document is relevant if its label
reaches `rel`, or the threshold of its aspect where `rel` is not given.
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
    tuple[float, ...], Numbers("rising levels of recall from 0 to 1, such as [0.2,0.5,0.8]", Number("", 0, 1))
]
ELEVEN = tuple(level / 10 for level in range(11))

FLOOR = 1e-5
"""Smallest AP or Bpref in a geometric mean, as trec_eval's MIN_GEO_MEAN."""
INFAP_EPSILON = 1e-5
"""Smooths the precision that infAP infers, as trec_eval's constant of this name."""


def exact_average_precision(
    rows: Rows, *, cutoff: int | None = None, rel: int | None = None
) -> list[Fraction]:
    hits = rows.relevant(rel, cutoff)
    base = rows.recall_base(rel).tolist()
    found = by_row(hits, hits.count.tolist(), hits.rank.tolist())
    return [_precisions(*of_row) / max(number, 1) for of_row, number in zip(found, base, strict=True)]


def _precisions(counts: Sequence[int], ranks: Sequence[int]) -> Fraction:
    unit = math.lcm(*ranks)
    return Fraction(sum(count * (unit // rank) for count, rank in zip(counts, ranks, strict=True)), unit)


@measure(
    source="Buckley and Voorhees 2000; trec_eval map, map_cut",
    aliases=("MAP",),
    exact=exact_average_precision,
    digits=lambda ranks, _: ranks * math.log10(math.e),  # of the least common multiple of all ranks
)
def AP(rows: Rows, *, cutoff: Cutoff | None = None, rel: Rel | None = None) -> Floats:
    """Average precision: the mean, over all relevant documents, of the precision at their ranks.

        AP@k = 1/R * sum over ranks i <= k with a relevant document of (relevant in 1..i) / i

    R counts every relevant judged document, also under a cutoff; one that was not retrieved adds 0. `rel`
    sets another threshold: on labels 0 to 2 the lenient AP is `AP`, the harsh one `AP(rel=2)`.

    Caveat: values of topics with few relevant documents move in large steps; with one it is RR.

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
    """Geometric mean of AP over topics, which rewards systems that fail on no topic.

        GMAP = exp(1/T * sum over T topics of ln(max(AP, 0.00001)))

    A topic missing from the run, or without relevant documents, counts as 0.00001.

    Caveat: a topic that fails costs what the floor makes of it, which is a convention of trec_eval; a few
    such topics outweigh all others.

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
    """Precision: relevant documents among the first k, divided by k.

        P@k = (relevant in 1..k) / k

    It divides by k however short the run is.

    Caveat: a topic with fewer than k relevant documents can't reach 1; `RelP` can.

    Example: a=3 b=0 c=1 d=-2 e=2; run c x a e d: P@2 0.5 = 1/2, P@10 0.3 = 3/10.
    """
    return rows.relevant(rel, cutoff).number / cutoff


@measure(source="trec_eval relative_P", scale="interval", rises=True)
def RelP(rows: Rows, *, cutoff: Cutoff, rel: Rel | None = None) -> Floats:
    """Relative precision: relevant documents among the first k, of as many as there could be.

        RelP@k = (relevant in 1..k) / min(k, R)

    It is P@k where R is at least k, and R@k where not.

    Example: a=3 b=0 c=1 d=-2 e=2; run c x a e d: RelP@2 0.5 = 1/2, RelP@10 1 = 3/3.
    """
    return divided(rows.relevant(rel, cutoff).number, np.minimum(rows.recall_base(rel), cutoff))


def exact_recall(rows: Rows, *, cutoff: int, rel: int | None = None) -> list[Fraction]:
    return quotients(rows.relevant(rel, cutoff).number, rows.recall_base(rel))


@measure(source="trec_eval recall", aliases=("Recall",), scale="interval", exact=exact_recall, rises=True)
def R(rows: Rows, *, cutoff: Cutoff, rel: Rel | None = None) -> Floats:
    """Recall: the share of all relevant documents that stand among the first k.

        R@k = (relevant in 1..k) / R

    Caveat: R counts judged documents: where judgments are incomplete, recall is of what was found by some
    pool.

    Example: a=3 b=0 c=1 d=-2 e=2; run c x a e d: R@2 0.333333 = 1/3, R@10 1 = 3/3.
    """
    return divided(rows.relevant(rel, cutoff).number, rows.recall_base(rel))


@measure(source="trec_eval recip_rank", aliases=("MRR",), rises=True)
def RR(rows: Rows, *, cutoff: Cutoff | None = None, rel: Rel | None = None) -> Floats:
    """Reciprocal rank: 1 over the rank of the first relevant document.

        RR@k = 1 / (rank of the first relevant document), 0 if it is beyond k or there is none

    Caveat: it sees nothing below the first relevant document, and falls as much from rank 1 to rank 2 as from
    rank 2 to the end: it is on no interval scale, which makes its mean debated.

    Example: a=3 b=0 c=1 d=-2 e=2; run b x a c: RR 0.333333 = 1/3, RR@2 0 = 0.
    """
    hits = rows.relevant(rel, cutoff)
    return hits.maximum(1.0 / hits.rank)


@measure(source="trec_eval success", rises=True)
def Success(rows: Rows, *, cutoff: Cutoff, rel: Rel | None = None) -> Floats:
    """Success: whether any of the first k documents is relevant.

        Success@k = 1 if there is a relevant document in 1..k, else 0

    Over topics it is the share of topics with a relevant document among the first k.

    Example: a=1 | b=1 c=1; run x a | c x b: Success@1 0.5 = (0 + 1) / 2, Success@2 1 = (1 + 1) / 2.
    """
    return (rows.relevant(rel, cutoff).number > 0).astype(np.float64)


@measure(
    source="ir_measures Accuracy",
    exempt={SWAP: "a relevant document that comes above the cutoff is counted, below all others there"},
)
def Accuracy(rows: Rows, *, cutoff: Cutoff | None = None, rel: Rel | None = None) -> Floats:
    """Accuracy: the chance that, of a relevant and another document of the run, the relevant one is first.

        Accuracy@k = 1 - (sum over relevant documents of the others above them) / (relevant * others)

    Only the first k documents take part; an unjudged document is one of the others. 1 where all are relevant,
    0 where none is.

    Caveat: relevant documents that were not retrieved cost nothing.

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
    """Normalised discounted cumulative gain: DCG divided by the DCG of the best possible ranking.

        DCG@k = sum over i <= k of gain(i) / log2(1 + i)
        nDCG@k = DCG@k / DCG@k of all judged documents by decreasing gain

    The ideal ranks all judged documents, however short the run is, cut at k if k is given; an ideal of 0
    scores 0. `dcg=exp-log2` takes 2^gain - 1 for the gain. `gains` replaces the gain of some labels.

    Caveat: without a cutoff the ideal goes down to the last judged document, so nDCG of a run of 20 documents
    need not be its nDCG@20.

    Example: a=3 b=0 c=1 d=-2 e=2; run c x a e d: nDCG 0.705891 = (1 + 3/log2(4) + 2/log2(5)) / (3 + 2/log2(3)
    + 1/log2(4)), nDCG@2 0.234639 = 1 / (3 + 2/log2(3)), nDCG(dcg=exp-log2)@1 0.142857 = (2^1 - 1) / (2^3 -
    1).
    """
    table = gain_table(rows, gains, exponential=dcg == "exp-log2")
    hits, gain = rows.gains(table, cutoff)
    ideal = rows.pool.ideal_dcg(table, cutoff)[rows.topic]
    return divided(hits.sum(gain / discounts.log2(hits.rank)), ideal)


def gain_table(rows: Rows, gains: GainTable | None, *, exponential: bool = False) -> Floats:
    """float64[labels]: the aspect's gain per label, with those of `gains` in their place.

    A label of `gains` that the scale lacks credits nothing.
    """
    table = label_gains.table(rows.pool.aspect, gains)
    return discounts.exponential(table) if exponential else table


@measure(source="trec_eval Rprec, Rprec_mult", aliases=("RPrec",), scale="neither")
def Rprec(rows: Rows, *, multiple: Multiple = 1, rel: Rel | None = None) -> Floats:
    """R-precision: precision at rank R, the number of relevant documents of the topic.

        Rprec = (relevant in 1..R) / R

    `multiple=x` looks at int(x R + 0.9) ranks instead and divides by them. It divides so however short the
    run is.

    Example: a=3 b=0 c=1 d=-2 e=2; run c x a e d: Rprec 0.666667 = 2/3, Rprec(multiple=0.5) 0.5 = 1/2.
    """
    base = rows.recall_base(rel)
    depth = np.floor(float(multiple) * base + 0.9).astype(np.int64)
    return divided(rows.relevant(rel).within(depth).number, depth)


@measure(source="Buckley and Voorhees, SIGIR 2004; trec_eval bpref", aliases=("BPref",), judged_only=False)
def Bpref(rows: Rows, *, rel: Rel | None = None, negatives: Negatives = "pooled") -> Floats:
    """Binary preference: how rarely judged non-relevant documents stand above relevant ones.

        Bpref = 1/R * sum over retrieved relevant documents of 1 - min(n, R) / min(N, R)

    n judged non-relevant documents stand above the relevant one, N are judged in all; a document with none
    above it adds 1. Documents that are not judged are passed over, and so are negative grades, under every
    profile; `negatives=judged` takes those for judged non-relevant.

    Caveat: a document nobody judged costs nothing wherever it stands: a run of few judged documents, in good
    order, may score high.

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
    """Geometric mean of Bpref over topics, which rewards systems that fail on no topic.

        GMBpref = exp(1/T * sum over T topics of ln(max(Bpref, 0.00001)))

    A topic missing from the run, or without relevant documents, counts as 0.00001. `negatives` is that of
    Bpref.

    Caveat: a topic that fails costs what the floor makes of it, which is a convention of trec_eval; a few
    such topics outweigh all others.

    Example: a=1 b=0 | c=1 d=0 e=1; run a b | c d e: GMBpref 0.707107 = sqrt(1 * (1 + (1 - 1/1)) / 2); run a |
    d: GMBpref 0.003162 = sqrt(1 * 0.00001).
    """
    return np.maximum(Bpref(rows, rel=rel, negatives=negatives), FLOOR)


@measure(
    source="Yilmaz and Aslam, CIKM 2006; trec_eval infAP",
    judged_only=False,
    exempt={SWAP: "a pooled document without judgment is taken to be relevant as often as those above it"},
)
def infAP(rows: Rows, *, rel: Rel | None = None, negatives: Negatives = "pooled") -> Floats:
    """Inferred AP: an estimate of AP where only a sample of the pool was judged.

        infAP = 1/R * sum over retrieved relevant documents of the precision expected at their ranks
        at rank i: 1/i + (i - 1)/i * m/(i - 1) * (r + e) / (r + n + 2e), at rank 1: 1

    Of the i - 1 documents above, m are in the pool, r are relevant, n judged non-relevant, and e = 0.00001. A
    document that is pooled and not judged (also a negative grade, under every profile) counts in m alone;
    `negatives=judged` takes negative grades for judged non-relevant.

    Caveat: e makes it differ slightly from AP on complete judgments. It is an estimate for samples drawn at
    random: judged documents that were chosen otherwise bias it.

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
    """Interpolated precision: the greatest precision at any rank where recall is at least `recall`.

        IPrec@c = max over ranks i with (relevant in 1..i) >= c R of (relevant in 1..i) / i

    c R is rounded half away from zero; under profile trec_eval-9 it is int(c R + 0.9). A level above the
    recall that was reached scores 0.

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
    """Eleven-point average: the mean of interpolated precision at recall 0, 0.1, ..., 1.

        AP11 = 1/11 * sum over c = 0, 0.1, ..., 1 of IPrec@c

    `levels` are other levels of recall to average over, such as [0.2,0.5,0.8]. Rounding is that of IPrec.

    Example: a=3 b=0 c=1 d=-2 e=2; run c x a e: AP11 0.863636 = (5 * 1/1 + 6 * 3/4) / 11,
    AP11(levels=[0.2,0.5,0.8]) 0.833333 = (1 + 3/4 + 3/4) / 3.
    """
    points = ELEVEN if levels is None else levels
    values = np.stack([IPrec(rows, recall=level, rel=rel) for level in points])
    total: Floats = np.cumsum(values, axis=0)[-1]
    return total / float(len(points))


def digits_of_powers(ranks: int, given: Mapping[str, Any]) -> float:
    """Digits of p^ranks below the fraction line."""
    return ranks * math.log10(exact(given["p"]).denominator)


def exact_rank_biased_precision(
    rows: Rows, *, p: float | Fraction = 0.8, cutoff: int | None = None, rel: int | None = None
) -> Shares:
    hits = rows.relevant(rel, cutoff)
    return rank_biased(hits, [1] * len(hits.rank), exact(p))


def _by_persistence(_: Aspect, given: Mapping[str, Any]) -> ScaleType:
    """Interval for p = 1/2, ordinal below, neither above."""
    return scale_types.rank_biased(given["p"], [0, 1])


@measure(
    source="Moffat and Zobel, TOIS 2008",
    scale=_by_persistence,
    exact=exact_rank_biased_precision,
    digits=digits_of_powers,
    rises=True,
)
def RBP(rows: Rows, *, p: Persistence = 0.8, cutoff: Cutoff | None = None, rel: Rel | None = None) -> Floats:
    """Rank-biased precision, of a reader who goes on to the next document with chance p.

        RBP@k = (1 - p) * sum over ranks i <= k of relevant documents of p^(i - 1)

    Relevance is binary, with or without a cutoff; `gRBP` credits gains. The ideal is a ranking without end: a
    topic with few relevant documents stays far below 1. What could still come is told by `RBPResidual`
    of the same p.

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
    """Expected reciprocal rank, of a reader who stops at the first document that satisfies.

        ERR@k = sum over i <= k of 1/i * x_i * product over j < i of (1 - x_j)
        x = (2^gain - 1) / 2^max_gain

    `max_gain=4` is gdeval's and ir_measures' constant; `max_gain=scale` takes the gain of the best label, as
    Ferrante et al. do. A gain above `max_gain` is refused.

    Caveat: with `max_gain=4`, on labels from 0 to 2, the best document satisfies 3 readers of 16. Compare
    only values of one scale and one `max_gain`.

    Example: a=2 b=2 c=1 d=1 e=1 z=0; run a z c d: ERR(max_gain=scale) 0.782552 = 3/4 + 1/3 * 1/4 * 1/4 + 1/4
    * 1/4 * (1/4 * 3/4), ERR@1 0.1875 = 3/16.
    """
    table = rows.pool.aspect.gains
    most = float(table.max()) if max_gain == "scale" else float(max_gain)
    if table.max() > most:
        raise MeasureError(
            f"max_gain={most:g} is below {table.max():g}, the highest gain of aspect "
            f"{rows.pool.aspect.name!r}; max_gain=scale takes the scale's own"
        )
    hits, stops = rows.gains(discounts.exponential(table) / 2.0**most, cutoff)
    return hits.sum(stops * unstopped(hits, stops) / hits.rank)


def unstopped(hits: Hits, stops: Floats) -> Floats:
    """float64[n]: product of 1 - `stops` over the earlier hits of the same row, rank after rank."""
    remaining = np.ones(len(stops))
    for here in itertools.islice(hits.places(), 1, None):
        remaining[here] = remaining[here - 1] * (1.0 - stops[here - 1])
    return remaining
