"""Measures of the texts of documents, for judgments by subtopic.

Section 5 of Hui, Towards robust and reusable evaluation for novelty and diversity, PIKM 2014, describes the
idea and leaves the construction open (READINGS.md, reading 26). Models of documents, subtopics and rankings
are relative frequencies of words. The closeness of two models decreases with their divergence. The model of a
subtopic comes from the texts of its relevant documents. The model of a ranking comes from the texts of its
documents, judged or not.
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
Terms = Annotated[int, Whole("number of terms to keep: a whole number from 1")]
Stop = Annotated[int, Whole("number of terms to leave out: a whole number from 0", 0)]
Weights = Annotated[str, Word("equal or documents", ("equal", "documents"))]

BY_TEXT = "the contribution of a document depends on its text, not on its judgments"


def _construction(
    rel: int | None, smoothing: float, divergence: str, terms: int | None, stop: int
) -> Construction:
    if divergence == "kl" and not smoothing:
        raise MeasureError("divergence=kl needs smoothing, such as smoothing=0.2")
    return Construction(rel=rel, smoothing=float(smoothing), divergence=divergence, terms=terms, stop=stop)


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
    """Language-model divergence: closeness of ranked texts to those of the subtopics.

        LMD = min(1, raw / raw of the mean model of all subtopics)
        raw = mean over subtopics of 1 - JSD(ranking, subtopic)
        ranking = (sum over r <= depth of model(r) / log2(1 + r)) / (sum over r <= depth of 1 / log2(1 + r))

    1. The model of a document is the relative frequency of each of its words. With `smoothing` s, it is 1 - s
       times this frequency plus s times the relative frequency of the word in all texts. The model of a
       document without words, or with an unknown text, gives probability 1 to a special word that occurs in
       no text.

    2. The model of a subtopic is the mean of the models of its relevant documents (judgment at least `rel`,
       default 1) that have words. Subtopics without such documents are ignored.

    3. The model of the ranking is a mixture of the models at ranks 1 to `depth`, with weights proportional to
       1 / log2(1 + rank). A rank below the end of the run keeps its weight, and its model gives probability 1
       to the special word. Judgments do not matter.

    4. Closeness is 1 - the Jensen-Shannon divergence to base 2 (`divergence=jsd`), or exp(-KL(theta ||
       ranking)) in nats, where theta is the subtopic (`divergence=kl`). `kl` needs smoothing, because a word
       that the ranking lacks would make the closeness 0.

    5. LMD is the mean closeness of the ranking to the subtopics, divided by the mean closeness of the mean
       model of all subtopics to the subtopics. It is limited to 1.

    A topic without a subtopic model scores 0, and so does an empty run.

    `terms=M` keeps the M terms with the largest mean over the subtopics of p(w) log2(p(w) / p(w|C)), ties in
    alphabetical order. p(w) is the relative frequency in the subtopic, and p(w|C) the relative frequency in
    all texts. All models are restricted to these terms and the special word, and renormalised. A subtopic
    that keeps no term has closeness 0 to every ranking. `stop=n` removes the n most frequent terms of the
    collection from every document before step 1. `weights=documents` weights a subtopic by the number of
    documents in its model.

    Use: unjudged documents count by their texts. With few judgments, LMD therefore orders systems nearly as
    it does with all judgments. This order agrees only in part with the order by alpha_nDCG. If all judgments
    are available, prefer alpha_nDCG.

    The defaults are the simplest choices. The experiment in tests/measures/families/test_content_defaults.py
    supports them. It uses two collections, one of them Turkish, with all judgments, a third of them, and a
    tenth of them. Removing stop words brings the order of systems closer to the order by alpha_nDCG, because
    words that occur everywhere do not distinguish subtopics. The right number of stop words depends on the
    collection, and a small collection could lose all its words, so the default is 0. With thousands of
    documents, try a few dozen. Keeping few terms reduces the agreement, because off-topic text then costs
    nothing. Smoothing also reduces the agreement, because it makes all models similar. `weights=documents`
    does not help, and `kl` helps on one collection only.

    Caveat: LMD does not approximate alpha_nDCG. The two order systems differently even with all judgments.

    Example: a={1}"apple fruit tree apple" b={1}"apple pie fruit" c={2}"mac computer apple" d={}"rain weather"
    e"computer keyboard"; run a c: LMD(depth=3) 0.831340, LMD(depth=3,smoothing=0.2) 0.850115; run a c b:
    LMD(depth=3) 0.986157; run d: LMD(depth=3) 0.
    """
    construction = _construction(rel, smoothing, divergence, terms, stop)
    scores = np.zeros(rows.number)
    for row, topic_model, _ in rows.with_models(construction):
        scores[row] = topic_model.score(rows.model(row, depth, stop), by_size=weights == "documents")
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
    """alpha_nDCG with labels predicted from texts: the closeness to each subtopic.

    A label tells how closely a document matches the subtopic.

        soft_alpha_nDCG@k = min(1, DCG / DCG of the ideal ranking)
        DCG = sum over r <= k of NG(r) / log2(1 + r)
        NG(r) = sum over subtopics i of s_i(r) (1 - alpha)^(sum over q < r of s_i(q))

    s_i(r), from 0 to 1, is the closeness of the document at rank r to subtopic i. Models, closeness,
    `smoothing`, `divergence`, `terms`, `stop` and `rel` are those of LMD. Every ranked document counts by its
    text, judged or not; a document without a text has closeness 0 to every subtopic. `alpha` is the
    probability that one document on a subtopic satisfies the user.

    The ideal ranking is greedy and contains the documents judged relevant to any subtopic. At each rank it
    takes the remaining document with the largest gain (if gains are equal after rounding to 12 decimals, the
    one with the largest id). A topic without a subtopic model scores 0, and so does an empty run.

    Because of frequent words, each document is a little close to every subtopic. Removing stop words
    therefore matters more than for LMD, and brings the order of systems much closer to the order by
    alpha_nDCG. `stop` is 0 by default, for the same reason as in LMD.

    Example: a={1}"apple fruit tree apple" b={1}"apple pie fruit" c={2}"mac computer apple" d={}"rain weather"
    e"computer keyboard"; run a c: soft_alpha_nDCG 0.869963; run a b: soft_alpha_nDCG 0.808525; run e a:
    soft_alpha_nDCG 0.531524; run d: soft_alpha_nDCG 0.
    """
    scores = np.zeros(rows.number)
    construction = _construction(rel, smoothing, divergence, terms, stop)
    for row, topic_model, documents in rows.with_models(construction):
        ideal = _novelty_sum(topic_model.ideal(float(alpha), cutoff), float(alpha))
        achieved = _novelty_sum(topic_model.labels(documents[:cutoff]), float(alpha))
        scores[row] = min(1.0, achieved / ideal) if ideal > 0 else 0.0
    return scores


def _novelty_sum(labels: Floats, alpha: float) -> float:
    """Return the sum over ranks r of NG(r) / log2(1 + r).

    labels: float64[n, S], at each rank.
    """
    if not len(labels):
        return 0.0
    above = np.cumsum(labels, axis=0) - labels
    gains = np.cumsum(labels * discounts.powers(1.0 - alpha, above), axis=1)[:, -1]
    return float(np.cumsum(gains / discounts.log2(np.arange(1, len(gains) + 1)))[-1])
