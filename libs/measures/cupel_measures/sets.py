"""Measures of one aspect that see a run as a set, and counts (trec_eval's set_*, utility and num_*)."""

import math
from typing import Annotated

import numpy as np

from cupel_measures.model import Floats
from cupel_measures.parameters import Beta, Cutoff, Number, OneFlag, Rel, Whole
from cupel_measures.registry import EMPTY, NOTHING_RELEVANT, SWAP, measure
from cupel_measures.rows import Rows, divided
from cupel_measures.syntax import MeasureError

Worth = Annotated[float, Number("a number, what one such document is worth")]
Documents = Annotated[int, Whole("the number of documents of the collection, a whole number from 1")]

COUNT = (0.0, math.inf)
NOT_RELEVANCE = "it is not relevance that it counts"


@measure(source="trec_eval set_P, set_relative_P", aliases={"SetRelP": {"relative": True}}, rises=True)
def SetP(rows: Rows, *, rel: Rel | None = None, relative: OneFlag = False) -> Floats:
    """Precision of the whole run: relevant retrieved / retrieved.

    `relative=True` divides by the greatest number that could be relevant, min(retrieved, R).
    """
    retrieved = np.minimum(rows.retrieved, rows.recall_base(rel)) if relative else rows.retrieved
    return divided(rows.relevant(rel).number, retrieved)


@measure(source="trec_eval set_recall", judged_only=False, scale="interval", rises=True)
def SetR(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """Recall of the whole run: relevant retrieved / relevant."""
    return divided(rows.relevant(rel).number, rows.recall_base(rel))


@measure(source="trec_eval set_F", rises=True)
def SetF(rows: Rows, *, beta: Beta = 1, rel: Rel | None = None) -> Floats:
    """F of the whole run: (b + 1) P R / (R + b P).

    beta enters linearly, as in trec_eval, not squared: `SetF(beta=4)` is elsewhere called F with beta 2.
    """
    precision, recall = SetP(rows, rel=rel), SetR(rows, rel=rel)
    b = float(beta)
    return divided((b + 1.0) * precision * recall, recall + b * precision)


@measure(source="Lioma et al., ICTIR 2017, section 6.1", rises=True)
def SetG(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """G of the whole run: the geometric mean of precision and recall, sqrt(P R).

    `SetG(aspect=credibility)` is the G of credibility: every retrieved document is a predicted positive,
    and is one if its label reaches the threshold of the aspect (or `rel`). R counts all such documents
    of the topic's judgments. 0 where either is 0.
    """
    return np.sqrt(SetP(rows, rel=rel) * SetR(rows, rel=rel))


@measure(source="trec_eval set_map", rises=True)
def SetAP(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """Average precision of the run as a set: SetP * SetR."""
    return SetP(rows, rel=rel) * SetR(rows, rel=rel)


@measure(
    source="trec_eval utility",
    bounds=(-math.inf, math.inf),
    judged_only=False,
    exempt=dict.fromkeys((NOTHING_RELEVANT, EMPTY), "every kind of document may count, relevant or not"),
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
    """Utility of the whole run: a for each relevant document retrieved, b for each other one retrieved.

    And c for each relevant document that was not retrieved, d for each other one of the collection that was
    not; d needs `documents`, the size of the collection (trec_eval's -N). A topic missing from the run has
    the utility of retrieving nothing (0 unless c or d count; trec_eval 10 says 0 always).
    """
    if d and documents is None:
        raise MeasureError("d is for documents not retrieved; documents=... says how many there are in all")
    found, relevant = rows.relevant(rel).number, rows.recall_base(rel)
    others = (documents or 0) + found - rows.retrieved - relevant
    terms = ((a, found), (b, rows.retrieved - found), (c, relevant - found), (d, others))
    total: Floats = np.cumsum([float(worth) * number for worth, number in terms], axis=0)[-1]
    return total


@measure(
    source="trec_eval num_q",
    aggregate="sum",
    bounds=COUNT,
    judged_only=False,
    scale="count",
    exempt=dict.fromkeys((NOTHING_RELEVANT, EMPTY), NOT_RELEVANCE),
)
def NumQ(rows: Rows) -> Floats:
    """Number of topics of the qrels: 1 per topic, summed."""
    return np.ones(rows.number)


@measure(
    source="trec_eval num_ret",
    aggregate="sum",
    bounds=COUNT,
    judged_only=False,
    scale="count",
    exempt={NOTHING_RELEVANT: NOT_RELEVANCE},
)
def NumRet(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """Number of documents retrieved, summed over topics; with `rel`, of relevant ones at that level."""
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
    """Number of relevant documents in the judgments, summed over topics."""
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
    """Number of relevant documents retrieved, summed over topics."""
    return rows.relevant(rel).number.astype(np.float64)


@measure(
    source="trec_eval num_nonrel_judged_ret",
    aggregate="sum",
    bounds=COUNT,
    judged_only=False,
    scale="count",
    exempt={NOTHING_RELEVANT: NOT_RELEVANCE},
)
def NumNonrelRet(rows: Rows, *, rel: Rel | None = None) -> Floats:
    """Number of judged non-relevant documents retrieved, summed over topics; negative grades left out."""
    return rows.nonrelevant(rel).number.astype(np.float64)


@measure(source="ir_measures Judged", judged_only=False, exempt={NOTHING_RELEVANT: NOT_RELEVANCE}, rises=True)
def Judged(rows: Rows, *, cutoff: Cutoff | None = None) -> Floats:
    """Share of the first k documents that are judged, of those that were retrieved.

    Divides by min(k, retrieved), as ir_measures does. A negative grade is a judgment here, unless the
    profile is one of trec_eval.
    """
    depth = rows.retrieved if cutoff is None else np.minimum(rows.retrieved, cutoff)
    return divided(rows.judged().within(cutoff).number, depth)


@measure(
    source="trec_eval unj",
    judged_only=False,
    exempt=dict.fromkeys((NOTHING_RELEVANT, SWAP), NOT_RELEVANCE),
)
def Unjudged(rows: Rows, *, cutoff: Cutoff | None = None) -> Floats:
    """Share of the first k ranks that hold a document without judgment; negative grades count as such.

    Divides by k, as trec_eval's unj does, or by the number retrieved where no k is given.
    """
    labelled = rows.hits.only(rows.pool.graded[rows.hits.document]).within(cutoff).number
    depth = rows.retrieved if cutoff is None else np.minimum(rows.retrieved, cutoff)
    return divided(depth - labelled, rows.retrieved if cutoff is None else cutoff)
