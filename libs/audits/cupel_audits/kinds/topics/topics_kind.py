"""Audit kind `topics`: how far the order of runs depends on the choice of topics.

The audit considers which topics are used, and how many.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Annotated, Any

import numpy as np

from cupel_audits.analysis.lmd_selection import select_topics
from cupel_audits.analysis.score_matrices import OverTopics, RunScores, collect_warnings, score_runs
from cupel_audits.declarations import audit, setting, whole_number
from cupel_audits.kinds.topics.topics_report import report
from cupel_audits.kinds.topics.topics_tables import (
    MeasureTopics,
    SwapDraw,
    TopicsResult,
    TopicStatistics,
)
from cupel_audits.report import AuditReport
from cupel_audits.subject import DECIMALS, AuditSubject, SubjectSummary
from cupel_measures.comparing.outcomes import mean
from cupel_measures.comparing.rank_correlation import tau_b
from cupel_measures.comparing.swap_rates import count_swaps
from cupel_measures.comparing.topic_set_sizes import pooled_variance, smallest_difference, topics_needed
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.parameters import Number, Numbers, Whole
from cupel_measures.model import Floats, Ints

Probability = Annotated[float, Number("a number between 0 and 1, both excluded", 0, 1, (0, 1))]
Repeats = Annotated[int, whole_number()]
Difference = Annotated[float, Number("a difference above 0", 0, without=(0,))]
Sizes = Annotated[tuple[int, ...], Numbers("increasing whole numbers from 1, such as [5,10,25]", Whole())]

BINS = 21
"""Number of bins of differences; the last bin contains all larger differences."""
UNIT_WIDTH = 0.01
"""Width of a bin for measures from 0 to about 1; for others it is a twentieth of the range of means."""
STEPS = 12
"""Number of sizes of topic sets, if no sizes are given."""


@audit(
    "topics",
    title="Topics: how many, and which",
    answers="Which differences between runs are estimated to persist on other topics, how many topics are "
    "needed, and which ones?",
    source="Voorhees, Buckley, SIGIR 2002; Guiver, Mizzaro, Robertson, TOIS 2009; Sakai, IRJ 2016",
)
class Topics(OverTopics):
    """Compares random topic sets, selects representative topics, describes each topic.

    The random topic sets are disjoint.

    Swaps: draws two disjoint sets of n topics. Pairs of runs are grouped into bins by their difference of
    means on the first set. A pair is swapped if the second set orders it the other way. The swap rate is
    computed for each n and bin over all draws. For each bin, the curve a exp(-b n) is fitted to the rates by
    least squares, weighted by the numbers of pairs, and extrapolated to all topics.

    Subsets: each step of a greedy selection adds the topic that maximises tau-b between means over the
    selected topics and over all topics (ties: the smallest id). The selection is compared with random
    subsets.

    Each topic: mean and median score over runs, number of runs that score 0, standard deviation of the runs,
    and tau-b between the order on the topic and that on all topics.

    Sizes: the smallest true difference that a paired t-test detects on these topics with power 0.8, and the
    number of topics needed to detect a given true difference. Both depend on the variance of the difference
    between two runs, which is pooled over all pairs.
    """

    draws: Repeats = setting(50, "number of draws of two topic sets for each size")
    sizes: Sizes | None = setting(
        None, "numbers of topics in a drawn set (default: about 12 sizes up to half of all topics)"
    )
    error: Probability = setting(0.05, "acceptable swap rate")
    subset: Repeats = setting(20, "largest number of topics to select")
    difference: Difference = setting(0.05, "true difference of means that the t-test is to detect")
    alpha: Probability = setting(0.05, "significance level of the t-test")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        half = len(subject.about.topics) // 2
        if self.sizes and half and max(self.sizes) > half:
            yield (
                f"sizes: two disjoint sets of {max(self.sizes)} topics need {2 * max(self.sizes)} topics; "
                f"give sizes of at most {half}"
            )

    def trials(self, subject: AuditSubject) -> int:
        return self.draws + len(subject.measures)

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[TopicsResult]:
        scores = [score_runs(subject, measure) for measure in subject.measures]
        for trial in trials:
            if trial < self.draws:
                yield {"draw": self._draw(subject, scores, self.generator(seed, trial))}
            else:
                place = trial - self.draws
                yield {"measure": self._describe(subject, scores[place], subject.measures[place])}

    def _draw(
        self, subject: AuditSubject, scores: Sequence[RunScores], rng: np.random.Generator
    ) -> dict[str, list[SwapDraw]]:
        """Draw two disjoint topic sets of each size, and count the swapped pairs.

        The pairs are counted by each measure.
        """
        topics = len(subject.about.topics)
        draws: dict[str, list[SwapDraw]] = {run_scores.measure: [] for run_scores in scores}
        widths = [
            _bin_width(run_scores, measure)
            for run_scores, measure in zip(scores, subject.measures, strict=True)
        ]
        for size in self.sizes or _default_sizes(topics):
            order = rng.permutation(topics)
            first, second = np.sort(order[:size]), np.sort(order[size : 2 * size])
            for run_scores, width in zip(scores, widths, strict=True):
                if run_scores.undefined is None:
                    draws[run_scores.measure].append(_compare_sets(run_scores.values, first, second, width))
        return draws

    def _describe(self, subject: AuditSubject, scores: RunScores, measure: Measure) -> MeasureTopics:
        """Select topics, describe each topic, and compute topic set sizes for one measure."""
        result = MeasureTopics(
            measure=scores.measure,
            undefined=scores.undefined,
            notes=[*scores.notes],
        )
        if scores.undefined is not None:
            return result
        selection = select_topics(subject.about.topics, scores.values, scores.values, self.subset)
        topic_scores = zip(scores.values.tolist(), scores.orders, strict=True)
        variance = pooled_variance(scores.values) or 0.0
        result.update(
            {
                "chosen": list(zip(selection.topics, selection.taus, strict=True)),
                "topics": [_describe_topic(values, order, scores.means) for values, order in topic_scores],
                "variance": variance,
                "detectable": None,
                "usual": _has_unit_range(measure),
                "needed": None,
            }
        )
        if variance:
            result["detectable"] = smallest_difference(variance, len(scores.values), alpha=self.alpha)
            if result["usual"]:
                result["needed"] = topics_needed(self.difference, variance, alpha=self.alpha)
        return result

    def report(self, about: SubjectSummary, by_trial: Mapping[int, TopicsResult]) -> AuditReport:
        measures = [result["measure"] for result in by_trial.values() if "measure" in result]
        draws = [result["draw"] for result in by_trial.values() if "draw" in result]
        return report(
            about,
            draws,
            measures,
            error=self.error,
            difference=self.difference,
            alpha=self.alpha,
            warnings=collect_warnings(measures),
        )


def _default_sizes(topics: int) -> list[int]:
    """Return about STEPS sizes up to half of the topics."""
    half = topics // 2
    steps = min(STEPS, half)
    return sorted({max(1, round(half * step / steps)) for step in range(1, steps + 1)})


def _bin_width(scores: RunScores, measure: Measure) -> float:
    if _has_unit_range(measure) or scores.undefined is not None:
        return UNIT_WIDTH
    return float(np.ptp(mean(scores.values))) / (BINS - 1) or UNIT_WIDTH


def _has_unit_range(measure: Measure) -> bool:
    """Return whether the measure is a mean with bounds from -1 to 2.

    Such scores are treated as if they ranged from about 0 to 1. The upper limit is 2, because scores can
    exceed 1 if the ideal ranking is built greedily.
    """
    low, high = measure.bounds
    return low >= -1 and high <= 2 and measure.declaration.aggregate == "mean"


def _compare_sets(values: Floats, first: Ints, second: Ints, width: float) -> SwapDraw:
    first_means, second_means = mean(values[first]), mean(values[second])
    counts = count_swaps(first_means, second_means, width, BINS)
    all_means = np.round(mean(values), DECIMALS)
    return SwapDraw(
        size=len(first),
        width=width,
        compared=counts.compared.tolist(),
        swapped=counts.swapped.tolist(),
        tau=tau_b(np.round(first_means, DECIMALS), all_means).value,
    )


def _describe_topic(values: Sequence[float], order: Sequence[Any], means: Sequence[Any]) -> TopicStatistics:
    """Describe the scores of the runs on one topic.

    `order` may contain exact numbers. `means` are the means over all topics.
    """
    column = np.array(values)[:, None]
    average = float(mean(column)[0])
    return TopicStatistics(
        mean=average,
        median=median(values),
        least=min(values),
        greatest=max(values),
        zero=sum(value == 0 for value in order),
        spread=float(mean((column - average) ** 2)[0]) ** 0.5,
        tau=tau_b(order, means).value,
    )
