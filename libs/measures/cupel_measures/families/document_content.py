"""Measures of what documents say rather than of what they were judged to be (spec 7.5).

Hui, Towards robust and reusable evaluation for novelty and diversity (PIKM 2014), section 5, describes the
idea and leaves the construction open (reading 26): models of documents, subtopics and rankings are relative
frequencies of words, and two are as close as 1 less their divergence. Subtopics are known from the texts of
the documents that were judged relevant to them; a ranking is known from its texts, judged or not.
"""

from typing import Annotated

import numpy as np

from cupel_measures.grammar.parameters import Cutoff, Number, Rel, Share, Whole, Word
from cupel_measures.grammar.registry import SWAP, measure
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Floats
from cupel_measures.scoring import discounts
from cupel_measures.scoring.ground_truth import Construction, ContentRows

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
    """Language-model divergence: how close what a ranking says is to what the subtopics are about.

        LMD = min(1, raw / raw of the mean of all subtopics)
        raw = mean over subtopics of 1 - JSD(ranking, subtopic)
        ranking = sum over r <= depth of model(r) / log2(1 + r), over the sum of 1 / log2(1 + r)

    1. The model of a document is the relative frequency of each of its words; with `smoothing` s, 1 - s times
       that, and s times its relative frequency in all texts together. A document without words, or without a
       known text, is a word of its own that stands nowhere else.

    2. A subtopic is the mean of the models of its relevant documents (judgment at least `rel`, 1 if not
       given) that have a word; one without any is left out.

    3. The ranking is a mixture of the models at ranks 1 to `depth`, by weights 1 / log2(1 + rank) over their
       sum. Missing ranks keep their weight and have no word. Judged or not makes no difference.

    4. Two are as close as 1 - their Jensen-Shannon divergence to base 2 (`divergence=jsd`), or exp(-KL(theta
       || ranking)) in nats, theta being the subtopic (`kl`), which needs smoothing: a word that the ranking
       lacks makes it 0.

    5. LMD is the mean closeness to the subtopics, divided by that of the mean of all subtopics, at most 1.

    A topic without a subtopic that has a model scores 0, and so does an empty run.

    `terms=M` keeps the M terms that tell most about the topic's subtopics, by the mean over them of
    p(w) log2(p(w) / p(w|C)), ties alphabetical: subtopics, their mean and the ranking are cut down to these
    and to what has no word, and shared out anew. `stop=n` leaves the n most frequent terms of all texts out
    of every document before anything else, whatever their language. `weights=documents` weighs a subtopic by
    the number of documents that made its model.

    What it is good for: unjudged documents count by their texts, so that a few judgments put systems into
    nearly the order in which the measure itself puts them under all judgments. That is the order of
    alpha_nDCG in part only: where all judgments are at hand, prefer alpha_nDCG.

    The defaults are those of the specification, and the evidence speaks for them (two collections, one of
    them Turkish, with all, a third and a tenth of the judgments; in test_content_evidence.py).
    Leaving out stop words brings the order of systems nearer to that of alpha_nDCG, as words that stand
    everywhere tell no subtopics apart; but how many is right depends on the collection, and the same number
    would leave a small one without words, so the default is none. With thousands of documents some dozens are
    worth a try. Keeping few terms takes the order further away: once all is shared out anew, what a ranking
    says beside the point is not held against it. So does smoothing: it makes everything alike. Weights by
    documents are no better, and kl is on one collection only.

    Caveat: it is not alpha_nDCG with fewer judgments: the two order systems differently even under all.

    Example: a={1}"apple fruit tree apple" b={1}"apple pie fruit" c={2}"mac computer apple" d={}"rain weather"
    e"computer keyboard"; run a c: LMD(depth=3) 0.831340, LMD(depth=3,smoothing=0.2) 0.850115; run a c b:
    LMD(depth=3) 0.986157; run d: LMD(depth=3) 0.
    """
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
    """alpha_nDCG with labels that are predicted from texts: how much of each subtopic a document covers.

        soft_alpha_nDCG@k = min(1, DCG / DCG of the ideal), DCG = sum over r <= k of NG(r) / log2(1 + r)
        NG(r) = sum over subtopics i of s_i(r) (1 - alpha)^(sum over q < r of s_i(q))

    s_i(r), from 0 to 1, is how close the document at rank r is to subtopic i. Models, closeness, `smoothing`,
    `divergence`, `terms`, `stop` and `rel` are those of LMD. Every ranked document counts by its text, judged
    or not; one without a text covers nothing. `alpha` is the chance that one document on a subtopic is
    enough.

    The ideal takes, of the documents that were judged relevant to some subtopic, always the one of the
    largest gain (ties, to 12 decimals: the largest document id). A topic without a subtopic that has a model
    scores 0, and so does an empty run.

    With words that stand everywhere each document seems to say a little of everything: `stop` matters more
    here than for LMD, and brings the order of systems much nearer to that of alpha_nDCG. The default is none
    for the same reason as there.

    Example: a={1}"apple fruit tree apple" b={1}"apple pie fruit" c={2}"mac computer apple" d={}"rain weather"
    e"computer keyboard"; run a c: soft_alpha_nDCG 0.869963; run a b: soft_alpha_nDCG 0.808525; run e a:
    soft_alpha_nDCG 0.531524; run d: soft_alpha_nDCG 0.
    """
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
