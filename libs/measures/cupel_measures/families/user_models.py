"""Measures with user models: C/W/L measures, and graded and residual RBP.

A C/W/L measure is defined by C(i), the probability that a user continues from rank i to rank i + 1. The
probability of reaching rank i is the product of C over the ranks above it. W(i) is this probability divided
by its sum over all ranks. The value is the sum of W(i) * gain(i): the expected gain per inspected document.
Gains are mapped to 0..1 by (gain - min_rel) / (max_rel - min_rel), and values outside this range are clipped.
The default of `max_rel` is the greatest gain of the scale (ir_measures requires a value). An unjudged
document has gain 0, and the user inspects it like any other.

As in cwl_eval, a ranking has 1,000 ranks: a longer one is cut, and a shorter one is continued with gain 0.
"""

from typing import Annotated

import numpy as np

from cupel_measures.families.ranked import unstopped
from cupel_measures.families.set_based import NOT_RELEVANCE
from cupel_measures.grammar.parameters import MOST, Cutoff, Number, Persistence, Word
from cupel_measures.grammar.registry import NOTHING_RELEVANT, SWAP, ByScale, measure
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Floats
from cupel_measures.scoring import discounts
from cupel_measures.scoring.rows import Hits, Rows, divided

PLACES = 1000
"""Number of ranks that a C/W/L measure considers."""

Target = Annotated[float, Number("a number above 0", 0, MOST, (0,))]
InstTarget = Annotated[float, Number("a number from 0.5", 0.5, MOST)]
LeastGain = Annotated[float, Number("a number, the gain that is mapped to 0")]
MostGain = Annotated[float, Number("a number, the gain that is mapped to 1")]
OF_THE_SCALE: ByScale = lambda given: given["max_rel"] is None  # noqa: E731
OnlyLog2 = Annotated[str, Word("log2", ("log2",))]


@measure(source="Moffat et al., ADCS 2015; cwl_eval INST", by_scale=OF_THE_SCALE)
def INST(rows: Rows, *, T: InstTarget = 1, min_rel: LeastGain = 0, max_rel: MostGain | None = None) -> Floats:
    """INST: expected gain per document for a user who adapts to the gains so far.

    The user wants a total of T.

        C(i) = ((i + T + T_i - 1) / (i + T + T_i))^2, T_i = T - (gain of ranks 1..i)

    T must be at least 0.5, because otherwise some C would not be probabilities (cwl_eval does not check
    this).

    In the example, rank 3 is reached with probability 1/4 * 4/9 = 1/9, and a lower rank i with probability
    (2.5 / (i - 0.5))^2 / 9.

    Example: a=2 b=1 z=0; run a x b: INST 0.663942 = (1 + 1/9 * 1/2) / (1 + 1/4 + 2.5^2 / 9 * (pi^2/2 - 4 -
    4/9 - 1/1000)).
    """
    hits, gain = _gained(rows, min_rel, max_rel)
    expected, seen = _adaptive(hits, gain, float(T))
    return divided(expected, seen)


def _adaptive(hits: Hits, gain: Floats, target: float) -> tuple[Floats, Floats]:
    """Return the sums of reach * gain and of reach, float64[rows] each.

    The loop is over ranks.
    """
    reach, seen, expected = np.ones(hits.rows), np.zeros(hits.rows), np.zeros(hits.rows)
    missing = np.full(hits.rows, 2.0 * target)  # T + T_i
    by_rank = np.argsort(hits.rank, kind="stable")
    ends = np.searchsorted(hits.rank[by_rank], np.arange(PLACES + 1), side="right")
    for rank in range(1, PLACES + 1):
        at_rank = by_rank[ends[rank - 1] : ends[rank]]
        seen += reach
        if len(at_rank):
            row = hits.row[at_rank]
            expected[row] += reach[row] * gain[at_rank]
            missing[row] -= gain[at_rank]
        below = missing + float(rank)
        ratio = (below - 1.0) / below
        reach *= ratio * ratio
    return expected, seen


@measure(source="Moffat et al., ADCS 2012; cwl_eval INSQ", by_scale=OF_THE_SCALE, rises=True)
def INSQ(rows: Rows, *, T: Target = 1, min_rel: LeastGain = 0, max_rel: MostGain | None = None) -> Floats:
    """INSQ: expected gain per document for a user who ignores the gains so far.

    The user wants a total of T.

        C(i) = ((i + 2T - 1) / (i + 2T))^2

    Rank i is reached with probability (2T / (2T + i - 1))^2. In the example this is 4 / (i + 1)^2, which sums
    to 4 (pi^2/6 - 1) over all ranks, minus the part beyond rank 1,000.

    Example: a=2 b=1 z=0; run a x b: INSQ 0.436767 = (1 + 1/4 * 1/2) / (4 * (pi^2/6 - 1 - 1/1001.5)).
    """
    hits, gain = _gained(rows, min_rel, max_rel)
    return _expected(hits, gain, _inverse_squares(float(T)))


@measure(
    source="Zhang et al., SIGIR 2017; cwl_eval BPM-Static",
    by_scale=OF_THE_SCALE,
    exempt={SWAP: "a user who gains T earlier stops earlier, and the mean gain may then be lower"},
)
def BPM(
    rows: Rows,
    *,
    cutoff: Cutoff,
    T: Target = 1,
    min_rel: LeastGain = 0,
    max_rel: MostGain | None = None,
) -> Floats:
    """Bejeweled player model: mean gain per document up to a total of T, or rank k.

        C(i) = 1 for i < n, else 0: BPM@k = (gain of ranks 1..n) / n

    n is the first rank where the total gain is at least T, but at most k. This is the static model. T is
    compared with the gains before their division by max_rel - min_rel, so rounding cannot change n.

    Caveat: a user who gains T earlier stops earlier. The mean gain may then be lower for a better ranking.

    Example: a=2 b=1 z=0; run a x b: BPM@3 1 = 1/1, BPM(T=1.5)@10 0.5 = (1 + 0 + 1/2) / 3, BPM(T=9)@10 0.15 =
    (1 + 0 + 1/2) / 10.
    """
    low, high = _range(rows, min_rel, max_rel)
    hits, above = _clipped(rows, low, high)
    limit = np.full(rows.number, min(cutoff, PLACES))
    enough = hits.running(above) >= float(T) * (high - low)
    np.minimum.at(limit, hits.row[enough], hits.rank[enough])
    kept = hits.rank <= limit[hits.row]
    return divided(hits.only(kept).sum(above[kept] / (high - low)), limit)


@measure(source="Moffat et al., TOIS 2013; cwl_eval NDCG-k", by_scale=OF_THE_SCALE, rises=True)
def SDCG(
    rows: Rows,
    *,
    cutoff: Cutoff,
    dcg: OnlyLog2 = "log2",
    min_rel: LeastGain = 0,
    max_rel: MostGain | None = None,
) -> Floats:
    """Scaled DCG: DCG@k over that of k documents that all have the greatest gain.

        SDCG@k = (sum over i <= k of gain(i) / log2(1 + i)) / (sum over i <= k of 1 / log2(1 + i))

    It is nDCG with an ideal ranking of k perfect documents, even if the judgments contain fewer. Few topics
    can reach 1. `dcg` exists for compatibility with the names of ir_measures and has one value.

    Example: a=2 b=1 z=0; run a x b: SDCG@3 0.586598 = (1 + 1/2 / 2) / (1 + 1/log2(3) + 1/2).
    """
    hits, gain = _gained(rows, min_rel, max_rel)
    return _expected(hits, gain, 1.0 / discounts.log2(_ranks(cutoff)))


@measure(source="Azzopardi et al., ICTIR 2021, eq. 8; cwl_eval NERR-EQ8", by_scale=OF_THE_SCALE)
def NERR8(rows: Rows, *, cutoff: Cutoff, min_rel: LeastGain = 0, max_rel: MostGain | None = None) -> Floats:
    """Nearly ERR, eq. 8: a user who stops when satisfied, or at rank k.

        C(i) = 1 - gain(i) for i < k, else 0

    Example: a=2 b=1 z=0; run b a: NERR8@10 0.666667 = (1/2 + 1/2 * 1) / (1 + 1/2).
    """
    hits, gain = _gained(rows, min_rel, max_rel)
    return _nearly(hits, gain, np.ones(len(_ranks(cutoff))))


@measure(source="Azzopardi et al., ICTIR 2021, eq. 9; cwl_eval NERR-EQ9", by_scale=OF_THE_SCALE)
def NERR9(rows: Rows, *, cutoff: Cutoff, min_rel: LeastGain = 0, max_rel: MostGain | None = None) -> Floats:
    """Nearly ERR, eq. 9: like NERR8, with a less patient user.

        C(i) = i / (i + 1) * (1 - gain(i)) for i < k, else 0

    Example: a=2 b=1 z=0; run b a: NERR9@10 0.6 = (1/2 + 1/2 * 1/2 * 1) / (1 + 1/2 * 1/2).
    """
    hits, gain = _gained(rows, min_rel, max_rel)
    return _nearly(hits, gain, 1.0 / _ranks(cutoff))


@measure(source="Azzopardi et al., ICTIR 2021, eq. 10; cwl_eval NERR-EQ10", by_scale=OF_THE_SCALE)
def NERR10(
    rows: Rows, *, p: Persistence = 0.9, min_rel: LeastGain = 0, max_rel: MostGain | None = None
) -> Floats:
    """Nearly ERR, eq. 10: a user who stops when satisfied, with the patience of RBP.

        C(i) = p * (1 - gain(i))

    Example: a=2 b=1 z=0; run b a: NERR10 0.655172 = (1/2 + 0.9 * 1/2 * 1) / (1 + 0.9 * 1/2), NERR10(p=0.5)
    0.6 = (1/2 + 1/4) / (1 + 1/4).
    """
    hits, gain = _gained(rows, min_rel, max_rel)
    return _nearly(hits, gain, discounts.power(float(p), _ranks(PLACES)))


@measure(source="Azzopardi et al., ICTIR 2021, eq. 11; cwl_eval NERR-EQ11", by_scale=OF_THE_SCALE)
def NERR11(rows: Rows, *, T: Target = 1, min_rel: LeastGain = 0, max_rel: MostGain | None = None) -> Floats:
    """Nearly ERR, eq. 11: a user who stops when satisfied, with the patience of INSQ.

        C(i) = ((i + 2T - 1) / (i + 2T))^2 * (1 - gain(i))

    Example: a=2 b=1 z=0; run b a: NERR11 0.590909 = (1/2 + 4/9 * 1/2 * 1) / (1 + 4/9 * 1/2).
    """
    hits, gain = _gained(rows, min_rel, max_rel)
    return _nearly(hits, gain, _inverse_squares(float(T)))


def _gained(rows: Rows, min_rel: float, max_rel: float | None) -> tuple[Hits, Floats]:
    """Return the hits with a positive gain in the first 1,000 ranks, and their gains.

    The gains are in 0..1, float64.
    """
    low, high = _range(rows, min_rel, max_rel)
    hits, above = _clipped(rows, low, high)
    return hits, above / (high - low)


def _range(rows: Rows, min_rel: float, max_rel: float | None) -> tuple[float, float]:
    """Return the gains that are mapped to 0 and 1.

    Raise MeasureError unless the first is smaller.
    """
    scales = float(rows.pool.aspect.gains.max(initial=0))
    low, high = float(min_rel), scales if max_rel is None else float(max_rel)
    if low == 0 and high == 0 and max_rel is None:  # no label has a gain, so every score is 0
        return 0.0, 1.0
    if low >= high:
        least = f"max_rel={high:g}" if max_rel is not None else f"{high:g}, the greatest gain of the scale"
        raise MeasureError(f"min_rel={low:g} is not below {least}")
    return low, high


def _clipped(rows: Rows, low: float, high: float) -> tuple[Hits, Floats]:
    """Return the hits with a gain above `low`, and the part of the gains above `low`.

    Only hits in the first 1,000 ranks count. The part of a gain is min(gain, high) - low.
    """
    hits, above = rows.gains(np.clip(rows.pool.aspect.gains, low, high) - low)
    seen = hits.rank <= PLACES
    return hits.only(seen), above[seen]


def _ranks(depth: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the ranks from 1 to `depth`, at most 1,000."""
    return np.arange(1, min(depth, PLACES) + 1)


def _inverse_squares(target: float) -> Floats:
    """Return the probability that a user of INSQ reaches each rank.

    For rank i it is (2T / (2T + i - 1))^2.
    """
    share = 2.0 * target / (2.0 * target + (_ranks(PLACES) - 1))
    return share * share


def _expected(hits: Hits, gain: Floats, reach: Floats) -> Floats:
    """Return the expected gain per document: float64[rows].

    Rank i is reached with probability reach[i - 1].
    """
    seen = hits.rank <= len(reach)
    inspected = hits.only(seen)
    total = float(np.cumsum(reach)[-1])
    return np.minimum(inspected.sum(gain[seen] * reach[inspected.rank - 1]) / total, 1.0)


def _nearly(hits: Hits, gain: Floats, reach: Floats) -> Floats:
    """Return the expected gain for a user who also stops with probability gain(i).

    The result is float64[rows], as from `_expected`.

    Between two hits all gains are 0. So the cumulative sum of `reach` gives the number of documents inspected
    between them.
    """
    seen = hits.rank <= len(reach)
    hits, gain = hits.only(seen), gain[seen]
    going = unstopped(hits, gain)
    total = np.concatenate([[0.0], np.cumsum(reach)])
    before = np.where(hits.count > 1, np.roll(hits.rank, 1), 0)
    between = hits.sum(going * (total[hits.rank] - total[before]))
    last = hits.count == hits.number[hits.row]
    end, still = np.zeros(hits.rows, dtype=np.int64), np.ones(hits.rows)
    end[hits.row[last]] = hits.rank[last]
    still[hits.row[last]] = (going * (1.0 - gain))[last]
    inspected: Floats = between + still * (total[-1] - total[end])
    return np.minimum(hits.sum(going * gain * reach[hits.rank - 1]) / inspected, 1.0)


@measure(source="Moffat and Zobel, TOIS 2008; trec_eval 10 rbp")
def RBP_trec(rows: Rows, *, p: Persistence = 0.9) -> Floats:
    """Rank-biased precision with graded gains, as in trec_eval 10.

        RBP_trec = (1 - p) * sum over ranks i of gain(i) * p^(i - 1)

    The whole run counts, not only its first 1,000 documents. If a judged gain of the topic exceeds 1, all
    gains of the topic are divided by the greatest one. `RBP` is binary, and `gRBP` divides by the greatest
    gain of the scale.

    Caveat: the value depends on which labels occur in the judgments of the topic. The values of trec_eval
    itself are reliable only if no gain exceeds 1, because it scales by uninitialised numbers otherwise.

    Example: a=2 b=1 z=0; run b a: RBP_trec(p=0.5) 0.5 = 0.5 * (1/2 + 0.5 * 1), RBP_trec 0.14 = 0.1 * (1/2 +
    0.9).
    """
    table = rows.pool.aspect.gains
    hits, gain = rows.gains(table)
    greatest = rows.pool.once("greatest gain", lambda: _greatest(rows, table))[rows.topic]
    scaled = gain / np.maximum(greatest, 1.0)[hits.row]
    return (1.0 - float(p)) * hits.sum(scaled * discounts.power(float(p), hits.rank))


def _greatest(rows: Rows, table: Floats) -> Floats:
    """Return the greatest gain in the judgments of each topic: float64[T].

    It is 0 if there is none.
    """
    greatest = np.zeros(rows.pool.topics)
    np.maximum.at(greatest, rows.pool.topic_of, rows.pool.gains(table))
    return greatest


@measure(
    source="Moffat and Zobel, TOIS 2008; trec_eval 10 rbp_resid",
    judged_only=False,
    exempt=dict.fromkeys((NOTHING_RELEVANT, SWAP), NOT_RELEVANCE),
)
def RBPResidual(rows: Rows, *, p: Persistence = 0.9) -> Floats:
    """RBP residual: the largest amount that unjudged ranks could add to RBP.

    Unjudged ranks include those below the run.

        RBPResidual = 1 - (1 - p) * sum of p^(i - 1) over the ranks i of judged documents

    A topic without retrieved documents scores 0. A negative grade is a judgment, except under a trec_eval
    profile. trec_eval ignores the ranks below the run if every retrieved document is judged, and reports 0.

    Example: a=1 b=0; run a u b: RBPResidual(p=0.5) 0.375 = 1 - 0.5 * (1 + 0.5^2); run a b: RBPResidual(p=0.5)
    0.25 = 1 - 0.5 * (1 + 0.5).
    """
    judged = rows.judged()
    known = (1.0 - float(p)) * judged.sum(discounts.power(float(p), judged.rank))
    left: Floats = np.where(rows.retrieved > 0, np.maximum(1.0 - known, 0.0), 0.0)
    return left
