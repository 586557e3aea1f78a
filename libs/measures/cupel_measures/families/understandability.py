"""Relevance that can be understood: RBP with gains that multiply, and H, a mean of scores (spec 5)."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from cupel_measures.families.multiaspect import InnerByAspect, harmonic, inner, weighted, within
from cupel_measures.grammar.parameters import (
    AspectBalance,
    AspectName,
    AspectNames,
    Cutoff,
    GainTableParameter,
    NameOrNames,
    Number,
    OneFlag,
    Persistence,
    Rel,
    Whole,
)
from cupel_measures.grammar.registry import measure
from cupel_measures.grammar.syntax import ArgumentPairs, MeasureError
from cupel_measures.model import Aspect, Floats
from cupel_measures.scoring import discounts
from cupel_measures.scoring.pool import Mask, Pool
from cupel_measures.scoring.rows import Hits
from cupel_measures.scoring.view import AspectView

Label = Whole("a label", -(2**31))
AspectOrAspects = Annotated[tuple[str, ...], NameOrNames("an aspect, or a list of different aspects")]
Thresholds = Annotated[
    ArgumentPairs,
    GainTableParameter(
        "the worst label that can be understood, by aspect, such as {understandability:40}", value=Label
    ),
]
Probabilities = Annotated[
    ArgumentPairs,
    GainTableParameter(
        "numbers from 0 to 1 by aspect and label, such as {understandability:{1:0.4,2:0.8,3:1}}",
        value=GainTableParameter("", Label, Number("", 0, 1)),
    ),
]
SOURCE = "Zuccon, ECIR 2016; Palotti et al., CIKM 2018"
RHO, DEPTH = 0.8, 10
"""Persistence and depth where none are given: they fit the printed tables, which name none (reading 13)."""


def _worth_of_urbp(
    view: AspectView,
    *,
    understandability: Sequence[str] | None,
    rel: int | None,
    thresholds: ArgumentPairs | None,
    strict: bool,
    aspect: str | None,
    **_: Any,
) -> Floats:
    _check(understandability, thresholds)
    return _topical(view, aspect, rel) * _understood(view, understandability, thresholds, strict=strict)


@measure(source=SOURCE, combines=True, rises=True, worth=_worth_of_urbp)
def uRBP(
    view: AspectView,
    *,
    p: Persistence = RHO,
    cutoff: Cutoff = DEPTH,
    understandability: AspectOrAspects | None = None,
    rel: Rel | None = None,
    thresholds: Thresholds | None = None,
    strict: OneFlag = False,
    aspect: AspectName | None = None,
) -> Floats:
    """Understandability-biased RBP: a document counts if it is relevant and can be understood.

        uRBP@k = (1 - p) * sum over ranks i <= k of p^(i - 1) g_T g_U

    g_T is 1 for a label of `aspect` (the first unless given) that reaches `rel`, g_U for one of
    `understandability` (all others unless given) that reaches the aspect's threshold, or that of
    `thresholds`; several aspects multiply. On the scale {range: [100, 0]}, from 100 very hard to 0 very easy,
    labels up to 40 count unless another threshold is declared. On others declare it: the worse of the two
    easy labels where four go from hard to easy, and 60 or so where 100 is very easy, as without a threshold
    every label but the worst one counts. The paper has both < 40 and <= 40 (register of readings, row 14): a
    label at the threshold is taken, unless `strict=True`. A document without a label can't be understood.
    Without a cutoff the depth is 10, as nothing is stated (row 13); a run that is shorter is not padded.

    Caveat: uRBP values that CLEF eHealth 2015 published differ from these. Its tool walked runs in the order
    of their lines, not by score, had no cutoff, and looked understandability up by document alone, with the
    label of whatever topic came first: a flaw of the tool that is not imitated here.

    Example: relevance 0..1, understandability 100..0 from 40; a=(1,20) b=(1,60) c=(0,40) d=(1,80) e=(0,-);
    run a b c d e: uRBP 0.2 = 0.2 * 1, uRBP(strict=True,thresholds={understandability:20}) 0 = 0,
    uRBP(thresholds={understandability:60}) 0.36 = 0.2 * (1 + 0.8).
    """
    worth = _worth_of_urbp(
        view,
        understandability=understandability,
        rel=rel,
        thresholds=thresholds,
        strict=strict,
        aspect=aspect,
    )
    return _rbp(view.hits.within(cutoff), float(p), worth)


def _worth_of_graded_urbp(
    view: AspectView,
    *,
    understandability: Sequence[str] | None,
    rel: int | None,
    gains: ArgumentPairs | None,
    aspect: str | None,
    **_: Any,
) -> Floats:
    _check(understandability, gains)
    return _topical(view, aspect, rel) * _likely(view, understandability, gains)


@measure(source=SOURCE, combines=True, by_scale=True, rises=True, worth=_worth_of_graded_urbp)
def uRBPgr(
    view: AspectView,
    *,
    p: Persistence = RHO,
    cutoff: Cutoff = DEPTH,
    understandability: AspectOrAspects | None = None,
    rel: Rel | None = None,
    gains: Probabilities | None = None,
    aspect: AspectName | None = None,
) -> Floats:
    """Graded understandability-biased RBP: a relevant document counts as far as it can be understood.

        uRBPgr@k = (1 - p) * sum over ranks i <= k of p^(i - 1) g_T g_U

    g_T and the default depth of 10 are those of uRBP. g_U estimates how likely the document is understood, on
    which the paper says no more: the number that `gains` has for its label, else the gain of the aspect,
    divided by its greatest one where that is above 1. On a scale from 100 (very hard) to 0 this is 1 -
    label/100. Several aspects multiply. A document without a label has 0. CLEF eHealth 2015 took 0, 0.4, 0.8
    and 1 for its four labels.

    Caveat: see uRBP on the values that CLEF eHealth 2015 published.

    Example: relevance 0..1, understandability 100..0 from 40; a=(1,20) b=(1,60) c=(0,40) d=(1,80) e=(0,-);
    run a b c d e: uRBPgr 0.24448 = 0.2 * (0.8 + 0.8 * 0.4 + 0.8^3 * 0.2).
    """
    worth = _worth_of_graded_urbp(
        view, understandability=understandability, rel=rel, gains=gains, aspect=aspect
    )
    return _rbp(view.hits.within(cutoff), float(p), worth)


def _worth_of_understandability(
    view: AspectView,
    *,
    understandability: Sequence[str] | None,
    thresholds: ArgumentPairs | None,
    strict: bool,
    graded: bool,
    gains: ArgumentPairs | None,
    **_: Any,
) -> Floats:
    _check(understandability, thresholds, gains)
    if graded:
        if thresholds or strict:
            raise MeasureError("thresholds and strict are for binary understandability, not for graded=True")
        return _likely(view, understandability, gains)
    if gains:
        raise MeasureError("gains are for graded=True")
    return _understood(view, understandability, thresholds, strict=strict)


@measure(
    source=SOURCE,
    combines=True,
    by_scale=lambda given: given["graded"],
    rises=True,
    worth=_worth_of_understandability,
)
def RBP_u(
    view: AspectView,
    *,
    p: Persistence = RHO,
    cutoff: Cutoff = DEPTH,
    understandability: AspectOrAspects | None = None,
    thresholds: Thresholds | None = None,
    strict: OneFlag = False,
    graded: OneFlag = False,
    gains: Probabilities | None = None,
) -> Floats:
    """RBP of understandability alone: a document counts if it can be understood, relevant or not.

        RBP_u@k = (1 - p) * sum over ranks i <= k of p^(i - 1) g_U

    g_U is that of uRBP, with `thresholds` and `strict`, or that of uRBPgr where `graded=True`, which is what
    `gains` needs. `understandability` is every aspect but the first unless given. The default depth is 10.

    Example: relevance 0..1, understandability 100..0 from 40; a=(1,20) b=(1,60) c=(0,40) d=(1,80) e=(0,-);
    run a b c d e: RBP_u 0.328 = 0.2 * (1 + 0.8^2), RBP_u(strict=True) 0.2 = 0.2 * 1, RBP_u(graded=True)
    0.32128 = 0.2 * (0.8 + 0.8 * 0.4 + 0.8^2 * 0.6 + 0.8^3 * 0.2).
    """
    worth = _worth_of_understandability(
        view,
        understandability=understandability,
        thresholds=thresholds,
        strict=strict,
        graded=graded,
        gains=gains,
    )
    return _rbp(view.hits.within(cutoff), float(p), worth)


@measure(
    source="Palotti et al., CIKM 2018, eq. 1 and 2",
    combines=True,
    by_scale=lambda given: given["graded"] is not None,
    rises=True,
    combination="harmonic mean",
)
def H(
    view: AspectView,
    *,
    of: InnerByAspect = f"RBP@{DEPTH}",
    graded: AspectNames | None = None,
    aspects: AspectNames | None = None,
    weights: AspectBalance | None = None,
) -> Floats:
    """Multidimensional evaluation: the weighted harmonic mean of the scores of `of` under each aspect.

        H = (sum of w_a) / (sum of w_a / M_a), 0 if an M_a of positive weight is 0

    w_a = 1 unless `weights` says otherwise. With two equal weights it is 2ab / (a + b); MM is the same with
    weights that sum to 1. `of` may name a measure per aspect; each takes the threshold of its aspect (see
    uRBP on scales of understandability). Where RBP is the measure, `graded` names aspects whose labels credit
    how likely they are understood, as uRBPgr does, instead of 0 or 1. The default is RBP with p = 0.8 down to
    rank 10, which the paper does not state and its tables fit (register of readings, row 13).

    Caveat: relevant documents and understandable ones may be different documents: `uRBP` asks for both in
    one.

    Example: relevance 0..1, understandability 100..0 from 40; a=(1,20) b=(1,60) c=(0,40) d=(1,80) e=(0,-);
    run a b c d e: H 0.383773 = 2 * 0.4624 * 0.328 / (0.4624 + 0.328),
    H(weights={relevance:2,understandability:1}) 0.406833 = 3 / (2/0.4624 + 1/0.328),
    H(graded=[understandability]) 0.379134 = 2 / (1/0.4624 + 1/0.32128).
    """
    parts = [(aspect, share) for aspect, share in weighted(view, aspects, weights, 1.0) if share > 0]
    if unused := [name for name in graded or () if name not in (aspects or ())]:
        raise MeasureError(f"{unused[0]!r} is graded, but is not among its aspects")
    scores = np.stack([component(view, of, name, graded=name in (graded or ())) for name, _ in parts])
    return within(of, harmonic(scores, [share for _, share in parts]))


def component(view: AspectView, of: InnerByAspect, aspect: str, *, graded: bool) -> Floats:
    """The score of one aspect in H."""
    measure = inner(of, aspect)
    if not graded:
        return view.score(measure, aspect)
    if measure.declaration.name != "RBP":
        raise MeasureError(f"graded is for RBP; {measure} has gains of its own, or none")
    arguments = measure.arguments
    pool = view.pool(aspect)
    rows = view.rows_in(pool)
    hits = (rows.condensed if arguments["judged_only"] else rows).hits.within(arguments["cutoff"])
    return _rbp(hits, float(arguments["p"]), pool.gains(probabilities(pool.aspect, None)))


def _topical(view: AspectView, aspect: str | None, rel: int | None) -> Floats:
    """float64[D]: 1 for a relevant document, else 0."""
    return view.pool(aspect or view.qrels.aspects[0].name).relevant(rel).astype(np.float64)


def _check(understandability: Sequence[str] | None, *tables: ArgumentPairs | None) -> None:
    """MeasureError where a table is for an aspect that is not one of understandability."""
    for name in (name for table in tables for name, _ in table or ()):
        if name not in (understandability or ()):
            raise MeasureError(f"{name!r} is not among its aspects of understandability")


def _understood(
    view: AspectView, aspects: Sequence[str] | None, thresholds: ArgumentPairs | None, *, strict: bool
) -> Floats:
    """float64[D]: 1 for a document that can be understood in all of `aspects`, else 0."""
    given, understood = dict(thresholds or ()), np.ones(view.qrels.labels.shape[1], dtype=bool)
    for name in aspects or ():
        understood = understood & _reaching(view.pool(name), given.get(name), strict=strict)
    return understood.astype(np.float64)


def _reaching(pool: Pool, label: int | None, *, strict: bool) -> Mask:
    """bool[D]. MeasureError where `label` is not on the scale, as no document could be told by it."""
    labels = pool.aspect.labels if pool.aspect.integer else range(len(pool.aspect.labels))
    if label is not None and label not in labels:
        ends = f"from {labels[0]} to {labels[-1]}"
        raise MeasureError(f"the threshold {label} is no label of {pool.aspect.name!r}, which go {ends}")
    if not strict:
        return pool.relevant(label)
    if label is None:
        return np.asarray(pool.labels > pool.aspect.threshold)
    better = 1 if not pool.aspect.integer or pool.aspect.ascending else -1
    return pool.relevant(label + better)


def _likely(view: AspectView, aspects: Sequence[str] | None, gains: ArgumentPairs | None) -> Floats:
    """float64[D]: the product over `aspects` of how likely each document is understood."""
    given, likely = dict(gains or ()), np.ones(view.qrels.labels.shape[1])
    for name in aspects or ():
        pool = view.pool(name)
        likely = likely * pool.gains(probabilities(pool.aspect, given.get(name)))
    return likely


def probabilities(aspect: Aspect, given: ArgumentPairs | None) -> Floats:
    """float64[labels]: how likely a document of each label is understood.

    What `given` says by label, else the aspect's gain, divided by its greatest one if that is above 1.
    """
    table = aspect.gains / max(1.0, float(aspect.gains.max()))
    labels = list(aspect.labels) if aspect.integer else list(range(len(table)))
    for label, number in given or ():
        if label in labels:
            table[labels.index(label)] = float(number)
    return table


def _rbp(hits: Hits, p: float, gain: Floats) -> Floats:
    """float64[rows]: (1 - p) * sum of gain * p^(rank - 1). gain: float64[D], of each pooled document."""
    return (1.0 - p) * hits.sum(gain[hits.document] * discounts.power(p, hits.rank))
