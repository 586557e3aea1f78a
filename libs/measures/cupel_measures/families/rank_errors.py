"""Distances between a ranked list and its best order under several aspects.

Source: Lioma, Simonsen and Larsen, ICTIR 2017, section 4. An ideal ranking has the same documents as the
list, so documents missing from the list do not count.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from cupel_measures.families.multiaspect import weighted
from cupel_measures.grammar.parameters import AspectBalance, AspectNames, AspectWeights, OneFlag, Word
from cupel_measures.grammar.registry import NOTHING_RELEVANT, SWAP, measure
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Floats, Ints
from cupel_measures.scoring import discounts
from cupel_measures.scoring.dense import Block
from cupel_measures.scoring.rows import divided
from cupel_measures.scoring.view import AspectView

Ties = Annotated[str, Word("stable, min or reverse", ("stable", "min", "reverse"))]

EXEMPT = {
    NOTHING_RELEVANT: "it measures only the order: a list of equally bad documents has no error",
    SWAP: "it compares only adjacent documents: correcting one pair can create a worse one",
}
HALF = 0.5
"""Default weight of an aspect."""


@dataclass(frozen=True, eq=False)
class Errors:
    """Adjacent documents that are in the wrong order under at least one aspect.

    row: int64[n]. rank: int64[n], the rank of the upper document. sizes: float64[n] per aspect, the size of
    each error in positions (eps in the paper; 0 if the order is right under the aspect). rows: the number of
    rows.
    """

    row: Ints
    rank: Ints
    sizes: tuple[Floats, ...]
    rows: int

    @classmethod
    def from_positions(cls, positions: Sequence[Ints], row: Ints, rank: Ints, rows: int) -> "Errors":
        """Return the errors eps_i = max(0, R_i - R_(i+1)) (eq. 1-3).

        positions: the ideal positions R, int64[n] per aspect.
        """
        same_row = row[1:] == row[:-1]
        sizes = [np.where(same_row, np.maximum(place[:-1] - place[1:], 0), 0) for place in positions]
        wrong = np.flatnonzero(np.any(sizes, axis=0))
        wrong_sizes = tuple(size[wrong].astype(np.float64) for size in sizes)
        return cls(row[wrong], rank[wrong], wrong_sizes, rows)

    def sum(self, values: Floats) -> Floats:
        """Return the sum of `values` / log2(1 + rank) along each row, float64[rows].

        The terms are added in order.
        """
        terms = values / discounts.log2(self.rank)
        return np.asarray(np.bincount(self.row, weights=terms, minlength=self.rows), dtype=np.float64)

    def local(self, weights: Sequence[float]) -> Floats:
        """Return float64[rows]: LRE (eq. 4)."""
        return self.sum(_product_excess(list(zip(weights, self.sizes, strict=True))))

    def overall(self, weights: Sequence[float]) -> Floats:
        """Return float64[rows]: GRE (eq. 7)."""
        return _product_excess(
            [(1.0, w * self.sum(size)) for w, size in zip(weights, self.sizes, strict=True)]
        )


def _product_excess(parts: Sequence[tuple[float, Floats]]) -> Floats:
    """Return prod(w + e) - prod(w), computed without subtraction.

    It is exactly 0 if every e is 0.
    """
    product, excess = 1.0, np.zeros_like(parts[0][1])
    for weight, error in parts:
        excess = product * error + excess * (weight + error)
        product *= weight
    return excess


@lru_cache(maxsize=4096)
def greatest_local(n: int, weights: tuple[float, ...]) -> float:
    """Return C_LRE, the greatest LRE of n documents (eq. 6).

    Ideal positions n, 1, n-1, 2, ... attain it.
    """
    sizes, discount = _worst(n)
    return math.fsum((_product_excess([(weight, sizes) for weight in weights]) / discount).tolist())


@lru_cache(maxsize=4096)
def greatest_overall(n: int, weights: tuple[float, ...]) -> float:
    """Return C_GRE, the greatest GRE of n documents (eq. 9)."""
    sizes, discount = _worst(n)
    total = np.array([math.fsum((sizes / discount).tolist())])
    return float(_product_excess([(1.0, weight * total) for weight in weights])[0])


def _worst(n: int) -> tuple[Floats, Floats]:
    """Return the errors n-1, n-3, ... of the worst ranking, and their discounts.

    The error n - 2j - 1 is at rank 2j + 1, for j = 0, 1, ...
    """
    pairs = range(n // 2)
    return np.array([n - 2.0 * j - 1.0 for j in pairs]), np.array([1.0 + math.log2(1 + j) for j in pairs])


def _normalised(loss: Floats, greatest: Sequence[float], retrieved: NDArray[np.int64]) -> Floats:
    """Return 1 - loss / greatest.

    It is 1 for one document (no error is possible), and 0 for an empty list.

    The worst ranking attains the greatest loss, and rounding can exceed it by one ulp.
    """
    score = 1.0 - divided(loss, np.array(greatest, dtype=np.float64))
    return np.where(retrieved > 0, np.clip(score, 0.0, 1.0), 0.0)


def with_positions(
    positions: Sequence[Sequence[int]], weights: Sequence[float] | None = None
) -> tuple[float, float]:
    """Return NLRE and NGRE of one list, given its ideal positions per aspect.

    See READINGS.md, reading 19.
    """
    n, shares = len(positions[0]), tuple(weights or [HALF] * len(positions))
    rank = np.arange(1, n + 1)
    errors = Errors.from_positions(
        [np.array(places) for places in positions], np.zeros(n, dtype=np.int64), rank, 1
    )
    retrieved = np.array([n])
    [local] = _normalised(errors.local(shares), [greatest_local(n, shares)], retrieved)
    [overall] = _normalised(errors.overall(shares), [greatest_overall(n, shares)], retrieved)
    return float(local), float(overall)


@measure(source="Lioma et al., ICTIR 2017, eq. 4-6", combines=True, exempt=EXEMPT)
def NLRE(
    view: AspectView,
    *,
    ties: Ties = "stable",
    swap: OneFlag = False,
    aspects: AspectNames | None = None,
    weights: AspectBalance | None = None,
) -> Floats:
    """Normalised local rank error: 1 minus the cost of misordered adjacent documents.

        LRE = sum over ranks i < n of (prod_a (w_a + eps^a_i) - prod_a w_a) / log2(1 + i)
        NLRE = 1 - LRE / C
        eps^a_i = max(0, R_i - R_(i+1))

    R_i is the position of the document at rank i in the list sorted by decreasing label of aspect a. C is the
    same sum for the worst list of n documents, whose eps are n-1, n-3, ... at ranks 1, 3, ... The weight of
    an aspect is 0.5 unless `weights` sets another. A single document scores 1, an empty list 0. For more than
    two aspects the formula has the same form; the paper covers two.

    `ties` sets the ideal positions of documents with equal labels, which the paper leaves open (READINGS.md,
    reading 19). `stable` keeps them in the order of the list, so no tie is an error. With `min` they share
    the best position. `reverse` reverses their order. The library function `rank_errors.with_positions` takes
    other positions.

    As printed, equation 4 emphasises an aspect if the other aspect has a high weight, which contradicts the
    text of the paper (READINGS.md, reading 18). `swap=True` exchanges the two weights and so follows the
    text. NGRE needs no swap.

    Caveat: only adjacent documents are compared, and there is no ideal ranking of the collection. A list of
    equally bad documents scores 1, and so does any list of bad documents in their best order. Correcting one
    pair can lower the score.

    Example: relevance: 0..4, credibility: 0..4; a=(3,1) b=(1,4) c=(4,2) d=(2,2) e=(0,0) f=(0,0); run a b c d:
    NLRE 0.811816 = 1 - ((0.5 * 3.5 - 0.25) + (3.5 * 0.5 - 0.25) / log2(3)) / 13,
    NLRE(weights={credibility:0.1,relevance:0.9}) 0.777748 = 1 - ((0.9 * 3.1 - 0.09) + (3.9 * 0.1 - 0.09) /
    log2(3)) / 13; run e f: NLRE 1 = 1 - 0/2.
    """
    names, shares = _balance(view, aspects, weights)
    if swap:
        if len(names) != 2:
            raise MeasureError(f"swap exchanges the weights of two aspects, but the measure has {len(names)}")
        shares = shares[::-1]
    losses = [_errors(block, names, ties).local(shares) for block in view.dense()]
    greatest = [greatest_local(n, shares) for n in view.joined.retrieved.tolist()]
    return _normalised(_joined(losses), greatest, view.joined.retrieved)


@measure(source="Lioma et al., ICTIR 2017, eq. 7-9", combines=True, exempt=EXEMPT)
def NGRE(
    view: AspectView,
    *,
    ties: Ties = "stable",
    aspects: AspectNames | None = None,
    weights: AspectBalance | None = None,
) -> Floats:
    """Normalised global rank error: errors summed per aspect, and the sums multiplied.

        GRE = prod_a (1 + w_a A_a) - 1, A_a = sum over ranks i < n of eps^a_i / log2(1 + i)
        NGRE = 1 - GRE / C

    eps, `ties` and the defaults are those of NLRE. C is GRE of the worst list, whose eps are n-1, n-3, ... at
    ranks 1, 3, ... under every aspect. A high weight emphasises its own aspect. A single document scores 1,
    an empty list 0.

    Caveat: only adjacent documents are compared, and there is no ideal ranking of the collection. A list of
    equally bad documents scores 1. Correcting one pair can lower the score.

    Example: relevance: 0..4, credibility: 0..4; a=(3,1) b=(1,4) c=(4,2) d=(2,2) e=(0,0) f=(0,0); run a b c d:
    NGRE 0.410897 = 1 - ((1 + 0.5 * 3/log2(3)) * (1 + 0.5 * 3) - 1) / ((1 + 0.5 * (3 + 1/2)) ^ 2 - 1),
    NGRE(weights={credibility:0.1,relevance:0.9}) 0.453653 = 1 - ((1 + 0.9 * 3/log2(3)) * (1 + 0.1 * 3) - 1) /
    ((1 + 0.9 * 3.5) * (1 + 0.1 * 3.5) - 1); run e f: NGRE 1 = 1 - 0/1.25.
    """
    names, shares = _balance(view, aspects, weights)
    losses = [_errors(block, names, ties).overall(shares) for block in view.dense()]
    greatest = [greatest_overall(n, shares) for n in view.joined.retrieved.tolist()]
    return _normalised(_joined(losses), greatest, view.joined.retrieved)


def _balance(
    view: AspectView, aspects: AspectNames | None, weights: AspectBalance | None
) -> tuple[list[str], tuple[float, ...]]:
    """Return aspects and their weights.

    Raises MeasureError if there are fewer than two.
    """
    parts = weighted(view, aspects, weights, HALF)
    _need_two(len(parts))
    return [name for name, _ in parts], tuple(share for _, share in parts)


def _need_two(aspects: int) -> None:
    if aspects < 2:
        raise MeasureError(f"it needs two aspects or more, but combines {aspects}")


def _errors(block: Block, aspects: Sequence[str], ties: str) -> Errors:
    positions = [block.positions(aspect, ties) for aspect in aspects]
    return Errors.from_positions(positions, block.row, block.rank, block.end - block.begin)


def _joined(losses: Sequence[Floats]) -> Floats:
    return np.concatenate([*losses, np.zeros(0)])


def _weighted_gains(
    view: AspectView, *, aspects: AspectNames | None, weights: AspectWeights | None
) -> Floats:
    """Return the weighted gain z of each pooled document (see NWCS), float64[D].

    Raises MeasureError for fewer than two aspects.
    """
    parts = weighted(view, aspects, weights)
    _need_two(len(parts))
    total = np.zeros(view.qrels.labels.shape[1])
    for aspect, share in parts:
        pool = view.pool(aspect)
        total = total + share * pool.gains(pool.aspect.gains)
    return total


@measure(source="Lioma et al., ICTIR 2017, eq. 10 and 11", combines=True, worth=_weighted_gains)
def NWCS(
    view: AspectView, *, aspects: AspectNames | None = None, weights: AspectWeights | None = None
) -> Floats:
    """Normalised weighted cumulative score: relative to the score of the best order.

    The score is the sum of discounted weighted gains. The best order is that of the same documents
    by decreasing weighted gain.

        WCS = sum over ranks i of z_i / log2(1 + i), z_i = sum of p_a gain_a(i)
        NWCS = WCS / (WCS of the same documents by decreasing z)

    p_a = 1/n for n aspects unless `weights` sets other weights. An unjudged document has z = 0. If all z are
    0, the formula of the paper divides by 0, and the score is 0 (READINGS.md, reading 20).

    Caveat: each aspect has its own gains, so a longer scale has more influence. The ideal is the best order
    of the list itself: missing documents cost nothing, and a list of equally bad documents with a gain scores
    1.

    Example: relevance: 0..4, credibility: 0..4; a=(3,1) b=(1,4) c=(4,2) d=(2,2) e=(0,0) f=(0,0); run a b c d:
    NWCS 0.922344 = (2 + 2.5/log2(3) + 3/2 + 2/log2(5)) / (3 + 2.5/log2(3) + 2/2 + 2/log2(5)); run e f: NWCS 0
    = 0.
    """
    total = _weighted_gains(view, aspects=aspects, weights=weights)[view.hits.document]
    credited = total > 0
    hits, score = view.hits.only(credited), total[credited]
    best = score[np.lexsort((-score, hits.row))]
    reached, ideal = hits.sum(score / discounts.log2(hits.rank)), hits.sum(best / discounts.log2(hits.count))
    return np.minimum(divided(reached, ideal), 1.0)
