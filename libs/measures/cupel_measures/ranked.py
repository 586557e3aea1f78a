"""Measures of one aspect that look at ranks. Each sees all rows at once (spec 2; compatibility.md 2.1)."""

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any

import numpy as np

from cupel_measures import discounts, scale_types
from cupel_measures import gains as label_gains
from cupel_measures.exact import Shares, by_row, quotients, rank_biased
from cupel_measures.model import ABSENT, Floats, Ints
from cupel_measures.parameters import (
    Cutoff,
    Either,
    GainTable,
    Number,
    Numbers,
    Persistence,
    Rel,
    Share,
    Word,
    exact,
)
from cupel_measures.registry import EMPTY, NOTHING_RELEVANT, SWAP, measure
from cupel_measures.rows import Hits, Rows, divided
from cupel_measures.syntax import MeasureError

Multiple = Annotated[float, Number("a number above 0, up to 1,000", 0, 1000, (0,))]
DcgName = Annotated[str, Word("log2 or exp-log2", ("log2", "exp-log2"))]
MaxGain = Annotated[
    float | str,
    Either("a number above 0, or scale", (Number("", 0, 1000, (0,)), Word("", ("scale",)))),
]

RecallLevels = Annotated[
    tuple[float, ...], Numbers("levels of recall from 0 to 1, such as [0.2,0.5,0.8]", Number("", 0, 1))
]
ELEVEN = tuple(level / 10 for level in range(11))

FLOOR = 1e-5
"""Smallest AP or Bpref in a geometric mean, as trec_eval's MIN_GEO_MEAN."""
INFAP_EPSILON = 1e-5
"""Smooths the precision that infAP infers, as trec_eval's constant of this name."""


def exact_average_precision(
    rows: Rows, *, cutoff: int | None = None, rel: int | None = None
) -> list[Fraction]:
    hits = rows.relevant(rel).within(cutoff)
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

    AP@k = 1/R * sum over ranks i <= k with a relevant document of (relevant in 1..i) / i.
    R counts every relevant judged document, also under a cutoff; a topic without any scores 0.
    """
    hits = rows.relevant(rel).within(cutoff)
    return divided(hits.sum(hits.count / hits.rank), rows.recall_base(rel))


@measure(
    source="Robertson, CIKM 2006; trec_eval gm_map",
    aggregate="geometric mean",
    exempt=dict.fromkeys((NOTHING_RELEVANT, EMPTY), "AP is floored at 0.00001"),
)
def GMAP(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """Geometric mean of AP over topics, which rewards systems that fail on no topic.

    Per topic: AP, at least 0.00001. Over topics: exp of the mean of the logarithms.
    """
    return np.maximum(AP(rows, rel=rel), FLOOR)


def exact_precision(rows: Rows, *, cutoff: int, rel: int | None = None) -> list[Fraction]:
    return quotients(rows.relevant(rel).within(cutoff).number, cutoff)


@measure(
    source="trec_eval P",
    aliases=("Precision",),
    at="cutoff",
    scale="interval",
    exact=exact_precision,
    rises=True,
)
def P(rows: Rows, *, cutoff: Cutoff, rel: Rel | None = None) -> Floats:
    """Precision: relevant documents among the first k, divided by k, however short the run is."""
    return rows.relevant(rel).within(cutoff).number / cutoff


@measure(source="trec_eval relative_P", scale="interval", rises=True)
def RelP(rows: Rows, *, cutoff: Cutoff, rel: Rel | None = None) -> Floats:
    """Relative precision: relevant documents among the first k, of as many as there could be, min(k, R)."""
    return divided(rows.relevant(rel).within(cutoff).number, np.minimum(rows.recall_base(rel), cutoff))


def exact_recall(rows: Rows, *, cutoff: int, rel: int | None = None) -> list[Fraction]:
    return quotients(rows.relevant(rel).within(cutoff).number, rows.recall_base(rel))


@measure(source="trec_eval recall", aliases=("Recall",), scale="interval", exact=exact_recall, rises=True)
def R(rows: Rows, *, cutoff: Cutoff, rel: Rel | None = None) -> Floats:
    """Recall: the share of all relevant documents that stand among the first k."""
    return divided(rows.relevant(rel).within(cutoff).number, rows.recall_base(rel))


@measure(source="trec_eval recip_rank", aliases=("MRR",), rises=True)
def RR(rows: Rows, *, cutoff: Cutoff | None = None, rel: Rel | None = None) -> Floats:
    """Reciprocal rank: 1 over the rank of the first relevant document, 0 if there is none (up to k)."""
    hits = rows.relevant(rel).within(cutoff)
    return hits.maximum(1.0 / hits.rank)


@measure(source="trec_eval success", rises=True)
def Success(rows: Rows, *, cutoff: Cutoff, rel: Rel | None = None) -> Floats:
    """Success: 1 if any of the first k documents is relevant, else 0."""
    return (rows.relevant(rel).within(cutoff).number > 0).astype(np.float64)


@measure(
    source="ir_measures Accuracy",
    exempt={SWAP: "a relevant document that comes above the cutoff is counted, below all others there"},
)
def Accuracy(rows: Rows, *, cutoff: Cutoff | None = None, rel: Rel | None = None) -> Floats:
    """Accuracy: the chance that, of a relevant and another document of the run, the relevant one is first.

    1 - (sum over relevant documents of the others above them) / (relevant * others), among the first k;
    an unjudged document is one of the others. 1 where all are relevant, 0 where none is.
    """
    hits = rows.relevant(rel).within(cutoff)
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

    DCG@k = sum over i <= k of gain(i) / log2(1 + i). The ideal ranks all judged documents by gain
    (all of them, however short the run is), cut at k if k is given; an ideal of 0 scores 0.
    `dcg=exp-log2` takes 2^gain - 1 for the gain. `gains` replaces the gain of some labels.
    """
    table = gain_table(rows, gains, exponential=dcg == "exp-log2")
    hits, gain = credited(rows, table, cutoff)
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

    `multiple=x` looks at int(x R + 0.9) ranks instead and divides by them.
    """
    base = rows.recall_base(rel)
    depth = np.floor(float(multiple) * base + 0.9).astype(np.int64)
    return divided(rows.relevant(rel).within(depth).number, depth)


@measure(source="Buckley and Voorhees, SIGIR 2004; trec_eval bpref", aliases=("BPref",), judged_only=False)
def Bpref(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """Binary preference: how rarely judged non-relevant documents stand above relevant ones.

    Sum over retrieved relevant documents of 1 - min(n, R) / min(N, R), divided by R; n judged
    non-relevant documents stand above it, N are judged in all. Documents that are not judged are
    passed over, and so are negative grades, under every profile.
    """
    base, pooled = rows.recall_base(rel), rows.pool.count(rows.pool.nonrelevant(rel))[rows.topic]
    hits = rows.relevant(rel)
    above = _above(hits, rows.nonrelevant(rel))
    limit = base[hits.row]
    lost = divided(np.minimum(above, limit), np.minimum(pooled[hits.row], limit))
    return divided(hits.sum(1.0 - lost), base)


@measure(
    source="Buckley and Voorhees, SIGIR 2004; trec_eval gm_bpref",
    aggregate="geometric mean",
    judged_only=False,
    exempt=dict.fromkeys((NOTHING_RELEVANT, EMPTY), "Bpref is floored at 0.00001"),
)
def GMBpref(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """Geometric mean of Bpref over topics, which rewards systems that fail on no topic.

    Per topic: Bpref, at least 0.00001. Over topics: exp of the mean of the logarithms.
    """
    return np.maximum(Bpref(rows, rel=rel), FLOOR)


@measure(
    source="Yilmaz and Aslam, CIKM 2006; trec_eval infAP",
    judged_only=False,
    exempt={SWAP: "a pooled document without judgment is taken to be relevant as often as those above it"},
)
def infAP(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """Inferred AP: an estimate of AP where only a sample of the pool was judged.

    Sum over retrieved relevant documents, divided by R. One at rank i adds 1/i + (i-1)/i * (m/(i-1)) *
    (r + e) / (r + n + 2e): of the i-1 documents above it m are in the pool, r are relevant, n judged
    non-relevant, and e = 0.00001. A document that is pooled and not judged (also a negative grade, under
    every profile) counts in m alone. At rank 1 it adds 1.
    """
    hits, nonrelevant = rows.relevant(rel), rows.nonrelevant(rel)
    pooled = rows.hits.only(rows.pool.labels[rows.hits.document] != ABSENT)
    r, n, above = hits.count - 1, _above(hits, nonrelevant), hits.rank - np.int64(1)
    ratio = (r + INFAP_EPSILON) / (r + n + 2 * INFAP_EPSILON)
    share = divided(_above(hits, pooled), above)
    precision = 1.0 / hits.rank + above / hits.rank * share * ratio
    return divided(hits.sum(precision), rows.recall_base(rel))


def _above(hits: Hits, others: Hits) -> Ints:
    """int64[n]: how many of `others` stand above each of `hits`, in the same row."""
    width = 1 + max((int(one.rank.max()) for one in (hits, others) if len(one.rank)), default=0)
    place = np.searchsorted(others.row * width + others.rank, hits.row * width + hits.rank)
    return place - (np.cumsum(others.number) - others.number)[hits.row]


@measure(source="trec_eval iprec_at_recall", at="recall")
def IPrec(rows: Rows, *, recall: Share, rel: Rel | None = None) -> Floats:
    """Interpolated precision: the greatest precision at any rank where recall is at least `recall`.

    Level c asks for c R relevant documents, rounded half away from zero; under profile trec_eval-9
    for int(c R + 0.9). A level above the recall that was reached scores 0.
    """
    needed = float(recall) * rows.recall_base(rel)
    documents = np.floor(needed + (0.9 if rows.profile.truncated_recall else 0.5))
    hits = rows.relevant(rel)
    deep = hits.count >= documents[hits.row]
    return hits.only(deep).maximum((hits.count / hits.rank)[deep])


@measure(source="trec_eval 11pt_avg")
def AP11(rows: Rows, *, levels: RecallLevels | None = None, rel: Rel | None = None) -> Floats:
    """Eleven-point average: the mean of interpolated precision at recall 0, 0.1, ..., 1.

    `levels` are other levels of recall to average over, such as [0.2,0.5,0.8].
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
    hits = rows.relevant(rel).within(cutoff)
    return rank_biased(hits, [1] * len(hits.rank), exact(p))


@measure(
    source="Moffat and Zobel, TOIS 2008",
    scale=lambda _, given: scale_types.rank_biased(given["p"], [0, 1]),
    exact=exact_rank_biased_precision,
    digits=digits_of_powers,
    rises=True,
)
def RBP(rows: Rows, *, p: Persistence = 0.8, cutoff: Cutoff | None = None, rel: Rel | None = None) -> Floats:
    """Rank-biased precision: (1 - p) * sum over relevant documents of p^(rank - 1).

    p is the chance that a reader goes on to the next document. Relevance is binary, with or
    without a cutoff.
    """
    hits = rows.relevant(rel).within(cutoff)
    return (1.0 - float(p)) * hits.sum(discounts.power(float(p), hits.rank))


@measure(source="Chapelle et al., CIKM 2009; gdeval", rises=True)
def ERR(rows: Rows, *, cutoff: Cutoff | None = None, max_gain: MaxGain = 4) -> Floats:
    """Expected reciprocal rank, of a reader who stops at the first document that satisfies.

    ERR@k = sum over i <= k of 1/i * x_i * product over j < i of (1 - x_j), x = (2^gain - 1) / 2^max_gain.
    `max_gain=4` is gdeval's and ir_measures' constant; `max_gain=scale` takes the gain of the best label.
    """
    table = rows.pool.aspect.gains
    most = float(table.max()) if max_gain == "scale" else float(max_gain)
    if table.max() > most:
        raise MeasureError(
            f"max_gain={most:g} is below {table.max():g}, the highest gain of aspect "
            f"{rows.pool.aspect.name!r}; max_gain=scale takes the scale's own"
        )
    hits, stops = credited(rows, discounts.exponential(table) / 2.0**most, cutoff)
    return hits.sum(stops * unstopped(hits, stops) / hits.rank)


def credited(rows: Rows, table: Floats, cutoff: int | None) -> tuple[Hits, Floats]:
    """The hits of positive gain up to `cutoff`, and their gains, float64."""
    hits, gain = rows.gains(table)
    if cutoff is None:
        return hits, gain
    seen = hits.rank <= cutoff
    return hits.only(seen), gain[seen]


def unstopped(hits: Hits, stops: Floats) -> Floats:
    """float64[n]: product of 1 - `stops` over the earlier hits of the same row, rank after rank."""
    remaining = np.ones(len(stops))
    for here in itertools.islice(hits.places(), 1, None):
        remaining[here] = remaining[here - 1] * (1.0 - stops[here - 1])
    return remaining
