"""Measures that say how a user reads: how likely they look at a rank, and what they gain there (C/W/L).

A C/W/L measure is a chance C(i) of going on from rank i to rank i + 1. The chance of reaching rank i is the
product of C over the ranks above it; W(i) is that chance divided by its sum over all ranks, and the value is
the sum of W(i) * gain(i): the gain that a user expects per document looked at. Gains lie in 0..1:
(gain - min_rel) / (max_rel - min_rel), clipped; `max_rel` is the scale's greatest gain unless it is given
(ir_measures always asks for it). An unjudged document gains 0, and does so where it is looked at.

As in cwl_eval, a ranking has 1,000 places: a longer one is cut, a shorter one goes on with gain 0.
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
"""How many ranks a ranking of a C/W/L measure has."""

Target = Annotated[float, Number("a number above 0", 0, MOST, (0,))]
InstTarget = Annotated[float, Number("a number from 0.5", 0.5, MOST)]
LeastGain = Annotated[float, Number("a number, the gain that counts as 0")]
MostGain = Annotated[float, Number("a number, the gain that counts as 1")]
OF_THE_SCALE: ByScale = lambda given: given["max_rel"] is None  # noqa: E731
OnlyLog2 = Annotated[str, Word("log2", ("log2",))]


@measure(source="Moffat et al., ADCS 2015; cwl_eval INST", by_scale=OF_THE_SCALE)
def INST(rows: Rows, *, T: InstTarget = 1, min_rel: LeastGain = 0, max_rel: MostGain | None = None) -> Floats:
    """INST: the expected gain per document of a user who wants T in all and adapts to what was found.

        C(i) = ((i + T + T_i - 1) / (i + T + T_i))^2, T_i = T - (gain of ranks 1..i)

    Below T = 0.5 some C would be no probability, so such a T is refused (cwl_eval computes on).

    In the example rank 3 is reached with chance 1/4 * 4/9 = 1/9, and rank i below with (2.5 / (i - 0.5))^2 /
    9.

    Example: a=2 b=1 z=0; run a x b: INST 0.663942 = (1 + 1/9 * 1/2) / (1 + 1/4 + 2.5^2 / 9 * (pi^2/2 - 4 -
    4/9 - 1/1000)).
    """
    hits, gain = _gained(rows, min_rel, max_rel)
    expected, seen = _adaptive(hits, gain, float(T))
    return divided(expected, seen)


def _adaptive(hits: Hits, gain: Floats, target: float) -> tuple[Floats, Floats]:
    """float64[rows] each: sum of reach * gain, and of reach, rank after rank for all rows at once."""
    reach, seen, expected = np.ones(hits.rows), np.zeros(hits.rows), np.zeros(hits.rows)
    missing = np.full(hits.rows, 2.0 * target)  # T + T_i
    by_rank = np.argsort(hits.rank, kind="stable")
    ends = np.searchsorted(hits.rank[by_rank], np.arange(PLACES + 1), side="right")
    for rank in range(1, PLACES + 1):
        here = by_rank[ends[rank - 1] : ends[rank]]
        seen += reach
        if len(here):
            row = hits.row[here]
            expected[row] += reach[row] * gain[here]
            missing[row] -= gain[here]
        below = missing + float(rank)
        ratio = (below - 1.0) / below
        reach *= ratio * ratio
    return expected, seen


@measure(source="Moffat et al., ADCS 2012; cwl_eval INSQ", by_scale=OF_THE_SCALE, rises=True)
def INSQ(rows: Rows, *, T: Target = 1, min_rel: LeastGain = 0, max_rel: MostGain | None = None) -> Floats:
    """INSQ: the expected gain per document of a user who wants T, whatever was found above.

        C(i) = ((i + 2T - 1) / (i + 2T))^2

    So rank i is reached with chance (2T / (2T + i - 1))^2: in the example 4 / (i + 1)^2, which sums to 4
    (pi^2/6 - 1) over all ranks, less what lies beyond the last place.

    Example: a=2 b=1 z=0; run a x b: INSQ 0.436767 = (1 + 1/4 * 1/2) / (4 * (pi^2/6 - 1 - 1/1001.5)).
    """
    hits, gain = _gained(rows, min_rel, max_rel)
    return _expected(hits, gain, _inverse_squares(float(T)))


@measure(
    source="Zhang et al., SIGIR 2017; cwl_eval BPM-Static",
    by_scale=OF_THE_SCALE,
    exempt={SWAP: "a user who has T earlier stops earlier, and may have seen less per document"},
)
def BPM(
    rows: Rows,
    *,
    cutoff: Cutoff,
    T: Target = 1,
    min_rel: LeastGain = 0,
    max_rel: MostGain | None = None,
) -> Floats:
    """Bejeweled player model: the mean gain up to where a user stops, with T gained or at rank k.

        C(i) = 1 for i < n, else 0: BPM@k = (gain of ranks 1..n) / n

    n is the first rank at which the gain so far is at least T, and at most k: the static model. Whether T is
    reached is decided on gains as they are on the scale, where ten tenths are one.

    Caveat: who has T earlier stops earlier, and may have seen less per document: a better ranking can score
    less.

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
    """Scaled DCG: DCG@k divided by that of k documents of the greatest gain.

        SDCG@k = (sum over i <= k of gain(i) / log2(1 + i)) / (sum over i <= k of 1 / log2(1 + i))

    It is nDCG, but for an ideal of k perfect documents, whether the judgments have so many or not: few topics
    can reach 1. `dcg` is the discount of ir_measures' name, of which there is one.

    Example: a=2 b=1 z=0; run a x b: SDCG@3 0.586598 = (1 + 1/2 / 2) / (1 + 1/log2(3) + 1/2).
    """
    hits, gain = _gained(rows, min_rel, max_rel)
    return _expected(hits, gain, 1.0 / discounts.log2(_ranks(cutoff)))


@measure(source="Azzopardi et al., ICTIR 2021, eq. 8; cwl_eval NERR-EQ8", by_scale=OF_THE_SCALE)
def NERR8(rows: Rows, *, cutoff: Cutoff, min_rel: LeastGain = 0, max_rel: MostGain | None = None) -> Floats:
    """Nearly ERR, by eq. 8: a user who stops as satisfied, or at rank k.

        C(i) = 1 - gain(i) for i < k, else 0

    Example: a=2 b=1 z=0; run b a: NERR8@10 0.666667 = (1/2 + 1/2 * 1) / (1 + 1/2).
    """
    hits, gain = _gained(rows, min_rel, max_rel)
    return _nearly(hits, gain, np.ones(len(_ranks(cutoff))))


@measure(source="Azzopardi et al., ICTIR 2021, eq. 9; cwl_eval NERR-EQ9", by_scale=OF_THE_SCALE)
def NERR9(rows: Rows, *, cutoff: Cutoff, min_rel: LeastGain = 0, max_rel: MostGain | None = None) -> Floats:
    """Nearly ERR, by eq. 9: as NERR8, and less patient.

        C(i) = i / (i + 1) * (1 - gain(i)) for i < k, else 0

    Example: a=2 b=1 z=0; run b a: NERR9@10 0.6 = (1/2 + 1/2 * 1/2 * 1) / (1 + 1/2 * 1/2).
    """
    hits, gain = _gained(rows, min_rel, max_rel)
    return _nearly(hits, gain, 1.0 / _ranks(cutoff))


@measure(source="Azzopardi et al., ICTIR 2021, eq. 10; cwl_eval NERR-EQ10", by_scale=OF_THE_SCALE)
def NERR10(
    rows: Rows, *, p: Persistence = 0.9, min_rel: LeastGain = 0, max_rel: MostGain | None = None
) -> Floats:
    """Nearly ERR, by eq. 10: a user who stops as satisfied, with the patience of RBP.

        C(i) = p * (1 - gain(i))

    Example: a=2 b=1 z=0; run b a: NERR10 0.655172 = (1/2 + 0.9 * 1/2 * 1) / (1 + 0.9 * 1/2), NERR10(p=0.5)
    0.6 = (1/2 + 1/4) / (1 + 1/4).
    """
    hits, gain = _gained(rows, min_rel, max_rel)
    return _nearly(hits, gain, discounts.power(float(p), _ranks(PLACES)))


@measure(source="Azzopardi et al., ICTIR 2021, eq. 11; cwl_eval NERR-EQ11", by_scale=OF_THE_SCALE)
def NERR11(rows: Rows, *, T: Target = 1, min_rel: LeastGain = 0, max_rel: MostGain | None = None) -> Floats:
    """Nearly ERR, by eq. 11: a user who stops as satisfied, with the patience of INSQ.

        C(i) = ((i + 2T - 1) / (i + 2T))^2 * (1 - gain(i))

    Example: a=2 b=1 z=0; run b a: NERR11 0.590909 = (1/2 + 4/9 * 1/2 * 1) / (1 + 4/9 * 1/2).
    """
    hits, gain = _gained(rows, min_rel, max_rel)
    return _nearly(hits, gain, _inverse_squares(float(T)))


def _gained(rows: Rows, min_rel: float, max_rel: float | None) -> tuple[Hits, Floats]:
    """The hits of positive gain among the places, and their gains in 0..1, float64."""
    low, high = _range(rows, min_rel, max_rel)
    hits, above = _clipped(rows, low, high)
    return hits, above / (high - low)


def _range(rows: Rows, min_rel: float, max_rel: float | None) -> tuple[float, float]:
    """The gains that count as 0 and as 1; MeasureError where there is nothing between them."""
    scales = float(rows.pool.aspect.gains.max(initial=0))
    low, high = float(min_rel), scales if max_rel is None else float(max_rel)
    if low == 0 and high == 0 and max_rel is None:  # a scale without any gain: nothing is gained
        return 0.0, 1.0
    if low >= high:
        least = f"max_rel={high:g}" if max_rel is not None else f"{high:g}, the greatest gain of the scale"
        raise MeasureError(f"min_rel={low:g} is not below {least}")
    return low, high


def _clipped(rows: Rows, low: float, high: float) -> tuple[Hits, Floats]:
    """The hits of a gain above `low` among the places, and by how much, at most up to `high`."""
    hits, above = rows.gains(np.clip(rows.pool.aspect.gains, low, high) - low)
    seen = hits.rank <= PLACES
    return hits.only(seen), above[seen]


def _ranks(depth: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Ranks from 1 to `depth`, or to the last place."""
    return np.arange(1, min(depth, PLACES) + 1)


def _inverse_squares(target: float) -> Floats:
    """Chances of reaching each place with INSQ's C: (2T / (2T + i - 1))^2."""
    share = 2.0 * target / (2.0 * target + (_ranks(PLACES) - 1))
    return share * share


def _expected(hits: Hits, gain: Floats, reach: Floats) -> Floats:
    """float64[rows]: expected gain per document where rank i is reached with chance reach[i - 1]."""
    seen = hits.rank <= len(reach)
    read = hits.only(seen)
    total = float(np.cumsum(reach)[-1])
    return np.minimum(read.sum(gain[seen] * reach[read.rank - 1]) / total, 1.0)


def _nearly(hits: Hits, gain: Floats, reach: Floats) -> Floats:
    """float64[rows]: as `_expected`, of a user whom a gain g also stops, with chance g.

    Between two hits only `reach` changes, so that its running sum gives what is seen there.
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
    looked: Floats = between + still * (total[-1] - total[end])
    return np.minimum(hits.sum(going * gain * reach[hits.rank - 1]) / looked, 1.0)


@measure(source="Moffat and Zobel, TOIS 2008; trec_eval 10 rbp")
def RBP_trec(rows: Rows, *, p: Persistence = 0.9) -> Floats:
    """Rank-biased precision with graded gains, as trec_eval 10 has it.

        RBP_trec = (1 - p) * sum over ranks i of gain(i) * p^(i - 1)

    The whole run counts, not its first 1,000 documents alone. Where a judged gain of the topic exceeds 1, its
    gains are divided by the greatest of them. `RBP` is binary, and `gRBP` divides by the scale's greatest
    gain.

    Caveat: a value depends on which judgments the topic happens to have. trec_eval's own values are
    trustworthy only where no gain exceeds 1, as it scales by numbers that it never set.

    Example: a=2 b=1 z=0; run b a: RBP_trec(p=0.5) 0.5 = 0.5 * (1/2 + 0.5 * 1), RBP_trec 0.14 = 0.1 * (1/2 +
    0.9).
    """
    table = rows.pool.aspect.gains
    hits, gain = rows.gains(table)
    greatest = rows.pool.once("greatest gain", lambda: _greatest(rows, table))[rows.topic]
    scaled = gain / np.maximum(greatest, 1.0)[hits.row]
    return (1.0 - float(p)) * hits.sum(scaled * discounts.power(float(p), hits.rank))


def _greatest(rows: Rows, table: Floats) -> Floats:
    """float64[T]: the greatest gain of each topic's judgments, 0 where there is none."""
    greatest = np.zeros(rows.pool.topics)
    np.maximum.at(greatest, rows.pool.topic_of, rows.pool.gains(table))
    return greatest


@measure(
    source="Moffat and Zobel, TOIS 2008; trec_eval 10 rbp_resid",
    judged_only=False,
    exempt=dict.fromkeys((NOTHING_RELEVANT, SWAP), NOT_RELEVANCE),
)
def RBPResidual(rows: Rows, *, p: Persistence = 0.9) -> Floats:
    """What RBP could still gain: the weight of all ranks without a judged document, those below the run too.

        RBPResidual = 1 - (1 - p) * sum over ranks i of judged documents of p^(i - 1)

    A topic without any retrieved document scores 0. A negative grade is a judgment, unless the profile is one
    of trec_eval. trec_eval forgets what lies below the run where every retrieved document is judged, and says
    0.

    Example: a=1 b=0; run a u b: RBPResidual(p=0.5) 0.375 = 1 - 0.5 * (1 + 0.5^2); run a b: RBPResidual(p=0.5)
    0.25 = 1 - 0.5 * (1 + 0.5).
    """
    judged = rows.judged()
    known = (1.0 - float(p)) * judged.sum(discounts.power(float(p), judged.rank))
    left: Floats = np.where(rows.retrieved > 0, np.maximum(1.0 - known, 0.0), 0.0)
    return left
