"""Audit kind `reliability`: how reliably the topics measure the runs.

It is about the differences between runs, and about their scores.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NotRequired, TypedDict

from cupel_audits.analysis.named_extremes import name_ends
from cupel_audits.analysis.score_matrices import OverTopics, RunScores, collect_warnings, score_runs
from cupel_audits.declarations import audit, setting
from cupel_audits.report import AuditReport, Heading, MeasureCell, Plot, TableSchema
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.comparing.topic_sets.generalisability import SignalRatio, variance_components
from cupel_measures.grammar.parameters import Number, Numbers, Whole

Share = Annotated[float, Number("a number between 0 and 1, both excluded", 0, 1, (0, 1))]
Sizes = Annotated[tuple[int, ...], Numbers("rising whole numbers from 1, such as [25,50]", Whole())]
SIZES = (5, 10, 25, 50, 75, 100, 150, 200, 300, 500)
COEFFICIENTS = {"relative": "E rho^2", "absolute": "Phi"}
COMPONENTS = {"system": "runs", "topic": "topics", "residual": "residual"}

READING = (
    "E rho^2 is the reliability of differences between runs, and so of their order: the variance between "
    "runs, divided by the sum of this variance and the error variance of a mean over the topics. Phi is the "
    "reliability of the scores themselves: its error includes the difficulty of the topics. Both are "
    "between 0 and 1, and rise with the number of topics.",
    "The variance of a score is the sum of three: between runs, between topics, and the residual, which "
    "includes the interaction of runs and topics. If the residual is large, the best run changes from topic "
    "to topic, and many topics are needed.",
    "The intervals cover the sampling error of both runs and topics. They assume that both are random "
    "samples and that effects are normally distributed (Feldt, Psychometrika 1965, for E rho^2; Arteaga, "
    "Jeyaratnam and Franklin, 1982, for Phi). With few runs they are wide.",
    "The result depends strongly on the runs: a few very poor runs raise the variance between runs and both "
    "coefficients. From over 40 TREC collections, Urbano, Marrero and Martin (SIGIR 2013) conclude that "
    "50 topics are insufficient even for stable rankings.",
)

Estimate = tuple[float, float, float]
"""A value and the bounds of its interval."""
TopicNumbers = tuple[int | None, int | None, int | None]
"""A number of topics and the bounds of its interval; None where no number is enough."""


class ReliabilityResult(TypedDict):
    """The result for one measure; JSON-serialisable.

    undefined: the reason why nothing could be computed, or None. If it is not None, all fields after it are
    missing. variances: the variances of runs, of topics, and of the residual. curve: by coefficient, its
    value for each number of topics, where the first number is that of the audited topics. needed: by
    coefficient, the number of topics needed for the target.
    """

    measure: str
    notes: list[str]
    undefined: str | None
    variances: NotRequired[dict[str, float]]
    curve: NotRequired[dict[str, list[tuple[int, Estimate]]]]
    needed: NotRequired[dict[str, TopicNumbers]]


@dataclass(frozen=True, kw_only=True)
class ReliabilityRow:
    """One coefficient of one measure on the audited topics.

    The row also has the topics needed for the target value.
    """

    measure: MeasureCell
    coefficient: Annotated[str, Heading("coefficient", "E rho^2: differences between runs; Phi: scores")]
    topics: Annotated[int, Heading("topics")]
    value: Annotated[float, Heading("value", "with these topics")]
    low: Annotated[float, Heading("from", "interval over samples of runs and topics")]
    high: Annotated[float, Heading("to", "interval over samples of runs and topics")]
    needed: Annotated[
        int | None, Heading("topics needed", "needed for the target; empty if no number is enough")
    ]
    needed_low: Annotated[int | None, Heading("needed from", "interval of the topics needed")]
    needed_high: Annotated[
        int | None, Heading("needed to", "interval of the topics needed; empty if no number is enough")
    ]


@dataclass(frozen=True, kw_only=True)
class ComponentRow:
    """One component of the variance of scores by one measure."""

    measure: MeasureCell
    component: Annotated[str, Heading("component")]
    variance: Annotated[float, Heading("variance")]
    percent: Annotated[float | None, Heading("percent", "of the variance of a score")]


@dataclass(frozen=True, kw_only=True)
class CoefficientRow:
    """One coefficient of one measure for a number of topics."""

    measure: MeasureCell
    coefficient: Annotated[str, Heading("coefficient")]
    topics: Annotated[int, Heading("topics")]
    value: Annotated[float, Heading("value")]
    low: Annotated[float, Heading("from", "interval over samples of runs and topics")]
    high: Annotated[float, Heading("to", "interval over samples of runs and topics")]


COEFFICIENT_ROWS = TableSchema.of("measures", "Reliability with these topics", ReliabilityRow)
VARIANCES = TableSchema.of("components", "Components of the variance of a score", ComponentRow)
CURVE = TableSchema.of("curve", "Reliability by number of topics", CoefficientRow)


@audit(
    "reliability",
    title="Reliability of the topics",
    answers="How reliable are scores and differences between runs, and how many topics make them reliable?",
    source="Urbano, Marrero and Martin, SIGIR 2013; Brennan, Generalizability Theory, 2001",
)
class Reliability(OverTopics):
    """Divides the variance of scores into components.

    It also extrapolates to other numbers of topics.

    The variances are estimated from the mean squares (MS) of a two-way analysis of variance with S runs and n
    topics. The variance of the residual is e = MS(residual), that of runs is s = (MS(runs) - e) / n, and that
    of topics is t = (MS(topics) - e) / S. Negative estimates are set to 0. On n' topics, E rho^2 = s / (s + e
    / n'), and Phi = s / (s + (t + e) / n'). Solving these equations for n' gives the number of topics needed
    for a target. The intervals of E rho^2 are those of Feldt (1965), and those of Phi are by Arteaga,
    Jeyaratnam and Franklin (1982).
    """

    target: Share = setting(0.95, "target of both coefficients, for the number of topics needed")
    sizes: Sizes = setting(SIZES, "numbers of topics at which the coefficients are reported")
    confidence: Share = setting(0.95, "confidence level of the intervals")

    def trials(self, subject: AuditSubject) -> int:
        return len(subject.measures)

    def run_trials(
        self, subject: AuditSubject, seed: int, trials: Sequence[int]
    ) -> Iterator[ReliabilityResult]:
        for trial in trials:
            yield self._study(score_runs(subject, subject.measures[trial]))

    def _study(self, scores: RunScores) -> ReliabilityResult:
        """Compute the variance components and coefficients of one measure."""
        components = variance_components(scores.values)
        undefined = scores.undefined
        if components is not None and not components.system_square and not components.residual_square:
            undefined = "all runs have the same scores"
        result = ReliabilityResult(measure=scores.measure, notes=[*scores.notes], undefined=undefined)
        if undefined is not None or components is None:
            return result
        ratios = {
            "relative": components.relative(confidence=self.confidence),
            "absolute": components.absolute(confidence=self.confidence),
        }
        sizes = (components.topics, *self.sizes)
        result.update(
            {
                "variances": {name: getattr(components, name) for name in COMPONENTS},
                "curve": {name: _curve(ratio, sizes) for name, ratio in ratios.items()},
                "needed": {name: ratio.topics_needed(self.target) for name, ratio in ratios.items()},
            }
        )
        return result

    def report(self, about: SubjectSummary, by_trial: Mapping[int, ReliabilityResult]) -> AuditReport:
        results = list(by_trial.values())
        defined = [result for result in results if result["undefined"] is None]
        rows = [row for result in defined for row in _reliability_rows(result)]
        components = [row for result in defined for row in _component_rows(result)]
        return AuditReport(
            verdict=tuple(self._verdict(rows, components)),
            numbers=_numbers(results, rows),
            tables=(
                COEFFICIENT_ROWS.table(rows),
                VARIANCES.table(components),
                CURVE.table(row for result in defined for row in _curve_rows(result)),
            ),
            plots=_plots(self.target, self.confidence, rows, components),
            actions=tuple(_advice(rows, self.target)),
            reading=READING,
            undefined=tuple(_undefined(results, rows, self.target)),
            warnings=collect_warnings(results),
        )

    def _verdict(self, rows: Sequence[ReliabilityRow], components: Sequence[ComponentRow]) -> Iterator[str]:
        """Yield two sentences for each measure, in descending order of E rho^2."""
        if not rows:
            yield "Reliability is undefined for every measure."
        by_measure = {row.measure: row for row in rows if row.coefficient == COEFFICIENTS["relative"]}
        for measure in sorted(by_measure, key=lambda measure: -by_measure[measure].value):
            relative, absolute = (row for row in rows if row.measure == measure)
            yield (
                f"{measure}: with {relative.topics} topics, E rho^2 is {_with_interval(relative)} and Phi is "
                f"{_with_interval(absolute)} ({self.confidence:.0%} intervals). By the estimate, differences "
                f"between runs reach a reliability of {self.target:g} with {_describe_needed(relative)}, "
                f"scores with {_describe_needed(absolute)}."
            )
            shares = [
                f"{row.percent:.1f}% {COMPONENT_PHRASES[row.component]}"
                for row in components
                if row.measure == measure and row.percent is not None
            ]
            yield f"{measure}: of the variance of a score, {', '.join(shares)}."


COMPONENT_PHRASES = {"runs": "is between runs", "topics": "between topics", "residual": "residual"}


def _with_interval(row: ReliabilityRow) -> str:
    return f"{row.value:.3f} ({row.low:.3f} to {row.high:.3f})"


def _describe_needed(row: ReliabilityRow) -> str:
    if row.needed is None:
        return (
            "no number of topics (variance between runs estimated as 0 or less, set to 0; interval: "
            f"{_needed_interval(row)})"
        )
    return f"{row.needed} {'topic' if row.needed == 1 else 'topics'} ({_needed_interval(row)})"


def _needed_interval(row: ReliabilityRow) -> str:
    if row.needed_low is None:
        return "no number of topics"
    return f"{row.needed_low} {'or more' if row.needed_high is None else f'to {row.needed_high}'}"


def _curve(ratio: SignalRatio, sizes: Sequence[int]) -> list[tuple[int, Estimate]]:
    return [(size, ratio.coefficient(size)) for size in sizes]


def _reliability_rows(result: ReliabilityResult) -> Iterator[ReliabilityRow]:
    for name, coefficient in COEFFICIENTS.items():
        topics, (value, low, high) = result["curve"][name][0]
        needed, needed_low, needed_high = result["needed"][name]
        yield ReliabilityRow(
            measure=result["measure"],
            coefficient=coefficient,
            topics=topics,
            value=value,
            low=low,
            high=high,
            needed=needed,
            needed_low=needed_low,
            needed_high=needed_high,
        )


def _component_rows(result: ReliabilityResult) -> Iterator[ComponentRow]:
    total = sum(result["variances"].values())
    for name, component in COMPONENTS.items():
        variance = result["variances"][name]
        yield ComponentRow(
            measure=result["measure"],
            component=component,
            variance=variance,
            percent=100 * variance / total if total else None,
        )


def _curve_rows(result: ReliabilityResult) -> Iterator[CoefficientRow]:
    """Yield the coefficients for each number of topics.

    The numbers are in ascending order.
    """
    for name, coefficient in COEFFICIENTS.items():
        for topics, (value, low, high) in sorted(dict(result["curve"][name]).items()):
            yield CoefficientRow(
                measure=result["measure"],
                coefficient=coefficient,
                topics=topics,
                value=value,
                low=low,
                high=high,
            )


def _numbers(
    results: Sequence[ReliabilityResult], rows: Sequence[ReliabilityRow]
) -> dict[str, float | int | None]:
    """Return erho2(MEASURE), phi(MEASURE), and the topics needed for the target."""
    numbers: dict[str, float | int | None] = {}
    by_name = {(row.measure, row.coefficient): row for row in rows}
    for measure in (result["measure"] for result in results):
        for name, coefficient in (("erho2", COEFFICIENTS["relative"]), ("phi", COEFFICIENTS["absolute"])):
            row = by_name.get((measure, coefficient))
            numbers[f"{name}({measure})"] = None if row is None else row.value
            numbers[f"topics_{name}({measure})"] = None if row is None else row.needed
    return numbers


def _undefined(
    results: Sequence[ReliabilityResult], rows: Sequence[ReliabilityRow], target: float
) -> Iterator[str]:
    for result in results:
        if result["undefined"] is not None:
            yield f"reliability of {result['measure']}: {result['undefined']}"
    for row in rows:
        if row.needed is None:
            yield (
                f"topics for {row.coefficient} of {row.measure}: the variance between runs is estimated as 0 "
                f"or less and set to 0, so by the estimate no number of topics reaches {target:g} (interval: "
                f"{_needed_interval(row)})"
            )


def _advice(rows: Sequence[ReliabilityRow], target: float) -> Iterator[str]:
    """Yield how many topics to use for each purpose."""
    if not rows:
        yield "Give runs whose scores differ, and judgments with relevant documents, and run the audit again."
    for name, purpose in (("relative", "compare runs"), ("absolute", "interpret scores themselves")):
        same = [row for row in rows if row.coefficient == COEFFICIENTS[name]]
        needed = [(row.needed, row) for row in same if row.needed is not None]
        if not needed:
            continue
        fewest, row = min(needed, key=lambda pair: pair[0])
        if fewest <= row.topics:
            below = f"; its interval begins at {row.low:.3f}" if row.low < target else ""
            yield (
                f"To {purpose}, {row.topics} topics reach {target:g} by {row.measure} (estimate){below}. "
                "Reliability is no validity: choose the measure by the task."
            )
        else:
            others = "" if len(needed) == 1 else "; no other measure needs fewer"
            yield (
                f"To {purpose} at {target:g}, add topics to the {row.topics}: by the estimate, {row.measure} "
                f"needs {fewest} (interval: {_needed_interval(row)}){others}."
            )
    if any(row.needed_high is None for row in rows):
        yield "Add runs or topics to narrow the intervals, some of which are unbounded."


def _curve_title(rows: Sequence[ReliabilityRow]) -> str:
    """Return a title with the range of each coefficient over the measures.

    The coefficients are those on the topics of the collection.
    """
    if not rows:
        return "Reliability is undefined for every measure"
    clauses = []
    for coefficient in dict.fromkeys(row.coefficient for row in rows):
        values = [row.value for row in rows if row.coefficient == coefficient]
        low, high = f"{min(values):.2f}", f"{max(values):.2f}"
        clauses.append(f"{coefficient} is {low if low == high else f'{low} to {high}'}")
    return f"With {rows[0].topics} topics, {' and '.join(clauses)}"


def _components_title(components: Sequence[ComponentRow]) -> str:
    between = [
        (row.percent, row.measure)
        for row in components
        if row.component == COMPONENTS["system"] and row.percent is not None
    ]
    if not between:
        return "The components are undefined for every measure"
    return f"Share of the variance of a score that is between runs: {name_ends(between, '{:.1f}%')}"


def _plots(
    target: float, confidence: float, rows: Sequence[ReliabilityRow], components: Sequence[ComponentRow]
) -> tuple[Plot, ...]:
    return (
        Plot.curve(
            CURVE,
            "curve",
            title=_curve_title(rows),
            caption=f"E rho^2 of differences between runs and Phi of scores, with {confidence:.0%} intervals "
            f"over samples of runs and topics, by number of topics.",
            x="topics",
            y="value",
            series="measure",
            low="low",
            high="high",
            domain=(0, 1),
            reference=target,
            reference_label=f"target {target:g}",
            facet="coefficient",
        ),
        Plot.bars(
            VARIANCES,
            "components",
            title=_components_title(components),
            caption="Share of the variance of a score that is between runs, between topics, and residual.",
            x="measure",
            y="percent",
            series="component",
            domain=(0, 100),
        ),
    )
