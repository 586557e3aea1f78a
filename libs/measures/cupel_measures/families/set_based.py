"""Measures by set, for one aspect, and counts.

They include `set_*`, `utility` and `num_*` of trec_eval.

R is the number of relevant documents in the judgments of the topic.
"""

import math
from typing import Annotated

import numpy as np

from cupel_measures.grammar.parameters import Beta, Cutoff, Negatives, Number, OneFlag, Rel, Whole
from cupel_measures.grammar.registry import EMPTY, NOTHING_RELEVANT, SWAP, measure
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Floats
from cupel_measures.scoring.rows import Rows, divided

Worth = Annotated[
    float, Number("a number, the utility of one document in this cell of the contingency table")
]
Documents = Annotated[int, Whole("the number of documents of the collection, a whole number from 1")]

COUNT = (0.0, math.inf)
NOT_RELEVANCE = "it does not measure relevance"


@measure(source="trec_eval set_P, set_relative_P", aliases={"SetRelP": {"relative": True}}, rises=True)
def SetP(rows: Rows, *, rel: Rel | None = None, relative: OneFlag = False) -> Floats:
    """Precision of the whole run: the share of retrieved documents that are relevant.

        SetP = (relevant retrieved) / retrieved

    `relative=True` divides by min(retrieved, R), the greatest possible number of relevant documents.

    Example: a=1 b=1 z=0; run a x z: SetP 0.333333 = 1/3, SetP(relative=True) 0.5 = 1/2.
    """
    retrieved = np.minimum(rows.retrieved, rows.recall_base(rel)) if relative else rows.retrieved
    return divided(rows.relevant(rel).number, retrieved)


@measure(source="trec_eval set_recall", judged_only=False, scale="interval", rises=True)
def SetR(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """Recall of the whole run: the share of relevant documents that are retrieved.

        SetR = (relevant retrieved) / R

    Example: a=1 b=1 z=0; run a x z: SetR 0.5 = 1/2.
    """
    return divided(rows.relevant(rel).number, rows.recall_base(rel))


@measure(source="trec_eval set_F", rises=True)
def SetF(rows: Rows, *, beta: Beta = 1, rel: Rel | None = None) -> Floats:
    """F of the whole run: the weighted harmonic mean of its precision and recall.

        SetF = (b + 1) P R / (R + b P), 0 if P or R is 0

    P is SetP, R is SetR, and b is `beta`. As in trec_eval, b is not squared: `SetF(beta=4)` is elsewhere
    called F with beta 2. `SetF(aspect=credibility)` is the F-1 of credibility in Lioma et al.; see SetG.

    Example: a=1 b=1 z=0; run a x z: SetF 0.4 = 2 * 1/3 * 1/2 / (1/2 + 1/3), SetF(beta=4) 0.454545 = 5 * 1/3 *
    1/2 / (1/2 + 4 * 1/3).
    """
    precision, recall = SetP(rows, rel=rel), SetR(rows, rel=rel)
    b = float(beta)
    return divided((b + 1.0) * precision * recall, recall + b * precision)


@measure(source="Lioma et al., ICTIR 2017, section 6.1", rises=True)
def SetG(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """G of the whole run: the geometric mean of its precision and recall.

        SetG = sqrt(P R)

    `SetG(aspect=credibility)` is the G of credibility in Lioma et al. Every retrieved document is a predicted
    positive. It is a true positive if its label reaches the threshold of the aspect, or `rel`. P is SetP, and
    R is SetR with this threshold. The value is 0 if P or R is 0.

    Example: credibility: 1..4 (threshold 3); a=4 b=1 c=3 d=2 e=1; run a b c d e: SetG 0.632456 = sqrt(2/5 *
    2/2), SetF 0.571429 = 2 * 2/5 * 1 / (1 + 2/5); run a: SetG 0.707107 = sqrt(1/1 * 1/2).
    """
    return np.sqrt(SetP(rows, rel=rel) * SetR(rows, rel=rel))


@measure(source="trec_eval set_map", rises=True)
def SetAP(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """Set-based average precision: precision times recall of the whole run.

        SetAP = SetP * SetR

    Example: a=1 b=1 z=0; run a x z: SetAP 0.166667 = 1/3 * 1/2.
    """
    return SetP(rows, rel=rel) * SetR(rows, rel=rel)


@measure(
    source="trec_eval utility",
    bounds=(-math.inf, math.inf),
    judged_only=False,
    exempt=dict.fromkeys((NOTHING_RELEVANT, EMPTY), "its weights can credit non-relevant documents"),
)
def Utility(
    rows: Rows,
    *,
    a: Worth = 1,
    b: Worth = -1,
    c: Worth = 0,
    d: Worth = 0,
    documents: Documents | None = None,
    rel: Rel | None = None,
) -> Floats:
    """Utility of the whole run: a weighted sum of the counts of its contingency table.

        Utility = a * (relevant retrieved) + b * (others retrieved)
                + c * (relevant not retrieved) + d * (others not retrieved)

    `d` needs `documents`, the number of documents in the collection (option -N of trec_eval). The others are
    the non-relevant documents, including unjudged documents. A topic missing from the run has the utility of
    an empty ranking; trec_eval 10 always gives it 0.

    Caveat: the value is unbounded. Long runs, and topics with many relevant documents, weigh more in the
    mean.

    Example: a=1 b=1 z=0; run a x z: Utility -1 = 1 - 2, Utility(a=2,b=-0.5,c=-1) 0 = 2 - 0.5 * 2 - 1,
    Utility(d=0.25,documents=10) 0.5 = 1 - 2 + 0.25 * (10 - 3 - 1).
    """
    if d and documents is None:
        raise MeasureError("the parameter d needs documents=..., the number of documents in the collection")
    hits, relevant = rows.relevant(rel).number, rows.recall_base(rel)
    others = (documents or 0) + hits - rows.retrieved - relevant
    terms = ((a, hits), (b, rows.retrieved - hits), (c, relevant - hits), (d, others))
    total: Floats = np.cumsum([float(worth) * number for worth, number in terms], axis=0)[-1]
    return total


@measure(
    source="trec_eval num_q",
    aggregate="sum",
    bounds=COUNT,
    judged_only=False,
    label_free=True,
    scale="count",
    exempt=dict.fromkeys((NOTHING_RELEVANT, EMPTY), NOT_RELEVANCE),
)
def NumQ(rows: Rows) -> Floats:
    """Number of topics with a judgment.

        NumQ = 1 for each topic, summed over topics

    Topics missing from the run count. Topics missing from the qrels, and topics without any judgment,
    do not. Judgments by subtopic count as judgments.

    Example: a=1 b=1 | c=0; run a x | -: NumQ 2 = 1 + 1.
    """
    return np.ones(rows.number)


@measure(
    source="trec_eval num_ret",
    aggregate="sum",
    bounds=COUNT,
    judged_only=False,
    label_free=True,
    scale="count",
    exempt={NOTHING_RELEVANT: NOT_RELEVANCE},
)
def NumRet(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """Number of documents retrieved, summed over topics.

        NumRet = documents retrieved; with `rel`, only those that are relevant at this level

    Topics missing from the qrels do not count. `rel` needs judgments of an aspect.

    Example: a=1 b=1 | c=0; run a x | c y z: NumRet 5 = 2 + 3, NumRet(rel=1) 1 = 1 + 0.
    """
    return (rows.retrieved if rel is None else rows.relevant(rel).number).astype(np.float64)


@measure(
    source="trec_eval num_rel",
    aggregate="sum",
    bounds=COUNT,
    judged_only=False,
    scale="count",
    exempt={EMPTY: "it counts judgments"},
)
def NumRel(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """Number of relevant documents in the judgments, summed over topics.

        NumRel = R, retrieved or not

    Example: a=1 b=2 | c=0 d=1; run a x | -: NumRel 3 = 2 + 1, NumRel(rel=2) 1 = 1 + 0.
    """
    return rows.recall_base(rel).astype(np.float64)


@measure(
    source="trec_eval num_rel_ret",
    aggregate="sum",
    bounds=COUNT,
    judged_only=False,
    scale="count",
    rises=True,
)
def NumRelRet(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """Number of relevant documents retrieved, summed over topics.

        NumRelRet = relevant documents retrieved

    Example: a=1 b=2 | c=0 d=1; run a b x | c d: NumRelRet 3 = 2 + 1, NumRelRet(rel=2) 1 = 1 + 0.
    """
    return rows.relevant(rel).number.astype(np.float64)


@measure(
    source="trec_eval num_nonrel_judged_ret",
    aggregate="sum",
    bounds=COUNT,
    judged_only=False,
    scale="count",
    exempt={NOTHING_RELEVANT: NOT_RELEVANCE},
)
def NumNonrelRet(rows: Rows, *, rel: Rel | None = None, negatives: Negatives = "pooled") -> Floats:
    """Number of judged non-relevant documents retrieved, summed over topics.

        NumNonrelRet = documents retrieved whose grade is below the threshold and not negative

    Unjudged documents do not count. Negative grades do not count either, as in trec_eval; with
    `negatives=judged` they do.

    Example: a=1 b=0 n=-1 | c=0; run a b n x | c: NumNonrelRet 2 = 1 + 1, NumNonrelRet(negatives=judged) 3 = 2
    + 1.
    """
    return rows.nonrelevant(rel, negatives).number.astype(np.float64)


@measure(source="ir_measures Judged", judged_only=False, exempt={NOTHING_RELEVANT: NOT_RELEVANCE}, rises=True)
def Judged(rows: Rows, *, cutoff: Cutoff | None = None) -> Floats:
    """Share of the first k documents that are judged.

        Judged@k = (judged in 1..k) / min(k, retrieved)

    The divisor is the number of retrieved documents in 1..k, as in ir_measures. A negative grade is a
    judgment, except under a trec_eval profile.

    Example: a=1 b=0 n=-1; run a x n: Judged@2 0.5 = 1/2, Judged@10 0.666667 = 2/3.
    """
    depth = rows.retrieved if cutoff is None else np.minimum(rows.retrieved, cutoff)
    return divided(rows.judged().within(cutoff).number, depth)


@measure(
    source="trec_eval unj",
    judged_only=False,
    exempt=dict.fromkeys((NOTHING_RELEVANT, SWAP), NOT_RELEVANCE),
)
def Unjudged(rows: Rows, *, cutoff: Cutoff | None = None, negatives: Negatives = "pooled") -> Floats:
    """Share of the first k ranks with an unjudged document.

        Unjudged@k = (not judged in 1..k) / k

    The divisor is k, as in trec_eval's unj. Without a cutoff it is the number of retrieved documents. Under
    every profile, a negative grade is not a judgment unless `negatives=judged`. So Judged and Unjudged need
    not sum to 1.

    Example: a=1 b=0 n=-1; run a x n: Unjudged@2 0.5 = 1/2, Unjudged@10 0.2 = 2/10, Unjudged 0.666667 = 2/3,
    Unjudged(negatives=judged) 0.333333 = 1/3.
    """
    labelled = rows.hits.of_documents(rows.pool.graded(negatives)).within(cutoff).number
    depth = rows.retrieved if cutoff is None else np.minimum(rows.retrieved, cutoff)
    return divided(depth - labelled, rows.retrieved if cutoff is None else cutoff)
