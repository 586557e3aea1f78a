"""Measures relative to the ideal ranking, rank by rank."""

import numpy as np
from numpy.typing import NDArray

from cupel_measures.families.ranked import gain_table
from cupel_measures.grammar.parameters import Beta, Cutoff, GainTable, OneFlag, Persistence
from cupel_measures.grammar.registry import measure
from cupel_measures.model import Floats, Ints
from cupel_measures.scoring import discounts
from cupel_measures.scoring.pool import Pool
from cupel_measures.scoring.rows import Hits, Rows, divided, earlier


@measure(source="Clarke et al., TOIS 2021; ir_measures Compat")
def Compat(rows: Rows, *, p: Persistence = 0.95, normalize: OneFlag = True) -> Floats:
    """Compatibility: the rank-biased overlap (RBO) of a ranking and the ideal one.

        RBO = sum over i <= n of p^(i - 1) * (documents in the first i of both) / i
              / sum over i <= n of p^(i - 1)
        Compat = RBO(run, ideal) / RBO(ideal, ideal)

    n is the length of the longer ranking. The ideal ranking contains the documents with a positive gain,
    greatest first. Documents with equal gains are in the order of the run; among them, documents missing from
    the run are last. The RBO is divided by the RBO of the ideal ranking with itself, so a perfect ranking
    scores 1; `normalize=False` omits this division.

    Caveat: only the order of the gains matters, not their size.

    Example: a=2 b=1 c=1 z=0; run x a c: Compat(p=0.5) 0.238095 = (1/2 * 1/2 + 1/4 * 2/3) / (1 + 1/2 + 1/4);
    run a: Compat(p=0.5) 0.761905 = (1 + 1/2 * 1/2 + 1/4 * 1/3) / (1 + 1/2 + 1/4).
    """
    hits, _ = rows.gains(rows.pool.aspect.gains)
    base = _ideal(rows.pool, rows.pool.aspect.gains)[0].number[rows.topic]
    depth = np.maximum(rows.retrieved, base)
    weights = discounts.power(float(p), np.arange(1, int(depth.max(initial=0)) + 1))
    overlap = _running(weights / np.arange(1, len(weights) + 1))
    # a document is in both rankings from the depth max(rank in the run, rank in the ideal ranking) on
    both = np.maximum(hits.rank, _ideal_places(rows, hits))
    score = hits.sum(overlap[depth[hits.row]] - overlap[both - 1])
    if not normalize:
        return np.minimum(divided(score, _running(weights)[depth]), 1.0)
    return np.minimum(divided(score, _with_itself(overlap, base, depth)), 1.0)


def _with_itself(overlap: Floats, base: Ints, depth: Ints) -> Floats:
    """Return the overlap of an ideal ranking with itself to `depth`, float64[rows].

    The ideal ranking has `base` documents.
    """
    (base, depth), which = np.unique(np.stack([base, depth]), axis=1, return_inverse=True)
    kind = np.repeat(np.arange(len(base)), base)
    place = np.arange(len(kind)) - (np.cumsum(base) - base)[kind]
    best = np.bincount(kind, overlap[depth[kind]] - overlap[place], minlength=len(base))
    return np.asarray(best[which], dtype=np.float64)


@measure(source="Sakai, NTCIR-4 2004; NTCIREVAL", aliases=("Q-measure",))
def Q(rows: Rows, *, beta: Beta = 1, gains: GainTable | None = None, cutoff: Cutoff | None = None) -> Floats:
    """Q-measure: average precision with gains, relative to the ideal at the same rank.

    The ideal is the ideal ranking.

        Q = 1/R * sum of (n(i) + beta * cg(i)) / (i + beta * ideal cg(i)) over ranks i with a positive gain


    n(i) is the number of documents in 1..i with a positive gain, cg(i) the sum of their gains, and R the
    number of judged documents with a positive gain. ideal cg(i) is cg(i) of the ideal ranking. With a cutoff,
    ranks beyond it are ignored and the divisor is min(R, k), as in NTCIREVAL. In contrast, AP@k divides by R,
    as in trec_eval. `beta=0` gives AP. `gains` replaces the gains of some labels.

    Example: a=2 b=1 c=1 z=0; run x b a: Q 0.371429 = ((1 + 1) / (2 + 3) + (2 + 3) / (3 + 4)) / 3, Q@2 0.2 =
    (1 + 1) / (2 + 3) / 2, Q(beta=0) 0.388889 = (1/2 + 2/3) / 3.
    """
    table = gain_table(rows, gains)
    hits, gain = rows.gains(table)
    ideal, cumulative = _ideal(rows.pool, table)
    base = ideal.number[rows.topic]
    first = (np.cumsum(ideal.number) - ideal.number)[rows.topic]
    best = cumulative[first[hits.row] + np.minimum(hits.rank, base[hits.row]) - 1]
    b = float(beta)
    blended = np.minimum((hits.count + b * hits.running(gain)) / (hits.rank + b * best), 1.0)
    if cutoff is None:
        return divided(hits.sum(blended), base)
    seen = hits.rank <= cutoff
    return divided(hits.only(seen).sum(blended[seen]), np.minimum(base, cutoff))


def _running(values: Floats) -> Floats:
    """Return 0, followed by the cumulative sums of `values`."""
    return np.concatenate([[0.0], np.cumsum(values)])


def _ideal(pool: Pool, table: Floats) -> tuple[Hits, Floats]:
    """Return the ideal ranking of each topic, and its cumulative gains.

    There is one row per topic.
    """

    def make() -> tuple[Hits, Floats]:
        gains = pool.gains(table)
        documents = pool.best_first(table)
        topic = pool.topic_of[documents]
        rank = np.arange(len(topic)) - np.searchsorted(topic, topic) + 1
        ideal = Hits.by_row(topic, rank, documents, pool.topics)
        return ideal, ideal.running(gains[documents])

    ideal: tuple[Hits, Floats] = pool.once(("ideal ranking", table.tobytes()), make)
    return ideal


def _ideal_places(rows: Rows, hits: Hits) -> Ints:
    """Return the rank of each hit in the ideal ranking, int64[n].

    Hits with equal gains keep their order.
    """
    pool, table = rows.pool, rows.pool.aspect.gains

    def make() -> tuple[Ints, NDArray[np.integer]]:
        """Return the number of documents with a greater gain, and the index of the gain.

        The documents are those of the topic.
        """
        ideal, _ = _ideal(pool, table)
        levels, level = np.unique(pool.gains(table), return_inverse=True)
        level = level.astype(np.min_scalar_type(len(levels)))
        above = np.zeros(len(pool.labels), dtype=np.int64)
        above[ideal.document] = ideal.count - 1 - earlier(ideal.row, level[ideal.document])
        return above, level

    greater, level = pool.once(("greater gains", table.tobytes()), make)
    places: Ints = greater[hits.document] + earlier(hits.row, level[hits.document]) + 1
    return places
