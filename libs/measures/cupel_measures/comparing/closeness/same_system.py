"""Comparison of an original run with its reproduction on the same topics.

The statistics are those of Breuer, Ferro, Fuhr, Maistro, Sakai, Schaer and Soboroff, "How to Measure the
Reproducibility of System-oriented IR Experiments", SIGIR 2020, from the most to the least specific: document
lists (`document_lists`), scores by topic (root mean square error), the mean score (paired t-test), and the
improvement over a baseline (effect ratio, DeltaRI).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cupel_measures.comparing.closeness.document_lists import DocumentList, ListAgreement, compare_lists
from cupel_measures.comparing.outcomes import Outcome, paired, undefined_reason
from cupel_measures.comparing.paired_tests import Vector, t_test
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.model import Floats


@dataclass(frozen=True, kw_only=True)
class ListAgreements:
    """The agreement of the document lists on each topic, and means over the topics.

    Each mean is over the topics where the value is defined. p: the persistence of rank-biased overlap.
    shared: mean of shared / union.
    """

    topics: tuple[ListAgreement, ...]
    p: float
    tau: float | None
    tau_union: float | None
    rbo: float | None
    shared: float | None


@dataclass(frozen=True, kw_only=True)
class Improvements:
    """The improvements of the original and of the reproduction over their baselines.

    original, reproduced: mean improvements. original_ri, reproduced_ri: relative improvements. effect_ratio,
    delta_ri: see the function `improvements`. A value is None if it requires a division by 0.
    """

    original: float
    reproduced: float
    effect_ratio: float | None
    original_ri: float | None
    reproduced_ri: float | None
    delta_ri: float | None


@dataclass(frozen=True, kw_only=True)
class SameSystemScores:
    """The scores of both runs by one measure.

    rmse: root mean square error, in the unit of the measure. test: paired t-test of reproduction - original,
    with its interval. improvements: None without baselines. undefined: why the means and rmse are None.
    """

    original_mean: float | None
    reproduced_mean: float | None
    rmse: float | None
    test: Outcome
    improvements: Improvements | None
    undefined: str | None = None


def compare_document_lists(
    original: Sequence[DocumentList], reproduced: Sequence[DocumentList], *, p: float = 0.9
) -> ListAgreements:
    """Compare the document lists of two runs.

    Both runs have the same topics in the same order.
    """
    topics = tuple(compare_lists(*pair, p=p) for pair in zip(original, reproduced, strict=True))
    return ListAgreements(
        topics=topics,
        p=p,
        tau=_mean_of_defined([topic.tau for topic in topics]),
        tau_union=_mean_of_defined([topic.tau_union for topic in topics]),
        rbo=_mean_of_defined([topic.rbo for topic in topics]),
        shared=_mean_of_defined([topic.shared / topic.union if topic.union else None for topic in topics]),
    )


def compare_scores_of_same_system(
    original: Vector,
    reproduced: Vector,
    baselines: tuple[Vector, Vector] | None = None,
    *,
    confidence: float = 0.95,
    scale: ScaleType = "interval",
) -> SameSystemScores:
    """Compare the scores of an original run and its reproduction on the same topics.

    baselines: the scores of the original baseline and of the reproduced baseline.
    """
    x, y = paired(reproduced, original)
    test = t_test(x, y, confidence=confidence, scale=scale)
    if (reason := undefined_reason(x, y)) is not None:
        return SameSystemScores(
            original_mean=None,
            reproduced_mean=None,
            rmse=None,
            test=test,
            improvements=None,
            undefined=reason,
        )
    return SameSystemScores(
        original_mean=_mean(y),
        reproduced_mean=_mean(x),
        rmse=root_mean_square_error(x, y),
        test=test,
        improvements=None if baselines is None else improvements((y, baselines[0]), (x, baselines[1])),
    )


def root_mean_square_error(first: Vector, second: Vector) -> float:
    """Return the root mean square of the differences of the scores over topics.

    It is sqrt(mean over topics of (first - second)^2) (Breuer et al. 2020, section 3).
    """
    x, y = paired(first, second)
    return math.sqrt(_mean((x - y) ** 2))


def improvements(original: tuple[Vector, Vector], reproduced: tuple[Vector, Vector]) -> Improvements | None:
    """Compare the improvements of two advanced runs over their baselines.

    The comparison follows Breuer et al. 2020, section 3.

    original, reproduced: (scores of the advanced run, scores of its baseline). The original and the
    reproduction may have different topics. Effect ratio: mean improvement of the reproduction divided by the
    mean improvement of the original. It is 1 if both are equal, and negative if the effect is reversed.
    Relative improvement: mean improvement divided by the mean score of the baseline. DeltaRI: relative
    improvement of the original minus that of the reproduction. Returns None if a score is undefined.
    """
    (a, b), (c, d) = paired(*original), paired(*reproduced)
    if undefined_reason(a, b, c, d) is not None:
        return None
    before, after = _mean(a - b), _mean(c - d)
    first, second = _relative(before, _mean(b)), _relative(after, _mean(d))
    return Improvements(
        original=before,
        reproduced=after,
        effect_ratio=_relative(after, before),
        original_ri=first,
        reproduced_ri=second,
        delta_ri=None if first is None or second is None else first - second,
    )


def _relative(value: float, divisor: float) -> float | None:
    return value / divisor if divisor else None


def _mean(values: Floats) -> float:
    return math.fsum(values.tolist()) / len(values)


def _mean_of_defined(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined else None
