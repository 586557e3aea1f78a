"""Measures of how far a list is from its own best order under several aspects at once (spec 6).

Only the ranked documents take part: the ideal rankings re-rank the same documents.
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
    NOTHING_RELEVANT: "it judges the order alone: a list of equally bad documents has no error",
    SWAP: "only neighbours are compared: mending one pair may put worse neighbours together",
}
HALF = 0.5
"""Weight of an aspect where none is given."""


@dataclass(frozen=True, eq=False)
class Errors:
    """Neighbours that stand the wrong way round in some ideal ranking.

    row: int64[n]. rank: int64[n], of the upper document. sizes: float64[n] per aspect, by how many
    positions they are wrong (eps of the paper; 0 where they are right). rows: how many rows there are.
    """

    row: Ints
    rank: Ints
    sizes: tuple[Floats, ...]
    rows: int

    @classmethod
    def of(cls, positions: Sequence[Ints], row: Ints, rank: Ints, rows: int) -> "Errors":
        """eps_i = max(0, R_i - R_(i+1)) of ideal positions R, int64[n] per aspect (eq. 1-3)."""
        together = row[1:] == row[:-1]
        sizes = [np.where(together, np.maximum(one[:-1] - one[1:], 0), 0) for one in positions]
        wrong = np.flatnonzero(np.any(sizes, axis=0))
        found = tuple(size[wrong].astype(np.float64) for size in sizes)
        return cls(row[wrong], rank[wrong], found, rows)

    def sum(self, values: Floats) -> Floats:
        """float64[rows]: sum of `values` / log2(1 + rank) along each row, one after another."""
        terms = values / discounts.log2(self.rank)
        return np.asarray(np.bincount(self.row, weights=terms, minlength=self.rows), dtype=np.float64)

    def local(self, weights: Sequence[float]) -> Floats:
        """float64[rows]: LRE (eq. 4)."""
        return self.sum(_beyond(list(zip(weights, self.sizes, strict=True))))

    def overall(self, weights: Sequence[float]) -> Floats:
        """float64[rows]: GRE (eq. 7)."""
        return _beyond([(1.0, w * self.sum(size)) for w, size in zip(weights, self.sizes, strict=True)])


def _beyond(parts: Sequence[tuple[float, Floats]]) -> Floats:
    """Product of (w + e) less the product of w, without subtracting: 0 exactly where every e is 0."""
    product, beyond = 1.0, np.zeros_like(parts[0][1])
    for weight, error in parts:
        beyond = product * error + beyond * (weight + error)
        product *= weight
    return beyond


@lru_cache(maxsize=4096)
def greatest_local(n: int, weights: tuple[float, ...]) -> float:
    """C_LRE, the greatest LRE of n documents (eq. 6), which ideal positions n, 1, n-1, 2, ... attain."""
    sizes, discount = _worst(n)
    return math.fsum((_beyond([(weight, sizes) for weight in weights]) / discount).tolist())


@lru_cache(maxsize=4096)
def greatest_overall(n: int, weights: tuple[float, ...]) -> float:
    """C_GRE, the greatest GRE of n documents (eq. 9)."""
    sizes, discount = _worst(n)
    total = np.array([math.fsum((sizes / discount).tolist())])
    return float(_beyond([(1.0, weight * total) for weight in weights])[0])


def _worst(n: int) -> tuple[Floats, Floats]:
    """Errors of the worst ranking, n-1, n-3, ..., and their discounts 1 + log2(1+j) = log2(1+i), i = 2j+1."""
    pairs = range(n // 2)
    return np.array([n - 2.0 * j - 1.0 for j in pairs]), np.array([1.0 + math.log2(1 + j) for j in pairs])


def _normalised(loss: Floats, greatest: Sequence[float], retrieved: NDArray[np.int64]) -> Floats:
    """1 - loss / greatest; 1 where no error is possible (one document), 0 for an empty list.

    The greatest loss is attained, and rounding may then leave an ulp more than it.
    """
    score = 1.0 - divided(loss, np.array(greatest, dtype=np.float64))
    return np.where(retrieved > 0, np.clip(score, 0.0, 1.0), 0.0)


def with_positions(
    positions: Sequence[Sequence[int]], weights: Sequence[float] | None = None
) -> tuple[float, float]:
    """NLRE and NGRE of one list whose ideal positions, per aspect, the caller gives (reading 19, `given`)."""
    n, shares = len(positions[0]), tuple(weights or [HALF] * len(positions))
    rank = np.arange(1, n + 1)
    errors = Errors.of([np.array(one) for one in positions], np.zeros(n, dtype=np.int64), rank, 1)
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
    """Normalised local rank error: 1 less what neighbours in the wrong order cost, of the worst possible.

        LRE = sum over ranks i < n of (prod_a (w_a + eps^a_i) - prod_a w_a) / log2(1 + i)
        NLRE = 1 - LRE / C
        eps^a_i = max(0, R_i - R_(i+1))

    R_i is the position of the document at rank i when the list is sorted by decreasing label of aspect a. C
    is the same sum for the worst list of n documents: eps n-1, n-3, ... at ranks 1, 3, ... An aspect weighs
    0.5 unless `weights` says otherwise. A single document scores 1, an empty list 0. With more than two
    aspects it is the same form, which the paper does not have.

    `ties` says how documents of equal label stand in the ideal rankings, on which the paper is silent
    (register of readings, row 19): in the order of the list, so that no tie is an error (`stable`), sharing
    the best position (`min`), or turned round (`reverse`). Positions of the caller's own (given) are no text:
    see `rankerror.with_positions`. Equation 4 as printed, built here, makes a high weight of one aspect
    stress the other one, against the paper's text (row 18, swap_mu_nu); `swap=True` exchanges the two
    weights, and so follows the text (NGRE needs no swap).

    Caveat: only neighbours are compared, and there is no ideal over the collection. A list of equally bad
    documents scores 1, as does any list that holds bad documents in their best order; mending one pair may
    even lower the score.

    Example: relevance 0..4, credibility 0..4; a=(3,1) b=(1,4) c=(4,2) d=(2,2) e=(0,0) f=(0,0); run a b c d:
    NLRE 0.811816 = 1 - ((0.5 * 3.5 - 0.25) + (3.5 * 0.5 - 0.25) / log2(3)) / 13,
    NLRE(weights={credibility:0.1,relevance:0.9}) 0.777748 = 1 - ((0.9 * 3.1 - 0.09) + (3.9 * 0.1 - 0.09) /
    log2(3)) / 13; run e f: NLRE 1 = 1 - 0/2.
    """
    names, shares = _balance(view, aspects, weights)
    if swap:
        if len(names) != 2:
            raise MeasureError(f"swap exchanges the weights of two aspects; there are {len(names)}")
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
    """Normalised global rank error: each aspect's errors are summed first, and then multiplied.

        GRE = prod_a (1 + w_a A_a) - 1, A_a = sum over ranks i < n of eps^a_i / log2(1 + i)
        NGRE = 1 - GRE / C

    eps, `ties` and the defaults are those of NLRE. C takes for every A_a the greatest possible sum: eps n-1,
    n-3, ... at ranks 1, 3, ... A high weight stresses its aspect. A single document scores 1, an empty list
    0.

    Caveat: only neighbours are compared, and there is no ideal over the collection. A list of equally bad
    documents scores 1; mending one pair may even lower the score.

    Example: relevance 0..4, credibility 0..4; a=(3,1) b=(1,4) c=(4,2) d=(2,2) e=(0,0) f=(0,0); run a b c d:
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
    """Aspects and their weights; MeasureError where there are not two of them."""
    parts = weighted(view, aspects, weights, HALF)
    _need_two(len(parts))
    return [name for name, _ in parts], tuple(share for _, share in parts)


def _need_two(aspects: int) -> None:
    if aspects < 2:
        raise MeasureError(f"it compares orders by two aspects or more; there is {aspects}")


def _errors(block: Block, aspects: Sequence[str], ties: str) -> Errors:
    positions = [block.positions(aspect, ties) for aspect in aspects]
    return Errors.of(positions, block.row, block.rank, block.end - block.begin)


def _joined(losses: Sequence[Floats]) -> Floats:
    return np.concatenate([*losses, np.zeros(0)])


def _weighted_gains(
    view: AspectView, *, aspects: AspectNames | None, weights: AspectWeights | None
) -> Floats:
    """float64[D]: z of each pooled document; MeasureError where there are not two aspects."""
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
    """Normalised weighted cumulative score: discounted weighted gains, of those in the list's best order.

        WCS = sum over ranks i of z_i / log2(1 + i), z_i = sum of p_a gain_a(i)
        NWCS = WCS / (WCS of the same documents by decreasing z)

    p_a = 1/n for n aspects unless `weights` says otherwise. An unjudged document has z = 0. Where all z are 0
    the paper divides by 0: the score is 0 (register of readings, row 20).

    Caveat: gains are those of each aspect, so scales of different length weigh differently. The ideal is the
    list's own: documents that are missing cost nothing, and a list of equally bad documents with a gain
    scores 1.

    Example: relevance 0..4, credibility 0..4; a=(3,1) b=(1,4) c=(4,2) d=(2,2) e=(0,0) f=(0,0); run a b c d:
    NWCS 0.922344 = (2 + 2.5/log2(3) + 3/2 + 2/log2(5)) / (3 + 2.5/log2(3) + 2/2 + 2/log2(5)); run e f: NWCS 0
    = 0.
    """
    total = _weighted_gains(view, aspects=aspects, weights=weights)[view.hits.document]
    credited = total > 0
    hits, score = view.hits.only(credited), total[credited]
    best = score[np.lexsort((-score, hits.row))]
    reached, ideal = hits.sum(score / discounts.log2(hits.rank)), hits.sum(best / discounts.log2(hits.count))
    return np.minimum(divided(reached, ideal), 1.0)
