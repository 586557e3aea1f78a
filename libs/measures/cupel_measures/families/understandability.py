"""Understandability-biased measures: RBP with products of gains, and H, a mean."""

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
        "the worst label that counts as understandable, by aspect, such as {understandability:40}",
        value=Label,
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
"""Default persistence and depth. The paper states none; these fit its tables (READINGS.md, reading 13).
"""


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
    """Understandability-biased RBP: documents both relevant and understandable count.

        uRBP@k = (1 - p) * sum over ranks i <= k of p^(i - 1) g_T g_U

    g_T is 1 for a label of `aspect` (default: the first) that reaches `rel`, else 0. g_U is 1 for a label of
    `understandability` (default: all other aspects) that reaches the threshold, else 0. The threshold is that
    in `thresholds` or, by default, that of the aspect. For several aspects, g_U is the product of their
    values. A document without a label is not understandable.

    On the scale {range: [100, 0]}, from 100 (very hard) to 0 (very easy), labels up to 40 count unless
    another threshold is declared. On other scales, declare the threshold. For four labels from hard to easy,
    declare the worse of the two easy labels. On a scale from 0 to 100 (very easy), declare about 60. Without
    a declaration, every label but the worst counts. The paper has both < 40 and <= 40; a label at the
    threshold counts unless `strict=True` (READINGS.md, reading 14).

    The default depth is 10, because the paper states none (READINGS.md, reading 13). A shorter run is not
    padded.

    Caveat: the uRBP values published by CLEF eHealth 2015 differ from these. The tool used there reads a run
    in the order of its lines, not by score, and has no cutoff. It looks up understandability by document only
    and takes the label from the first topic in the file. Cupel does not imitate this.

    Example: relevance: 0..1, understandability: 100..0 (threshold 40); a=(1,20) b=(1,60) c=(0,40) d=(1,80)
    e=(0,-); run a b c d e: uRBP 0.2 = 0.2 * 1, uRBP(strict=True,thresholds={understandability:20}) 0 = 0,
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
    """Graded uRBP: a relevant document counts by how understandable it is.

        uRBPgr@k = (1 - p) * sum over ranks i <= k of p^(i - 1) g_T g_U

    g_T and the default depth of 10 are those of uRBP. g_U estimates the probability that the document is
    understood; the paper does not say how. It is the number for the label in `gains`. For other labels it is
    the gain of the label, divided by the greatest gain of the aspect if this gain exceeds 1. On a scale from
    100 (very hard) to 0 it is by default 1 - label/100. For several aspects, g_U is the product of their
    values. A document without a label has 0. CLEF eHealth 2015 used 0, 0.4, 0.8 and 1 for its four labels.

    Caveat: the values published by CLEF eHealth 2015 differ; see uRBP.

    Example: relevance: 0..1, understandability: 100..0 (threshold 40); a=(1,20) b=(1,60) c=(0,40) d=(1,80)
    e=(0,-); run a b c d e: uRBPgr 0.24448 = 0.2 * (0.8 + 0.8 * 0.4 + 0.8^3 * 0.2).
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
            raise MeasureError(
                "thresholds and strict apply to binary understandability; omit them, or omit graded=True"
            )
        return _likely(view, understandability, gains)
    if gains:
        raise MeasureError("gains requires graded=True")
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
    """RBP of understandability alone: understandable documents count, relevant or not.

        RBP_u@k = (1 - p) * sum over ranks i <= k of p^(i - 1) g_U

    g_U is defined in uRBP, with `thresholds` and `strict`. With `graded=True` it is defined in uRBPgr, with
    `gains`. `understandability` is by default all aspects but the first. The default depth is 10.

    Example: relevance: 0..1, understandability: 100..0 (threshold 40); a=(1,20) b=(1,60) c=(0,40) d=(1,80)
    e=(0,-); run a b c d e: RBP_u 0.328 = 0.2 * (1 + 0.8^2), RBP_u(strict=True) 0.2 = 0.2 * 1,
    RBP_u(graded=True) 0.32128 = 0.2 * (0.8 + 0.8 * 0.4 + 0.8^2 * 0.6 + 0.8^3 * 0.2).
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
    """Multidimensional evaluation: the weighted harmonic mean of scores by aspect.

        H = (sum of w_a) / (sum of w_a / M_a), 0 if an M_a of positive weight is 0

    M_a is the score of `of` under aspect a, and w_a is its weight: 1 unless `weights` sets another. With two
    equal weights H = 2ab / (a + b). MM is the same mean with weights that sum to 1. `of` can name a measure
    per aspect; each uses the threshold of its aspect (see uRBP on scales of understandability). If the
    measure is RBP, `graded` names aspects whose labels count as probabilities of understanding, as in uRBPgr,
    instead of 0 or 1. The default of `of` is RBP with p = 0.8 down to rank 10; the paper does not state these
    values, but they fit its tables (READINGS.md, reading 13).

    Caveat: the relevant and the understandable documents can be different documents. `uRBP` requires both of
    the same document.

    Example: relevance: 0..1, understandability: 100..0 (threshold 40); a=(1,20) b=(1,60) c=(0,40) d=(1,80)
    e=(0,-); run a b c d e: H 0.383773 = 2 * 0.4624 * 0.328 / (0.4624 + 0.328),
    H(weights={relevance:2,understandability:1}) 0.406833 = 3 / (2/0.4624 + 1/0.328),
    H(graded=[understandability]) 0.379134 = 2 / (1/0.4624 + 1/0.32128).
    """
    parts = [(aspect, share) for aspect, share in weighted(view, aspects, weights, 1.0) if share > 0]
    if unused := [name for name in graded or () if name not in (aspects or ())]:
        raise MeasureError(
            f"the parameter `graded` names {unused[0]!r}, which is not an aspect of the measure"
        )
    scores = np.stack([component(view, of, name, graded=name in (graded or ())) for name, _ in parts])
    return within(of, harmonic(scores, [share for _, share in parts]))


def component(view: AspectView, of: InnerByAspect, aspect: str, *, graded: bool) -> Floats:
    """Return the score of one aspect in H."""
    measure = inner(of, aspect)
    if not graded:
        return view.score(measure, aspect)
    if measure.declaration.name != "RBP":
        raise MeasureError(f"graded requires of=RBP, got {measure}")
    arguments = measure.arguments
    pool = view.pool(aspect)
    rows = view.rows_in(pool)
    hits = (rows.condensed if arguments["judged_only"] else rows).hits.within(arguments["cutoff"])
    return _rbp(hits, float(arguments["p"]), pool.gains(probabilities(pool.aspect, None)))


def _topical(view: AspectView, aspect: str | None, rel: int | None) -> Floats:
    """Return float64[D]: 1 for a relevant document, else 0."""
    return view.pool(aspect or view.qrels.aspects[0].name).relevant(rel).astype(np.float64)


def _check(understandability: Sequence[str] | None, *tables: ArgumentPairs | None) -> None:
    """Raise MeasureError if a table has an aspect that is not in `understandability`."""
    for name in (name for table in tables for name, _ in table or ()):
        if name not in (understandability or ()):
            raise MeasureError(f"{name!r} is not one of the understandability aspects of the measure")


def _understood(
    view: AspectView, aspects: Sequence[str] | None, thresholds: ArgumentPairs | None, *, strict: bool
) -> Floats:
    """Return 1 for a document that is understandable under all of `aspects`, else 0.

    The result is float64[D].
    """
    given, understood = dict(thresholds or ()), np.ones(view.qrels.labels.shape[1], dtype=bool)
    for name in aspects or ():
        understood = understood & _reaching(view.pool(name), given.get(name), strict=strict)
    return understood.astype(np.float64)


def _reaching(pool: Pool, label: int | None, *, strict: bool) -> Mask:
    """Return which labels of the documents reach the threshold: bool[D].

    Raise MeasureError if `label` is not on the scale.
    """
    labels = pool.aspect.labels if pool.aspect.integer else range(len(pool.aspect.labels))
    if label is not None and label not in labels:
        ends = f"its labels range from {labels[0]} to {labels[-1]}"
        raise MeasureError(f"the threshold {label} is not a label of {pool.aspect.name!r}; {ends}")
    if not strict:
        return pool.relevant(label)
    if label is None:
        return np.asarray(pool.labels > pool.aspect.threshold)
    better = 1 if not pool.aspect.integer or pool.aspect.ascending else -1
    return pool.relevant(label + better)


def _likely(view: AspectView, aspects: Sequence[str] | None, gains: ArgumentPairs | None) -> Floats:
    """Return the probability that each document is understood under all of `aspects`.

    The result is float64[D], the product of the probabilities of the aspects.
    """
    given, likely = dict(gains or ()), np.ones(view.qrels.labels.shape[1])
    for name in aspects or ():
        pool = view.pool(name)
        likely = likely * pool.gains(probabilities(pool.aspect, given.get(name)))
    return likely


def probabilities(aspect: Aspect, given: ArgumentPairs | None) -> Floats:
    """Return the probability that a document of each label is understood.

    The result is float64[labels].

    This is the number for the label in `given`. For other labels it is the gain of the label, divided by the
    greatest gain of the aspect if this gain exceeds 1.
    """
    table = aspect.gains / max(1.0, float(aspect.gains.max()))
    labels = list(aspect.labels) if aspect.integer else list(range(len(table)))
    for label, number in given or ():
        if label in labels:
            table[labels.index(label)] = float(number)
    return table


def _rbp(hits: Hits, p: float, gain: Floats) -> Floats:
    """Return (1 - p) * sum of gain * p^(rank - 1): float64[rows].

    gain: float64[D], per document.
    """
    return (1.0 - p) * hits.sum(gain[hits.document] * discounts.power(p, hits.rank))
