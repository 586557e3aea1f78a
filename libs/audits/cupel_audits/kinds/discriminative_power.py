"""Audit kind `discriminative_power`: pairs of runs that differ significantly.

The audit counts the pairs by each measure.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Annotated, NotRequired, TypedDict

import numpy as np

from cupel_audits.analysis.power_tables import (
    AGREEMENT,
    CURVE,
    DESIGNS,
    MEASURES,
    POWER_LEVELS,
    AgreementRow,
    DesignRow,
    LevelRow,
    PowerLevelRow,
    PowerRow,
    advise,
    describe_test,
    draw_plots,
)
from cupel_audits.analysis.score_matrices import OverTopics, RunScores, collect_warnings, score_runs
from cupel_audits.declarations import audit, setting, whole_number
from cupel_audits.report import AuditReport, name_some
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.comparing.outcomes import mean
from cupel_measures.comparing.resampling import PairTests, discriminative_power
from cupel_measures.comparing.topic_set_sizes import pooled_variance, smallest_difference
from cupel_measures.comparing.topic_sets.detectable_differences import range_of_means, warn_of_undetectable
from cupel_measures.comparing.topic_sets.power_estimates import (
    power_difference,
    required_difference,
    significant_pairs_by_sample,
)
from cupel_measures.grammar.parameters import Number, Numbers, Whole

Probability = Annotated[float, Number("a number between 0 and 1, both excluded", 0, 1, (0, 1))]
Replicates = Annotated[int, whole_number()]
Sizes = Annotated[
    tuple[int, ...], Numbers("rising whole numbers from 2, such as [25,50,100]", Whole(least=2))
]

LEVELS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Additional significance levels at which the power is reported."""
LISTED_PAIRS = 5_000
"""Maximum number of pairs in the ASL curve of a measure; if there are more, evenly spaced ones are listed."""
SCORES_PER_DOCUMENT = 4
"""Number of resampled scores that cost about as much as scoring a document."""

READING = (
    "Bootstrap samples of topics are drawn under the hypothesis that two runs have equal means. The runs "
    "differ significantly if the share of samples with a difference as extreme as the observed one is below "
    "alpha. All pairs and all measures share the same samples, so the powers of measures can be compared.",
    "If the interval of a difference of powers excludes 0, the measure with the higher power is more "
    "consistent over topics, but not necessarily more valid. The count is not corrected for the number of "
    "pairs: if all runs had equal means, a share of about alpha of the pairs would differ significantly by "
    "chance.",
    "With this test, 10,000 replicates and alpha 0.01, Maistro et al. (CIKM 2021, Table 4) report 57% to 86% "
    "on TREC's Web tracks (30 to 71 runs) for CAM and for TOMA with Euclidean and Manhattan distance, of "
    "which Manhattan was most often the best. They report 47% to 81% for MM, and 6% to 77% for Chebyshev "
    "distance, most often the lowest. On tracks of 6 and 9 runs they report values from 0% to 75%.",
    "The interval of a difference of powers covers the sampling error of the topics. It comes from 1,000 "
    "bootstrap samples of the topics, in which all pairs are tested again with a paired t-test at alpha. It "
    "holds for these runs and for two measures chosen beforehand: it is not corrected for the number of "
    "pairs of measures.",
    "The required difference (Sakai, SIGIR 2006) is an estimate: pairs of these runs are expected to differ "
    "significantly if their observed means differ by at least as much. The detectable difference is a true "
    "difference that the paired t-test detects with the given power. The ASL curve sorts the pairs by "
    "achieved significance level (ASL), largest first. The sooner it falls below alpha, the more pairs "
    "differ significantly.",
)


class PowerResult(TypedDict):
    """The result for one measure; JSON-serialisable.

    undefined: the reason why the test could not be run, or None. If it is not None, all fields after it are
    missing. told: number of pairs of runs that differ significantly. smallest: the smallest difference of
    means that is significant. greatest: the largest difference of means that is not significant. detectable:
    the true difference of means that a paired t-test detects. levels: the power in percent at each of LEVELS.
    signs: for each pair, `+` if the first run is significantly better, `-` if the second run is, or `.` if
    the difference is not significant.

    Earlier releases did not store the following fields. required: the required difference. designs: the
    detectable difference for each number of topics. asl: the achieved significance level of each pair.
    by_sample: the number of significant pairs in bootstrap samples of the topics.
    """

    measure: str
    notes: list[str]
    undefined: str | None
    pairs: NotRequired[int]
    told: NotRequired[int]
    percent: NotRequired[float | None]
    smallest: NotRequired[float | None]
    greatest: NotRequired[float | None]
    detectable: NotRequired[float | None]
    levels: NotRequired[list[float]]
    signs: NotRequired[str]
    required: NotRequired[float | None]
    designs: NotRequired[list[tuple[int, float | None]]]
    asl: NotRequired[list[float]]
    by_sample: NotRequired[list[int]]


@audit(
    "discriminative_power",
    title="Discriminative power",
    answers="How many pairs of runs differ significantly by each measure, and by how much at least?",
    source="Sakai, SIGIR 2006; Maistro, Lima, Simonsen, Lioma, CIKM 2021, section 4.3.2",
)
class DiscriminativePower(OverTopics):
    """Tests all pairs of runs by every measure with a bootstrap test.

    The test is a paired bootstrap test over topics.

    For each pair of runs, z = x - y is the difference on each topic, and t(z) = mean / (s / sqrt(n)). B
    bootstrap samples w* are drawn with replacement from z - mean. The achieved significance level (ASL) is
    the share of samples with |t(w*)| >= |t(z)|. The pair differs significantly if ASL < alpha. The
    discriminative power is the share of the S (S - 1) / 2 pairs that differ significantly. All pairs and
    measures share the same samples.

    The required difference is estimated from the same samples w*. For each pair, take the absolute mean of
    the sample with the K-th largest |t(w*)|, where K = alpha B. The largest of these means over all pairs is
    the required difference (Sakai, SIGIR 2006). The detectable difference is the true difference that a
    paired t-test at alpha detects with the given power (Sakai, IRJ 2016). For each pair of measures, the
    report gives the difference of their powers, with an interval over samples of topics.
    """

    replicates: Replicates = setting(10_000, "number of bootstrap samples of the topics")
    alpha: Probability = setting(0.01, "significance level for each pair of runs")
    power: Probability = setting(0.8, "power of the t-test that the detectable differences refer to")
    sizes: Sizes = setting(
        (10, 25, 50, 100, 200), "numbers of topics for which detectable differences are reported"
    )

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if self.replicates * self.alpha < 1:
            least = f"{np.ceil(1 / self.alpha):.15g}"
            yield (f"{self.replicates} replicates are too few for alpha {self.alpha:g}: give {least} or more")

    def trials(self, subject: AuditSubject) -> int:
        return len(subject.measures)

    def steps(self, subject: AuditSubject) -> float:
        runs, topics = len(subject.about.runs), len(subject.about.topics)
        resampled = self.replicates * topics * runs * (runs - 1) / 2
        scored = max(1, int(subject.joined.offsets[-1])) * max(1, len(subject.measures))
        return 1 + resampled / SCORES_PER_DOCUMENT / scored

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[PowerResult]:
        for trial in trials:
            yield self._test(score_runs(subject, subject.measures[trial]), seed)

    def _test(self, scores: RunScores, seed: int) -> PowerResult:
        """Test all pairs of runs by one measure.

        seed: the seed of the audit. It is the same for all measures, so they share the bootstrap samples.
        """
        power = discriminative_power(scores.values, alpha=self.alpha, replicates=self.replicates, seed=seed)
        result = PowerResult(measure=scores.measure, notes=[*scores.notes], undefined=power.undefined)
        if power.undefined is not None:
            return result
        means = mean(scores.values)
        difference = means[power.first] - means[power.second]
        is_significant = power.asl < self.alpha
        signs = np.where(is_significant, np.sign(difference), 0).tolist()
        result.update(
            {
                "pairs": len(is_significant),
                "told": power.n_discriminated,
                "percent": power.percent,
                "smallest": min(np.abs(difference[is_significant]).tolist(), default=None),
                "greatest": max(np.abs(difference[~is_significant]).tolist(), default=None),
                "detectable": self._detectable_difference(scores, len(scores.values)),
                "levels": [_percent_below(power, level) for level in LEVELS],
                "signs": "".join("." if sign == 0 else "+" if sign > 0 else "-" for sign in signs),
                "required": required_difference(
                    scores.values, alpha=self.alpha, replicates=self.replicates, seed=seed
                ),
                "designs": [(size, self._detectable_difference(scores, size)) for size in self.sizes],
                "asl": power.asl.tolist(),
                "by_sample": significant_pairs_by_sample(scores.values, alpha=self.alpha, seed=seed).tolist(),
            }
        )
        return result

    def _detectable_difference(self, scores: RunScores, topics: int) -> float | None:
        variance = pooled_variance(scores.values)
        if not variance:
            return None
        return smallest_difference(variance, topics, alpha=self.alpha, target_power=self.power)

    def report(self, about: SubjectSummary, by_trial: Mapping[int, PowerResult]) -> AuditReport:
        results = list(by_trial.values())
        rows = list(map(_power_row, results))
        defined = [result for result in results if result["undefined"] is None]
        agreement = [_agreement_row(*pair) for pair in combinations(defined, 2)]
        return AuditReport(
            verdict=tuple(_verdict([row for row in rows if row.percent is not None], agreement, self.alpha)),
            numbers=_numbers(rows),
            tables=(
                MEASURES.table(rows),
                POWER_LEVELS.table(_level_rows(defined)),
                AGREEMENT.table(agreement),
                DESIGNS.table(_design_rows(defined)),
                CURVE.table(row for result in defined for row in _curve_rows(about, result)),
            ),
            plots=draw_plots(
                rows,
                list(_level_rows(defined)),
                list(_design_rows(defined)),
                alpha=self.alpha,
                power=self.power,
            ),
            actions=tuple(advise(rows, agreement, alpha=self.alpha, topics=len(about.topics))),
            reading=READING,
            undefined=tuple(_undefined(results)),
            warnings=(
                *collect_warnings(results),
                *(
                    f"{row.measure}: {warning}"
                    for row in rows
                    for warning in warn_of_undetectable(
                        range_of_means(row.measure), row.detectable, self.alpha, power=self.power
                    )
                ),
            ),
        )


def _percent_below(power: PairTests, level: float) -> float:
    return 100.0 * int(np.count_nonzero(power.asl < level)) / len(power.asl)


def _power_row(result: PowerResult) -> PowerRow:
    return PowerRow(
        measure=result["measure"],
        percent=result.get("percent"),
        significant=result.get("told"),
        pairs=result.get("pairs"),
        smallest=result.get("smallest"),
        greatest=result.get("greatest"),
        detectable=result.get("detectable"),
        required=result.get("required"),
    )


def _verdict(rows: Sequence[PowerRow], agreement: Sequence[AgreementRow], alpha: float) -> Iterator[str]:
    """Yield sentences on the measures for which the test is defined."""
    if not rows:
        yield "Discriminative power is undefined for every measure."
        return
    ranked = sorted(rows, key=lambda row: -(row.significant or 0))
    most, fewest = ranked[0], ranked[-1]
    if most.significant != fewest.significant:
        yield (
            f"Of {most.pairs} pairs of runs, {most.significant} ({most.percent:.2f}%) differ significantly "
            f"({describe_test(alpha)}) by {_name_tied(rows, most)}, the highest number, and "
            f"{fewest.significant} ({fewest.percent:.2f}%) by {_name_tied(rows, fewest)}, the lowest."
            f"{_describe_intervals(agreement, _tied(rows, most), _tied(rows, fewest))}"
        )
    for row in ranked:
        yield (
            f"{row.measure}: {row.significant} of {row.pairs} pairs of runs ({row.percent:.2f}%) differ "
            f"significantly by the paired bootstrap test at alpha {alpha:g}, uncorrected"
            f"{_describe_differences(row)}."
        )


def _name_tied(rows: Sequence[PowerRow], row: PowerRow) -> str:
    """Return the measures of the rows with as many significant pairs as `row`."""
    return name_some(_tied(rows, row), "measures")


def _tied(rows: Sequence[PowerRow], row: PowerRow) -> list[str]:
    return [other.measure for other in rows if other.significant == row.significant]


def _describe_intervals(agreement: Sequence[AgreementRow], most: Sequence[str], fewest: Sequence[str]) -> str:
    """Return a sentence on the difference of the highest and the lowest power.

    If measures are tied, no pair of them is singled out.
    """
    if len(most) == len(fewest) == 1:
        return _describe_interval(agreement, most[0], fewest[0])
    return f" Intervals of the differences are in the table `{AGREEMENT.name}`."


def _describe_interval(agreement: Sequence[AgreementRow], most: str, fewest: str) -> str:
    """Return a sentence on the interval of a difference of power.

    The difference is that between two measures.
    """
    [row] = [row for row in agreement if {row.first, row.second} == {most, fewest}]
    if row.low is None or row.high is None:
        return ""
    low, high = (row.low, row.high) if row.first == most else (-row.high, -row.low)
    chosen = " It holds only for measures chosen beforehand." if len(agreement) > 1 else ""
    zero = ", and includes 0" if low <= 0 <= high else ""
    return (
        f" The difference of {most} and {fewest} is {abs(row.difference):.2f} percentage points; its 95 per "
        f"cent interval over samples of topics is {low:.2f} to {high:.2f}{zero}.{chosen}"
    )


def _describe_differences(row: PowerRow) -> str:
    if not (row.smallest or row.greatest):
        return "; the observed means of all runs are the same"
    if row.smallest is None:
        return f"; observed means differ by up to {row.greatest:.4g}"
    smallest = f"; the smallest significant difference is {row.smallest:.4g}"
    if row.greatest is None:
        return smallest
    return f"{smallest}; the largest difference that is not significant is {row.greatest:.4g}"


def _undefined(results: Sequence[PowerResult]) -> Iterator[str]:
    for result in results:
        if result["undefined"] is not None:
            yield f"power of {result['measure']}: {result['undefined']}"
        elif result["smallest"] is None:
            yield f"smallest({result['measure']}): no pair of runs differs significantly"


def _numbers(rows: Sequence[PowerRow]) -> dict[str, float | int | None]:
    """Return the numbers of the report by name.

    They are power(MEASURE) in percent, smallest(MEASURE), required(MEASURE), and pairs.
    """
    numbers: dict[str, float | int | None] = {}
    for row in rows:
        numbers[f"power({row.measure})"] = row.percent
        numbers[f"smallest({row.measure})"] = row.smallest
        numbers[f"required({row.measure})"] = row.required
        numbers["pairs"] = numbers.get("pairs") if row.pairs is None else row.pairs
    return numbers


def _level_rows(results: Sequence[PowerResult]) -> Iterator[PowerLevelRow]:
    for result in results:
        for level, percent in zip(LEVELS, result["levels"], strict=True):
            yield PowerLevelRow(measure=result["measure"], alpha=level, percent=percent)


def _agreement_row(first: PowerResult, second: PowerResult) -> AgreementRow:
    signs = list(zip(first["signs"], second["signs"], strict=True))
    significant, samples = (first["told"], second["told"]), [first.get("by_sample"), second.get("by_sample")]
    power = power_difference(significant, (samples[0] or [0], samples[1] or [0]), len(signs))
    has_interval = None not in samples
    return AgreementRow(
        first=first["measure"],
        second=second["measure"],
        both=sum(a == b != "." for a, b in signs),
        only_first=sum(a != "." and b == "." for a, b in signs),
        only_second=sum(a == "." and b != "." for a, b in signs),
        opposite=sum(a != b and "." not in (a, b) for a, b in signs),
        difference=power.value,
        low=power.low if has_interval else None,
        high=power.high if has_interval else None,
    )


def _design_rows(results: Sequence[PowerResult]) -> Iterator[DesignRow]:
    for result in results:
        for topics, detectable in result.get("designs", []):
            yield DesignRow(measure=result["measure"], topics=topics, detectable=detectable)


def _curve_rows(about: SubjectSummary, result: PowerResult) -> Iterator[LevelRow]:
    """Yield the pairs by decreasing ASL.

    If there are more than LISTED_PAIRS, evenly spaced ones are yielded.
    """
    levels = result.get("asl", [])
    pairs = list(combinations(about.runs, 2))
    order = sorted(range(len(levels)), key=lambda pair: -levels[pair])
    step = -(-len(order) // LISTED_PAIRS) or 1
    for place in range(0, len(order), step):
        first, second = pairs[order[place]]
        yield LevelRow(
            measure=result["measure"], rank=place + 1, first=first, second=second, asl=levels[order[place]]
        )
