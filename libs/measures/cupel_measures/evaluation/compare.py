"""Comparisons of scored runs: differences, intervals and significance tests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.closeness.margins import MarginTest
from cupel_measures.comparing.compared_measures import ComparedMeasure, compared_measure
from cupel_measures.comparing.comparison import compare as compare_scores
from cupel_measures.comparing.differences.comparison_choices import Choices
from cupel_measures.evaluation.comparison_result import ComparisonResult
from cupel_measures.evaluation.evaluation_report import EvaluationReport
from cupel_measures.evaluation.margin_comparison import MarginChoices, compare_margins
from cupel_measures.evaluation.run_scoring import ScoringTask, score

Margin = float | Mapping[str, float]
"""The largest difference that does not matter, or one by measure."""


@dataclass(frozen=True, kw_only=True)
class ComparisonPlan:
    """The measures of a comparison.

    task: the task that scores all measures that its report needs.
    """

    requests: tuple[ComparedMeasure, ...]
    task: ScoringTask

    @classmethod
    def of(cls, task: ScoringTask) -> "ComparisonPlan":
        """Return the plan of a comparison by the measures of `task`."""
        requests = tuple(compared_measure(measure, task.qrels) for measure in task.parsed)
        required = (text for request in requests for text in request.required)
        measures = tuple(dict.fromkeys([*task.measures, *required]))
        return cls(requests=requests, task=replace(task, measures=measures))


def compare(
    scores: EvaluationReport,
    *,
    baseline: str | None = None,
    all_pairs: bool = False,
    test: str | None = None,
    correction: str | None = None,
    permutations: int | None = None,
    alpha: float = 0.05,
    confidence: float | None = None,
    interval: Literal["t", "bca"] = "t",
    margin: Margin | None = None,
    margin_test: MarginTest = "t",
    bayes: bool = False,
    seed: int = 0,
) -> ComparisonResult:
    """Compare the runs of an evaluation by its measures.

    baseline: the run with which each other run is compared (default: the first). all_pairs: compare all
    pairs of runs instead. The other parameters are the options of `cupel compare`: test (default: max-t for
    all pairs, otherwise randomisation), correction of p-values over pairs and measures (default: holm),
    number of permutations, significance level, confidence level and method of the intervals. margin: the
    largest difference that does not matter, for all measures or by measure; each pair then gets a verdict by
    one-sided tests (`margin_test`), and posterior probabilities with `bayes`. The same seed gives the same
    result.

    Raise KeyError if the baseline is not among the runs, and ValueError for fewer than two runs or choices
    that contradict each other.
    """
    names = list(scores)
    if len(names) < 2:
        raise ValueError(f"a comparison needs at least two runs, got {len(names)}")
    if baseline is not None and baseline not in names:
        raise KeyError(f"the baseline {baseline!r} is not one of the runs: {', '.join(names)}")
    choices = Choices(
        test=test,
        correction=correction,
        permutations=permutations,
        alpha=alpha,
        confidence=confidence,
        interval=interval,
        all_pairs=all_pairs,
        seed=seed,
    )
    plan = ComparisonPlan.of(scores.job)
    ordered = [*([] if baseline is None else [baseline]), *(name for name in names if name != baseline)]
    runs = {name: score(scores.sources[name], plan.task) for name in ordered}
    margins = MarginChoices(margins=_margins(margin), test=margin_test, bayes=bayes)
    _check_margins(margins, plan, alpha)
    return compare_scored(replace(scores, runs=runs), plan, choices, margins)


def _margins(margin: Margin | None) -> tuple[tuple[str | None, float], ...]:
    if margin is None:
        return ()
    if isinstance(margin, Mapping):
        return tuple((str(parse(text)), value) for text, value in margin.items())
    return ((None, margin),)


def _check_margins(choices: MarginChoices, plan: ComparisonPlan, alpha: float) -> None:
    """Raise ValueError if a margin is not positive or contradicts the measures."""
    texts = [request.text for request in plan.requests]
    for text, margin in choices.margins:
        if text is not None and text not in texts:
            raise ValueError(
                f"the margin is for {text}, which is not compared; the measures are {', '.join(texts)}"
            )
        if not 0 < margin < np.inf:
            raise ValueError(f"a margin is a positive number, got {margin}")
    if choices.margins and alpha >= 0.5:
        raise ValueError(f"a margin requires an alpha below 0.5, got {alpha:g}")


def compare_scored(
    report: EvaluationReport,
    plan: ComparisonPlan,
    choices: Choices,
    margins: MarginChoices,
    *,
    progress: Callable[[str], object] = str,
) -> ComparisonResult:
    """Compare scored runs; the first one is the baseline.

    report: runs scored by the task of the plan.

    progress: called with the text of each measure before it is compared.
    """
    scores = {
        text: np.column_stack([(run.values or ())[place] for run in report.scored.values()])
        for place, text in enumerate(plan.task.measures)
    }
    compared = compare_scores(
        list(report.scored), report.topics, scores, plan.requests, choices, progress=progress
    )
    outcomes = compare_margins(
        margins, plan.requests, scores, compared.pairs, alpha=choices.alpha, seed=choices.seed
    )
    return ComparisonResult(scored=report, compared=compared, margins=outcomes)
