"""Measures of what documents say rather than of what they were judged to be (spec 7.5).

Hui, Towards robust and reusable evaluation for novelty and diversity (PIKM 2014), section 5, describes the
idea and leaves the construction open (reading 26): models of documents, subtopics and rankings are relative
frequencies of words, and two are as close as 1 less their divergence. Subtopics are known from the texts of
the documents that were judged relevant to them; a ranking is known from its texts, judged or not.
"""

from typing import Annotated

import numpy as np

from cupel_measures import discounts
from cupel_measures.groundtruth import Construction, ContentRows
from cupel_measures.model import Floats
from cupel_measures.parameters import Cutoff, Number, Rel, Share, Whole, Word
from cupel_measures.registry import SWAP, measure
from cupel_measures.syntax import MeasureError

Smoothing = Annotated[float, Number("a number from 0 to 1, 1 excluded", 0, 1, (1,))]
Divergence = Annotated[str, Word("jsd or kl", ("jsd", "kl"))]
Terms = Annotated[int, Whole("how many terms to keep: a whole number from 1")]
Stop = Annotated[int, Whole("how many terms to leave out: a whole number from 0", 0)]
Weights = Annotated[str, Word("equal or documents", ("equal", "documents"))]

BY_TEXT = "what a document is worth depends on its text, whatever its judgments"


def _construction(
    rel: int | None, smoothing: float, divergence: str, terms: int | None, stop: int
) -> Construction:
    if divergence == "kl" and not smoothing:
        raise MeasureError("divergence=kl is of use with smoothing only, such as smoothing=0.2")
    return Construction(rel, float(smoothing), divergence, terms, stop)


@measure(
    source="Hui, PIKM 2014, section 5",
    subtopics=True,
    texts=True,
    judged_only=False,
    exempt={SWAP: BY_TEXT},
)
def LMD(
    rows: ContentRows,
    *,
    depth: Cutoff = 20,
    smoothing: Smoothing = 0.0,
    divergence: Divergence = "jsd",
    terms: Terms | None = None,
    stop: Stop = 0,
    weights: Weights = "equal",
    rel: Rel | None = None,
) -> Floats:
    """Language-model divergence: how close what the ranking says is to what every subtopic is about."""
    construction = _construction(rel, smoothing, divergence, terms, stop)
    scores = np.zeros(rows.number)
    for row, ground, _ in rows.held(construction):
        scores[row] = ground.close(rows.model(row, depth, stop), by_size=weights == "documents")
    return scores


@measure(
    source="Hui, PIKM 2014, section 5.3; Clarke et al., SIGIR 2008",
    subtopics=True,
    texts=True,
    judged_only=False,
    exempt={SWAP: BY_TEXT},
)
def soft_alpha_nDCG(
    rows: ContentRows,
    *,
    cutoff: Cutoff | None = None,
    alpha: Share = 0.5,
    smoothing: Smoothing = 0.0,
    divergence: Divergence = "jsd",
    terms: Terms | None = None,
    stop: Stop = 0,
    rel: Rel | None = None,
) -> Floats:
    """alpha_nDCG with labels that are predicted from texts."""
    scores = np.zeros(rows.number)
    for row, ground, documents in rows.held(_construction(rel, smoothing, divergence, terms, stop)):
        ideal = _novelty_sum(ground.ideal(float(alpha), cutoff), float(alpha))
        found = _novelty_sum(ground.labels(documents[:cutoff]), float(alpha))
        scores[row] = min(1.0, found / ideal) if ideal > 0 else 0.0
    return scores


def _novelty_sum(labels: Floats, alpha: float) -> float:
    """Sum over ranks r of NG(r) / log2(1 + r), from float64[n, S], the labels at each rank."""
    if not len(labels):
        return 0.0
    above = np.cumsum(labels, axis=0) - labels
    gains = np.cumsum(labels * discounts.powers(1.0 - alpha, above), axis=1)[:, -1]
    return float(np.cumsum(gains / discounts.log2(np.arange(1, len(gains) + 1)))[-1])
